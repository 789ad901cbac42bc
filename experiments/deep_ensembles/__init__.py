"""The second experiment of the paper: single, dropout and deep-ensemble networks, and Table 1."""
