"""How many rows a join has, by the textbook (Garcia-Molina, Ullman and Widom, *Database Systems*, section 16.4).

Values are taken to be spread evenly, columns to be independent, and the values of the column with fewer distinct ones
to occur in the other. Comparisons and negated atoms are not estimated: they are taken to hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Protocol

from upheld.language.ast import Constant
from upheld.language.core import Atom


@dataclass(frozen=True)
class Table:
    """What is known of a relation: its rows, and for each column how many distinct values it has."""

    rows: float
    distinct: tuple[float, ...]


class Statistics(Protocol):
    """Gives the table of each predicate; a dictionary will do."""

    def __getitem__(self, predicate: str, /) -> Table: ...


@dataclass(frozen=True)
class Estimate:
    """Rows of a join, and for each variable how many distinct values it has there, at least one."""

    rows: float
    distinct: dict[str, float]

    def projected(self, variables: Iterable[str]) -> float:
        """Return the rows that are left when only these variables are kept."""
        return min(self.rows, prod(self.distinct[v] for v in variables))


def estimate_atom(atom: Atom, table: Table) -> Estimate:
    """Return the estimate for the facts that match an atom, with its constants and repeated variables."""
    assert len(atom.terms) == len(table.distinct), "statistics of another relation"
    rows = max(table.rows, 1.0)  # a relation that is empty as yet may be filled by its rules
    places: dict[str, list[float]] = {}
    for term, distinct in zip(atom.terms, table.distinct):
        distinct = min(max(distinct, 1.0), max(table.rows, 1.0))
        if isinstance(term, Constant):
            rows /= distinct
        else:
            places.setdefault(term.name, []).append(distinct)
    return _equated(rows, places.items())


def estimate_join(estimates: Iterable[Estimate]) -> Estimate:
    """Return the estimate for a natural join. It does not depend on an order."""
    rows = 1.0
    places: dict[str, list[float]] = {}
    for estimate in estimates:
        rows *= estimate.rows
        for variable, distinct in estimate.distinct.items():
            places.setdefault(variable, []).append(distinct)
    return _equated(rows, places.items())


def _equated(rows: float, places: Iterable[tuple[str, list[float]]]) -> Estimate:
    """Equate the columns of each variable: all but that with the fewest distinct values divide the rows by theirs."""
    least: dict[str, float] = {}
    for variable, columns in sorted(places):
        first, *others = sorted(columns)
        rows /= prod(others)
        least[variable] = first
    return Estimate(rows, {v: max(1.0, min(distinct, rows)) for v, distinct in least.items()})
