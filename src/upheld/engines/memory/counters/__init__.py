"""Numbers of facts and of derivations: counters, ranks, traces and bags."""
