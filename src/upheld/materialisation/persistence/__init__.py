"""State that outlasts the process or its tasks: saved facts, bookkeeping, the record of explicit facts, checkpoints."""
