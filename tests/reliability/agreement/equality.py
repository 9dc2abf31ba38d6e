"""R1: random updates by every maintenance algorithm, each compared with an oracle that evaluates the program naively.

A step is one update of one database by one algorithm. A program has many databases that are maintained as one
(tests/helpers/streams/merging.py), so that an update of all of them costs little more than that of one. After each
step the facts, the explicit facts, the counters of the algorithm and the reported change equal the oracle's (naive.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from random import Random

from tests.helpers.programs.strategies import random_cyclic_cases
from tests.helpers.streams import eqrel_streams, equality_streams
from tests.helpers.streams.layered_streams import check_layered_stream, random_layered_case, random_local_case
from tests.helpers.streams.merging import together
from tests.helpers.streams.streams import (
    CONSTANTS,
    NAMES,
    Recomputed,
    Stream,
    assert_recomputed,
    assert_told,
    follow,
    overlapping,
    random_aggregate_stream,
    random_stream,
    some_stratification,
)
from tests.reliability.agreement.naive import Instance, Naive, NoResult
from tests.reliability.programme import Run, goal
from upheld.compiler.compile import compile_program
from upheld.compiler.equality.equality import with_equality
from upheld.compiler.strata import Stratification
from upheld.language.core import Core, Fact
from upheld.language.syntax.files import read_text
from upheld.maintain.registry import MARKING

#: Databases of a program, and of one whose derived facts seldom change.
DATABASES, FEW = 64, 4
#: A program is lively if the share of updates that change derived facts is at least this in its first databases.
LIVELY = 0.5
UPDATES = 12
#: Streams in which updates also undo what the one before has done, which whoever looks ahead marks.
OVERLAPPING = 0.2


@dataclass
class Judged:
    """What the oracle says of a state of a stream, by the names by which `assert_recomputed` asks for it."""

    core: Core
    strata: Stratification
    model: Naive
    stratum_of: Callable[[Fact], int]

    def __post_init__(self) -> None:
        self.explicit, self.facts, self.visible = self.model.explicit, self.model.facts, self.model.visible

    @cached_property
    def leanings(self) -> list[Instance]:
        return self.model.leanings(self.stratum_of)

    @cached_property
    def trace(self) -> dict[Fact, dict[int, int]]:
        counted = {s.index for s in self.strata if s.rules}
        return self.model.trace(self.leanings, lambda fact: self.stratum_of(fact) in counted)


@dataclass
class JudgedStream(Stream):
    """A stream whose states are those of the naive oracle."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._places: dict[Fact, int] = {}
        self._states: list[Recomputed | None] | None = None

    def recomputed(self) -> list[Recomputed | None]:
        if self._states is None:
            self._states = super().recomputed()
        return self._states

    def _recomputed(self, explicit: set[Fact]) -> Recomputed | None:
        found = self._judged(explicit, self.core)
        if self.core is not self.written:
            plain = self._judged(explicit, self.written)
            assert (found and found.visible) == (plain and plain.visible), "decomposed rules derive other facts"
        return found  # type: ignore[return-value]

    def _judged(self, explicit: set[Fact], core: Core) -> Judged | None:
        try:
            return Judged(core, self.strata, Naive(core, explicit), self._place)
        except NoResult:
            return None

    def _place(self, fact: Fact) -> int:
        if fact not in self._places:
            self._places[fact] = self.strata.stratum_of(fact)
        return self._places[fact]

    def livened(self) -> int:
        """Return how many updates of a database change facts that rules derive."""
        states = [state for state in self.recomputed() if state is not None]
        livened = 0
        for before, now in pairwise(states):
            changed = before.model.derived ^ now.model.derived  # type: ignore[attr-defined]
            livened += bool(changed) if self.databases == 1 else len({row[0] for _, row in changed})
        return livened


def judged(seed: int, databases: int) -> JudgedStream:
    """Return the stream of a seed: plain, typed and aggregating programs, walks on graphs, decomposed cyclic rules."""
    r = Random(seed)
    if seed % 16 == 4:
        s = random_aggregate_stream(3 * seed + 1, UPDATES)  # not one over triples
    elif r.random() < 0.06:
        case = together(random_cyclic_cases(r, UPDATES, databases, longest=r.choice((4, 5))))
        s = Stream(case, some_stratification(r), r.choice(CONSTANTS), r.choice(("always", "all")), databases)
    else:
        s = random_stream(seed, UPDATES, databases)
    if r.random() < OVERLAPPING:
        s.case.updates[:] = overlapping(s.case.updates, r)
    return JudgedStream(s.case, s.stratification, s.constants, s.decompose, s.databases)


def with_odd_updates(stream: JudgedStream, r: Random) -> JudgedStream:
    """Return the stream with rows given twice, and with facts that an update both deletes and inserts."""
    for u in stream.case.updates:
        for side, other in ((u.deletions, u.insertions), (u.insertions, u.deletions)):
            rows = [(name, row) for name, rows in side.items() for row in rows]
            for name, row in r.sample(rows, min(len(rows), 1 + len(rows) // 10)):
                (side if r.random() < 0.5 else other).setdefault(name, []).append(row)
    return stream


@goal("R1", "maintenance equals naive recomputation", sample=800, full=1_000_000)
def equality(run: Run) -> None:
    databases = DATABASES if run.size > 100_000 else FEW  # a small run looks at more programs
    seen = Counter({"programs": 0, "streams": 0, "livened": 0, "by the naive oracle": 0, "marked": 0})

    def programs(seed: int) -> int:
        stream = judged(seed, FEW)
        if not stream.recomputed():  # the program fails on its first facts
            return 0
        if databases > FEW and stream.databases > 1 and stream.livened() >= LIVELY * FEW * UPDATES:
            stream = judged(seed, databases)
        stream = with_odd_updates(replace(stream), Random(seed))
        made = follow(stream, ["memory"], NAMES)
        ahead = sum(followed_ahead(stream, name, seen) for name in MARKING)
        seen["programs"] += 1
        seen["livened"] += stream.livened() * (len(NAMES) + len(MARKING))
        seen["by the naive oracle"] += made * len(NAMES) + ahead
        return made * len(NAMES) + ahead

    def equalities(seed: int) -> int:
        seen["streams"] += 1
        by_naive = 0
        case = equality_streams.random_equality_case(seed, UPDATES)
        for name in ("adaptive", "rematerialise"):
            by_naive += sum(1 for _ in equality_streams.check_stream(case, "memory", name, naive_triples))
        eqrel = eqrel_streams.random_eqrel_case(seed, UPDATES)
        for name in NAMES:
            m = eqrel_streams.opened(eqrel, "memory", name, decompose=("auto", "always")[seed % 2])
            by_naive += sum(1 for _ in eqrel_streams.check_stream(eqrel, m, naive_relations))
        seen["by the naive oracle"] += by_naive
        layered = [make(seed, UPDATES) for make in (random_layered_case, random_local_case)]
        return by_naive + sum(check_layered_stream(case, "memory").made for case in layered)

    for number in run.cases():
        seed = run.seed * 10_000_000 + number
        if number % 8 == 1:
            run.case(f"equalities {seed}", partial(equalities, seed), count=None)
        else:
            run.case(f"program {seed}", partial(programs, seed), count=None)
    share = round(seen.pop("livened") / max(1, run.made), 2)
    run.figures |= {**seen, "livened": share, "algorithms": len(NAMES) + len(MARKING)}


def followed_ahead(stream: Stream, algorithm: str, seen: Counter[str]) -> int:
    """Follow a stream in which each update is known while the one before is made, and return how many were made."""
    states = stream.recomputed()
    if None in states:
        return 0
    with stream.constants_in_place():
        m = stream.open("memory", algorithm)
        updates = [{"delete": u.deletions, "insert": u.insertions} for u in stream.case.updates]
        for change, u, before, now in zip(m.stream(updates), stream.case.updates, states, states[1:], strict=False):
            assert before is not None and now is not None
            assert_told(change, u, before, now)
            assert_recomputed(m, now)
            seen["marked"] += bool(change.statistics.marks)
    return stream.databases * len(updates)


def naive_triples(case: equality_streams.EqualityCase, explicit: set[equality_streams.Triple]) -> set:
    core = with_equality(compile_program(case.program, {}).core, "axioms")
    return {row for name, row in Naive(core, {("triple", row) for row in explicit}).facts if name == "triple"}


def naive_relations(case: eqrel_streams.EqrelCase, explicit: eqrel_streams.Facts) -> eqrel_streams.Facts:
    core = with_equality(compile_program(read_text(case.text)).core, "off")
    found: eqrel_streams.Facts = {name: set() for name in eqrel_streams.LEVELS}
    for name, row in Naive(core, {(name, row) for name, rows in explicit.items() for row in rows}).visible:
        found[name].add(row)
    return found
