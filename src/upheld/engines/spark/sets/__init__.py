"""Sets of facts in partitions."""
