"""Patterns of records in bodies become variables whose fields are taken out.

`p(x) :- q([x, _]).` becomes `p(x) :- q(r), x = first field of r.`, and `p(x) :- q($Add(x, 1)).` becomes
`p(x) :- q(r), r = $Add(x, 1), x = first field of r, 1 = second field of r.` A field has no value where a record is
`nil` or of another branch, and then the rule does not match.

A pattern without `_` is written both ways, as a record that is constructed and by its fields. So a join
can begin with the record or with its fields, and a head that is known gives values to the variables in its records.
Whoever plans a join leaves out what follows from the rest (`language.patterns`).

A negated atom with `_` in a record asks a hidden relation, as `!q(r)` would ask for all of its facts. Records in
comparisons, and in negated atoms without `_`, are expressions like others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from upheld.compiler.passes.negation import push_negation
from upheld.language import ast
from upheld.language.disjunction import Literal, literals, split_disjunctions
from upheld.language.draft import Draft
from upheld.language.syntax.printer import to_text
from upheld.language.types.records import Field, is_constructor

#: No dialect lets a user write such names.
PREFIX, HEAD = "$record ", "$head "


def match_records(draft: Draft) -> None:
    """Leave no record in a positive atom, and no `_` in a record that stands in a body."""
    hidden: dict[str, ast.Clause] = {}
    matching = (_match(clause, hidden, draft.texts) if _has_records(clause) else clause for clause in draft.rules)
    draft.rules = list(matching)
    draft.rules += hidden.values()
    draft.hidden |= hidden.keys()
    draft.arities |= {name: len(clause.heads[0].terms) for name, clause in hidden.items()}


def take_heads_apart(draft: Draft) -> None:
    """Give the fields of a record in a head to the variables that it is constructed from."""
    draft.rules = [_with_head_apart(clause) for clause in draft.rules]


def _with_head_apart(clause: ast.Clause) -> ast.Clause:
    (head,) = clause.heads
    if not any(map(_is_record, head.terms)):
        return clause
    names = (ast.Variable(f"{HEAD}{i}") for i in count())
    tests: list[ast.Test] = []

    def apart(term: ast.Term) -> ast.Term:
        if not isinstance(term, ast.Call) or not _is_record(term):
            return term
        record = replace(next(names), span=term.span)
        tests.extend(both_ways(replace(term, arguments=tuple(map(apart, term.arguments))), record))
        return record

    flat = replace(head, terms=tuple(map(apart, head.terms)))
    return replace(clause, heads=(flat,), body=ast.Conjunction((*literals(clause), *tests)))


def both_ways(pattern: ast.Call, record: ast.Variable) -> Iterator[ast.Test]:
    """Yield that the terms of a pattern are the fields of a record, and that it is constructed from them if it has all.

    Where all is bound the first of several tests is evaluated. A field depends on the record alone, and of many joined
    bindings many have the same record; to construct another one for each of them would make texts that nothing uses.
    """
    constructor, terms = pattern.functor, pattern.arguments
    if all(isinstance(term, ast.Wildcard) for term in terms):
        test = Field(constructor, None, len(terms))
        one = ast.Constant(1, "number", pattern.span)
        yield ast.Test("=", (one, ast.Call(test.functor, (record,), pattern.span)), pattern.span)
    for i, term in enumerate(terms):
        if not isinstance(term, ast.Wildcard):
            field = Field(constructor, i, len(terms))
            yield ast.Test("=", (term, ast.Call(field.functor, (record,), term.span)), term.span)
    if not any(isinstance(term, ast.Wildcard) for term in terms):
        yield ast.Test("=", (record, pattern), pattern.span)


def _has_records(clause: ast.Clause) -> bool:
    return any(_is_record(node) for node in ast.nodes(*clause.heads, *literals(clause)))


def _is_record(term: object) -> bool:
    return isinstance(term, ast.Call) and is_constructor(term.functor)


def _match(clause: ast.Clause, hidden: dict[str, ast.Clause], texts: dict[ast.Aggregate, str]) -> ast.Clause:
    matching = _Matching(hidden, texts)
    heads = tuple(replace(h, terms=tuple(map(matching.within, h.terms))) for h in clause.heads)
    return replace(clause, heads=heads, body=ast.Conjunction(tuple(matching.body(literals(clause)))))


class _Matching:
    """Moves the patterns out of the bodies of one rule and of its aggregates."""

    def __init__(self, hidden: dict[str, ast.Clause], texts: dict[ast.Aggregate, str]):
        self.hidden, self.texts = hidden, texts
        self.numbers = count()

    def fresh(self, term: ast.Term) -> ast.Variable:
        return ast.Variable(f"{PREFIX}{next(self.numbers)}", term.span)

    def within(self, term: ast.Term) -> ast.Term:
        """Return a term whose aggregates have bodies without patterns."""
        match term:
            case ast.Aggregate() if any(map(_is_record, ast.nodes(term))):
                target = None if term.target is None else self.within(term.target)
                rewritten = replace(term, target=target, body=self._alternatives(term.body))
                self.texts.setdefault(rewritten, to_text(term))
                return rewritten
            case ast.Call(arguments=arguments):
                return replace(term, arguments=tuple(map(self.within, arguments)))
            case _:
                return term

    def _alternatives(self, formula: ast.Formula) -> ast.Formula:
        """Return a formula without patterns."""
        draft = Draft(ast.Program("dl"), rules=[ast.Clause((), formula, formula.span)])
        push_negation(draft)
        split_disjunctions(draft)
        bodies = [ast.Conjunction(tuple(self.body(literals(clause))), formula.span) for clause in draft.rules]
        return bodies[0] if len(bodies) == 1 else ast.Disjunction(tuple(bodies), formula.span)

    # -- bodies -------------------------------------------------------------------------------------------------------

    def body(self, parts: tuple[Literal, ...]) -> list[Literal]:
        """Return the literals of a body without patterns."""
        body: list[Literal] = []
        #: A variable with the pattern that its values match.
        patterns: list[tuple[ast.Variable, ast.Call]] = []
        equations: list[ast.Test] = []
        for literal in map(self._within_literal, parts):
            match literal:
                case ast.Atom(terms=terms):
                    flat: list[ast.Term] = []
                    for term in terms:
                        if isinstance(term, ast.Call) and _is_record(term):
                            variable = self.fresh(term)
                            patterns.append((variable, term))
                            flat.append(variable)
                        else:
                            flat.append(term)
                    body.append(replace(literal, terms=tuple(flat)))
                case ast.Negation(formula=ast.Atom() as atom) if any(_has_wildcard(t) for t in atom.terms):
                    body.append(replace(literal, formula=self._projection(atom, body)))
                case ast.Test(operator="=", terms=terms) if any(map(_is_record, terms)):
                    equations += _pairs(literal)
                case _:
                    body.append(literal)
        return [*body, *self._solved(patterns, equations, body)]

    def _within_literal(self, literal: Literal) -> Literal:
        if isinstance(literal, ast.Negation):
            assert isinstance(literal.formula, ast.Atom), "negation of something else than an atom"
            return replace(literal, formula=self._within_literal(literal.formula))
        return replace(literal, terms=tuple(map(self.within, literal.terms)))

    def _solved(
        self, patterns: list[tuple[ast.Variable, ast.Call]], equations: list[ast.Test], body: list[Literal]
    ) -> Iterator[Literal]:
        """Yield what binds the variables of patterns, and of equations with records, as far as they can be bound."""
        bound = {t.name for a in body if isinstance(a, ast.Atom) for t in a.terms if isinstance(t, ast.Variable)}
        others = [test for test in body if isinstance(test, ast.Test) and test.operator == "="]
        for record, pattern in patterns:
            yield from self._taken(pattern, record)
            bound |= {v.name for v in ast.variables(pattern)}
        while True:
            _extend(bound, others)
            solvable = next(((test, sides) for test in equations for sides in _sides(test, bound)), None)
            if solvable is None:
                yield from equations  # they bind nothing: whoever looks for unsafe variables finds them
                return
            test, (known, other) = solvable
            equations.remove(test)
            if isinstance(other, ast.Call) and _is_record(other):
                if not isinstance(known, ast.Variable):
                    variable = self.fresh(known)
                    yield ast.Test("=", (variable, known), known.span)
                    known = variable
                yield from self._taken(other, known)
            else:
                yield test
            bound |= {v.name for v in ast.variables(other)}

    def _taken(self, pattern: ast.Call, record: ast.Variable) -> Iterator[Literal]:
        """Yield what says that a record matches a pattern."""
        pending = [(pattern, record)]
        while pending:
            pattern, record = pending.pop()
            values: list[ast.Term] = []
            for term in pattern.arguments:
                if isinstance(term, ast.Call) and _is_record(term):
                    inner = self.fresh(term)
                    values.append(inner)
                    pending.append((term, inner))
                else:
                    values.append(term)
            yield from both_ways(replace(pattern, arguments=tuple(values)), record)

    def _projection(self, atom: ast.Atom, body: list[Literal]) -> ast.Atom:
        """Return an atom of a hidden relation with the values of the variables for which `atom` has some fact.

        Expressions that are not records are computed in the body, not in the hidden relation.
        """

        def plain(term: ast.Term) -> ast.Term:
            match term:
                case ast.Call(arguments=arguments) if _is_record(term):
                    return replace(term, arguments=tuple(map(plain, arguments)))
                case ast.Call():
                    variable = self.fresh(term)
                    body.append(ast.Test("=", (variable, term), term.span))
                    return variable
                case _:
                    return term

        flat = replace(atom, terms=tuple(map(plain, atom.terms)))
        shared = tuple(dict.fromkeys(ast.Variable(v.name) for v in ast.variables(flat)))
        named = {v.name: ast.Variable(f"x{i}") for i, v in enumerate(shared)}
        inner = replace(flat, terms=tuple(_renamed(t, named) for t in flat.terms))
        name = f"[{to_text(inner)}]"
        if name not in self.hidden:
            head = ast.Atom(name, tuple(named.values()), atom.span)
            rule = ast.Clause((head,), ast.Conjunction((inner,)), atom.span)
            self.hidden[name] = _match(rule, self.hidden, self.texts)
        return ast.Atom(name, shared, atom.span)


def _renamed(term: ast.Term, by: dict[str, ast.Variable]) -> ast.Term:
    match term:
        case ast.Variable(name=name):
            return replace(by[name], span=term.span)
        case ast.Call(arguments=arguments):
            return replace(term, arguments=tuple(_renamed(a, by) for a in arguments))
        case _:
            return term


def _pairs(test: ast.Test) -> Iterator[ast.Test]:
    """Yield the equations of fields that an equation of two records of one kind comes down to; any other as it is."""
    pending = [test]
    while pending:
        equation = pending.pop()
        match equation.terms:
            case (ast.Wildcard(), _) | (_, ast.Wildcard()) if equation is not test:
                continue
            case (ast.Call(functor=one, arguments=left), ast.Call(functor=other, arguments=right)) if (
                is_constructor(one) and one == other and len(left) == len(right)
            ):
                pending += [ast.Test("=", pair, test.span) for pair in zip(left, right)]
            case _:
                yield equation


def _sides(test: ast.Test, bound: set[str]) -> Iterator[tuple[ast.Term, ast.Term]]:
    """Yield the side of an equation that has a value, and the other one if it is a record or a variable to bind."""
    for known, other in (test.terms, test.terms[::-1]):
        if _is_bound(known, bound) and not (_is_record(known) and _is_record(other)):
            if _is_record(other) or (isinstance(other, ast.Variable) and other.name not in bound):
                yield known, other


def _extend(bound: set[str], equations: list[ast.Test]) -> None:
    """Add the variables that equations give values to."""
    grown = True
    while grown:
        grown = False
        for left, right in (pair for test in equations for pair in (test.terms, test.terms[::-1])):
            if isinstance(left, ast.Variable) and left.name not in bound and _is_bound(right, bound):
                bound.add(left.name)
                grown = True


def _is_bound(term: ast.Term, bound: set[str]) -> bool:
    """Return whether a term has a value once these variables do. An aggregate is taken to have one."""
    parts = list(ast.nodes(term, in_aggregates=False))
    if any(isinstance(part, ast.Wildcard) for part in parts):
        return False
    return all(part.name in bound for part in parts if isinstance(part, ast.Variable))


def _has_wildcard(term: ast.Term) -> bool:
    """Return whether there is a `_` in a record."""
    return _is_record(term) and any(isinstance(part, ast.Wildcard) for part in ast.nodes(term))
