"""RESULTS.md and its tables, written from the stored measurements."""
