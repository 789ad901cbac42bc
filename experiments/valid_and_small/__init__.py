"""A set should be valid and small: what adding members does to both."""
