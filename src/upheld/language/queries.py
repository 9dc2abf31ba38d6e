"""Queries: a rule body, asked of a materialisation."""

from __future__ import annotations

from dataclasses import dataclass, replace

from upheld.language.ast import Atom, Clause, Program, variables
from upheld.language.compiling import compile_program
from upheld.language.core import Core, Predicate
from upheld.language.reading import read_query

#: No dialect lets a user write such a name.
ANSWER = "$answer"


@dataclass(frozen=True)
class Query:
    """A program whose relation `answer` holds the bindings asked for, over the relations of another program."""

    core: Core
    answer: Predicate


def compile_query(text: str, asked: Core) -> Query:
    """Return the query that a rule body stands for; raise `ProgramError` if it is not one over these relations."""
    body = read_query(text, asked.dialect)
    found = {v.name: v for v in variables(body)}
    head = Atom(ANSWER, tuple(found.values()))
    program = Program(asked.dialect, clauses=(Clause((head,), body, body.span),))
    known = {p.name: p.types for p in asked.predicates.values() if not p.hidden}
    core = compile_program(program, known, closed=True).core
    return Query(core, replace(core.predicates[ANSWER], columns=tuple(found)))
