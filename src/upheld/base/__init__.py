"""The basis of every run: errors, places in texts, limits, statistics, interruptions, turns and pages."""
