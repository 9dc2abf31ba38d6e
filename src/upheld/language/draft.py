"""A program on its way to the core: what each pass takes one step further."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from upheld.base.errors import Problem
from upheld.base.source import Span
from upheld.language.ast import Aggregate, Atom, Clause, Program
from upheld.language.core import Aggregation


@dataclass
class Draft:
    """The clauses of a program, apart from it so that passes may rewrite them, and what was found wrong so far."""

    program: Program
    #: Column types of relations that the caller already knows from the facts at hand.
    known_types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: Whether rule bodies may use known relations only.
    closed: bool = False
    rules: list[Clause] = field(default_factory=list)
    facts: list[Clause] = field(default_factory=list)
    #: Number of columns of every relation, by declaration or first use.
    arities: dict[str, int] = field(default_factory=dict)
    #: Relations made by a pass; users never see them.
    hidden: set[str] = field(default_factory=set)
    #: The heads of constraints, by name.
    constraints: dict[str, Atom] = field(default_factory=dict)
    #: Hidden relations with values of aggregates.
    aggregations: dict[str, Aggregation] = field(default_factory=dict)
    #: Which columns may hold nulls, of the relations that have such columns.
    nullable: dict[str, tuple[bool, ...]] = field(default_factory=dict)
    #: The texts of aggregates that a pass has rewritten.
    texts: dict[Aggregate, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    _reported: set[tuple[str, int, int]] = field(default_factory=set)

    def problem(
        self,
        slug: str,
        message: str,
        span: Span | None,
        *,
        note: str | None = None,
        hint: str | None = None,
        related: tuple[tuple[str, Span], ...] = (),
    ) -> None:
        """Report a problem, once for each place: rewriting may show the same mistake several times over."""
        if span is not None:
            place = (slug, id(span.source), span.start)
            if place in self._reported:
                return
            self._reported.add(place)
        self.problems.append(Problem(slug, message, span, note=note, hint=hint, related=related))
