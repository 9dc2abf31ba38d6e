"""Queries: a rule body, or a single fact, asked of a materialisation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from upheld.base.errors import Problem, ProgramError, UsageError, nearest, quote
from upheld.base.source import Source, Span
from upheld.compiler.compile import compile_program
from upheld.language.ast import Atom, Clause, Conjunction, Constant, Formula, Program, Test, Wildcard, variables
from upheld.language.core import Core, Fact, Predicate
from upheld.language.syntax.files import read_query
from upheld.language.terms.ntriples import NotATerm, term_of
from upheld.language.values import Value

#: No dialect lets a user write such a name.
ANSWER = "$answer"


@dataclass(frozen=True)
class Query:
    """A program whose relation `answer` holds the bindings asked for, over the relations of another program."""

    core: Core
    answer: Predicate


def compile_query(text: str, asked: Core, parameters: Mapping[str, Value] | None = None) -> Query:
    """Return the query that a rule body stands for; raise `ProgramError` if it is not one over these relations.

    A variable that `parameters` has is bound to its value there, and is not among the columns of the answers.
    """
    _refuse_name(text, asked)
    body = read_query(text, asked.dialect, prefixes=dict(asked.prefixes))
    found = {v.name: v for v in variables(body, in_aggregates=False)}
    for name, value in (parameters or {}).items():
        if name not in found:
            note = f"the query has the variables {', '.join(map(quote, found)) or 'none'}"
            message = f"the query has no variable {quote(name)} for a parameter"
            raise UsageError(Problem("bad-argument", message, note=note, hint=nearest(name, found)))
        body = Conjunction((Test("=", (found.pop(name), _constant(name, value, asked.dialect))), body), body.span)
    head = Atom(ANSWER, tuple(found.values()))
    program = Program(asked.dialect, asked.types, clauses=(Clause((head,), body, body.span),))
    known = {p.name: p.types for p in asked.predicates.values() if not p.hidden}
    core = compile_program(program, known, closed=True).core
    return Query(core, replace(core.predicates[ANSWER], columns=tuple(found)))


def term_parameter(name: str, value: object) -> str:
    """Return the RDF term that is the value of a parameter; raise `UsageError` if there is none."""
    note = 'a parameter is a number, or a term in N-Triples syntax, such as `<http://e/a>` or `"text"`'
    message = f"the parameter {quote(name)} is {quote(value)}"
    try:
        text = term_of(value)
    except NotATerm as e:
        raise UsageError(Problem("bad-argument", f"{message}, which {e.reason}", note=note, hint=e.hint)) from None
    if text is None:
        raise UsageError(Problem("bad-argument", message, note=note))
    return text


def _constant(name: str, value: Value, dialect: str) -> Constant:
    """Return the value of a parameter as a constant of a query."""
    if dialect == "dlog":
        return Constant(term_parameter(name, value), "term")
    for type, primitive in ((bool, "boolean"), (int, "number"), (float, "float"), (str, "symbol")):
        if isinstance(value, type):
            return Constant(value, primitive)
    note = "parameters are numbers, truth values and strings"
    raise UsageError(Problem("bad-argument", f"the parameter {quote(name)} is {quote(value)}", note=note))


def compile_fact(text: str, asked: Core) -> Fact:
    """Return the fact that a text is; raise `ProgramError` if it is not one of these relations."""
    body = read_query(text, asked.dialect, "<fact>", dict(asked.prefixes))
    if not isinstance(body, Atom) or any(variables(body)) or any(isinstance(t, Wildcard) for t in body.terms):
        raise ProgramError(_not_a_fact(body))
    known = {p.name: p.types for p in asked.predicates.values() if not p.internal}
    if body.predicate not in known:
        message, hint = f"unknown relation {quote(body.predicate)}", nearest(body.predicate, known)
        raise ProgramError(Problem("unknown-relation", message, body.span, hint=hint))
    program = Program(asked.dialect, asked.types, clauses=(Clause((body,), None, body.span),))
    core = compile_program(program, known).core
    if not core.facts:  # `p(range(1, 3))` is several
        raise ProgramError(_not_a_fact(body))
    (fact,) = core.facts
    return fact


def _refuse_name(text: str, asked: Core) -> None:
    """Refuse a query that is the name of a relation: an atom has a term for each column."""
    predicate = asked.predicates.get(text.strip(" \t\r\n."))
    if predicate is not None and predicate.arity and not predicate.hidden:
        terms = ", ".join(f"?{c}" if asked.dialect == "dlog" else c for c in predicate.columns)
        message = f"found the name of the relation {quote(predicate.name)}, expected an atom or a comparison"
        span = Span(Source("<query>", text), 0, len(text))
        raise ProgramError(Problem("syntax", message, span, hint=f"write `{predicate.name}({terms})`"))


def _not_a_fact(found: Formula) -> Problem:
    variable = next(variables(found), None) if isinstance(found, Atom) else None
    message = f"{quote(variable.name)} is a variable" if variable else "this is not a fact"
    return Problem(
        "not-a-fact",
        message,
        (variable or found).span,
        note="a fact is a relation with a constant for each of its columns",
        hint="quote the name if it is meant as a symbol; queries can have variables",
    )
