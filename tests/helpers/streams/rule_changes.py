"""Random changes of rules, mixed with updates and previews: after each, all is as if one had started again."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from tempfile import TemporaryDirectory

import pytest

from tests.helpers.programs.aggregates import random_aggregate_case, random_grouping_case
from tests.helpers.programs.records import random_record_case
from tests.helpers.programs.strategies import (
    Case,
    Update,
    _facts,
    _Relation,
    _rule,
    _updates,
    random_cyclic_case,
    random_graph_cases,
    random_typed_case,
)
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
from upheld.base.errors import EvaluationError, FactsError, UpheldError
from upheld.compiler.compile import compile_program
from upheld.compiler.strata import stratify
from upheld.facts.change import Change
from upheld.language.ast import Program
from upheld.language.core import Core, Fact
from upheld.language.syntax.files import read_text
from upheld.materialisation.build import materialise_core, restore
from upheld.materialisation.materialisation import Materialisation


@dataclass
class Book:
    """The lines of a program that never change, and rules that may be in it or not."""

    fixed: list[str]
    pool: list[str]
    case: Case
    decompose: str = "auto"

    def text(self, rules: list[str]) -> str:
        return "\n".join([*self.fixed, *rules])


def plain_book(r: Random, steps: int) -> Book:
    """Return rules over numbers, some of which cannot be stratified together with others."""
    arities = [r.choice((0, 1, 1, 2, 2, 2, 3)) for _ in range(r.randint(2, 6))]
    pool: list[str] = []
    relations: list[_Relation] = []
    for _ in range(r.choice((1, 1, 2))):
        relations = [_Relation(f"r{i}", arity, r.randint(0, 3)) for i, arity in enumerate(arities)]
        pool += [_rule(r, relations) for _ in range(r.randint(3, 9))]
    fixed = [f".decl {p.name}({', '.join(f'a{i}:number' for i in range(p.arity))})" for p in relations]
    facts = _facts(r, relations, 0.6)
    return Book(fixed, list(dict.fromkeys(pool)), Case("", facts, _updates(r, relations, facts, steps)))


def book_of(case: Case, decompose: str = "auto") -> Book:
    """Return the rules of a case."""
    lines = [line for line in case.program.splitlines() if line.strip()]
    fixed = [line for line in lines if line.lstrip().startswith((".", "PREFIX", "@prefix"))]
    return Book(fixed, [line for line in lines if line not in fixed], case, decompose)


def random_book(r: Random, steps: int) -> Book:
    kind = r.random()
    if kind < 0.55:
        return plain_book(r, steps)
    if kind < 0.7:
        return book_of(random_aggregate_case(r, steps))
    if kind < 0.76:
        return book_of(random_grouping_case(r, steps))
    if kind < 0.82:
        return book_of(random_record_case(r, steps), r.choice(("auto", "always")))
    if kind < 0.88:
        return book_of(random_cyclic_case(r, steps), "always")
    if kind < 0.94:
        return book_of(random_typed_case(r, steps))
    return book_of(random_graph_cases(r, steps)[0])


class Changing:
    """A materialisation whose rules and facts change at random, and what must hold of it."""

    def __init__(self, seed: int, engine: str, algorithm: str, steps: int = 10):
        self.r = Random(seed)
        self.book = random_book(self.r, steps)
        self.rules = [rule for rule in self.book.pool if self.r.random() < 0.5]
        self.explicit = facts_of(self.book.case.facts)
        self.engine, self.algorithm = engine, algorithm
        self.stratification = some_stratification(self.r)
        self.constants = self.r.choice(CONSTANTS)
        #: The changes of rules that were made.
        self.changes = 0

    def follow(self) -> int:
        """Go through the steps; return how many rule changes were made or rightly refused."""
        now = self.expected(self.rules, self.explicit)
        while now is None:
            self.rules = self.rules[:-1]
            now = self.expected(self.rules, self.explicit)
        core = self.core(self.rules)
        given: dict[str, list[tuple[object, ...]]] = {}
        for name, row in self.explicit:
            given.setdefault(name, []).append(row)
        stream = Stream.__new__(Stream)
        stream.constants = self.constants
        with stream.constants_in_place():
            m = materialise_core(
                core, given.items(), engine=self.engine, algorithm=self.algorithm, decompose=self.book.decompose,
                stratification=self.stratification,
            )  # fmt: skip
            for update in self.book.case.updates:
                if self.r.random() < 0.25:
                    self.update(m, update)
                m = self.step(m)
        return self.changes

    def update(self, m: Materialisation, update: Update) -> None:
        """Update the facts, unless the rules then have no result; relations that no rule names any more are refused."""
        after = (self.explicit - facts_of(update.deletions)) | facts_of(update.insertions)
        if self.expected(self.rules, after) is None:
            return
        if {*update.deletions, *update.insertions} <= {*m._core.predicates}:
            m.update(delete=update.deletions, insert=update.insertions)
            self.explicit = after
        else:
            with pytest.raises(FactsError, match="unknown-relation"):
                m.update(delete=update.deletions, insert=update.insertions)
        self.check(m)

    def expected(self, rules: list[str], explicit: set[Fact]) -> set[Fact] | None:
        """Return the facts of a program, or None if it is not one, or has no result."""
        try:
            core = self.core(rules)
            return Recomputed(core, stratify(core), explicit | set(core.facts)).visible
        except UpheldError:
            return None

    def core(self, rules: list[str]) -> Core:
        program = read_text(self.book.text(rules), self.book.case.dialect)
        types = {"triple": ("term",) * 3} if program.dialect == "dlog" else {}
        return compile_program(program, types).core

    def step(self, m: Materialisation) -> Materialisation:
        r = self.r
        out = r.sample(self.rules, min(len(self.rules), r.choice((0, 1, 1, 2))))
        into = [rule for rule in self.book.pool if rule not in self.rules]
        into = r.sample(into, min(len(into), r.choice((0, 1, 1, 2))))
        after = [rule for rule in self.rules if rule not in out] + into
        given: dict[str, object] = {"add": into, "remove": out}
        if r.random() < 0.2:
            after = [rule for rule in self.book.pool if r.random() < 0.5]
            program = read_text(self.book.text(r.sample(after, len(after))), self.book.case.dialect)
            given = {"replace": program}
            if r.random() < 0.5:
                return self.reopen(m, program, after)
        before = held(m)
        now = self.expected(after, self.explicit)
        self.changes += 1
        if now is None:
            try:
                m.change_rules(**given)
            except UpheldError:
                assert held(m) == before
                self.check(m)
                return m
            raise AssertionError("a rule change that should have been refused")
        visible = self.visible(m)
        if r.random() < 0.3:
            named = {"program" if name == "replace" else name: value for name, value in given.items()}
            self.told(m.preview(**named), visible, now)
            assert held(m) == before
            self.check(m)
        self.told(m.change_rules(**given), visible, now)
        self.rules = after
        assert self.visible(m) == now
        self.check(m)
        return m

    def reopen(self, m: Materialisation, program: Program, rules: list[str]) -> Materialisation:
        """Save it, and open the state with another program."""
        now, before = self.expected(rules, self.explicit), self.visible(m)
        self.changes += 1
        options = {"engine": self.engine, "algorithm": self.algorithm, "decompose": self.book.decompose}
        options |= {"stratification": self.stratification, "edited": True}
        with TemporaryDirectory() as folder:
            m.save(folder)
            try:
                again = restore(program, folder, **options)
            except UpheldError:
                assert now is None
                assert self.visible(restore(m._written.program, folder, **options)) == before
                return m
        assert now is not None, "a program that should have been refused"
        if again.program_change is not None:
            self.told(again.program_change.change, before, now)
        self.rules = rules
        assert self.visible(again) == now
        self.check(again)
        return again

    def visible(self, m: Materialisation) -> set[Fact]:
        return {fact for fact in held(m) if not m._core.predicates[fact[0]].hidden}

    def told(self, change: Change, before: set[Fact], now: set[Fact]) -> None:
        for part, facts in ((change.inserted, now - before), (change.deleted, before - now)):
            assert {(r.name, row) for r in part.not_empty() for row in r.unordered or r.stored_set()} == facts

    def check(self, m: Materialisation) -> None:
        explicit = {(p, row) for p in m._core.predicates for row in m._state.E.rows(p)}
        assert_recomputed(m, Recomputed(m._core, m._strata, explicit))


def follow(seed: int, engine: str = "memory", algorithm: str | None = None, steps: int = 10) -> int:
    """Go through the rule changes of a seed, and return how many there were."""
    chosen = algorithm or NAMES[seed % len(NAMES)]
    try:
        return Changing(seed, engine, chosen, steps).follow()
    except EvaluationError:
        raise AssertionError("a program failed on facts that it has a result on") from None
