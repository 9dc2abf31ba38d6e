"""What outlasts the process, or its tasks: saved facts and bookkeeping, the record of explicit facts, checkpoints."""
