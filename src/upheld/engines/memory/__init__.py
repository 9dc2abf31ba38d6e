"""The memory engine: columns, flags, hash indexes and kernels, on one machine (NumPy and Numba)."""
