"""How often does the test of a classifier set err? The paper's study, and one of all nulls."""
