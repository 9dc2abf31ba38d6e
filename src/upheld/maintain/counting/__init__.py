"""Algorithms that count derivations: with recursion by levels and by rounds, and DRed and B/F with counters."""
