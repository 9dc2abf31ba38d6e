"""Facts in and out: relations, changes, columns, facts files and update files. No engine."""
