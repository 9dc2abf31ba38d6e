"""Facts files as Soufflé reads and writes them."""
