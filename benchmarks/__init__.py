"""Upheld beside other engines on the same rules and the same files. See README.md."""
