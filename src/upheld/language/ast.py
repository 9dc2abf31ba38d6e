"""Programs as they are written. Both dialects parse to these classes, and they print back to text.

Spans hold the place in the source; they are ignored by equality, so a program equals its reprinted self.
`language.core` holds the simpler form that engines evaluate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from upheld.base.source import Span
from upheld.language.values import Value

T = TypeVar("T")

_PRINTERS: dict[type, Callable[[Any], str]] = {}


class Printable:
    """A class whose `str` is the function registered for it."""

    __slots__ = ()

    def __str__(self) -> str:
        return _PRINTERS[type(self)](self)


def prints(kind: type[T]) -> Callable[[Callable[[T], str]], Callable[[T], str]]:
    """Register the decorated function as the `str` of a class."""

    def register(text: Callable[[T], str]) -> Callable[[T], str]:
        _PRINTERS[kind] = text
        return text

    return register


def _span() -> Span | None:
    return field(default=None, compare=False, repr=False)


# -- terms ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable by its name."""

    name: str
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Wildcard:
    """`_`: some value, a different variable at each place."""

    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Constant:
    """A value as written.

    `type` is `number`, `unsigned`, `float`, `symbol`, `boolean`, `record`, `term` or `null`. Type inference gives it
    the type of its place: a number may be an `unsigned`, a `float` or a `decimal` there, and a string a `date` or a
    `timestamp`. A `term` is an RDF term, its value the N-Triples text of it. A `record` is `nil`, or a branch or record
    without fields.
    """

    value: Value
    type: str
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Call:
    """A functor applied to terms: `x + 1` is `Call("+", (x, 1))`, unary minus is `Call("-", (x,))`.

    The functor of a record `[x, y]` is `[]`, that of a branch `$Add(x, y)` is `$Add`.
    """

    functor: str
    arguments: tuple[Term, ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`sum x : { body }`: a value computed from all bindings of a body; `count` has no target.

    Variables that also occur outside stand for the values that they have there; all others are local to the body.
    """

    function: str
    target: Term | None
    body: Formula
    span: Span | None = _span()


Term = Variable | Wildcard | Constant | Call | Aggregate


# -- formulas ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Atom:
    """A predicate applied to terms."""

    predicate: str
    terms: tuple[Term, ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Test:
    """A built-in atom: a comparison (`= != < <= > >=`), or `match`, `contains` or `is_null`, over terms."""

    __test__ = False  # for pytest: this is a class of ours, not a test case

    operator: str
    terms: tuple[Term, ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Truth:
    """`true` or `false` as a body literal."""

    value: bool
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Negation:
    """A formula that must not hold."""

    formula: Formula
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Conjunction:
    """Formulas that all hold."""

    formulas: tuple[Formula, ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Disjunction:
    """Formulas of which one holds."""

    formulas: tuple[Formula, ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Exists:
    """`EXISTS ?x IN (body)`: a body with variables that mean nothing outside of it."""

    local: tuple[Variable, ...]
    body: Formula
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Result:
    """`BIND COUNT(DISTINCT ?x) AS ?n` of a grouping; `COUNT(*)` has no arguments."""

    function: str
    arguments: tuple[Term, ...]
    distinct: bool
    variable: Variable
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Grouping:
    """`AGGREGATE(body ON ?g BIND ... )`: values computed from the bindings of a body, for each group of them.

    The variables of its groups and of its results belong to the rule; all others are local to the body.
    """

    body: Formula
    groups: tuple[Variable, ...]
    results: tuple[Result, ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Values:
    """`VALUES (?x ?y) { (:a :b) (:c :d) }`: rows of constants, one of which the variables have."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[Constant, ...], ...]
    span: Span | None = _span()


Formula = Atom | Test | Truth | Negation | Conjunction | Disjunction | Exists | Grouping | Values


@dataclass(frozen=True, slots=True)
class Clause:
    """Heads and a body; a fact has no body (`None`), which is not the same as a body that is `true`.

    `.constraint name :- body.` is a clause whose head is an atom of the constraint's name, with the variables that the
    body binds.
    """

    heads: tuple[Atom, ...]
    body: Formula | None = None
    span: Span | None = _span()
    constraint: bool = False


@dataclass(frozen=True, slots=True)
class Subsumption:
    """`dominated <= dominating :- body`: a fact gives way to another one of its relation if the body holds."""

    dominated: Atom
    dominating: Atom
    body: Formula
    span: Span | None = _span()


# -- declarations -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column of a relation, or a field of a record, with its type."""

    name: str
    type: str
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Branch:
    """`name {field:type, ...}`: a branch of an algebraic data type. The branch of a record type is called `[]`."""

    name: str
    fields: tuple[Attribute, ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class TypeDeclaration:
    """`.type name <: parents` (kind `subtype`) or `.type name = a | b` (kind `union`).

    With kind `record` or `adt` it has no parents: `.type name = [a:t, b:t]`, or `.type name = A {a:t} | B {}`.
    """

    name: str
    kind: str
    parents: tuple[str, ...]
    branches: tuple[Branch, ...] = ()
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Declaration:
    """`.decl name(attribute:type, ...)`; with `eqrel`, the relation is an equivalence."""

    name: str
    attributes: tuple[Attribute, ...]
    equivalence: bool = False
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class FunctorDeclaration:
    """`.functor name(argument:type, ...):result`; names of arguments may be empty."""

    name: str
    arguments: tuple[Attribute, ...]
    result: str
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Directive:
    """`.input`, `.output` or `.printsize` of a relation, with its options."""

    kind: str
    relation: str
    options: tuple[tuple[str, str], ...] = ()
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Hint:
    """`.pragma` or `.plan`: kept so that it prints back, and never acted upon."""

    text: str
    span: Span | None = _span()


@dataclass(frozen=True, slots=True, repr=False)
class Program(Printable):
    """A program as written: `dialect` is `dl` or `dlog`."""

    dialect: str
    types: tuple[TypeDeclaration, ...] = ()
    declarations: tuple[Declaration, ...] = ()
    directives: tuple[Directive, ...] = ()
    clauses: tuple[Clause, ...] = ()
    hints: tuple[Hint, ...] = ()
    #: The prefixes of a `.dlog` program with their IRIs: resolved in its clauses, and kept for queries.
    prefixes: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    #: The user-defined functors.
    functors: tuple[FunctorDeclaration, ...] = ()
    subsumptions: tuple[Subsumption, ...] = ()

    def __repr__(self) -> str:
        facts = sum(clause.body is None for clause in self.clauses)
        return f"<Program of .{self.dialect}: rules: {len(self.clauses) - facts}, facts: {facts}>"


# -- walking ----------------------------------------------------------------------------------------------------------


def nodes(*things: Term | Formula, in_aggregates: bool = True) -> Iterator[Term | Formula]:
    """Yield these and all that they consist of, from left to right.

    On request, nothing that is local to the body of an aggregate or of `EXISTS`.
    """
    pending: list[Term | Formula] = list(reversed(things))
    while pending:
        node = pending.pop()
        yield node
        match node:
            case Variable() | Constant() | Wildcard():  # most nodes are leaves
                continue
            case Call(arguments=parts) | Atom(terms=parts) | Test(terms=parts):
                pending.extend(reversed(parts))
            case Negation(formula=inner):
                pending.append(inner)
            case Conjunction(formulas=inner_formulas) | Disjunction(formulas=inner_formulas):
                pending.extend(reversed(inner_formulas))
            case Aggregate(target=target, body=body) if in_aggregates:
                pending.append(body)
                if target is not None:
                    pending.append(target)
            case Grouping(body=body, groups=groups, results=results):
                for result in reversed(results):
                    pending.append(result.variable)
                    pending.extend(reversed(result.arguments if in_aggregates else ()))
                pending.extend(reversed(groups))
                pending.extend([body] if in_aggregates else ())
            case Values(variables=named):
                pending.extend(reversed(named))
            case Exists(local=local, body=body):
                free = [v for v in variables(body, in_aggregates=False) if v not in local]
                pending.extend([body] if in_aggregates else reversed(free))


def variables(*things: Term | Formula, in_aggregates: bool = True) -> Iterator[Variable]:
    """Yield every occurrence of a variable, from left to right; on request, only those that are local to no body."""
    return (node for node in nodes(*things, in_aggregates=in_aggregates) if isinstance(node, Variable))
