"""Aggregates leave the rules: each becomes a hidden relation with the value of every group.

`p(x, s) :- q(x), s = sum y : { r(x, y, z), z > 0 }.` becomes

    b(x, y, z) :- r(x, y, z), z > 0.
    p(x, s) :- q(x), a(x, _, s).
    p(x, s) :- q(x), !a(x, _, _), s = 0.

where `a` has for each group of `b`, which is a value of `x`, its number of facts and the sum of `y`. A group without
facts has no fact of `a`; its count and its sum are 0, and its least, greatest and mean value do not exist.

Variables that occur outside of an aggregate as well make its groups. If its own body does not bind them, `b` asks for
the groups that the rest of the rule has. Each other variable that the body binds, and each `_`, is a column of `b`: an
aggregate is over the distinct bindings of its body. If the body is one atom with a variable in each column, `b` is its
relation.

Where the rule itself asks for a fact that makes the body true, no group is empty, and the rule with 0 is left out.
Where it asks for no more than that, as in `p(x, n) :- r(x, _), n = count : { r(x, _) }.`, the value says it already:

    p(x, n) :- a(x, n).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from upheld.base.errors import quote
from upheld.compiler.passes.negation import push_negation
from upheld.compiler.passes.nested.bindings import alternatives, enter_bindings, is_relation, with_variables
from upheld.compiler.passes.records import PREFIX as RECORD
from upheld.compiler.passes.safety import bound_variables
from upheld.language import ast
from upheld.language.core import Aggregation
from upheld.language.disjunction import Literal, literals, split_disjunctions
from upheld.language.draft import Draft
from upheld.language.syntax.printer import to_text
from upheld.language.types.aggregates import COLUMNS, ZERO_OF_NOTHING
from upheld.language.wildcards import PREFIX as WILDCARD

#: No dialect lets a user write such names.
VALUE, TARGET = "value ", "target value"


def lift_aggregates(draft: Draft) -> None:
    """Leave rules without aggregates, and enter the relations that have their values into the draft."""
    with_aggregates = [fact for fact in draft.facts if any(map(_has_aggregate, fact.heads[0].terms))]
    if with_aggregates:
        draft.facts = [fact for fact in draft.facts if fact not in with_aggregates]
        draft.rules += [replace(fact, body=ast.Conjunction(())) for fact in with_aggregates]
    done: list[ast.Clause] = []
    while draft.rules:
        lifting = _Lifting(draft)
        for clause in draft.rules:
            if _aggregates(clause):
                with suppress(_Unsafe):  # it is reported
                    lifting.lift(clause)
            else:
                done.append(clause)
        # New rules have bodies as their author wrote them, and may have aggregates.
        draft.rules = lifting.rules
        push_negation(draft)
        split_disjunctions(draft)
    draft.rules = [_without_what_values_say(clause, draft) for clause in done] if draft.aggregations else done


class _Unsafe(Exception):
    """A rule is left out: its aggregate has no meaning."""


class _Lifting:
    """Takes one aggregate out of each rule."""

    def __init__(self, draft: Draft):
        self.draft = draft
        self.rules: list[ast.Clause] = []

    def lift(self, clause: ast.Clause) -> None:
        rest = _plain(clause)
        bound = bound_variables(replace(clause, body=ast.Conjunction(tuple(rest))))
        aggregates = _aggregates(clause)
        # Another aggregate may bind what makes the groups of this one.
        chosen = next((a for a in aggregates if not _shared(a, clause) - bound), aggregates[0])
        value = _value(chosen, clause, bound)
        head = _without(clause.heads[0], chosen, value)
        body = [_without(part, chosen, value) for part in literals(clause)]
        body = [part for part in body if part != ast.Test("=", (value, value))]
        # A variable that only the value of the aggregate binds, as in `x = max x : { p(x) }`, is another one inside.
        has_value = ast.Test("=", (value, ast.Constant(0, "number")))
        later = bound_variables(replace(clause, body=ast.Conjunction((*_plain_of(body), has_value))))
        for name in sorted(_shared(chosen, clause) - later):
            self.draft.problem(
                "unsafe-aggregate",
                f"unsafe variable {quote(name)} in an aggregate",
                next(v.span for v in ast.variables(chosen) if v.name == name),
                note="a variable that also occurs outside of an aggregate must be bound there",
                hint="bind it by a positive body atom; the facts that have the value of an aggregate are found by an "
                "atom with that value",
            )
            raise _Unsafe
        groups = [v for v in dict.fromkeys(ast.variables(chosen)) if v.name in _shared(chosen, clause) & bound]
        self.rules.append(
            replace(clause, heads=(head,), body=ast.Conjunction((*body, self._has_value(chosen, groups, rest, value))))
        )

    def _has_value(
        self, aggregate: ast.Aggregate, groups: list[ast.Variable], rest: list[Literal], value: ast.Variable
    ) -> ast.Formula:
        """Return what says that a variable has the value of an aggregate."""
        function, span = aggregate.function, aggregate.span
        name = self._values_of(aggregate, groups, rest)
        atoms = [part for part in rest if isinstance(part, ast.Atom)]
        is_filled = not _may_have_nulls(self.draft) and any(_has_binding(aggregate, groups, atom) for atom in atoms)
        unnamed = tuple(ast.Wildcard(span) for _ in COLUMNS[function][1:])
        is_value = ast.Atom(name, (*groups, *unnamed, value), span)
        if function not in ZERO_OF_NOTHING or is_filled:
            return is_value
        nothing = ast.Negation(ast.Atom(name, (*groups, *unnamed, ast.Wildcard(span)), span), span)
        is_zero = ast.Test("=", (value, ast.Constant(0, "number", span)), span)
        return ast.Disjunction((is_value, ast.Conjunction((nothing, is_zero), span)), span)

    def _values_of(self, aggregate: ast.Aggregate, groups: list[ast.Variable], rest: list[Literal]) -> str:
        """Return the name of the relation with the values of an aggregate."""
        function, target, draft = aggregate.function, aggregate.target, self.draft
        text = draft.texts.get(aggregate) or to_text(aggregate, draft.program.dialect)
        name = text + (f" by {', '.join(v.name for v in groups)}" if groups else "")
        body = with_variables(aggregate.body)
        bound = _bound(body)
        columns: list[ast.Term] = list(dict.fromkeys((*groups, *(v for v in ast.variables(body) if v.name in bound))))
        missing = [v for v in groups if v.name not in bound]
        if missing:
            asked = self._groups_of(rest, missing)
            name += f" of {asked.predicate}"
            body = ast.Conjunction((asked, body))
        relation = body if is_relation(body, draft) else None
        for variable in ast.variables(target) if target is not None else ():
            if variable.name not in bound | {v.name for v in groups}:
                draft.problem(
                    "unsafe-aggregate",
                    f"unsafe variable {quote(variable.name)} in the target of an aggregate",
                    variable.span,
                    note="the body of an aggregate, or the rest of the rule, must bind the variables of its target",
                )
                raise _Unsafe
        if target is not None and target not in columns:
            relation, body = None, ast.Conjunction((body, ast.Test("=", (ast.Variable(TARGET), target), target.span)))
            target = ast.Variable(TARGET)
            columns.append(target)
        if relation is not None:
            bindings, columns = relation.predicate, list(relation.terms)
        else:
            if function in ("min", "max"):  # which are the same, however often a value occurs
                columns = list(dict.fromkeys(v for v in (*groups, target) if v is not None))
            bindings = f"[bindings of {name}]"
            self.rules += enter_bindings(draft, bindings, columns, body, aggregate.span)
        values = f"[{name}]"
        draft.hidden.add(values)
        draft.arities[values] = len(groups) + len(COLUMNS[function])
        at = None if target is None else columns.index(target)
        of = tuple(map(columns.index, groups))
        names = tuple(to_text(_as_written(v, aggregate), draft.program.dialect) for v in columns)
        aggregation = Aggregation(values, function, bindings, of, at, names, text, span=aggregate.span)
        draft.aggregations.setdefault(values, aggregation)
        return values

    def _groups_of(self, rest: list[Literal], missing: list[ast.Variable]) -> ast.Atom:
        """Return an atom of a relation with the values that the rest of a rule gives to some variables."""
        bound = bound_variables(ast.Clause((), ast.Conjunction(tuple(rest))))
        body = ast.Conjunction(tuple(part for part in rest if {v.name for v in ast.variables(part)} <= bound))
        name = f"[{', '.join(v.name for v in missing)} of {to_text(body, self.draft.program.dialect)}]"
        self.rules += enter_bindings(self.draft, name, missing, body, body.formulas[0].span)
        return ast.Atom(name, tuple(missing))


def _may_have_nulls(draft: Draft) -> bool:
    """Return whether a fact may hold a null, which binds nothing in a group."""
    declared = (a.type for declaration in draft.program.declarations for a in declaration.attributes)
    known = (type for types in draft.known_types.values() for type in types)
    heads = (term for clause in (*draft.rules, *draft.facts) for head in clause.heads for term in head.terms)
    is_null = (isinstance(term, ast.Constant) and term.type == "null" for term in heads)
    return any(type.endswith("?") for type in (*declared, *known)) or any(is_null)


def _has_binding(aggregate: ast.Aggregate, groups: Sequence[ast.Variable], atom: ast.Atom) -> bool:
    """Return whether the body of an aggregate has a binding in each group for which an atom holds."""
    body, target = aggregate.body, aggregate.target
    if not isinstance(body, ast.Atom) or (body.predicate, len(body.terms)) != (atom.predicate, len(atom.terms)):
        return False
    if target is not None and target not in body.terms:
        return False
    values: dict[ast.Term, ast.Term] = {group: group for group in groups}
    for wanted, term in zip(body.terms, atom.terms, strict=True):
        match wanted:
            case ast.Wildcard():
                continue
            case ast.Constant():
                value: ast.Term = wanted
            case ast.Variable() if wanted not in values and not isinstance(term, ast.Wildcard):
                value = values[wanted] = term
            case ast.Variable() if wanted not in values and list(body.terms).count(wanted) == 1:
                continue
            case ast.Variable():
                value = values.get(wanted, wanted)
            case _:
                return False
        if value != term:
            return False
    return True


def _without_what_values_say(clause: ast.Clause, draft: Draft) -> ast.Clause:
    """Return a rule without atoms that ask only for a fact of a group, where another one asks for the group's value."""
    body = literals(clause)
    values = [part for part in body if isinstance(part, ast.Atom) and part.predicate in draft.aggregations]
    if not values:
        return clause
    uses = Counter(v.name for v in ast.variables(*clause.heads, *body))

    def is_said(atom: ast.Atom, value: ast.Atom) -> bool:
        aggregation = draft.aggregations[value.predicate]
        group = dict(zip(aggregation.groups, value.terms))
        return aggregation.body == atom.predicate and all(
            term == group[column] if column in group else isinstance(term, ast.Wildcard) or _occurs_once(term, uses)
            for column, term in enumerate(atom.terms)
        )

    rest = tuple(part for part in body if not isinstance(part, ast.Atom) or not any(is_said(part, v) for v in values))
    return clause if len(rest) == len(body) else replace(clause, body=ast.Conjunction(rest))


def _occurs_once(term: ast.Term, uses: Counter[str]) -> bool:
    return isinstance(term, ast.Variable) and uses[term.name] == 1


def _as_written(column: ast.Term, aggregate: ast.Aggregate) -> ast.Term:
    """Return what a column of the bindings of an aggregate has."""
    if column == ast.Variable(TARGET) and aggregate.target is not None:
        return aggregate.target
    return ast.Wildcard() if isinstance(column, ast.Variable) and column.name.startswith((WILDCARD, RECORD)) else column


def _has_aggregate(term: ast.Term) -> bool:
    return not isinstance(term, ast.Constant) and any(isinstance(node, ast.Aggregate) for node in ast.nodes(term))


def _aggregates(clause: ast.Clause) -> list[ast.Aggregate]:
    """Return the aggregates of a clause that are within no other one."""
    parts = ast.nodes(*clause.heads, *literals(clause), in_aggregates=False)
    return [node for node in parts if isinstance(node, ast.Aggregate)]


def _plain(clause: ast.Clause) -> list[Literal]:
    """Return the literals of a clause without aggregates."""
    return _plain_of(literals(clause))


def _plain_of(body: Iterable[Literal]) -> list[Literal]:
    return [part for part in body if not any(isinstance(node, ast.Aggregate) for node in ast.nodes(part))]


def _value(aggregate: ast.Aggregate, clause: ast.Clause, bound: set[str]) -> ast.Variable:
    """Return the variable that an equation gives the value of an aggregate to, or a new one."""
    for part in literals(clause):
        if isinstance(part, ast.Test) and part.operator == "=" and aggregate in part.terms:
            (other,) = [term for term in part.terms if term != aggregate] or [aggregate]
            if isinstance(other, ast.Variable) and other.name not in bound:
                return other
    taken = {v.name for v in ast.variables(*clause.heads, *literals(clause)) if v.name.startswith(VALUE)}
    return ast.Variable(f"{VALUE}{len(taken)}")


def _shared(aggregate: ast.Aggregate, clause: ast.Clause) -> set[str]:
    """Return the variables of an aggregate that occur outside of all aggregates as well."""
    outside = {v.name for v in ast.variables(*clause.heads, *literals(clause), in_aggregates=False)}
    return outside & {v.name for v in ast.variables(aggregate)}


def _bound(body: ast.Formula) -> set[str]:
    """Return the variables that a body binds by itself, whichever of its alternatives holds."""
    bound = []
    for rule in alternatives(body):
        parts = list(literals(rule))
        for aggregate in _aggregates(rule):  # it has some value, whatever that is
            parts = [_without(part, aggregate, ast.Constant(0, "number")) for part in parts]
        bound.append(bound_variables(replace(rule, body=ast.Conjunction(tuple(parts)))))
    return set.intersection(*bound) if bound else set()


P = TypeVar("P", ast.Atom, Literal, ast.Term)


def _without(part: P, aggregate: ast.Aggregate, value: ast.Variable | ast.Constant) -> P:
    """Return a part of a rule with a value in the place of an aggregate."""
    match part:
        case ast.Aggregate():
            return value if part == aggregate else part
        case ast.Atom() | ast.Test():
            return replace(part, terms=tuple(_without(t, aggregate, value) for t in part.terms))
        case ast.Call(arguments=terms):
            return replace(part, arguments=tuple(_without(t, aggregate, value) for t in terms))
        case ast.Negation(formula=ast.Atom() as atom):
            return replace(part, formula=_without(atom, aggregate, value))
        case _:
            return part
