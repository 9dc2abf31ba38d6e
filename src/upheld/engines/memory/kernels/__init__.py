"""Loops over arrays, compiled by Numba. They know nothing of rules."""
