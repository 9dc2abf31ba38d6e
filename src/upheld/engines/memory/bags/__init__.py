"""Facts with multiplicities, derivations counted as they are found, and instances found backwards."""
