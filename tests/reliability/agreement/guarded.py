"""R23: random programs with constraints, updated one by one and in transactions, against recomputation.

Every algorithm on the memory engine, every tenth stream on the reference engine. An update or a transaction is refused
exactly if recomputation finds new violations, and what is refused or rolled back changes nothing. Facts, changes,
violations, counters, ranks and levels are compared after each, and in the middle of transactions.
"""

from __future__ import annotations

from tests.helpers.streams.guarded import follow
from tests.reliability.programme import Run, goal

#: Updates of a stream.
STEPS = 8


@goal("R23", "constraints and transactions", sample=3, full=10_000)
def guarded(run: Run) -> None:
    counts = {"made": 0, "refused": 0, "rolled back": 0}
    while not run.over:
        seed = run.seed * 1_000_000 + run.made

        def stream(seed: int = seed) -> None:
            done = follow(seed, "reference" if seed % 10 == 0 else "memory", steps=STEPS)
            counts["made"] += done.made
            counts["refused"] += done.refused
            counts["rolled back"] += done.rolled_back

        run.case(f"stream {seed}", stream)
    run.figures |= counts
