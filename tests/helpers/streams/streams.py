"""Random streams of updates, and what must hold after each of them: all is as if it were derived anew.

A stream is fixed by its seed, so that one that fails can be replayed: `make soak ARGS="--seed 7 --programs 1"`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from random import Random
from threading import current_thread, main_thread
from typing import Any
from unittest.mock import patch

from tests.helpers.programs.aggregates import random_aggregate_case, random_grouping_case
from tests.helpers.programs.column_types import random_column_case
from tests.helpers.programs.combined import random_combined_case
from tests.helpers.programs.records import random_record_case
from tests.helpers.programs.strategies import (
    Case,
    FactsGiven,
    Update,
    random_cases,
    random_cyclic_case,
    random_cyclic_cases,
    random_graph_cases,
    random_typed_case,
)
from tests.helpers.streams.merging import together, with_cases
from tests.helpers.streams.seminaive_counting import seminaive_counting
from upheld.algebra.instances import RuleInstance
from upheld.algebra.sets import Within
from upheld.base.errors import EvaluationError
from upheld.compiler.compile import compile_program
from upheld.compiler.dependencies import STRATIFICATIONS
from upheld.compiler.strata import Stratification, Stratum, stratify
from upheld.engines.memory.rounds.strata import small_strata
from upheld.engines.reference.engine import ReferenceEngine
from upheld.facts.change import Change
from upheld.facts.relation import coded_columns
from upheld.language.core import Core, Fact
from upheld.language.syntax.files import read_text
from upheld.language.types.columns import ColumnType
from upheld.language.values import Value, normalise_float
from upheld.maintain import adaptive, cost_model
from upheld.maintain.registry import ALGORITHMS
from upheld.materialisation.build import materialise_core
from upheld.materialisation.lifecycle import decompose_for
from upheld.materialisation.materialisation import Materialisation

NAMES = (*ALGORITHMS, "fbf(depth=1)", "fbf(budget=3)")

#: Constants of `adaptive`: as they are, and such that it starts again, searches, or does both as often as can be.
CONSTANTS: tuple[dict[str, float], ...] = (
    {},
    {"SMALL": 0, "FEW_FACTS": 0, "RENEWING": 0, "LOSING": 9},
    {"SMALL": 0, "FEW_FACTS": 10**9, "LOSING": 9, "EVIDENCE": 1e-6},
    {"MANY_TURNS": 0, "SEARCH_FOR": 100, "SEARCH_BUDGET": 1000},
    {"MANY_TURNS": 1, "MANY_LOST": 3, "SEARCH_FOR": 3, "SEARCH_BUDGET": 5, "SMALL": 0},
)


# -- recomputation ----------------------------------------------------------------------------------------------------


class Recomputed:
    """What follows from explicit facts, derived anew by the reference engine, and by which derivations.

    trace   how often a fact is derived in each round of its stratum; an explicit fact counts once in the first. Strata
            without rules are left out: nothing is counted there.
    """

    def __init__(self, core: Core, strata: Stratification, explicit: set[Fact]):
        self.core, self.strata, self.explicit, self.engine = core, strata, explicit, ReferenceEngine()
        self.I, multisets = seminaive_counting(self.engine, self.engine.facts(explicit), strata)
        self.facts = set(self.I)
        self.visible = {fact for fact in self.facts if not core.predicates[fact[0]].hidden}
        self.trace: dict[Fact, dict[int, int]] = defaultdict(dict)
        for s, rounds in zip(strata, multisets, strict=True):
            for i, N in enumerate(rounds if s.rules else (), 1):
                for fact, n in N.items():
                    self.trace[fact][i] = n

    @cached_property
    def instances(self) -> dict[RuleInstance, Stratum]:
        """The rule instances that fire, with their strata."""
        return {i: s for s in self.strata for i in self.engine.instances(s.rules, Within(self.I, self.I))}

    @cached_property
    def leanings(self) -> list[tuple[Fact, tuple[Fact, ...]]]:
        """The head of each instance, with the facts of its own stratum that it leans on."""
        return [(i.head, i.body_in(s)) for i, s in self.instances.items()]


def facts_of(given: FactsGiven, core: Core | None = None) -> set[Fact]:
    """Return facts as engines hold them: with codes for values of the types of columns, which `core` has."""
    types = {name: p.types for name, p in core.predicates.items() if coded_columns(p.types)} if core else {}
    facts = {
        (name, tuple(normalise_float(v) if isinstance(v, float) else v for v in row))
        for name, rows in given.items()
        for row in rows
    }
    return {(name, coded(row, types[name]) if name in types else row) for name, row in facts}


def coded(row: Sequence[object], types: Sequence[str]) -> tuple[Value, ...]:
    return tuple(t.code(v) if isinstance(t, ColumnType) else v for v, t in zip(row, types, strict=True))  # type: ignore[misc]


def held(m: Materialisation) -> set[Fact]:
    """Return all facts of a materialisation, those of hidden relations included."""
    return {(p, row) for p in m._core.predicates for row in m._state.I.rows(p)}


def counter(m: Materialisation, name: str) -> Any:
    """Return a counter of the bookkeeping of a materialisation, None if it has no such."""
    return getattr(m._state.bookkeeping, name, None)


def assert_recomputed(m: Materialisation, now: Recomputed) -> None:
    """Facts, counters, levels, counts of the trace, totals and supports are those of recomputation."""
    state, trace = m._state, now.trace
    assert held(m) == now.facts
    assert {(p, row) for p in m._core.predicates for row in state.E.rows(p)} == now.explicit
    if (cnr := counter(m, "cnr")) is not None:
        assert dict(cnr.items()) == {f: rounds[1] for f, rounds in trace.items() if 1 in rounds}
    if (cr := counter(m, "cr")) is not None:
        recursive = {f: sum(n for i, n in rounds.items() if i > 1) for f, rounds in trace.items()}
        assert dict(cr.items()) == {f: n for f, n in recursive.items() if n}
    if (levels := counter(m, "trace")) is not None:
        kept = {f: (dict(counts), level) for f, counts, level in levels.items()}
        assert kept == {f: (rounds, min(rounds)) for f, rounds in trace.items()}
    if counter(m, "ranks") is not None:
        assert_supported(m, now)


def assert_supported(m: Materialisation, now: Recomputed) -> None:
    """Totals are those of recomputation; supports are what the ranks make them, and every fact has one."""
    ranks = counter(m, "ranks")
    kept = dict(ranks.items())
    assert {f: total for f, (_, total, _) in kept.items()} == {f: sum(r.values()) for f, r in now.trace.items()}
    support = Counter(now.explicit & now.trace.keys())
    for head, body in now.leanings:
        rank = kept[head][0]
        support[head] += all(kept[fact][0] < rank for fact in body)
    assert {f: n for f, (_, _, n) in kept.items()} == support
    assert all(n > 0 for n in support.values())
    derivations: Counter[int] = Counter()
    for fact, rounds in now.trace.items():
        derivations[now.strata.stratum_of(fact)] += sum(rounds.values())
    assert [ranks.derivations(s) for s in now.strata] == [derivations[s.index] for s in now.strata]


def assert_told(change: Change, u: Update, before: Recomputed, now: Recomputed) -> None:
    """A change tells what appeared, what disappeared, and what need not have been asked for."""

    def facts_in(part) -> set[Fact]:
        return facts_of({name: relation.to_set() for name, relation in part.items()}, now.core)

    minus, plus = facts_of(u.deletions, now.core), facts_of(u.insertions, now.core)
    assert facts_in(change.inserted) == now.visible - before.visible
    assert facts_in(change.deleted) == before.visible - now.visible
    assert facts_in(change.ignored) == (minus - before.explicit) | (plus & before.explicit)


# -- streams ----------------------------------------------------------------------------------------------------------


@dataclass
class Stream:
    """A case with its program compiled, and all that is chosen beside.

    `written` is the program as it is, `core` the one that is evaluated: with its cyclic rules decomposed, if they are.
    With several `databases` each has facts and updates of its own, told apart by the first column of every relation.
    """

    case: Case
    stratification: str
    constants: dict[str, float]
    decompose: str = "auto"
    databases: int = 1

    def __post_init__(self) -> None:
        self.written = compile_program(read_text(self.case.program, self.case.dialect)).core
        if self.databases > 1:
            self.written = with_cases(self.written, self.databases)
        E = ReferenceEngine().facts(self.explicit)
        self.core = decompose_for(self.written, E, self.decompose).core
        self.strata = stratify(self.core, self.stratification)

    @property
    def explicit(self) -> set[Fact]:
        """The facts that the stream begins with."""
        return facts_of(self.case.facts, self.written) | set(self.written.facts)

    def open(self, engine: str, algorithm: str) -> Materialisation:
        facts = defaultdict(list)
        for name, row in facts_of(self.case.facts, self.written):
            facts[name].append(row)
        return materialise_core(
            self.written,
            facts.items(),
            engine=engine,
            algorithm=algorithm,
            decompose=self.decompose,
            stratification=self.stratification,
        )

    @contextmanager
    def constants_in_place(self) -> Iterator[None]:
        """A block in which `adaptive` has the constants of the stream, in all threads.

        Threads that change them side by side would not put them back.
        """
        assert not self.constants or current_thread() is main_thread(), "one thread alone changes the constants"
        with ExitStack() as patches:
            for name, value in self.constants.items():
                for module in (adaptive, cost_model):
                    if hasattr(module, name):
                        patches.enter_context(patch.object(module, name, value))
            if self.constants:  # in strata that a kernel maintains there is nothing to choose
                patches.enter_context(patch.object(small_strata, "MOST_SEEDS", -1))
            yield

    def recomputed(self) -> list[Recomputed | None]:
        """Return what holds at first and after each update; None for an update that must fail and change nothing.

        An empty list if the program fails on its first facts.
        """
        explicit = self.explicit
        first = self._recomputed(explicit)
        if first is None:
            return []
        states: list[Recomputed | None] = [first]
        for u in self.case.updates:
            after = (explicit - facts_of(u.deletions, self.written)) | facts_of(u.insertions, self.written)
            states.append(self._recomputed(after))
            if states[-1] is not None:
                explicit = after
        return states

    def _recomputed(self, explicit: set[Fact]) -> Recomputed | None:
        """Return what follows from explicit facts, or None if that is an error; rules as they stand derive the same."""
        found = _or_none(self.core, self.strata, explicit)
        if self.core is not self.written:
            plain = _or_none(self.written, stratify(self.written, self.stratification), explicit)
            assert (found and found.visible) == (plain and plain.visible), "decomposed rules derive other facts"
        return found


def _or_none(core: Core, strata: Stratification, explicit: set[Fact]) -> Recomputed | None:
    try:
        return Recomputed(core, strata, explicit)
    except EvaluationError:
        return None


def some_stratification(r: Random) -> str:
    """Return a stratification, every other time the default one."""
    return r.choices(STRATIFICATIONS, (50, 25, 25))[0]


def random_decomposed_stream(seed: int, updates: int = 8) -> Stream:
    """Return a stream of a program with cyclic rules, all of them decomposed that can be."""
    r = Random(seed)
    case = random_cyclic_case(r, updates, longest=r.choice((4, 5, 7)))
    return Stream(case, stratification=some_stratification(r), constants=r.choice(CONSTANTS), decompose="always")


def random_stream(seed: int, updates: int = 12, databases: int = 1) -> Stream:
    """Return the stream of a seed: most have plain programs, the others every type, cycles, or a graph to walk.

    A program of every type has one database in any case: where rules may have no result, one update that fails would
    hide what all the others do.
    """
    r = Random(seed)
    kind = r.choices((random_cases, random_typed_case, random_cyclic_cases, random_graph_cases), (40, 4, 1, 24))[0]
    if kind is random_typed_case:
        case, databases = random_typed_case(r, updates), 1
    else:
        case = together(kind(r, updates, databases))
    return Stream(case, stratification=some_stratification(r), constants=r.choice(CONSTANTS), databases=databases)


def random_aggregate_stream(seed: int, updates: int = 8) -> Stream:
    """Return a stream of a program with aggregates, every third one over triples."""
    r = Random(seed)
    case = (random_grouping_case if seed % 3 == 0 else random_aggregate_case)(r, updates)
    decompose = r.choice(("auto", "auto", "always"))
    return Stream(case, some_stratification(r), r.choice(CONSTANTS), decompose)


def random_record_stream(seed: int, updates: int = 6) -> Stream:
    """Return a stream of a program with records."""
    r = Random(seed)
    case = random_record_case(r, updates)
    return Stream(case, some_stratification(r), r.choice(CONSTANTS), r.choice(("auto", "auto", "always")))


def random_column_stream(seed: int, updates: int = 6) -> Stream:
    """Return a stream of a program with dates, timestamps, decimals, Booleans and nulls."""
    r = Random(seed)
    case = random_column_case(r, updates)
    return Stream(case, some_stratification(r), r.choice(CONSTANTS), r.choice(("auto", "auto", "always")))


def random_combined_stream(seed: int, updates: int = 6) -> Stream:
    """Return a stream of a program that combines aggregates, records, column types and components."""
    r = Random(seed)
    case = random_combined_case(r, updates)
    return Stream(case, some_stratification(r), r.choice(CONSTANTS), r.choice(("auto", "auto", "always")))


@dataclass
class Difference(Exception):
    """Maintenance and recomputation differ: where, and the assertion that tells."""

    engine: str
    algorithm: str
    update: int

    def __str__(self) -> str:
        return f"{self.algorithm} on {self.engine}, update {self.update}"


def follow(stream: Stream, engines: Iterable[str], algorithms: Sequence[str], converting: Random | None = None) -> int:
    """Go through a stream on every engine with every algorithm, and return how many updates each of them has made.

    An update of several databases counts once for each of them. With `converting`, each update is made by one of the
    algorithms at random, on one materialisation per engine.
    """
    states = stream.recomputed()
    if not states:
        return 0
    with stream.constants_in_place():
        for engine in engines:
            for algorithm in algorithms if converting is None else [converting.choice(algorithms)]:
                m = stream.open(engine, algorithm)
                before = states[0]
                assert before is not None
                at = 0
                try:
                    assert_recomputed(m, before)
                    for u, now in zip(stream.case.updates, states[1:]):
                        at += 1
                        chosen = converting.choice(algorithms) if converting else None
                        if now is None:
                            assert_refused(m, u, chosen)
                        else:
                            change = m.update(delete=u.deletions, insert=u.insertions, algorithm=chosen)
                            assert_told(change, u, before, now)
                            before = now
                        assert_recomputed(m, before)
                except Exception as e:
                    raise Difference(engine, m.algorithm, at) from e
    return stream.databases * sum(now is not None for now in states[1:])


def assert_refused(m: Materialisation, u: Update, algorithm: str | None) -> None:
    """An update by which a rule has no result fails."""
    try:
        m.update(delete=u.deletions, insert=u.insertions, algorithm=algorithm)
    except EvaluationError:
        return
    raise AssertionError("an update that must fail did not")


# -- look-ahead --------------------------------------------------------------------------------------------------------


def overlapping(updates: list[Update], r: Random) -> list[Update]:
    """Return updates that also undo what the one before has done: some of it, all of it, or all of it and no more."""
    found: list[Update] = []
    for u in updates:
        deletions, insertions = dict(u.deletions), dict(u.insertions)
        if found:
            before, share = found[-1], r.choice((0, 0.3, 0.7, 1))
            for mine, theirs in ((deletions, before.insertions), (insertions, before.deletions)):
                for name, rows in theirs.items():
                    mine[name] = [*mine.get(name, ()), *(row for row in rows if r.random() < share)]
            match r.randrange(6) if share == 1 else None:
                case 0:
                    deletions, insertions = dict(before.insertions), dict(before.deletions)
                case 1 | 2:
                    deletions = dict(before.insertions)
                case 3:
                    insertions = dict(before.deletions)
        found.append(Update(deletions, insertions))
    return found
