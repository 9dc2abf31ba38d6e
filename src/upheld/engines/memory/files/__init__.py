"""Facts files read and written by kernels."""
