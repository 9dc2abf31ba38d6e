"""Nulls join with nothing and compare with nothing, as in SQL: rules get guards, so that engines see plain values.

A column declared `number?` may hold nulls, which are one reserved value of its type (`types.columns`). A variable that
occurs twice in positive atoms, or in a comparison or an expression, is not null: the rule gets the guard `!is_null(x)`
if one of its columns may hold nulls. A variable that occurs once passes a null on to the head.

    p(x) :- q(x, y), r(y).           becomes   p(x) :- q(x, y), r(y), !is_null(y).
    p(x) :- q(x), !r(x).             becomes   p(x) :- q(x), !r(x), !is_null(x).
                                               p(x) :- q(x), is_null(x).
    s = sum y : { q(x, y) }          sums the facts of q whose y is not null

A null equals no value, so `!r(x)` holds if `x` is null. Columns of relations without a declaration may hold nulls if a
rule passes one on to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from upheld.base.errors import quote
from upheld.language.ast import Atom, Clause, Conjunction, Constant, Negation, Term, Test, Variable, variables
from upheld.language.disjunction import Literal, literals
from upheld.language.draft import Draft
from upheld.language.types.columns import ColumnType

#: Variables of a rule that may be null where it negates; each doubles the rules.
MOST_NULLS = 8

Nullable = dict[str, list[bool]]


def guard_nulls(draft: Draft) -> None:
    """Guard rules against nulls, and find the columns that may hold them."""
    nullable = _declared(draft)
    for clause in draft.rules:
        _refuse_null_literals(draft, clause)
    if not any(map(any, nullable.values())):
        if not any(_is_null(term) for clause in draft.rules for term in clause.heads[0].terms):
            return
    open_to_nulls = _infer(draft, nullable)
    _refuse_nulls_elsewhere(draft, nullable, open_to_nulls)
    _guard_aggregations(draft, nullable)
    draft.rules = [guarded for clause in draft.rules for guarded in _guarded(draft, clause, nullable)]
    draft.nullable = {name: tuple(columns) for name, columns in nullable.items() if any(columns)}


# -- columns ----------------------------------------------------------------------------------------------------------


def _declared(draft: Draft) -> Nullable:
    """Return which columns may hold nulls by declaration, or by the facts at hand."""
    types = {declared.name for declared in draft.program.types}
    nullable: Nullable = {name: [False] * arity for name, arity in draft.arities.items()}
    for declaration in draft.program.declarations:
        columns = [a.type.endswith("?") and a.type not in types for a in declaration.attributes]
        nullable[declaration.name] = columns
        subsumed = declaration.name in {s.dominated.predicate for s in draft.program.subsumptions}
        if any(columns) and (declaration.equivalence or subsumed):
            what = "an equivalence" if declaration.equivalence else "a relation with a subsumption"
            draft.problem(
                "unsupported-null",
                f"{quote(declaration.name)} is {what}, and has a column with nulls",
                declaration.span,
                note="its values are compared with each other, and a null compares with nothing",
                hint="leave the facts with nulls to another relation",
            )
    if not draft.program.declarations:
        for name, known in draft.known_types.items():
            nullable[name] = [isinstance(type, ColumnType) and type.nullable for type in known]
    return nullable


def _infer(draft: Draft, nullable: Nullable) -> set[str]:
    """Enter the columns that rules pass nulls on to. Return the relations whose columns are inferred."""
    closed = {d.name for d in draft.program.declarations}
    if not draft.program.declarations:
        closed = set(draft.known_types)
    inferred = draft.arities.keys() - closed
    changed = True
    while changed:
        changed = False
        for clause in draft.rules:
            head = clause.heads[0]
            passed = _passed(clause, nullable)
            for i, term in enumerate(head.terms):
                if head.predicate in inferred and _may_be_null(term, passed) and not nullable[head.predicate][i]:
                    nullable[head.predicate][i] = changed = True
        for aggregation in draft.aggregations.values():
            for i, group in enumerate(aggregation.groups):
                if nullable[aggregation.body][group] and not nullable[aggregation.relation][i]:
                    nullable[aggregation.relation][i] = changed = True
    return inferred


def _refuse_nulls_elsewhere(draft: Draft, nullable: Nullable, inferred: set[str]) -> None:
    """Report each rule that passes a null on to a column that is declared without nulls."""
    for clause in draft.rules:
        head = clause.heads[0]
        if head.predicate in inferred:
            continue
        passed = _passed(clause, nullable)
        for i, term in enumerate(head.terms):
            if _may_be_null(term, passed) and not nullable[head.predicate][i]:
                shown = quote(term.name) if isinstance(term, Variable) else "`null`"
                draft.problem(
                    "null-in-head",
                    f"{shown} may be null, and column {i + 1} of {quote(head.predicate)} is declared without nulls",
                    term.span,
                    note="a variable may be null if it occurs in one place of a body, in a column with nulls",
                    hint="declare the column with `?` behind its type, or add `!is_null(...)` to the body",
                )


def _passed(clause: Clause, nullable: Nullable) -> set[str]:
    """Return the variables that may be null: they occur once, in a column with nulls, and are not compared."""
    body = literals(clause)
    places = Counter(t.name for atom in body if isinstance(atom, Atom) for t in atom.terms if isinstance(t, Variable))
    with_nulls = _with_nulls(body, nullable)
    compared = {v.name for test in body if isinstance(test, Test) and not _asks(test) for v in variables(test)}
    return {name for name in with_nulls if places[name] == 1} - compared


def _asks(test: Test) -> bool:
    """Return whether a test asks if a variable is null."""
    return test.operator == "is_null" and isinstance(test.terms[0], Variable)


def _with_nulls(body: tuple[Literal, ...], nullable: Nullable) -> dict[str, Variable]:
    """Return the variables that occur in a column with nulls of a positive atom."""
    return {
        term.name: term
        for atom in body
        if isinstance(atom, Atom)
        for term, null in zip(atom.terms, nullable[atom.predicate], strict=True)
        if null and isinstance(term, Variable)
    }


def _may_be_null(term: Term, passed: set[str]) -> bool:
    return _is_null(term) or (isinstance(term, Variable) and term.name in passed)


def _is_null(term: Term) -> bool:
    return isinstance(term, Constant) and term.type == "null"


def _refuse_null_literals(draft: Draft, clause: Clause) -> None:
    """Report `null` in the body of a rule, where it would equal nothing."""
    for literal in literals(clause):
        atom = literal.formula if isinstance(literal, Negation) else literal
        assert isinstance(atom, Atom | Test), "negation of something else than an atom"
        for term in atom.terms:
            if _is_null(term):
                draft.problem(
                    "null-comparison",
                    "`null` in the body of a rule, where it would equal nothing",
                    term.span,
                    note="a null joins with nothing and compares with nothing, not even with another null",
                    hint="write `is_null(x)` or `!is_null(x)`",
                )


# -- guards -----------------------------------------------------------------------------------------------------------


def _guarded(draft: Draft, clause: Clause, nullable: Nullable) -> Iterator[Clause]:
    """Yield the rule with guards; if a variable that may be null is negated, the rules for both cases."""
    body = literals(clause)
    passed = _passed(clause, nullable)
    asked = {v.name for test in body if isinstance(test, Test) and test.operator == "!is_null" for v in variables(test)}
    guards = [_not_null(v) for name, v in _with_nulls(body, nullable).items() if name not in passed | asked]
    negated = {v.name: v for literal in body if isinstance(literal, Negation) for v in variables(literal.formula)}
    both = [negated[name] for name in sorted(passed & negated.keys())]
    if len(both) > MOST_NULLS:
        draft.problem(
            "too-many-alternatives",
            f"{len(both)} variables of this rule may be null and are negated; the maximum is {MOST_NULLS}",
            clause.span,
            note="such a variable makes two rules, for nulls and for other values",
            hint="add `!is_null(x)` for some of them",
        )
        return
    for number in range(1 << len(both)):
        null = [v for i, v in enumerate(both) if number >> i & 1]
        names = {v.name for v in null}
        rest = [part for part in body if not isinstance(part, Negation) or not _has(part, names)]
        cases = [Test("is_null", (v,), v.span) if v in null else _not_null(v) for v in both]
        yield replace(clause, body=Conjunction((*rest, *guards, *cases))) if guards or both else clause


def _has(negation: Negation, names: set[str]) -> bool:
    return any(v.name in names for v in variables(negation.formula))


def _not_null(variable: Variable) -> Test:
    return Test("!is_null", (variable,), variable.span)


def _guard_aggregations(draft: Draft, nullable: Nullable) -> None:
    """Let aggregates of values skip nulls: each gets a relation without them."""
    for aggregation in list(draft.aggregations.values()):
        target, body = aggregation.target, aggregation.body
        if target is None or not nullable[body][target]:
            continue
        name = f"[{body} where column {target + 1} is not null]"
        if name not in draft.hidden:
            columns = tuple(Variable(f"x{i}") for i in range(draft.arities[body]))
            head, atom = Atom(name, columns, aggregation.span), Atom(body, columns, aggregation.span)
            draft.rules.append(Clause((head,), Conjunction((atom, _not_null(columns[target]))), aggregation.span))
            draft.hidden.add(name)
            draft.arities[name] = len(columns)
            nullable[name] = [null and i != target for i, null in enumerate(nullable[body])]
        draft.aggregations[aggregation.relation] = replace(aggregation, body=name)
