"""R22: random changes of rules, mixed with updates and previews, equal starting again with the new program.

Every algorithm on the memory engine, every tenth stream on the reference engine. Facts, changes, counters, ranks and
levels are compared after each; a change that the language refuses must be refused, and change nothing.
"""

from __future__ import annotations

from tests.helpers.streams.rule_changes import follow
from tests.reliability.programme import Run, goal

#: Steps of a stream.
STEPS = 10


@goal("R22", "rules that change", sample=3, full=10_000)
def rule_changes(run: Run) -> None:
    changes = 0
    while not run.over:
        seed = run.seed * 1_000_000 + run.made

        def stream(seed: int = seed) -> None:
            nonlocal changes
            changes += follow(seed, "reference" if seed % 10 == 0 else "memory", steps=STEPS)

        run.case(f"stream {seed}", stream)
    run.figures |= {"rule changes": changes}
