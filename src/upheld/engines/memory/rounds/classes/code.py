"""The rules of a program with equality as numbers: for each kind of rounds the plans that it follows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from upheld.algebra.equality import RulesOfClasses
from upheld.compiler.equality.equality import Equality, constant_columns
from upheld.engines.memory.bytecode.encoder import Bench, Numbers, RoundCode, Start, without_choices
from upheld.engines.memory.joins.matching import Matcher
from upheld.engines.memory.plans.plan import Literal, Place
from upheld.engines.memory.plans.where import Where
from upheld.engines.memory.rounds.driver import MOST_STARTS
from upheld.engines.memory.sets.expressions import nothing
from upheld.engines.memory.storage.table import Table
from upheld.language.ast import Variable
from upheld.language.core import Atom, Rule


class Starts(NamedTuple):
    """The plans that begin with facts, and those that begin with heads."""

    forward: list[Start]
    backward: list[Start]


class ClassCode(RoundCode):
    """Plans for facts of all tables with constants.

    `equality`, `columns` and `reflexive` are as the kernels read them.
    """

    def __init__(self, matcher: Matcher, equality: Equality, rules: RulesOfClasses, starts: Starts):
        tables = matcher.context.tables
        home = tables[equality.predicate]
        heads = [home, *(tables[rule.head.predicate] for rule in rules.now)]
        mentioning = [tables[rule.positive[0].predicate] for rule in rules.reflexivity]
        super().__init__(starts.forward, [*heads, *mentioning], tables, matcher.context.codec, starts.backward)
        self.heads = list(dict.fromkeys(heads))
        same_as = matcher.context.codec.encode_one(equality.value, "term")
        self.equality: Numbers = np.array([self.numbers[home], equality.column, same_as, *equality.sides], np.int64)
        self.columns = np.zeros((len(self.tables), self.arity), np.bool_)
        for t, table in enumerate(self.tables):
            self.columns[t, list(constant_columns(table.types))] = True
        self.reflexive = np.zeros_like(self.columns)
        for rule in rules.reflexivity:
            (atom,) = rule.positive
            column = atom.terms.index(rule.head.terms[equality.sides[0]])
            self.reflexive[self.numbers[tables[atom.predicate]], column] = True
        #: The plans before this one begin with facts.
        self.forward = len(starts.forward)
        self.plans = self.table_lines, self.index_lines, self.code, self.begins, self.backward

    def knows(self, tables: Iterable[Table]) -> bool:
        """Return whether plans may begin with facts of some tables."""
        return all(table in self.numbers for table in tables)


class ClassCodes:
    """The codes of rules, made when they are first asked for, and the arrays of the kernels that follow them."""

    def __init__(self, matcher: Matcher, equality: Equality):
        self.matcher, self.equality, self.bench = matcher, equality, Bench()
        self._codes: dict[tuple[str, int], tuple[Sequence[Rule], ClassCode | None]] = {}
        self._edition = matcher.edition
        x, y = Variable("x"), Variable("y")
        #: A rule as if it had derived the equalities that are there.
        self.identity = Rule(equality.atom(x, y), (equality.atom(x, y),))

    def overdeletion(self, rules: RulesOfClasses) -> ClassCode | None:
        """Return plans from deleted facts without reflexivity, and from heads to explicit facts; None if not simple."""

        def starts() -> Starts:
            return Starts(self._from_facts(rules.now), [self._backward(rule, Place.OWN) for rule in rules.written])

        return self._code("overdeletion", rules, starts)

    def insertion(self, rules: RulesOfClasses) -> ClassCode | None:
        """Return plans from new facts; None if not simple."""
        return self._code("insertion", rules, lambda: Starts(self._from_facts(rules.all), []))

    def rederivation(self, rules: RulesOfClasses) -> ClassCode | None:
        """Return plans from heads, by reflexivity as well; None if not simple."""

        def starts() -> Starts:
            return Starts([], [self._backward(rule, Place.P) for rule in (*rules.reflexivity, *rules.now)])

        return self._code("rederivation", rules, starts)

    def connections(self, rules: RulesOfClasses) -> ClassCode | None:
        """Return plans from the equality of a constant with itself to others that it has; None if not simple."""

        def starts() -> Starts:
            return Starts([self._from_left_side(rule) for rule in (self.identity, *rules.equalities)], [])

        return self._code("connections", rules, starts)

    def _code(self, kind: str, rules: RulesOfClasses, starts: Callable[[], Starts]) -> ClassCode | None:
        if self._edition != self.matcher.edition:  # codes of constants may have changed
            self._codes.clear()
            self._edition = self.matcher.edition
        known, code = self._codes.get((kind, id(rules.all)), ((), None))
        if known is not rules.all or (code is not None and code.is_stale()):
            code = self._new_code(rules, starts)
            self._codes[kind, id(rules.all)] = rules.all, code
        if code is not None:
            self.bench.make_room(code)
        return code

    def _new_code(self, rules: RulesOfClasses, starts: Callable[[], Starts]) -> ClassCode | None:
        if sum(len(rule.positive) for rule in rules.all) > MOST_STARTS:
            return None
        plans = starts()
        if not all(start.is_simple for start in plans.forward + plans.backward):
            return None
        return ClassCode(self.matcher, self.equality, rules, plans)

    # -- plans ---------------------------------------------------------------------------------------------------------

    def _from_facts(self, rules: Sequence[Rule]) -> list[Start]:
        """Return the plans from changed facts of each atom of some rules."""
        nothing_new = nothing(self.matcher.context)
        where = Where(self.matcher.context, nothing_new, nothing_new, via=nothing_new)
        return [self.matcher.start(rule, i, False, where, None) for rule in rules for i in range(len(rule.positive))]

    def _backward(self, rule: Rule, place: Place) -> Start:
        """Return a plan that looks for the facts of a set from which a rule derives a head."""
        return self._start(rule, rule.head, ("from head", place), place)

    def _from_left_side(self, rule: Rule) -> Start:
        """Return a plan from the equality of a constant with itself to instances with it on the left of the head."""
        left, right = self.equality.sides
        terms = list(rule.head.terms)
        terms[right] = terms[left]
        return self._start(rule, Atom(rule.head.predicate, tuple(terms)), ("from left side",), Place.OWN)

    def _start(self, rule: Rule, atom: Atom, kind: tuple[object, ...], place: Place) -> Start:
        body = [Literal(atom, place) for atom in rule.positive]
        plan = self.matcher.plan(rule, kind, tuple(dict.fromkeys(atom.variables())), lambda: body)
        return Start(without_choices(plan), atom, None, False)
