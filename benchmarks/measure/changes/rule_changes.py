"""One rule of a large program is removed and added again, beside starting again with the new program.

    python -m benchmarks.measure.changes.rule_changes               # Claros-L beside 450,000 facts
    python -m benchmarks.measure.changes.rule_changes 50000         # beside fewer facts

It prints CPU milliseconds: of starting again, the least of three runs, and of each change, for rules chosen at random.
The median change must be 20 times faster than starting again.
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from random import Random

import upheld
from benchmarks.workloads import many_rules
from upheld.engines.memory.kernels.jit import compile_kernels

RULES, FACTS, GOAL = 12, 450_000, 20


def main(facts: int) -> None:
    warnings.simplefilter("ignore", upheld.UpheldWarning)
    rules = many_rules.ontology("Claros_L")
    given = many_rules.zipf(many_rules.arities(rules), facts, facts * 2 // 5, 1)
    compile_kernels()
    m = upheld.materialise(rules, given)
    again = min(_cpu(lambda: upheld.materialise(rules, given)) for _ in range(3))
    print(f"starting again with {facts:,} facts: {again:.0f} ms")
    lines = [line for line in rules.splitlines() if line.strip()]
    times: dict[str, list[float]] = {"remove": [], "add": []}
    for rule in Random(1).sample(lines, RULES):
        for kind, taken in times.items():
            taken.append(_cpu(partial(m.change_rules, **{kind: rule})))
        print(f"  {times['remove'][-1]:6.0f} ms out {times['add'][-1]:6.0f} ms in  {rule}")
    for kind, taken in times.items():
        ratio = again / statistics.median(taken)
        verdict = "reached" if ratio >= GOAL else "missed"
        print(f"{kind}: median {statistics.median(taken):.0f} ms, {ratio:.0f} times faster (goal {GOAL}: {verdict})")


def _cpu(run: Callable[[], object]) -> float:
    """Return the CPU milliseconds of a call."""
    began = time.process_time()
    run()
    return 1000 * (time.process_time() - began)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else FACTS)
