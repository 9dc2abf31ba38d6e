"""Programs as users give them (a file, a text, the name of a rule set, a `Program`), as saved, and as decomposed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from upheld.algebra.sets import FactSet
from upheld.base.errors import Problem, UsageError, are_paths, nearest, quote, require
from upheld.compiler.compile import compile_program
from upheld.compiler.hypertrees.modes import Decomposed, concerned
from upheld.language.ast import Program
from upheld.language.core import Atom, Core, Predicate
from upheld.language.syntax.files import read_file, read_text, require_program
from upheld.rdf.rulesets import RULESETS, rules

if TYPE_CHECKING:
    from upheld.compiler.hypertrees.forecast import Forecast
    from upheld.store.manifest import Manifest

#: A text that can be the name of something, and not a program: not a directive, and not a comment.
_WORD = re.compile(r"(?!\.[a-z]+$|//|/\*|#|%)[^\s()\[\]<>\"]+")


def parse(
    program: str | Path | Program, *, dialect: str = "dl", include: Sequence[str | Path] = (), confined: bool = False
) -> Program:
    """Return a program read from a file, a string or a rule set.

    Args:
        program: Path of a `.dl` or `.dlog` file, text of a program, or name of a rule set (`rdfs`, `owl2rl`).
        dialect: Dialect of a text: `dl` or `dlog`. Files have the dialect of their extension.
        include: Folders in which files of `.include` are looked for if they are not beside the program.
        confined: Refuse `.include` of files outside the program's folder and the folders of `include`; for a text,
            outside the current folder.

    >>> rules = parse("PREFIX : <http://e/> [?y, :q, ?x] :- [?x, :p, ?y].", dialect="dlog")
    >>> m = materialise(rules, {"triple": [("<http://e/a>", "<http://e/p>", "<http://e/b>")]})
    >>> m.query("[?x, :q, ?y]").to_rows()
    [('<http://e/b>', '<http://e/a>')]
    """
    require_program(program)
    require(isinstance(confined, bool), "confined", "True or False", confined)
    require(are_paths(include), "include", "a list of paths", include)
    if isinstance(program, Program):
        return program
    if str(program) in RULESETS:
        return rules(str(program))
    is_word = _WORD.fullmatch(str(program)) is not None  # which no program is
    if is_word and not {".", "/", "\\"} & set(str(program)) and not Path(program).exists():
        note = f"the rule sets are {', '.join(map(quote, RULESETS))}; a file ends in `.dl` or `.dlog`"
        message = f"{quote(program)} is not a rule set, a file or the text of a program"
        raise UsageError(Problem("unknown-program", message, note=note, hint=nearest(program, RULESETS)))
    if isinstance(program, Path) or is_word or (program.endswith((".dl", ".dlog")) and "\n" not in program):
        return read_file(Path(program), include=[*map(Path, include)], confined=confined)
    return read_text(program, dialect, include=[*map(Path, include)], confined=confined)


def compile_saved(program: str | Path | Program, saved: Manifest) -> Core:
    """Return a program in core form; relations that it does not declare have the types and names of the saved ones.

    A relation with explicit facts stays, even if the program does not have it any more.
    """
    parsed = parse(program)
    declared = {d.name for d in parsed.declarations}
    undeclared = {name: relation for name, relation in saved.relations.items() if name not in declared}
    core = compile_program(parsed, {name: relation.column_types for name, relation in undeclared.items()}).core
    named = core.with_columns({name: relation.columns for name, relation in undeclared.items()})
    staying = {
        name: Predicate(name, relation.columns, relation.column_types)
        for name, relation in undeclared.items()
        if relation.sizes[0] and name not in named.predicates
    }
    return replace(named, predicates={**named.predicates, **staying}) if staying else named


def decompose_for(core: Core, E: FactSet, mode: str) -> Decomposed:
    """Return a program with some rules decomposed, by estimates from its explicit facts, and the decisions."""
    asked = concerned(core.rules, mode)
    if not asked:
        return Decomposed(core)
    # Most programs have no such rule, and start faster without these.
    from upheld.compiler.hypertrees.deciding import decompose_program
    from upheld.compiler.hypertrees.estimates import Table
    from upheld.compiler.hypertrees.forecast import Forecast

    def forecast(atoms: Sequence[Atom]) -> Forecast:
        tables = Forecast(core, lambda some: (Table(*profile) for profile in E.profiles(some)))
        tables.expect(atoms)
        return tables

    return decompose_program(core, asked, sum(map(E.at_most, E.predicates())), forecast, mode)
