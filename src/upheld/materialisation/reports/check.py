"""The report of `upheld check`: relations, strata, rules and warnings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from upheld.base.errors import Problem, ProgramError, are_texts, count, quote, require
from upheld.compiler.growth import growing_rules
from upheld.compiler.lints.programs import lint, without_facts
from upheld.compiler.lints.rules import lint_rules
from upheld.compiler.strata import Stratification, Stratum, stratify
from upheld.language.ast import Program
from upheld.language.core import Core, Rule
from upheld.language.syntax.files import outside
from upheld.materialisation.directives import compile_with_formats
from upheld.materialisation.programs import parse


@dataclass(frozen=True, repr=False)
class Report:
    """The result of `check`. `str` returns its text and the warnings."""

    core: Core
    strata: Stratification
    warnings: tuple[Problem, ...]

    def __str__(self) -> str:
        return "\n".join([self.to_text(), *map(str, self.warnings)])

    def __repr__(self) -> str:
        return f"<Report: {self.to_text().partition(chr(10))[0]}, {count(len(self.warnings), 'warning')}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-compatible data."""
        return {
            "relations": [
                {"name": p.name, "columns": dict(zip(p.columns, map(str, p.types), strict=True)), "arity": p.arity}
                for p in self.core.predicates.values()
                if not p.hidden
            ],
            "constraints": [
                {"name": name, "variables": list(p.columns), "place": self._place_of(name)}
                for name, p in self.core.constraints.items()
                if p.hidden
            ],
            "facts": len(self.core.facts),
            "strata": [
                {
                    "index": s.index,
                    "recursive": [_rule(r) for r in s.recursive],
                    "nonrecursive": [_rule(r) for r in s.nonrecursive],
                    **({"aggregates": [a.text for a in s.aggregations]} if s.aggregations else {}),
                }
                for s in self.strata
            ],
            "warnings": [
                {"slug": w.slug, "message": w.message, "note": w.note, "place": str(w.span) if w.span else None}
                for w in self.warnings
            ],
        }

    def _place_of(self, constraint: str) -> str | None:
        rule = next((r for r in self.core.rules if r.head.predicate == constraint), None)
        return str(rule.span) if rule is not None and rule.span else None

    def to_text(self) -> str:
        """Return the relations, constraints, strata and rules as text, without the warnings."""
        visible = [p for p in self.core.predicates.values() if not p.hidden]
        recursive = sum(len(s.recursive) for s in self.strata)
        lines = [
            f"{count(len(visible), 'relation')}, {count(len(self.core.rules), 'rule')} ({recursive} recursive), "
            f"{count(len(self.core.facts), 'fact')} in the program, {count(len(self.strata), 'stratum', 'strata')}"
        ]
        for p in visible:
            columns = ", ".join(f"{c}: {t}" for c, t in zip(p.columns, p.types, strict=True))
            lines.append(f"  {p.name}({columns})")
        constraints = [(name, p) for name, p in self.core.constraints.items() if p.hidden]
        lines += [count(len(constraints), "constraint")] if constraints else []
        for name, p in constraints:
            place = self._place_of(name)
            lines.append(f"  {name}({', '.join(p.columns)})" + (f"  {place}" if place else ""))
        for s in self.strata:
            lines.append(f"stratum {s.index}: {_rules_in_words(s)}")
            lines += [f"  {aggregation.text}" for aggregation in s.aggregations]
            lines += [f"  {rule}" for rule in s.nonrecursive]
            lines += [f"  {rule}  (recursive)" for rule in s.recursive]
        return "\n".join(lines)


def check(
    program: str | Path | Program,
    *,
    stratification: str = "granular",
    facts: Sequence[str] | None = None,
    confined: bool = False,
    strict: bool = False,
) -> Report:
    """Check a program and return a report of its relations, strata, rules and warnings.

    Raises `ProgramError` with all mistakes if the program is not valid.

    Args:
        program: As for `materialise`.
        stratification: As for `materialise`.
        facts: Names of relations whose facts will be passed in Python. If it is not None, the report warns about other
            relations without facts and rules.
        confined: Refuse programs that include, read or write files outside their folders.
        strict: Raise warnings as errors.

    >>> print(check("n(0). n(y) :- n(x), x < 3, y = x + 1.").warnings[0].slug)
    arithmetic-recursion
    """
    require(facts is None or are_texts(facts), "facts", "a list of names of relations, or None", facts)
    require(isinstance(strict, bool), "strict", "True or False", strict)
    parsed = parse(program, confined=confined)
    compiled, _ = compile_with_formats(parsed)
    if confined:
        _check_paths(compiled.core)
    finest = stratify(compiled.core)  # in coarser strata, rules count as recursive that are not
    arithmetic = tuple(map(_arithmetic_recursion, growing_rules(finest)))
    strata = finest if stratification == "granular" else stratify(compiled.core, stratification)
    empty = without_facts(parsed, facts) if facts is not None else ()
    doubts = lint_rules(parsed, compiled.core, facts or ())
    warnings = (*compiled.warnings, *lint(parsed), *empty, *doubts, *arithmetic)
    if strict and (errors := [replace(w, severity="error") for w in warnings if w.severity == "warning"]):
        raise ProgramError(errors)
    return Report(compiled.core, strata, warnings)


def _check_paths(core: Core) -> None:
    """Refuse directives whose files a confined run would refuse, where its folders are the current one."""
    named = [(d, name) for d in core.directives for option, name in d.options if option in ("filename", "dbname")]
    if problems := [p for d, name in named if (p := outside(Path(name), Path(), d.span)) is not None]:
        raise ProgramError(problems)


def _arithmetic_recursion(rule: Rule) -> Problem:
    return Problem(
        "arithmetic-recursion",
        f"recursion through arithmetic in {quote(rule)} may never end",
        rule.span,
        note="a run that keeps deriving new values is stopped by its limits",
        severity="warning",
    )


def _rule(rule: Rule) -> dict[str, Any]:
    return {"rule": str(rule), "place": str(rule.span) if rule.span else None}


def _rules_in_words(stratum: Stratum) -> str:
    if stratum.aggregations:
        return "values of " + count(len(stratum.aggregations), "aggregate")
    if not stratum.rules:
        return "given facts, no rules"
    recursive = len(stratum.recursive)
    return count(len(stratum.rules), "rule") + (f", {recursive} recursive" if recursive else "")
