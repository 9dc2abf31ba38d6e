"""Instances of rules that few facts have a part in, found in the driver.

A body is matched as `matching` would have it, atom by atom, with the facts that the driver holds first. What an atom is
matched to is looked up: in the driver, or fetched from what Spark holds and remembered. So a round of an update that
meets nothing new takes no job at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from upheld.algebra.instances import evaluate_builtin
from upheld.engines.spark.codes import Row, decode, encode
from upheld.engines.spark.lookups import TooMany, Work
from upheld.engines.spark.sets import Combined, Local, Part, Term, Tiered
from upheld.language.core import Atom, Builtin, Rule
from upheld.language.syntax.ast import Constant

if TYPE_CHECKING:
    from upheld.engines.spark.engine import DataFrameEngine
    from upheld.engines.spark.matching import Found

#: Bindings that the driver holds at a time, as a multiple of the facts that it holds of a set.
_BINDINGS = 4


@dataclass(frozen=True, eq=False)
class Step:
    """An atom with the facts that it is matched in; a negated one may match none."""

    atom: Atom
    facts: Part
    negated: bool = False


@dataclass(frozen=True, eq=False)
class Nearby:
    """Instances of a rule to be found in the driver: from the facts that one atom is matched to, by steps in order."""

    rule: Rule
    first: tuple[Atom, Term]
    steps: Sequence[Step | Builtin]
    #: Plans for the same instances, for when they are too many.
    planned: Callable[[], Iterator[Found]]
    small = True

    def holding(self, uses: object) -> Nearby:
        """Return the same, with plans that keep what holds the rows that they read."""
        planned = self.planned
        return replace(self, planned=lambda: (replace(found, uses=uses) for found in planned()))

    def work(self, engine: DataFrameEngine) -> Work[list[Row]]:
        """Find the instances: the values of the rule's variables in order, each instance once."""
        atom, term = self.first
        facts = yield from members(term)
        match, at = _matcher(engine, atom, {})
        bindings = [found for row in facts if (found := match((), row)) is not None]
        for step in self.steps:
            if isinstance(step, Builtin):
                bindings, at = _tested(engine, self.rule, step, bindings, at)
            else:
                columns, key = _key(engine, step.atom, at)
                keys = {key(binding) for binding in bindings}
                yield step.facts.wanted(columns, keys)
                find = step.facts.matching
                if step.negated:
                    bindings = [b for b in bindings if not any(True for _ in find(columns, key(b)))]
                else:
                    match, after = _matcher(engine, step.atom, at)
                    bindings = [
                        found for b in bindings for row in find(columns, key(b)) if (found := match(b, row)) is not None
                    ]
                    at = after
            if len(bindings) > _BINDINGS * engine.tables.small:
                raise TooMany
        places = [at[v] for v in self.rule.variables()]
        return [tuple(b[i] for i in places) for b in bindings]


@dataclass(frozen=True, eq=False)
class Known:
    """Instances of a rule that have been found."""

    rule: Rule
    rows: Sequence[Row]
    planned: Callable[[], Iterator[Found]]
    small = True

    def work(self, engine: DataFrameEngine) -> Work[Sequence[Row]]:
        yield ()
        return self.rows


def is_near(term: Term) -> bool:
    """Return whether the driver can tell the facts of a term by looking them up."""
    match term:
        case Local():
            return True
        case (
            Combined(operator="-" | "&", left=Local(), right=Part())
            | Combined(operator="&", left=Part(), right=Local())
        ):
            return True
    return False


def members(term: Term) -> Work[Iterable[Row]]:
    """Find the facts of a term that `is_near`."""
    if isinstance(term, Local):
        return term.rows
    assert isinstance(term, Combined), "facts that are far away"
    few, others = (term.left, term.right) if isinstance(term.left, Local) else (term.right, term.left)
    assert isinstance(few, Local) and isinstance(others, Part), "facts that are far away"
    columns = tuple(range(len(few.layout.names)))
    yield others.wanted(columns, few.rows)
    there = {row for row in few.rows if any(True for _ in others.matching(columns, row))}
    return there if term.operator == "&" else few.rows - there


def can_step(step: Step, bound: Iterable[str]) -> bool:
    """Return whether an atom can be looked up: some column is known, or the driver has all its facts."""
    known = set(bound)
    return not isinstance(step.facts, Tiered) or any(
        isinstance(t, Constant) or t.name in known for t in step.atom.terms
    )


def _key(engine: DataFrameEngine, atom: Atom, at: dict[str, int]) -> tuple[tuple[int, ...], Callable[[Row], Row]]:
    """Return the columns of an atom that are known, and what gives their values under a binding."""
    codec = engine.codecs[atom.predicate]
    known: list[tuple[int, int | None, Any]] = []
    for i, (term, type) in enumerate(zip(codec.terms(atom), codec.types, strict=True)):
        if isinstance(term, Constant):
            known.append((i, None, encode(term.value, type)))
        elif term.name in at:
            known.append((i, at[term.name], None))
    places = [(place, value) for _, place, value in known]
    return tuple(i for i, _, _ in known), lambda b: tuple(v if p is None else b[p] for p, v in places)


def _matcher(
    engine: DataFrameEngine, atom: Atom, at: dict[str, int]
) -> tuple[Callable[[Row, Row], Row | None], dict[str, int]]:
    """Return what extends a binding by a row of an atom, or gives None, and where variables are found then."""
    codec, after = engine.codecs[atom.predicate], dict(at)
    new: list[int] = []
    first: dict[str, int] = {}
    equal: list[tuple[int, int]] = []
    constant: list[tuple[int, Any]] = []
    for i, (term, type) in enumerate(zip(codec.terms(atom), codec.types, strict=True)):
        if isinstance(term, Constant):
            constant.append((i, encode(term.value, type)))
        elif term.name in first:
            equal.append((first[term.name], i))
        elif term.name not in at:
            first[term.name] = i
            after[term.name] = len(after)
            new.append(i)
    # Values are compared within tuples, where a float that is not a number equals itself.
    if not equal and not constant:
        return lambda b, row: b + tuple(row[i] for i in new), after
    left, right = [i for i, _ in equal], [j for _, j in equal]
    at_constants, constants = [i for i, _ in constant], tuple(value for _, value in constant)

    def match(b: Row, row: Row) -> Row | None:
        if tuple(row[i] for i in left) != tuple(row[j] for j in right):
            return None
        if tuple(row[i] for i in at_constants) != constants:
            return None
        return b + tuple(row[i] for i in new)

    return match, after


def _tested(
    engine: DataFrameEngine, rule: Rule, builtin: Builtin, bindings: Sequence[Row], at: dict[str, int]
) -> tuple[list[Row], dict[str, int]]:
    """Return the bindings under which a built-in holds, with the value that it gives a variable, if it does."""
    types, mentioned = engine.matcher.types(rule), set(builtin.variables())
    new = [v for v in mentioned if v not in at]
    known = [(v, at[v], types[v]) for v in mentioned if v in at]
    found = []
    for b in bindings:
        for extended in evaluate_builtin(builtin, {v: decode(b[i], type) for v, i, type in known}):
            found.append(b + tuple(encode(extended[v], types[v]) for v in new))
    return found, {**at, **{v: len(at) + k for k, v in enumerate(new)}}
