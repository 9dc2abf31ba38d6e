"""Constraints: what violates them, and the error that refuses a change because of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from upheld.base.errors import ConstraintViolated, Problem, count, quote, require
from upheld.facts.change import relation_of
from upheld.facts.columns import Row
from upheld.facts.relation import Relation
from upheld.language.ast import Constant
from upheld.language.core import Atom, Core, Fact, Predicate
from upheld.language.core_text import atom_text, value_text
from upheld.language.terms.iris import shortened
from upheld.language.terms.vocabulary import PREFIXES

if TYPE_CHECKING:
    from upheld.explain import Explanation

#: The two ways to treat a change that violates a constraint.
REFUSE, REPORT = "refuse", "report"

#: Violations of a constraint that an error shows, constraints that it explains, and levels of each proof.
VIOLATIONS_SHOWN, CONSTRAINTS_EXPLAINED, LEVELS_SHOWN = 5, 10, 8

#: Violations by constraint: the bindings of the variables of each.
Violations = Mapping[str, Relation]


def default_choice(core: Core) -> str:
    """Return the treatment of violations by default: constraints of a `.dl` program are enforced.

    Ontologies are rarely consistent with all data, so `violation` of a `.dlog` program is reported.
    """
    return REPORT if core.dialect == "dlog" else REFUSE


def treatment(on_violation: str | None, default: str) -> str:
    """Return the treatment of violations that a caller asks for, if any; raise if there is none of that name."""
    is_right = on_violation is None or (isinstance(on_violation, str) and on_violation in (REFUSE, REPORT))
    require(is_right, "on_violation", "`refuse`, `report` or None", on_violation)
    return on_violation or default


def violations_among(core: Core, rows: Mapping[str, Iterable[Row]]) -> dict[str, Relation]:
    """Return the facts of violated constraints among some facts by relation, in the order of the program.

    It costs what the facts cost, however many constraints there are; only to order several it looks at all of them.
    """
    violated = {name: relation_of(core.constraints[name], rows[name]) for name in core.constraints.keys() & rows.keys()}
    violated = {name: relation for name, relation in violated.items() if len(relation)}
    return violated if len(violated) < 2 else {name: violated[name] for name in core.constraints if name in violated}


@dataclass(frozen=True)
class Refusal:
    """Makes the error for violations; `subject` is what has them."""

    core: Core
    explain: Callable[[Fact], Explanation]
    subject: str

    def error(self, violations: Violations) -> ConstraintViolated:
        """Return the error that names each violated constraint, its first violations, and the proof of the first."""
        explanations: dict[str, Explanation] = {}
        problems = []
        for relation in violations.values():
            relation.detach()
        for name, relation in violations.items():
            if len(explanations) < CONSTRAINTS_EXPLAINED:
                explanations[name] = self.explain((name, next(iter(relation.stored()))))
            problems.append(self._problem(self.core.predicates[name], relation, explanations.get(name)))
        return ConstraintViolated(problems, violations, explanations)

    def _problem(self, predicate: Predicate, relation: Relation, explanation: Explanation | None) -> Problem:
        proof = explanation.proof if explanation is not None else None
        rules = (rule for rule in self.core.rules if rule.head.predicate == predicate.name)
        rule = (proof.steps[0].rule if proof is not None else None) or next(rules, None)
        lines = list(_listed(predicate, relation))
        if proof is not None:
            lines += ["proof of the first:", *(f"  {line}" for line in proof.lines(LEVELS_SHOWN))]
        name, times = quote(predicate.name), count(len(relation), "violation")
        problem = Problem(
            "constraint-violated",
            f"{self.subject} violates the constraint {name}: {times}",
            rule.whole.span if rule is not None else None,
            details=tuple(lines),
            note="it was refused, and nothing has changed",
            hint='correct the facts, or pass `on_violation="report"` to go on with the violations',
        )
        if self.core.dialect != "dlog":
            return problem
        prefixes = {**PREFIXES, **dict(self.core.prefixes)}
        return replace(problem, details=tuple(shortened(line, prefixes) for line in lines))


def violated(core: Core, relation: Relation) -> Problem:
    """Return the warning that facts violate a constraint; the relation has its violations."""
    name = relation.name
    return Problem(
        "constraint-violated",
        f"the constraint {quote(name)} is violated: {count(len(relation), 'violation')}",
        next((rule.whole.span for rule in core.rules if rule.head.predicate == name), None),
        severity="warning",
        details=tuple(_listed(core.predicates[name], relation)),
    )


def _listed(predicate: Predicate, relation: Relation) -> Iterator[str]:
    """Yield lines with the first violations of a constraint."""
    if not predicate.arity:
        return
    yield "violated by:"
    for row in islice(relation.stored(), VIOLATIONS_SHOWN):
        yield f"  {violation_text(predicate, row)}"
    if len(relation) > VIOLATIONS_SHOWN:
        yield f"  and {len(relation) - VIOLATIONS_SHOWN:,} more"


def violation_text(predicate: Predicate, row: Row) -> str:
    """Return a violation as text: the values of the variables of a constraint, or a fact of `violation`."""
    if not predicate.hidden:
        return atom_text(Atom(predicate.name, tuple(map(Constant, row, predicate.types))))
    values = zip(predicate.columns, row, predicate.types, strict=True)
    return ", ".join(f"{column} = {value_text(value, type)}" for column, value, type in values)
