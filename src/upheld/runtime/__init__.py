"""Limits, statistics, interruptions and turns: shared by every run, independent of rules."""
