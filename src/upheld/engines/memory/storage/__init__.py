"""Tables of rows, their indexes and partitions, and the codes of values."""
