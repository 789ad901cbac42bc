"""Sequences of bacteria and of proteins, as features and classes for the deep ensembles."""
