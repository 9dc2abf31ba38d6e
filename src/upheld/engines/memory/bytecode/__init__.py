"""Plans as numbers, and the kernels that follow them."""
