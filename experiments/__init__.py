"""Figures and tables from real data and from the paper, each by one command, by public names alone."""
