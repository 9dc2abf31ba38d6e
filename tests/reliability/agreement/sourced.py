"""R24: random programs whose facts have sources, against a plain dictionary of claims and recomputation.

Every algorithm on the memory engine, every tenth stream on the reference engine. Three named sources and the unnamed
one insert, delete and replace facts, in updates and streams; sources are retracted, and states saved and restored in
between. After each step, the sources of every explicit fact are equal to the dictionary, and facts, counters, ranks and
levels are equal to recomputation.
"""

from __future__ import annotations

from tests.helpers.streams.sourced import follow
from tests.reliability.programme import Run, goal

#: Updates of a stream.
STEPS = 8


@goal("R24", "sources of facts", sample=3, full=10_000)
def sourced(run: Run) -> None:
    made = 0
    while not run.over:
        seed = run.seed * 1_000_000 + run.made

        def stream(seed: int = seed) -> None:
            nonlocal made
            made += follow(seed, "reference" if seed % 10 == 0 else "memory", steps=STEPS)

        run.case(f"stream {seed}", stream)
    run.figures["updates made"] = made
