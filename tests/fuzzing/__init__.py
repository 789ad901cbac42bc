"""Inputs that nobody would write: damaged files, senseless commands, sets at the edge of arithmetic.

From the folder `tests`, `python -m fuzzing --inputs 20000 --seed 0` tries them all and prints a table
of what came of them. An input is known by its room, the seed and its number, and can be repeated:
`python -m fuzzing --room readers --seed 0 --only 1234`.
"""
