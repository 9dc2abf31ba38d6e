"""R4: a model of the whole API. Hypothesis chooses what is done; after each step all is as the model says.

The model is the set of explicit facts. What follows from them is derived anew by the naive oracle of R1.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import ClassVar
from unittest.mock import patch

import hypothesis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import upheld
from tests.helpers.streams.streams import NAMES
from tests.reliability.agreement.naive import Naive, NoResult
from tests.reliability.programme import Run, goal
from upheld.base.errors import EvaluationError, FactsError, LimitReached, Problem, UpheldError
from upheld.compiler.compile import compile_program
from upheld.compiler.equality.equality import with_equality
from upheld.language.core import Core, Fact
from upheld.language.syntax.files import read_text
from upheld.maintain.registry import MARKING

PLAIN = """
.decl edge(x:number, y:number)
.decl path(x:number, y:number)
.decl closed(x:number)
.decl open(x:number, y:number)
.decl weight(x:number, n:number)
.decl part(x:number, n:number)
.decl up(x:number)
.decl name(x:number, s:symbol)
.decl named(s:symbol)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
open(x, y) :- path(x, y), !closed(x).
part(x, 12 / n) :- weight(x, n), open(x, _).
up(x + 1) :- up(x), x != 5.
named(cat(s, "-", t)) :- name(x, s), name(y, t), path(x, y).
"""
CLASSES = """
.decl edge(x:number, y:number)
.decl same(x:number, y:number) eqrel
.decl closed(x:number)
.decl apart(x:number, y:number)
.decl reached(x:number)
same(x, y) :- edge(x, y), !closed(x).
apart(x, y) :- same(x, x), same(y, y), !same(x, y).
reached(x) :- closed(y), same(x, y).
"""
ASKED_OF_CLASSES = {"same(x, y), x < y": "xy", "apart(1, x)": "x", "reached(x), !closed(x)": "x"}
#: Each program with the options that it is opened with, and queries with their variables.
PROGRAMS: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "plain": (
        PLAIN,
        {},
        {"path(x, y), !closed(y)": "xy", "edge(x, _)": "x", "part(x, n), n > 3": "xn", "path(1, x), path(x, 1)": "x"},
    ),
    "classes": (CLASSES, {"equality": "rewrite"}, ASKED_OF_CLASSES),
    "pairs": (CLASSES, {"equality": "off"}, ASKED_OF_CLASSES),
}
#: More facts than any program derives from what the rules below insert, unless `up` never ends.
MOST_FACTS = 1_000

number = st.integers(0, 4)
ROWS: dict[str, st.SearchStrategy[tuple[object, ...]]] = {
    "edge": st.tuples(number, number),
    "same": st.tuples(number, number),
    "path": st.tuples(number, number),
    "closed": st.tuples(number),
    "reached": st.tuples(number),
    "weight": st.tuples(number, st.sampled_from([1, 2, 5, 12, 0])),
    "up": st.tuples(st.sampled_from([0, 3, 5, 5, 6])),
    "name": st.tuples(number, st.sampled_from(["", "a", "ü\n", "long" * 9])),
}
FACTS: dict[str, st.SearchStrategy[Fact]] = {
    key: st.one_of(
        [st.tuples(st.just(name), rows) for name, rows in ROWS.items() for _ in range(3 if name == "edge" else 1)
         if f".decl {name}(" in text]
    )
    for key, (text, _, _) in PROGRAMS.items()
}  # fmt: skip
ALGORITHMS = st.sampled_from([*NAMES, *MARKING])


#: The relation of the answers to a query, by its number.
ANSWER = "answer{}"


@lru_cache(maxsize=8)
def core_of(key: str) -> Core:
    """Return a program that answers its queries as well."""
    text, _, queries = PROGRAMS[key]
    for number, (body, variables) in enumerate(queries.items()):
        columns = ", ".join(f"{variable}:number" for variable in variables)
        head = f"{ANSWER.format(number)}({', '.join(variables)})"
        text += f".decl {ANSWER.format(number)}({columns})\n{head} :- {body}.\n"
    return with_equality(compile_program(read_text(text)).core, "off")


@dataclass(frozen=True)
class Model:
    """What follows from explicit facts, and the answers to each query."""

    facts: frozenset[Fact]
    answers: dict[str, set[tuple[object, ...]]]


@lru_cache(maxsize=4096)
def model(key: str, explicit: frozenset[Fact]) -> Model | None:
    """Return what follows from explicit facts, or None if that never ends or has no result."""
    if any(name == "up" and row[0] > 5 for name, row in explicit):
        return None
    try:
        found = Naive(core_of(key), explicit).visible
    except NoResult:
        return None
    names = {ANSWER.format(number): text for number, text in enumerate(PROGRAMS[key][2])}
    answers: dict[str, set[tuple[object, ...]]] = {text: set() for text in names.values()}
    for name, row in found:
        if name in names:
            answers[names[name]].add(row)
    return Model(frozenset(fact for fact in found if fact[0] not in names), answers)


def by_name(facts: frozenset[Fact]) -> dict[str, list[tuple[object, ...]]]:
    given: dict[str, list[tuple[object, ...]]] = {}
    for name, row in sorted(facts, key=str):
        given.setdefault(name, []).append(row)
    return given


class Api(RuleBasedStateMachine):
    """One materialisation, what it was saved as, and what must hold of both."""

    steps: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="upheld-stateful-")

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @initialize(key=st.sampled_from(sorted(PROGRAMS)), algorithm=ALGORITHMS, data=st.data())
    def open(self, key: str, algorithm: str, data: st.DataObject) -> None:
        self.key = key
        self.text, self.options, self.queries = PROGRAMS[key]
        self.limits = upheld.Limits(facts=MOST_FACTS)
        explicit = frozenset(data.draw(st.lists(FACTS[key], max_size=12)))
        self.explicit = explicit if self.follows(explicit) is not None else frozenset()
        #: The explicit facts of the last version that was saved, and of the one before.
        self.saved: frozenset[Fact] | None = None
        self.earlier: frozenset[Fact] | None = None
        self.versions = 0
        #: Views with the explicit facts that they were taken of.
        self.snapshots: list[tuple[upheld.Snapshot, frozenset[Fact]]] = []
        self.m = upheld.materialise(
            self.text, by_name(self.explicit), algorithm=algorithm, limits=self.limits, **self.options
        )

    def follows(self, explicit: frozenset[Fact]) -> frozenset[Fact] | None:
        found = model(self.key, explicit)
        return None if found is None else found.facts

    def drawn(self, data: st.DataObject, most: int = 4) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """Return facts to delete, most of them explicit, and facts to insert."""
        there = st.sampled_from(sorted(self.explicit, key=str)) if self.explicit else FACTS[self.key]
        deleted = data.draw(st.lists(there | FACTS[self.key], max_size=most))
        return frozenset(deleted), frozenset(data.draw(st.lists(FACTS[self.key], max_size=most)))

    # -- changing ------------------------------------------------------------------------------------------------------

    @rule(data=st.data(), algorithm=st.none() | ALGORITHMS)
    def update(self, data: st.DataObject, algorithm: str | None) -> None:
        """Also by another algorithm; an update that has no result or goes too far changes nothing."""
        deleted, inserted = self.drawn(data)
        after = (self.explicit - deleted) | inserted
        update = partial(self.m.update, insert=by_name(inserted), delete=by_name(deleted), algorithm=algorithm)
        if self.follows(after) is None:
            self.refused(update, EvaluationError, LimitReached)
        else:
            self.made(update(), deleted, inserted)

    @rule(data=st.data(), merge=st.integers(1, 3), algorithm=st.none() | ALGORITHMS)
    def stream(self, data: st.DataObject, merge: int, algorithm: str | None) -> None:
        """Several updates, each known while the one before is made, up to one that fails."""
        updates = [self.drawn(data, 3) for _ in range(data.draw(st.integers(1, 4)))]
        given = [{"delete": by_name(deleted), "insert": by_name(inserted)} for deleted, inserted in updates]
        done = 0
        changes = self.m.stream(given, algorithm=algorithm, merge_waiting=merge)
        try:
            for change in changes:
                explicit = self.explicit
                for number in change.updates:
                    deleted, inserted = updates[number - 1]
                    explicit = (explicit - deleted) | inserted
                self.told(change, explicit)
                self.explicit, done = explicit, done + len(change.updates)
        except (EvaluationError, LimitReached):
            explicit = self.explicit
            for deleted, inserted in updates[done : done + merge]:
                explicit = (explicit - deleted) | inserted
            assert merge > 1 or self.follows(explicit) is None, "an update of a stream failed without a reason"
        else:
            assert done == len(updates)

    @rule(
        bad=st.sampled_from(
            [
                {"insert": {"edge": [(1, 2, 3)]}},
                {"insert": {"edge": [("a", 2)]}},
                {"delete": {"nothing": [(1,)]}},
                {"insert": {"edge": [(2**63, 1)]}},
                {"algorithm": "none"},
                {"insert": {"edge": [(3, 4)], "closed": [(None,)]}},
            ]
        )
    )
    def update_badly(self, bad: dict[str, object]) -> None:
        self.refused(partial(self.m.update, **bad), UpheldError)

    @rule(
        data=st.data(),
        at=st.integers(0, 60),
        error=st.sampled_from([KeyboardInterrupt, MemoryError, LimitReached(Problem("limit-reached", "enough"))]),
    )
    def abort(self, data: st.DataObject, at: int, error: BaseException | type[BaseException]) -> None:
        """Fail in the middle of an update: it changes nothing. An update that is done before then is made."""
        deleted, inserted = self.drawn(data)
        if self.follows((self.explicit - deleted) | inserted) is None:
            return
        try:
            with failing(self.m, at, error):
                change = self.m.update(insert=by_name(inserted), delete=by_name(deleted))
        except (KeyboardInterrupt, MemoryError, LimitReached):
            return
        self.made(change, deleted, inserted)

    # -- looking -------------------------------------------------------------------------------------------------------

    @rule(data=st.data())
    def query(self, data: st.DataObject) -> None:
        text = data.draw(st.sampled_from(sorted(self.queries)))
        assert self.m.query(text).to_set() == self.answered(text, self.explicit)

    def answered(self, text: str, explicit: frozenset[Fact]) -> set[tuple[object, ...]]:
        found = model(self.key, explicit)
        assert found is not None
        return found.answers[text]

    @rule(data=st.data())
    def explain(self, data: st.DataObject) -> None:
        name, row = data.draw(FACTS[self.key] | st.sampled_from(sorted(self.facts, key=str) or [("edge", (0, 0))]))
        explanation = self.m.explain(name, row)
        assert explanation.holds == ((name, row) in self.facts)
        assert str(explanation)

    @rule()
    def look(self) -> None:
        """Sizes, membership and explicit facts."""
        for name in self.m.relations:
            rows = {row for other, row in self.facts if other == name}
            assert len(self.m[name]) == len(rows) and set(self.m[name]) == rows
            assert self.m.explicit(name).to_set() == {row for other, row in self.explicit if other == name}
        assert self.m.plans() is not None

    # -- saving --------------------------------------------------------------------------------------------------------

    @rule()
    def save(self) -> None:
        version = self.m.save(self.folder)
        assert version == self.versions + 1
        self.versions, self.saved, self.earlier = version, self.explicit, self.saved

    @precondition(lambda self: self.saved is not None)
    @rule(algorithm=ALGORITHMS, decompose=st.sampled_from(["auto", "always", "all", "never"]))
    def crash_and_restore(self, algorithm: str, decompose: str) -> None:
        """Abandon the materialisation, and open what was saved last."""
        assert self.saved is not None
        self.explicit = self.saved
        self.m = upheld.restore(
            self.text, self.folder, algorithm=algorithm, limits=self.limits, decompose=decompose, **self.options
        )

    @precondition(lambda self: self.saved is not None)
    @rule(data=st.data())
    def save_beside_another(self, data: st.DataObject) -> None:
        """Another materialisation goes on from the last version and saves first: this one is refused, and restores."""
        assert self.saved is not None
        other = upheld.restore(self.text, self.folder, limits=self.limits, **self.options)
        explicit, (deleted, inserted) = self.saved, self.drawn(data)
        if self.follows((explicit - deleted) | inserted) is not None:
            other.update(insert=by_name(inserted), delete=by_name(deleted))
            explicit = (explicit - deleted) | inserted
        self.versions, before = other.save(self.folder), self.saved
        self.saved, self.earlier = explicit, before
        self.refused(partial(self.m.save, self.folder), FactsError)
        self.m, self.explicit = other, explicit

    @precondition(lambda self: self.earlier is not None)
    @rule()
    def open_the_version_before(self) -> None:
        assert self.earlier is not None
        m = upheld.restore(self.text, self.folder, version=self.versions - 1, limits=self.limits, **self.options)
        assert m.facts() == self.follows(self.earlier)

    @rule()
    def compact(self) -> None:
        """Free what facts that have gone have taken."""
        freed = self.m.compact()
        assert freed.rows >= 0 and freed.texts >= 0

    # -- snapshots -----------------------------------------------------------------------------------------------------

    @rule()
    def snapshot(self) -> None:
        """Take a view of what holds now, to be looked at whenever."""
        self.snapshots = [*self.snapshots[-2:], (self.m.snapshot(), self.explicit)]

    @precondition(lambda self: self.snapshots)
    @rule(data=st.data())
    def look_at_a_snapshot(self, data: st.DataObject) -> None:
        view, explicit = data.draw(st.sampled_from(self.snapshots))
        assert view.facts() == self.follows(explicit)
        for name in view:
            assert view.explicit(name).to_set() == {row for other, row in explicit if other == name}
        text = data.draw(st.sampled_from(sorted(self.queries)))
        assert view.query(text).to_set() == self.answered(text, explicit)

    # -- threads -------------------------------------------------------------------------------------------------------

    @rule(data=st.data(), readers=st.integers(1, 3))
    def read_in_threads(self, data: st.DataObject, readers: int) -> None:
        """Each read of other threads beside an update finds the facts before it or after it."""
        deleted, inserted = self.drawn(data)
        after = (self.explicit - deleted) | inserted
        if self.follows(after) is None:
            return
        text, m = data.draw(st.sampled_from(sorted(self.queries))), self.m
        found: list[tuple[set[Fact], set[tuple[object, ...]]]] = []
        with ThreadPoolExecutor(readers) as threads:
            reads = [threads.submit(lambda: (m.facts(), m.query(text).to_set())) for _ in range(2 * readers)]
            change = m.update(insert=by_name(inserted), delete=by_name(deleted))
            found = [read.result(timeout=300) for read in reads]
        states = {frozenset(self.facts), self.follows(after)}
        assert all(frozenset(facts) in states for facts, _ in found)
        answers = [self.answered(text, explicit) for explicit in (self.explicit, after)]
        assert all(answer in answers for _, answer in found)
        self.made(change, deleted, inserted)

    # -- what must hold ------------------------------------------------------------------------------------------------

    @property
    def facts(self) -> frozenset[Fact]:
        facts = self.follows(self.explicit)
        assert facts is not None
        return facts

    @precondition(lambda self: hasattr(self, "m"))
    @invariant()
    def holds(self) -> None:
        Api.steps += 1
        assert self.m.facts() == self.facts

    def made(self, change: upheld.Change, deleted: frozenset[Fact], inserted: frozenset[Fact]) -> None:
        after = (self.explicit - deleted) | inserted
        self.told(change, after)
        assert rows(change.ignored) == (deleted - self.explicit) | (inserted & self.explicit)
        self.explicit = after

    def told(self, change: upheld.Change, after: frozenset[Fact]) -> None:
        """A change is what has come of the facts before it."""
        now = self.follows(after)
        assert now is not None
        assert rows(change.inserted) == now - self.facts
        assert rows(change.deleted) == self.facts - now

    def refused(self, make: Callable[[], object], *errors: type[BaseException]) -> None:
        try:
            make()
        except errors:
            return
        raise AssertionError("what must be refused was not")


def rows(part: upheld.facts.change.ByRelation) -> set[Fact]:
    return {(name, row) for name, relation in part.items() for row in relation.to_set()}


@contextmanager
def failing(m: upheld.Materialisation, at: int, error: BaseException | type[BaseException]) -> Iterator[None]:
    """A block in which the engine fails when it settles a set for this time."""
    settle, left = m._engine.settle, at

    def fail(facts: object) -> object:
        nonlocal left
        left -= 1
        if left < 0:
            raise error
        return settle(facts)

    with patch.object(m._engine, "settle", fail):
        yield


#: Runs that Hypothesis makes together, and steps of each.
TOGETHER, STEPS = 20, 50


@goal("R4", "a model of the whole API", sample=3, full=4_000)
def stateful(run: Run) -> None:
    together, before = min(TOGETHER, run.size), Api.steps
    options = settings(
        max_examples=together,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    for number in run.cases():
        machine = hypothesis.seed(run.seed * 1_000_000 + number)(type("Api", (Api,), {}))
        run.case(f"batch {number}", partial(run_state_machine_as_test, machine, settings=options), count=together)
    run.figures["steps"] = Api.steps - before
