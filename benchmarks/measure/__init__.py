"""What is measured: scripts, and the clocks they share."""
