"""The tables of each subject, and its goals."""
