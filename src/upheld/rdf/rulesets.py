"""The rule sets that come with Upheld, each rule under its name in the document it is from."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from functools import cache
from pathlib import Path

from upheld.base.errors import Problem, UsageError, nearest, quote, require
from upheld.base.source import Source, Span
from upheld.language.ast import Clause, Program
from upheld.language.syntax.files import read_file, read_text, require_program

_FOLDER = Path(__file__).parent / "rules"

#: Rule sets by name.
_FILES = {name: _FOLDER / f"{name}.dlog" for name in ("rdfs", "owl2rl", "datatypes")}

#: Rule sets derived from others by leaving out rules. Where equal constants are rewritten, equalities may depend on any
#: triple, and so on what rules find that compare terms: those cannot be applied.
_WITHOUT = {"owl2rl-rewrite": ("owl2rl", ("eq-diff2", "eq-diff3", "prp-adp", "cax-adc", "dt-diff"))}

RULESETS = (*_FILES, *_WITHOUT)

_NAME = re.compile(r"# ([a-z][A-Za-z0-9]*(?:-[a-z0-9]+)*)")


def rules(*parts: str | Path | Program, without: Collection[str] = ()) -> Program:
    """Return rule sets and `.dlog` programs combined into one program.

    Rules are named as in the documents of the W3C, such as `rdfs9` or `prp-trp`. Inconsistencies are facts of
    `violation`.

    Args:
        parts: Rule sets (`rdfs`, `owl2rl`, `owl2rl-rewrite`, and `datatypes` to add to these) and programs.
        without: Names of rules to leave out.

    >>> len(rules("owl2rl").clauses) > len(rules("owl2rl", without=["eq-ref"]).clauses)
    True
    """
    for part in parts:
        require_program(part, "parts")
    require(isinstance(without, Collection), "without", "a list of rule names", without)
    named = {name for part in parts if part in RULESETS for name, _ in named_clauses(str(part))}
    for name in without:
        if name not in named:
            message, note = f"there is no rule {quote(name)}", "only rules of the rule sets have names"
            raise UsageError(Problem("unknown-rule", message, note=note, hint=nearest(name, named)))
    clauses: list[Clause] = []
    prefixes: dict[str, str] = {}
    for part in parts:
        if part in RULESETS:
            clauses += [clause for name, clause in named_clauses(str(part)) if name not in without]
        else:
            program = _program(part)
            clauses += program.clauses
            prefixes |= dict(program.prefixes)
    return Program("dlog", clauses=tuple(clauses), prefixes=tuple(prefixes.items()))


@cache
def named_clauses(ruleset: str) -> tuple[tuple[str, Clause], ...]:
    """Return the clauses of a rule set with their names, which stand in comments before them; some have none.

    Proofs and messages show the place of a rule by its name: `owl2rl/prp-trp:88:1`.
    """
    if ruleset in _WITHOUT:
        of, left_out = _WITHOUT[ruleset]
        return tuple((name, clause) for name, clause in named_clauses(of) if name not in left_out)
    text = _FILES[ruleset].read_text(encoding="utf-8")
    names = [""]
    for line in text.splitlines():
        match = _NAME.fullmatch(line)
        names.append(match[1] if match else names[-1])
    sources = {name: Source(f"{ruleset}/{name}" if name else ruleset, text) for name in names}
    clauses = []
    for clause in read_text(text, "dlog", ruleset).clauses:
        assert clause.span is not None, "a clause that was read has a place"
        name = names[clause.span.line]
        place = Span(sources[name], clause.span.start, clause.span.end)
        clauses.append((name, replace(clause, span=place)))
    return tuple(clauses)


def _program(part: str | Path | Program) -> Program:
    program = part if isinstance(part, Program) else read_file(part)
    if program.dialect != "dlog":
        note = "rule sets are programs of the `.dlog` dialect"
        raise UsageError(Problem("bad-argument", "this is a program of the `.dl` dialect", note=note))
    return program
