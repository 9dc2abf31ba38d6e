"""Programs compiled with what their `.input`, `.output` and `.printsize` directives ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from upheld.base.errors import Problem, ProgramError, quote
from upheld.compiler.compile import Compiled, compile_program
from upheld.facts.files.formats import Format
from upheld.language.ast import Directive, Program
from upheld.language.syntax.parser import first_problems


def compile_with_formats(
    program: Program, known_types: Mapping[str, tuple[str, ...]] | None = None
) -> tuple[Compiled, dict[Directive, Format]]:
    """Return a program in core form, and the format of the file of each directive.

    Raises all that is wrong with the rules and with the options of directives at once.
    """
    problems: list[Problem] = []
    try:
        compiled = compile_program(program, known_types)
    except ProgramError as error:
        problems += error.problems
        columns = {}
    else:
        columns = {p.name: p.columns for p in compiled.core.predicates.values()}
    formats: dict[Directive, Format] = {}
    for directive in program.directives:
        relation = directive.relation
        try:
            formats[directive] = Format.from_options(
                directive.options, directive.kind, relation, columns.get(relation, ()), directive.span
            )
        except ProgramError as error:
            problems += error.problems
    problems += _reading_again(formats)
    if problems:
        raise ProgramError(first_problems(problems))
    return compiled, formats


def _reading_again(formats: Mapping[Directive, Format]) -> Iterator[Problem]:
    """Yield a problem for each directive but the first that reads standard input, which can be read once."""
    reading = [directive for directive, format in formats.items() if format.io == "stdin"]
    for directive in reading[1:]:
        message = (
            f"{quote(directive.relation)} and {quote(reading[0].relation)} cannot both be read from standard input"
        )
        yield Problem("bad-option", message, directive.span, hint="read one of them from a file")
