"""Mutation testing: would a test notice if a line of the measures, the nulls or the results were wrong?

`python -m mutation --sample 500 --seed 0`, from `tests/`, draws mutants from every file that
`subjects.py` names, in proportion to how many each file has, and runs the tests named there against
each, in a copy of the repository. The mutants are cosmic-ray's (`pip install cosmic-ray==8.7.0`).
With `--journal FILE` trials are kept, and a run that was stopped goes on. Loops run uncompiled, so that
a mutated loop takes effect without being compiled first.

Left out before the draw, since no test could notice them here: annotations, which are never evaluated,
and decorators that only compile. A mutant is killed if a test fails, or takes more processor time than
`subjects.LIMIT` allows (most often a loop without end). What survives is in `survivors.toml`, with the
reason: *equivalent* (no input shows a difference), *speed* (the same values, later), or *open*.
"""
