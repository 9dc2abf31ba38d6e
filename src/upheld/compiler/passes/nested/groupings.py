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
from upheld.language import ast
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
        self.rules: list[ast.Clause] = []

    def lifted(self, formula: ast.Formula) -> ast.Formula:
        match formula:
            case ast.Grouping():
                return ast.Conjunction(
                    tuple(self._has_result(formula, result) for result in formula.results), formula.span
                )
            case ast.Exists():
                return self._exists(formula)
            case ast.Values():
                return self._table(formula)
            case ast.Negation(formula=inner):
                return replace(formula, formula=self.lifted(inner))
            case ast.Conjunction(formulas=parts) | ast.Disjunction(formulas=parts):
                return replace(formula, formulas=tuple(map(self.lifted, parts)))
            case ast.Atom() | ast.Test() | ast.Truth():
                return formula

    def _table(self, formula: ast.Values) -> ast.Atom:
        """Return an atom of the relation with the rows of a table."""
        name = f"[{self._text(formula)}]"
        if name not in self.draft.hidden:
            self.draft.hidden.add(name)
            self.draft.arities[name] = len(formula.variables)
            rows = (ast.Atom(name, row, formula.span) for row in formula.rows)
            self.rules += [ast.Clause((row,), ast.Conjunction(()), formula.span) for row in rows]
        return ast.Atom(name, formula.variables, formula.span)

    def _exists(self, formula: ast.Exists) -> ast.Atom:
        body, text = self.lifted(formula.body), self._text(formula)
        columns = [v for v in dict.fromkeys(ast.variables(body, in_aggregates=False)) if v not in formula.local]
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
        return ast.Atom(f"[{text}]", tuple(columns), formula.span)

    def _has_result(self, grouping: ast.Grouping, result: ast.Result) -> ast.Formula:
        """Return what says that a variable has a result of a grouping."""
        body = self.lifted(with_variables(grouping.body))
        bound = _bound(body)
        missing = [v for v in (*grouping.groups, *ast.variables(*result.arguments)) if v.name not in bound]
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
        arguments: list[ast.Variable] = []
        for number, argument in enumerate(result.arguments):
            if not isinstance(argument, ast.Variable):
                computed = ast.Variable(f"{COMPUTED}{number}")
                body = ast.Conjunction((body, ast.Test("=", (computed, argument), argument.span)), body.span)
                argument = computed
            arguments.append(argument)
        text = self._text(replace(grouping, results=(result,)))
        function = "MIN" if result.function == "SAMPLE" else result.function  # which may be any of the values
        if function in _AT_EXTREME:
            extreme, argument = arguments
            function = _AT_EXTREME[function]
            at_extreme = self._values_of(grouping, function, extreme, False, body, f"{function}, for {text}")
            body, arguments = ast.Conjunction((at_extreme, body), body.span), [argument]
        target = arguments[0] if arguments else None
        value = self._values_of(grouping, function, target, result.distinct, body, text)
        return replace(value, terms=(*value.terms[:-1], result.variable))

    def _values_of(
        self,
        grouping: ast.Grouping,
        function: str,
        target: ast.Variable | None,
        distinct: bool,
        body: ast.Formula,
        text: str,
    ) -> ast.Atom:
        """Return an atom of the relation with the values of a function. It asks for the value that is the target."""
        draft, groups = self.draft, grouping.groups
        values = f"[{text}]"
        if target is not None and (distinct or function in _OF_SETS):
            columns = list(dict.fromkeys((*groups, target)))
        else:
            columns = list(dict.fromkeys((*groups, *ast.variables(body, in_aggregates=False))))
            bound = _bound(body)
            columns = [v for v in columns if v.name in bound]
        if is_relation(body, draft) and set(columns) == set(body.terms):
            bindings, columns = body.predicate, [v for v in body.terms if isinstance(v, ast.Variable)]
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
        unnamed = (ast.Wildcard(grouping.span) for _ in COLUMNS[function][1:])
        return ast.Atom(values, (*groups, *unnamed, target or ast.Wildcard()), grouping.span)

    def _column(self, column: ast.Variable) -> str:
        return "_" if column.name.startswith(ANYTHING) else self._text(column)

    def _text(self, thing: ast.Formula | ast.Term) -> str:
        return to_text(thing, self.draft.program.dialect)


def _bound(body: ast.Formula) -> set[str]:
    """Return the variables that a body binds by itself, whichever of its alternatives holds."""
    bound = [bound_variables(rule) for rule in alternatives(body)]
    return set.intersection(*bound) if bound else set()
