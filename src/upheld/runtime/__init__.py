"""What every run shares: limits, statistics, interruptions, and whose turn it is. Nothing here knows of rules."""
