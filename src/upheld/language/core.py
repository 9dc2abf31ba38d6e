"""The core form: what algorithms and engines see of a program.

A rule has one head and, in its body, positive atoms, negated atoms and built-ins. The terms of an atom are variables
and constants; expressions stand only in built-ins. Every constant and every operation has its type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from upheld.base.source import Span
from upheld.language.ast import Constant, Directive, Printable, Program, TypeDeclaration, Variable
from upheld.language.types.functors import Functor, functor
from upheld.language.values import Value

Fact = tuple[str, tuple[Value, ...]]
"""A predicate and the values of its arguments."""

CoreTerm = Variable | Constant


@dataclass(frozen=True, slots=True)
class Apply:
    """A functor applied to expressions."""

    functor: Functor
    arguments: tuple[Expression, ...]

    def __reduce__(self) -> tuple[object, ...]:
        """Programs go to other processes. The function of a functor is looked up there by name."""
        return _applied, (self.functor.name, self.functor.type, self.arguments)


def _applied(name: str, type: str, arguments: tuple[Expression, ...]) -> Apply:
    return Apply(functor(name, len(arguments), type), arguments)


Expression = Variable | Constant | Apply


@dataclass(frozen=True, slots=True)
class Atom:
    """A predicate applied to variables and constants."""

    predicate: str
    terms: tuple[CoreTerm, ...]

    def variables(self) -> Iterator[str]:
        return (t.name for t in self.terms if isinstance(t, Variable))


@dataclass(frozen=True, slots=True)
class Builtin:
    """A constraint on expressions of one type. `=` binds a variable that nothing else has bound yet.

    `==` tests and never binds. RDF terms are compared by value and joined by identity, so for them `=` is only the one
    equation that binds a variable, which no atom does, and all other equations are `==`. `5 == 5.0`, but a fact with 5
    does not follow from an equation that binds 5.0.
    """

    operator: str
    type: str
    arguments: tuple[Expression, Expression]

    def variables(self) -> Iterator[str]:
        for argument in self.arguments:
            yield from expression_variables(argument)


@dataclass(frozen=True, eq=False)
class Rule(Printable):
    """A rule of the core. Rules are compared by identity, so that each is one key in every index and plan."""

    head: Atom
    positive: tuple[Atom, ...] = ()
    negative: tuple[Atom, ...] = ()
    builtins: tuple[Builtin, ...] = ()
    #: Where the clause stands that it came from.
    span: Span | None = field(default=None, repr=False)
    #: The original rule, if this one results from a transformation.
    part_of: Rule | None = field(default=None, repr=False)
    #: The types of variables whose values are codes (`types.columns`), for messages.
    types: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def whole(self) -> Rule:
        """The rule as its author knows it: errors speak of that one."""
        return self.part_of or self

    @property
    def atoms(self) -> tuple[Atom, ...]:
        return self.positive + self.negative

    def variables(self) -> tuple[str, ...]:
        """The variables of the rule, in a fixed order: a binding of them names an instance."""
        return self._variables

    @cached_property
    def _variables(self) -> tuple[str, ...]:
        parts: list[Atom | Builtin] = [*self.positive, *self.negative, *self.builtins, self.head]
        return tuple(dict.fromkeys(name for part in parts for name in part.variables()))


@dataclass(frozen=True)
class Predicate:
    """A relation of the program: column names and primitive types. Users do not see hidden ones.

    The facts of a `constraint` are what violates it. `.constraint` makes a hidden relation, whose columns are variables
    of its body; `violation` of the `.dlog` dialect is visible.
    """

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    hidden: bool = False
    constraint: bool = False

    @property
    def internal(self) -> bool:
        """Whether a pass made it from a part of a rule: it is there as long as a rule reads it."""
        return self.hidden and not self.constraint

    @property
    def arity(self) -> int:
        return len(self.types)


@dataclass(frozen=True)
class Classing:
    """An equivalence that is held by classes: its relation, and hidden ones of its values.

    `members` has each value with the number of its class; `values` has those that are in a class, if a rule asks.
    """

    relation: str
    members: str
    values: str

    def member(self, value: CoreTerm, number: CoreTerm) -> Atom:
        """Return the atom that says that a value is in a class."""
        return Atom(self.members, (value, number))


@dataclass(frozen=True)
class Aggregation:
    """A hidden relation with the value of an aggregate for each group of the facts of another relation.

    Its columns are the columns of the groups, then the numbers that the function keeps (`types.aggregates`). The last
    of these is the value. A group without facts has none.
    """

    relation: str
    function: str
    #: The relation whose facts are aggregated, and the columns of it that make groups and that have the values.
    body: str
    groups: tuple[int, ...]
    target: int | None
    #: The variables of the columns of `body`, as they are written.
    names: tuple[str, ...]
    #: The aggregate as it is written.
    text: str
    #: The type of the values, if there are some.
    type: str = "number"
    #: The types of the columns that make groups.
    group_types: tuple[str, ...] = ()
    #: A relation without columns: there are values only while it has its fact. A rule change has such aggregates.
    guard: str | None = field(default=None, compare=False)
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Core:
    """A checked program: typed, safe, and in core form."""

    dialect: str
    predicates: dict[str, Predicate]
    rules: tuple[Rule, ...]
    #: Explicit facts that the program itself states.
    facts: frozenset[Fact]
    directives: tuple[Directive, ...] = ()
    #: Prefixes that queries may use, beside those that are always there.
    prefixes: tuple[tuple[str, str], ...] = ()
    #: The relations that are declared as equivalences.
    equivalences: tuple[str, ...] = ()
    #: The equivalences stored as classes.
    classings: tuple[Classing, ...] = ()
    #: The program that would hold them by pairs, if some are held by classes.
    by_pairs: Core | None = None
    #: The relations with values of aggregates.
    aggregations: tuple[Aggregation, ...] = ()
    #: The types that the program declares, which queries may use.
    types: tuple[TypeDeclaration, ...] = ()
    #: The program as it is written, for changes of its rules.
    program: Program | None = field(default=None, compare=False, repr=False)

    def __getstate__(self) -> dict[str, object]:
        """Programs go to other processes, which evaluate rules and change none."""
        return {**self.__dict__, "program": None}

    @cached_property
    def constraints(self) -> dict[str, Predicate]:
        """The relations with violations of constraints, by name."""
        return {name: predicate for name, predicate in self.predicates.items() if predicate.constraint}

    @cached_property
    def hidden(self) -> frozenset[str]:
        """The relations that users do not see."""
        return frozenset(name for name, predicate in self.predicates.items() if predicate.hidden)

    def with_columns(self, columns: Mapping[str, tuple[str, ...]]) -> Core:
        """Return the program with other names for the columns of some of its relations."""
        named = {
            name: replace(predicate, columns=columns[name])
            for name, predicate in self.predicates.items()
            if name in columns and len(columns[name]) == predicate.arity
        }
        return replace(self, predicates={**self.predicates, **named})


def unnamed_columns(arity: int) -> tuple[str, ...]:
    """Return what the columns of a relation are called that nobody has given names to."""
    return tuple(f"c{i}" for i in range(arity))


def expression_variables(expression: Expression) -> Iterator[str]:
    match expression:
        case Variable(name=name):
            yield name
        case Apply(arguments=arguments):
            for argument in arguments:
                yield from expression_variables(argument)
        case _:
            return


def rule_functors(rule: Rule) -> Iterator[str]:
    """Yield the names of the functors that a rule applies."""
    pending: list[Expression] = [argument for builtin in rule.builtins for argument in builtin.arguments]
    while pending:
        expression = pending.pop()
        if isinstance(expression, Apply):
            yield expression.functor.name
            pending += expression.arguments
