"""Numbers of facts and of derivations in partitions: bags, ranks, traces and aggregates."""
