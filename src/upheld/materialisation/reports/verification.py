"""Comparison of maintained facts with recomputed ones: the first differences, with proofs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from upheld.base.errors import Problem, quote
from upheld.explain import Explanation
from upheld.facts.columns import Row
from upheld.facts.relation import Relation
from upheld.language.ast import Constant
from upheld.language.core import Atom, Fact
from upheld.language.core_text import atom_text
from upheld.language.types.primitive import sorted_rows

#: Facts that an error shows of each kind, and levels of the proof of the first one.
FACTS_SHOWN = 5
LEVELS_SHOWN = 5

Rows = Mapping[str, set[Row]]


@dataclass(frozen=True)
class Compared:
    """Facts to compare: their name in messages, the relations, and the rows that these should have."""

    name: str
    relations: Sequence[Relation]
    expected: Rows
    #: Explains a fact by recomputation, if it is one that rules may derive.
    explain: Callable[[Fact], Explanation] | None = None

    def problems(self, when: str, place: str | None = None) -> Iterator[Problem]:
        """Yield the problem of relations that do not have the expected rows, if there are any."""
        unexpected: list[tuple[str, Fact]] = []
        missing: list[tuple[str, Fact]] = []
        for relation in self.relations:
            rows, expected = relation.stored_set(), self.expected[relation.name]
            for facts, difference in ((unexpected, rows - expected), (missing, expected - rows)):
                facts += ((_text(relation, row), (relation.name, row)) for row in _ordered(relation, difference))
        if unexpected or missing:
            yield Problem(
                "verification-failed",
                f"{when} the {self.name} differ from recomputation",
                place=place,
                note=f"unexpected: {_first(unexpected)}; missing: {_first(missing)}{self._why(unexpected, missing)}",
                hint="this is a bug in Upheld: please report it, with the program, the facts and the updates",
            )

    def _why(self, unexpected: Sequence[tuple[str, Fact]], missing: Sequence[tuple[str, Fact]]) -> str:
        if self.explain is None:
            return ""
        _, fact = (missing or unexpected)[0]
        return f"; by recomputation: {self.explain(fact).to_text(LEVELS_SHOWN)}"


def _ordered(relation: Relation, rows: set[Row]) -> Sequence[Row]:
    return sorted_rows(rows, relation.stored_types)


def _text(relation: Relation, row: Row) -> str:
    return atom_text(Atom(relation.name, tuple(map(Constant, row, relation.stored_types))))


def _first(facts: Sequence[tuple[str, Fact]]) -> str:
    """Return the first facts and how many there are."""
    if not facts:
        return "none"
    more = f" and {len(facts) - FACTS_SHOWN} more" if len(facts) > FACTS_SHOWN else ""
    return ", ".join(quote(text) for text, _ in facts[:FACTS_SHOWN]) + more
