"""How many rows a join has, by the textbook (Garcia-Molina, Ullman and Widom, *Database Systems*, section 16.4).

Values are taken to be spread evenly, columns to be independent, and the values of the column with fewer distinct ones
to occur in the other. Comparisons and negated atoms are not estimated: they are taken to hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Protocol

from upheld.language.ast import Constant
from upheld.language.core import Atom

#: An estimate of this many rows stands for more as well, so that costs stay finite.
MOST = 1e200


@dataclass(frozen=True)
class Table:
    """Statistics of a relation: its number of rows, and of distinct values per column."""

    rows: float
    distinct: tuple[float, ...]


class ByAtom(Protocol):
    """Gives for each atom the table of the facts that have its constants."""

    def of(self, atom: Atom) -> Table: ...


#: Statistics of relations, by predicate or by atom.
Statistics = Mapping[str, Table] | ByAtom


def table_of(atom: Atom, statistics: Statistics) -> Table:
    """Return what is known of the facts that may match an atom."""
    return statistics[atom.predicate] if isinstance(statistics, Mapping) else statistics.of(atom)


@dataclass(frozen=True)
class Estimate:
    """Rows of a join, and for each variable how many distinct values it has there, at least one."""

    rows: float
    distinct: dict[str, float]

    def rows_with(self, other: Estimate) -> float:
        """Return the rows of the natural join with another."""
        rows = min(self.rows * other.rows, MOST)
        for variable, values in other.distinct.items():
            if variable in self.distinct:
                rows /= max(values, self.distinct[variable])
        return rows

    def joined(self, other: Estimate) -> Estimate:
        """Return the estimate for the natural join with another. The order of several does not matter.

        Of the columns of a variable, all but the one with the fewest distinct values have divided the rows by theirs.
        """
        distinct = dict(self.distinct)
        for variable, values in other.distinct.items():
            distinct[variable] = min(values, distinct.get(variable, values))
        return Estimate(self.rows_with(other), distinct)

    def projected(self, variables: Iterable[str]) -> float:
        """Return the rows that are left when only these variables are kept."""
        return min(self.rows, prod(self.distinct[v] for v in variables))


#: The join of nothing: one row, without variables.
UNIT = Estimate(1.0, {})


def estimate_atom(atom: Atom, table: Table) -> Estimate:
    """Return the estimate for the facts that match an atom, with its constants and repeated variables."""
    assert len(atom.terms) == len(table.distinct), "statistics of another relation"
    rows = max(table.rows, 1.0)  # a relation that is empty as yet may be filled by its rules
    found = Estimate(rows, {})
    for term, column in zip(atom.terms, table.distinct):
        values = min(max(column, 1.0), rows)
        if isinstance(term, Constant):
            found = Estimate(found.rows / values, found.distinct)
        else:
            found = found.joined(Estimate(1.0, {term.name: values}))
    # No column has more distinct values than there are rows.
    return Estimate(found.rows, {v: max(1.0, min(n, found.rows)) for v, n in found.distinct.items()})


def estimate_join(estimates: Iterable[Estimate]) -> Estimate:
    """Return the estimate for the natural join of all these."""
    return reduce(Estimate.joined, estimates, UNIT)
