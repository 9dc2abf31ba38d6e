"""What every run shares: errors, places in texts, limits, statistics, interruptions, turns and pages."""
