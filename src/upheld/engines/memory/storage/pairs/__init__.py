"""Matrices of pairs of values: their shapes, and the rows of pairs by direct address."""
