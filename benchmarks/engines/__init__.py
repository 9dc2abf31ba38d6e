"""One module an engine: each evaluates a workload in a process of its own, and prints what it took."""
