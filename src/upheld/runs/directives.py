"""Programs compiled with what their `.input`, `.output` and `.printsize` directives ask for."""

from __future__ import annotations

from collections.abc import Mapping

from upheld.data.factfiles.formats import Format
from upheld.errors import Problem, ProgramError
from upheld.language.compile import Compiled, compile_program
from upheld.language.syntax.ast import Directive, Program
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
    if problems:
        raise ProgramError(first_problems(problems))
    return compiled, formats
