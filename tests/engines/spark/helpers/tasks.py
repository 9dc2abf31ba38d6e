"""Tasks in threads that follow random streams in step, and what must hold in all of them together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.engines.spark.helpers.threads import driven_in_threads, in_threads
from tests.helpers.programs.strategies import Update
from tests.helpers.streams.streams import FactsGiven, Recomputed, Stream, facts_of
from upheld.base.errors import EvaluationError
from upheld.base.limits import Limits
from upheld.compiler.strata import Stratification
from upheld.engines.spark.engine import PartitionedEngine
from upheld.engines.spark.sets.sets import PartitionedSet
from upheld.engines.spark.tasks.driver import DrivenEngine
from upheld.engines.spark.tasks.wire import Wire
from upheld.language.core import Core, Fact
from upheld.maintain.marking.marking import Marked
from upheld.maintain.registry import algorithm_named
from upheld.maintain.update import Requested, State, step


@dataclass(frozen=True)
class Task:
    """A choice of engine: one task of several."""

    wire: Wire
    replicated: frozenset[str] = frozenset()
    name: str = "spark"

    def open(self, core: Core, limits: Limits | None = None) -> PartitionedEngine:
        return PartitionedEngine(core, self.wire, replicated=self.replicated & core.predicates.keys())


@dataclass(frozen=True)
class Driven:
    """A choice of engine: tasks in threads, which follow a driver."""

    parts: int
    name: str = "spark"

    def open(self, core: Core, limits: Limits | None = None) -> DrivenEngine:
        return driven_in_threads(core, self.parts, limits)


def here(facts: PartitionedSet) -> set[Fact]:
    """Return the facts of a set that are at home in this task."""
    codec = facts.context.codec
    return {(t.name, row) for t, rows in facts.here().items() for row in codec.decode_rows(t.rows[rows], t.types)}


@dataclass
class Kept:
    """What a task has after an update."""

    E: set[Fact]
    I: set[Fact]
    #: What all tasks must agree on.
    agreed: tuple[Any, ...]
    change: tuple[set[Fact], set[Fact]] | None = None
    books: dict[str, dict[Fact, Any]] = field(default_factory=dict)


def kept(state: State, change: tuple[set[Fact], set[Fact]] | None = None) -> Kept:
    engine, books = state.engine, state.bookkeeping
    s = engine.meter.statistics
    told: list[Any] = [Counter(s.instances), s.rounds, s.facts, list(s.choices), engine.context.wire.exchanges]
    found: dict[str, dict[Fact, Any]] = {}
    for name in ("cnr", "cr", "ranks"):
        if (book := getattr(books, name, None)) is not None:
            found[name] = dict(book.items())
    if (trace := getattr(books, "trace", None)) is not None:
        found["trace"] = {f: (dict(counts), level) for f, counts, level in trace.items()}
    if "ranks" in found:
        told += [books.ranks.sums(), [books.ranks.derivations(stratum) for stratum in state.strata]]
        assert_copies(engine, state.I, found["ranks"], books.ranks.local.rank)
    else:
        assert_copies(engine, state.I, {}, None)
    return Kept(here(state.E), here(state.I), tuple(told), change, found)


def assert_copies(engine: PartitionedEngine, I: PartitionedSet, ranks: dict[Fact, Any], column: str | None) -> None:
    """Every fact has its copies, and these have the rank of the fact."""
    context = engine.context
    for name, table in context.local.tables.items():
        everything = set(I.rows(name))
        local = I.local.of(table)
        rows = context.codec.decode_rows(table.rows[local], table.types)
        assert len(rows) == len(set(rows))
        assert everything.issuperset(rows)
        columns = (0, *context.views.columns(name))
        codes = context.codec.encode_rows(list(everything), table.types)
        mine = np.zeros(len(everything), np.bool_)
        for c in columns if table.types else ():
            mine |= context.owners.of(codes[c]) == context.wire.me
        collects = name in context.views.collected and context.owners.of_name(name) == context.wire.me
        if name in context.views.replicated or collects:
            mine[:] = True
        if table.types:
            assert set(rows) == {row for row, is_mine in zip(everything, mine) if is_mine}
        if column is not None:
            for row, rank in zip(rows, table.column(column)[local].tolist()):
                assert (name, row) not in ranks or ranks[name, row][0] == rank, "a copy with another rank"


class Follower:
    """A session that goes through a stream in one task."""

    def __init__(self, wire: Wire):
        self.wire = wire

    def begin(
        self, core: Core, strata: Stratification, explicit: set[Fact], algorithm: str, replicated: frozenset[str]
    ) -> Kept:
        """Materialise a program."""
        self.engine, self.algorithm, self.core = Task(self.wire, replicated).open(core), algorithm, core
        E = self.engine.named("E")
        E |= self.load(explicit)
        self.state = algorithm_named(algorithm).materialise(self.engine, E, strata)
        return kept(self.state)

    def load(self, facts: Iterable[Fact]) -> PartitionedSet:
        """Load facts, some of them in each task."""
        loaded, rows = self.engine.named("loaded"), defaultdict(list)
        for p, row in sorted(facts, key=repr):
            rows[p].append(row)
        for p in sorted(rows):
            loaded |= self.engine.load(p, rows[p][self.wire.me :: self.wire.parts])
        return loaded

    def facts(self, given: FactsGiven) -> PartitionedSet:
        """Load facts of an update."""
        return self.load(facts_of(given, self.core))

    def update(self, u: Update, then: Update | None, twice: bool) -> Kept:
        """Make an update; with `twice`, make it, undo it, and make it again. `then` is the one that follows."""
        engine, state, chosen = self.engine, self.state, algorithm_named(self.algorithm)
        with engine.meter.run():
            minus, plus = self.facts(u.deletions), self.facts(u.insertions)
            E_minus, E_plus = engine.settle((minus & state.E) - plus), engine.settle(plus - state.E)
            books = state.bookkeeping
            try:
                with engine.transaction():
                    if twice:
                        with engine.attempt() as attempt:
                            step(state, chosen.update, E_minus, E_plus)
                            attempt.undo()
                        state.bookkeeping = books
                    if isinstance(state.bookkeeping, Marked):
                        ahead = then and Requested(
                            *(engine.settle(self.facts(f)) for f in (then.deletions, then.insertions))
                        )
                        state.bookkeeping = Marked(state.bookkeeping.marks, ahead)
                    done = step(state, chosen.update, E_minus, E_plus)
            except EvaluationError:
                state.bookkeeping = books
                return kept(state)
            return kept(state, (here(done.deleted), here(done.inserted)))

    def state_now(self) -> Kept:
        return kept(self.state)


def follow(
    stream: Stream, algorithm: str, parts: int, states: list[Recomputed | None], *, twice: bool = False,
    replicated: Iterable[str] = (),
) -> list[list[Kept]]:  # fmt: skip
    """Go through a stream in threads, and return what each of them has after each update."""

    def main(wire: Wire) -> list[Kept]:
        follower = Follower(wire)
        first = follower.begin(stream.core, stream.strata, stream.explicit, algorithm, frozenset(replicated))
        updates = stream.case.updates
        coming = [*updates[1:], None]
        return [first, *(follower.update(u, then, twice) for u, then, _ in zip(updates, coming, states[1:]))]

    with stream.constants_in_place():
        return in_threads(parts, main)


def assert_followed(tasks: list[list[Kept]], states: list[Recomputed | None]) -> int:
    """All tasks together have what recomputation gives, and agree; return how many updates were made."""
    before = states[0]
    assert before is not None
    assert_together([task[0] for task in tasks], before, None)
    for i, now in enumerate(states[1:], 1):
        assert now is not None or all(task[i].change is None for task in tasks), "an update that must fail did not"
        assert_together([task[i] for task in tasks], now or before, before)
        before = now or before
    return sum(now is not None for now in states[1:])


def assert_together(tasks: list[Kept], now: Recomputed, before: Recomputed | None) -> None:
    decided = [task.agreed for task in tasks]
    assert all(one == decided[0] for one in decided), f"tasks that have decided differently: {decided}"
    assert all(task.books == tasks[0].books for task in tasks)
    assert union(task.I for task in tasks) == now.facts
    assert union(task.E for task in tasks) == now.explicit
    if before is not None and now is not before:
        assert all(task.change is not None for task in tasks), "an update that fails where it must not"
        deleted, inserted = zip(*(task.change for task in tasks if task.change is not None))
        assert union(deleted) == before.facts - now.facts
        assert union(inserted) == now.facts - before.facts
    books, trace = tasks[0].books, now.trace
    if "cnr" in books:
        assert books["cnr"] == {f: rounds[1] for f, rounds in trace.items() if 1 in rounds}
    if "cr" in books:
        recursive = {f: sum(n for i, n in rounds.items() if i > 1) for f, rounds in trace.items()}
        assert books["cr"] == {f: n for f, n in recursive.items() if n}
    if "trace" in books:
        assert books["trace"] == {f: (rounds, min(rounds)) for f, rounds in trace.items()}
    if "ranks" in books:
        ranks = books["ranks"]
        assert {f: total for f, (_, total, _) in ranks.items()} == {f: sum(r.values()) for f, r in trace.items()}
        support = Counter(now.explicit & trace.keys())
        for head, body in now.leanings:
            support[head] += all(ranks[fact][0] < ranks[head][0] for fact in body)
        assert {f: n for f, (_, _, n) in ranks.items()} == support
        assert all(n > 0 for n in support.values())


def union(parts: Iterable[set[Fact]]) -> set[Fact]:
    """Return the facts of all tasks, each of which is at home in one."""
    listed = [fact for part in parts for fact in part]
    assert len(listed) == len(set(listed)), "a fact at home in two tasks"
    return set(listed)
