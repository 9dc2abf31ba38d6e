"""The plain algorithm 3 of paper 1 gives the trace of algorithm 2, and so does `counting`, which goes by levels."""

from __future__ import annotations

from collections import Counter, defaultdict

from tests.helpers.streams import facts_of, random_stream
from upheld.engines.reference.engine import ReferenceEngine
from upheld.language.core import Fact
from upheld.language.strata import Stratification
from upheld.maintain.counting_by_rounds import counting_by_rounds
from upheld.maintain.seminaive import Multisets, seminaive_counting

Counts = dict[Fact, dict[int, int]]


def counts_of(strata: Stratification, trace: Multisets) -> Counts:
    """How often each fact is derived, by the round of its stratum; `counting` keeps nothing of strata without rules."""
    counts: Counts = defaultdict(dict)
    for s, rounds in zip(strata, trace, strict=True):
        for i, N in enumerate(rounds if s.rules else (), 1):
            for fact, n in N.items():
                counts[fact][i] = n
    return counts


def test_same_trace():
    """After each update the trace and the materialisation are those of recomputation, and those of `counting`."""
    changed: Counter[str] = Counter()
    for seed in range(400_000, 400_060):
        stream = random_stream(seed, updates=6)
        states = stream.recomputed()
        if not states:
            continue
        engine = ReferenceEngine()
        before = states[0]
        _, trace = seminaive_counting(engine, engine.facts(before.explicit), stream.strata)
        m = stream.open("reference", "counting")
        for u, now in zip(stream.case.updates, states[1:]):
            if now is None:
                continue
            minus, plus = facts_of(u.deletions), facts_of(u.insertions)
            E_minus = engine.facts((minus & before.explicit) - plus)
            E_plus = engine.facts(plus - before.explicit)
            assert set(counting_by_rounds(stream.strata, trace, E_minus, E_plus)) == now.facts
            assert counts_of(stream.strata, trace) == now.trace
            m.update(delete=u.deletions, insert=u.insertions)
            assert counts_of(stream.strata, trace) == {
                fact: counts for fact, counts, _ in m._state.bookkeeping.trace.items()
            }
            changed["trace"] += before.trace != now.trace
            changed["levels"] += any(
                min(before.trace[f]) != min(now.trace[f]) for f in before.trace.keys() & now.trace.keys()
            )
            before = now
    assert changed["trace"] > 100
    assert changed["levels"] > 10, "facts that stay and move to another round"
