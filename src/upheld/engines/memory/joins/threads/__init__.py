"""Joins shared by threads: chunks of the rows of one rule, and rules with different heads."""
