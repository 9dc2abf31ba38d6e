"""Generated facts: the same facts for the same seed and scale. Facts are arrays of integers by relation."""
