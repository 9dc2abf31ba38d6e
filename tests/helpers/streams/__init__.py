"""Random streams of updates, and the conditions that hold after each update."""
