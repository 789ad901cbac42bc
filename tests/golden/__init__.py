"""Numbers that were found once, and must be found again."""
