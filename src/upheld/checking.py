"""What Upheld makes of a program: its relations, strata and rules, and what looks odd about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from upheld.errors import Problem, quote
from upheld.language.ast import Program, Variable
from upheld.language.compiling import compile_program
from upheld.language.core import Apply, Builtin, Core, Rule, expression_variables
from upheld.language.functors import IDEMPOTENT
from upheld.language.stratification import Stratification, Stratum, stratify
from upheld.opening import parse


@dataclass(frozen=True)
class Report:
    """The result of `check`, as text or as plain data."""

    core: Core
    strata: Stratification
    warnings: tuple[Problem, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as data that JSON can hold."""
        return {
            "relations": [
                {"name": p.name, "columns": dict(zip(p.columns, p.types, strict=True)), "arity": p.arity}
                for p in self.core.predicates.values()
                if not p.hidden
            ],
            "facts": len(self.core.facts),
            "strata": [
                {
                    "index": s.index,
                    "recursive": [_rule(r) for r in s.recursive],
                    "nonrecursive": [_rule(r) for r in s.nonrecursive],
                }
                for s in self.strata
            ],
            "warnings": [
                {"slug": w.slug, "message": w.message, "note": w.note, "place": str(w.span) if w.span else None}
                for w in self.warnings
            ],
        }

    def to_text(self) -> str:
        """Return the relations, strata and rules for people to read; `warnings` has the rest of the report."""
        visible = [p for p in self.core.predicates.values() if not p.hidden]
        recursive = sum(len(s.recursive) for s in self.strata)
        lines = [
            f"{_count(len(visible), 'relation')}, {_count(len(self.core.rules), 'rule')} ({recursive} recursive), "
            f"{_count(len(self.core.facts), 'fact')} in the program, {_count(len(self.strata), 'stratum', 'strata')}"
        ]
        for p in visible:
            columns = ", ".join(f"{c}: {t}" for c, t in zip(p.columns, p.types, strict=True))
            lines.append(f"  {p.name}({columns})")
        for s in self.strata:
            lines.append(f"stratum {s.index}: {_rules_in_words(s)}")
            lines += [f"  {rule}" for rule in s.nonrecursive]
            lines += [f"  {rule}  (recursive)" for rule in s.recursive]
        return "\n".join(lines)


def check(program: str | Path | Program, *, granular: bool = True) -> Report:
    """Check a program and return what Upheld makes of it; raise `ProgramError` if it is not valid.

    >>> print(check("n(0). n(y) :- n(x), x < 3, y = x + 1.").warnings[0].slug)
    arithmetic-recursion
    """
    compiled = compile_program(parse(program))
    finest = stratify(compiled.core)  # in coarser strata, rules count as recursive that are not
    arithmetic = tuple(_arithmetic_recursion(r) for s in finest for r in s.recursive if _may_grow(r, s))
    strata = finest if granular else stratify(compiled.core, granular=False)
    return Report(compiled.core, strata, (*compiled.warnings, *arithmetic))


def _may_grow(rule: Rule, stratum: Stratum) -> bool:
    """Return whether a rule computes a value of its head from values of its own stratum, and so may do so for ever."""
    level = stratum.stratification.level
    inside = {v for atom in rule.positive if level(atom) == stratum.index for v in atom.variables()}
    outside = {v for atom in rule.positive if level(atom) != stratum.index for v in atom.variables()}
    bound, growing = inside | outside, inside - outside
    while found := {v for b in rule.builtins for v in _computed(b, growing) if v not in bound | growing}:
        growing |= found
    return any(v in growing - bound for v in rule.head.variables())


def _computed(builtin: Builtin, variables: set[str]) -> Iterator[str]:
    """Yield the variable that an equation computes from an expression over some of these variables."""
    left, right = builtin.arguments
    for one, other in ((left, right), (right, left)):
        if builtin.operator == "=" and isinstance(one, Variable) and isinstance(other, Apply):
            if other.functor.name in IDEMPOTENT:
                continue  # applied to what it has found it finds nothing more
            if not variables.isdisjoint(expression_variables(other)):
                yield one.name


def _arithmetic_recursion(rule: Rule) -> Problem:
    return Problem(
        "arithmetic-recursion",
        f"recursion through arithmetic in {quote(rule)} may never end",
        rule.span,
        note="a run that finds new values for ever is stopped by its limits",
        severity="warning",
    )


def _rule(rule: Rule) -> dict[str, Any]:
    return {"rule": str(rule), "place": str(rule.span) if rule.span else None}


def _rules_in_words(stratum: Stratum) -> str:
    if not stratum.rules:
        return "given facts, no rules"
    recursive = len(stratum.recursive)
    return _count(len(stratum.rules), "rule") + (f", {recursive} recursive" if recursive else "")


def _count(number: int, noun: str, plural: str = "") -> str:
    """Return `1 rule`, `2 rules`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
