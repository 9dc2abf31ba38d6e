"""Random programs with constraints, updated one by one and in transactions, against recomputation.

An update or transaction is refused exactly if recomputation finds new violations. What is refused or rolled back
changes nothing; what is committed is the same as its updates one after the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from tests.helpers.programs.aggregates import random_aggregate_case
from tests.helpers.programs.records import random_record_case
from tests.helpers.programs.strategies import Case, Update, random_case, random_cyclic_case, random_typed_case
from tests.helpers.streams.streams import (
    CONSTANTS,
    NAMES,
    Recomputed,
    Stream,
    assert_recomputed,
    facts_of,
    held,
    some_stratification,
)
from upheld.base.errors import ConstraintViolated, EvaluationError
from upheld.facts.change import Change
from upheld.language.core import Fact
from upheld.materialisation.build import materialise_core
from upheld.materialisation.materialisation import Materialisation

T = TypeVar("T")

#: Violations by constraint.
Found = dict[str, set[tuple[object, ...]]]


class _Raised(Exception):
    """Ends a transaction."""


def refused(action: Callable[[], T]) -> tuple[T | None, ConstraintViolated | None]:
    """Return the result of an action, or the error by which a constraint has refused it."""
    try:
        return action(), None
    except ConstraintViolated as error:
        return None, error


def guarded_case(r: Random, updates: int) -> Case:
    """Return a random case whose program has constraints: bodies of its rules, some of them narrowed."""
    kinds = (random_case, random_case, random_typed_case, random_cyclic_case, random_aggregate_case, random_record_case)
    case = r.choice(kinds)(r, updates)
    rules = [line for line in case.program.splitlines() if ":-" in line and not line.lstrip().startswith(".")]
    bodies = [line.partition(":-")[2].strip().removesuffix(".") for line in r.sample(rules, min(3, len(rules)))]
    constraints = [f".constraint c{i} :- {body}{r.choice(('', ', 0 < 1'))}." for i, body in enumerate(bodies)]
    return Case("\n".join([case.program, *constraints]), case.facts, case.updates, case.dialect)


@dataclass
class Guarded:
    """A materialisation with constraints, updated at random, and what must hold of it."""

    seed: int
    engine: str
    algorithm: str
    steps: int = 8
    #: How many updates and transactions were refused, made, and rolled back.
    refused: int = 0
    made: int = 0
    rolled_back: int = 0
    r: Random = field(init=False)

    def __post_init__(self) -> None:
        self.r = Random(self.seed)
        case = guarded_case(self.r, self.steps)
        self.stream = Stream(case, some_stratification(self.r), self.r.choice(CONSTANTS))

    def open(self, first: Recomputed) -> Materialisation:
        facts = defaultdict(list)
        for name, row in facts_of(self.stream.case.facts, self.stream.written):
            facts[name].append(row)
        how = {"engine": self.engine, "algorithm": self.algorithm, "stratification": self.stream.stratification}
        m, error = refused(lambda: materialise_core(self.stream.written, facts.items(), **how))
        if m is not None:
            assert not self.violations(first), "facts that violate a constraint were accepted"
            return m
        assert error is not None and self.told(error.violations) == self.violations(first)
        return materialise_core(self.stream.written, facts.items(), on_violation="report", **how)

    def violations(self, state: Recomputed) -> Found:
        found: Found = defaultdict(set)
        for name, row in state.facts:
            if state.core.predicates[name].constraint:
                found[name].add(row)
        return dict(found)

    def new(self, before: Recomputed, after: Recomputed) -> Found:
        old = self.violations(before)
        new = {name: rows - old.get(name, set()) for name, rows in self.violations(after).items()}
        return {name: rows for name, rows in new.items() if rows}

    @staticmethod
    def told(violations) -> Found:
        return {name: relation.stored_set() for name, relation in violations.items()}

    def after(self, explicit: set[Fact], update: Update) -> set[Fact]:
        minus, plus = (facts_of(side, self.stream.written) for side in (update.deletions, update.insertions))
        return (explicit - minus) | plus

    def assert_told(self, change: Change, before: Recomputed, after: Recomputed) -> None:
        for part, facts in (
            (change.inserted, after.visible - before.visible),
            (change.deleted, before.visible - after.visible),
            (change.asserted, after.explicit - before.explicit),
            (change.retracted, before.explicit - after.explicit),
        ):
            assert {(r.name, row) for r in part.not_empty() for row in r.stored_set()} == facts
        assert self.told(change.violations) == self.new(before, after)

    def check(self, m: Materialisation, now: Recomputed) -> None:
        assert_recomputed(m, now)
        assert self.told(m.violations()) == self.violations(now)

    def follow(self) -> None:
        """Go through the updates: each is previewed, and then made, refused or reported."""
        now = self.stream._recomputed(self.stream.explicit)
        if now is None:
            return
        with self.stream.constants_in_place():
            m = self.open(now)
            self.check(m, now)
            updates = list(self.stream.case.updates)
            while updates:
                if self.r.random() < 0.5:
                    several, updates = updates[: (n := self.r.randint(1, 4))], updates[n:]
                    now = self.transaction(m, several, now)
                else:
                    update = updates.pop(0)
                    after = self.stream._recomputed(self.after(now.explicit, update))
                    if after is not None:  # else a rule has no result, which other tests are about
                        now = self.step(m, update, now, after)
                self.check(m, now)

    def transaction(self, m: Materialisation, updates: list[Update], before: Recomputed) -> Recomputed:
        """Make updates in a transaction, which is committed, rolled back, or ended by an exception."""
        how, ending = self.r.choice(("refuse", "report")), self.r.choice(("commit", "end", "end", "rollback", "raise"))
        version, holding = m.version, []
        now = before
        with suppress(_Raised), m.transaction(on_violation=how) as t:
            for update in updates:
                now = self.step_of_transaction(m, update, now)
                if self.r.random() < 0.5:
                    self.check(m, now)
                if self.r.random() < 0.5:
                    holding.append(({name: m[name] for name in m.relations}, now))
                if self.r.random() < 0.3:
                    self.ask(m, now)
            new = self.new(before, now)
            if new and how == "refuse" and ending in ("commit", "end"):
                self.refused += 1
                error = refused(t.commit)[1]
                assert error is not None and self.told(error.violations) == new
                ending = "refused"
            elif ending == "commit":
                t.commit()
            elif ending == "rollback":
                t.rollback()
            elif ending == "raise":
                raise _Raised
        for relations, then in holding:
            for name, relation in relations.items():
                assert {(name, row) for row in relation.stored_set()} == {f for f in then.visible if f[0] == name}
        if ending in ("commit", "end"):
            self.made += 1
            assert t.change is not None
            self.assert_told(t.change, before, now)
            assert m.version in (version, version + 1)
            return now
        self.rolled_back += 1
        assert t.change is None and not t.is_open and m.version == version
        return before

    def step_of_transaction(self, m: Materialisation, update: Update, now: Recomputed) -> Recomputed:
        sides = {"delete": update.deletions, "insert": update.insertions}
        after = self.stream._recomputed(self.after(now.explicit, update))
        if after is None:
            with suppress(EvaluationError):
                m.update(**sides)
                raise AssertionError("an update that must fail did not")
            return now
        if self.r.random() < 0.2:
            self.assert_told(m.preview(**sides), now, after)
        self.assert_told(m.update(**sides), now, after)
        return after

    def ask(self, m: Materialisation, now: Recomputed) -> None:
        """Queries and explanations see the facts that there are, and leave them as they are."""
        facts = sorted(f for f in now.visible if f[1])
        if facts:
            name, row = self.r.choice(facts)
            relation = m[name]
            named = ", ".join(f"v{i}" for i in range(len(row)))
            answers = m.query(f"{name}({named})").stored_set()
            assert {(name, r) for r in answers} == {f for f in now.visible if f[0] == name}
            assert m._explained((name, row)).holds and len(relation) == len(answers)

    def step(self, m: Materialisation, update: Update, now: Recomputed, after: Recomputed) -> Recomputed:
        new, sides = self.new(now, after), {"delete": update.deletions, "insert": update.insertions}
        if self.r.random() < 0.3:
            self.assert_told(m.preview(**sides), now, after)
            self.check(m, now)
        before, version = held(m), m.version
        how = self.r.choice(("refuse", "refuse", "report"))
        change, error = refused(lambda: m.update(**sides, on_violation=how))
        if error is not None:
            self.refused += 1
            assert how == "refuse" and self.told(error.violations) == new
            assert all(explanation.holds for explanation in error.explanations.values())
            assert held(m) == before and m.version == version
            return now
        assert change is not None
        assert how == "report" or not new, "an update that violates a constraint was made"
        self.made += 1
        self.assert_told(change, now, after)
        return after


def follow(seed: int, engine: str = "memory", algorithm: str | None = None, steps: int = 8) -> Guarded:
    """Go through the updates of a seed."""
    guarded = Guarded(seed, engine, algorithm or NAMES[seed % len(NAMES)], steps)
    try:
        guarded.follow()
    except EvaluationError:
        raise AssertionError("a program failed on facts that it has a result on") from None
    return guarded
