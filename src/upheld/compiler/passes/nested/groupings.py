"""Bodies with variables of their own leave the rules: the bodies of `AGGREGATE` and `EXISTS`.

`p(?x, ?n) :- AGGREGATE(r(?x, ?y), ?y > 0 ON ?x BIND COUNT(?y) AS ?n) .` becomes

    b(?x, ?y) :- r(?x, ?y), ?y > 0 .
    p(?x, ?n) :- a(?x, _, ?n) .

where `a` has for each group of `b`, which is a value of `?x`, its number of facts as a number and as a literal. A group
without facts has no fact of `a`, nor has one for whose values the function has no result, as in SPARQL the sum of
terms that are not numbers. `MIN_ARGMIN(?y, ?z)` is the least `?z` of the bindings with the least `?y`.

`NOT EXISTS ?y IN (body)` becomes the negation of a hidden relation with the other variables of the body. `VALUES`
becomes an atom of a hidden relation with these rows.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from upheld.base.errors import quote
from upheld.compiler.passes.nested.bindings import ANYTHING, alternatives, enter_bindings, is_relation, with_variables
from upheld.compiler.passes.safety import bound_variables
from upheld.language.ast import (
    Atom,
    Clause,
    Conjunction,
    Disjunction,
    Exists,
    Formula,
    Grouping,
    Negation,
    Result,
    Term,
    Test,
    Truth,
    Values,
    Variable,
    Wildcard,
    variables,
)
from upheld.language.core import Aggregation
from upheld.language.draft import Draft
from upheld.language.syntax.printer import to_text
from upheld.language.types.aggregates import COLUMNS

#: The variable of a value that is computed; no dialect lets a user write such a name.
COMPUTED = "argument "

BIND_IT = "bind it by a positive atom of that body"

#: Functions that are the same however often a value occurs.
_OF_SETS = frozenset(("MIN", "MAX"))
#: Functions whose value is an argument at an extreme of another one, with the function of the extreme.
_AT_EXTREME = {"MIN_ARGMIN": "MIN", "MAX_ARGMAX": "MAX"}


def lift_local_bodies(draft: Draft) -> None:
    """Leave bodies in which each variable is one of the rule."""
    lifting, rules = _Lifting(draft), []
    for clause in draft.rules:
        assert clause.body is not None, "a rule without a body"
        with suppress(_Unsafe):  # it is reported
            rules.append(replace(clause, body=lifting.lifted(clause.body)))
    draft.rules = rules + lifting.rules


class _Unsafe(Exception):
    """A rule is left out: a body in it does not bind its variables."""


class _Lifting:
    """Takes local bodies out of rules, the innermost first."""

    def __init__(self, draft: Draft):
        self.draft = draft
        self.rules: list[Clause] = []

    def lifted(self, formula: Formula) -> Formula:
        match formula:
            case Grouping():
                return Conjunction(tuple(self._has_result(formula, result) for result in formula.results), formula.span)
            case Exists():
                return self._exists(formula)
            case Values():
                return self._table(formula)
            case Negation(formula=inner):
                return replace(formula, formula=self.lifted(inner))
            case Conjunction(formulas=parts) | Disjunction(formulas=parts):
                return replace(formula, formulas=tuple(map(self.lifted, parts)))
            case Atom() | Test() | Truth():
                return formula

    def _table(self, formula: Values) -> Atom:
        """Return an atom of the relation with the rows of a table."""
        name = f"[{self._text(formula)}]"
        if name not in self.draft.hidden:
            self.draft.hidden.add(name)
            self.draft.arities[name] = len(formula.variables)
            rows = (Atom(name, row, formula.span) for row in formula.rows)
            self.rules += [Clause((row,), Conjunction(()), formula.span) for row in rows]
        return Atom(name, formula.variables, formula.span)

    def _exists(self, formula: Exists) -> Atom:
        body, text = self.lifted(formula.body), self._text(formula)
        columns = [v for v in dict.fromkeys(variables(body, in_aggregates=False)) if v not in formula.local]
        bound = _bound(body)
        missing = [v for v in columns if v.name not in bound]
        for variable in missing:
            self.draft.problem(
                "unsafe-negation",
                f"unsafe variable {quote(variable.name)} in the body of `EXISTS`",
                variable.span,
                note="the body of `EXISTS` must bind its variables by itself",
                hint=BIND_IT,
            )
        if missing:
            raise _Unsafe
        self.rules += enter_bindings(self.draft, f"[{text}]", columns, body, formula.span)
        return Atom(f"[{text}]", tuple(columns), formula.span)

    def _has_result(self, grouping: Grouping, result: Result) -> Formula:
        """Return what says that a variable has a result of a grouping."""
        body = self.lifted(with_variables(grouping.body))
        bound = _bound(body)
        missing = [v for v in (*grouping.groups, *variables(*result.arguments)) if v.name not in bound]
        for variable in missing:
            self.draft.problem(
                "unsafe-aggregate",
                f"unsafe variable {quote(variable.name)} of an aggregate",
                variable.span,
                note="the body of an aggregate must bind its groups, and the variables of its functions",
                hint=BIND_IT,
            )
        if missing:
            raise _Unsafe
        arguments: list[Variable] = []
        for number, argument in enumerate(result.arguments):
            if not isinstance(argument, Variable):
                computed = Variable(f"{COMPUTED}{number}")
                body = Conjunction((body, Test("=", (computed, argument), argument.span)), body.span)
                argument = computed
            arguments.append(argument)
        text = self._text(replace(grouping, results=(result,)))
        function = "MIN" if result.function == "SAMPLE" else result.function  # which may be any of the values
        if function in _AT_EXTREME:
            extreme, argument = arguments
            function = _AT_EXTREME[function]
            at_extreme = self._values_of(grouping, function, extreme, False, body, f"{function}, for {text}")
            body, arguments = Conjunction((at_extreme, body), body.span), [argument]
        target = arguments[0] if arguments else None
        value = self._values_of(grouping, function, target, result.distinct, body, text)
        return replace(value, terms=(*value.terms[:-1], result.variable))

    def _values_of(
        self, grouping: Grouping, function: str, target: Variable | None, distinct: bool, body: Formula, text: str
    ) -> Atom:
        """Return an atom of the relation with the values of a function. It asks for the value that is the target."""
        draft, groups = self.draft, grouping.groups
        values = f"[{text}]"
        if target is not None and (distinct or function in _OF_SETS):
            columns = list(dict.fromkeys((*groups, target)))
        else:
            columns = list(dict.fromkeys((*groups, *variables(body, in_aggregates=False))))
            bound = _bound(body)
            columns = [v for v in columns if v.name in bound]
        if is_relation(body, draft) and set(columns) == set(body.terms):
            bindings, columns = body.predicate, [v for v in body.terms if isinstance(v, Variable)]
        else:  # which several functions may have in common
            bindings = f"[{', '.join(v.name for v in columns)} of {self._text(body)}]"
            self.rules += enter_bindings(draft, bindings, columns, body, grouping.span)
        draft.hidden.add(values)
        draft.arities[values] = len(groups) + len(COLUMNS[function])
        at = None if target is None else columns.index(target)
        names = tuple(map(self._column, columns))
        aggregation = Aggregation(
            values, function, bindings, tuple(map(columns.index, groups)), at, names, text, span=grouping.span
        )
        draft.aggregations.setdefault(values, aggregation)
        unnamed = (Wildcard(grouping.span) for _ in COLUMNS[function][1:])
        return Atom(values, (*groups, *unnamed, target or Wildcard()), grouping.span)

    def _column(self, column: Variable) -> str:
        return "_" if column.name.startswith(ANYTHING) else self._text(column)

    def _text(self, thing: Formula | Term) -> str:
        return to_text(thing, self.draft.program.dialect)


def _bound(body: Formula) -> set[str]:
    """Return the variables that a body binds by itself, whichever of its alternatives holds."""
    bound = [bound_variables(rule) for rule in alternatives(body)]
    return set.intersection(*bound) if bound else set()
