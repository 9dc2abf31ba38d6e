"""Transactions: facts to delete and to insert at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from upheld.base.errors import quote
from upheld.facts.columns import Row
from upheld.facts.relation import coded_columns, decoded
from upheld.language.core import Predicate

#: The rows of each relation.
Rows = dict[str, list[Row]]


@dataclass(frozen=True)
class Update:
    """A transaction of an update file. `insert` and `delete` hold the rows of each relation it speaks of.

    `replace` holds snapshots: all rows that each of its relations has afterwards. `source` is the source of all these
    facts, as for `Materialisation.update`. A transaction with `retract` retracts that source, and has no facts.
    """

    insert: Rows
    delete: Rows
    #: Which transaction of the file this is, counted from one.
    number: int
    #: Where it begins: a file and a line, or a table and a row.
    place: str
    replace: Rows = field(default_factory=dict)
    source: str | None = None
    retract: str | None = None

    def __repr__(self) -> str:
        signed = (("+", self.insert), ("-", self.delete), ("=", self.replace))
        sizes = [f"{sign}{len(rows)} {name}" for sign, by_name in signed for name, rows in by_name.items()]
        if self.retract is not None:
            return f"<Update {self.number}: retract {quote(self.retract)}>"
        source = f" from {quote(self.source)}" if self.source is not None else ""
        return f"<Update {self.number}: {', '.join(sizes) or 'nothing'}{source}>"


def with_values(updates: Iterator[Update], predicates: Mapping[str, Predicate]) -> Iterator[Update]:
    """Return updates with the values of codes, as callers know them."""
    coded = {name: columns for name, p in predicates.items() if (columns := coded_columns(p.types))}
    if not coded:
        return updates

    def values(rows: Rows) -> Rows:
        return {name: list(decoded(some, coded.get(name, {}))) for name, some in rows.items()}

    return (replace(u, insert=values(u.insert), delete=values(u.delete), replace=values(u.replace)) for u in updates)


@dataclass
class Draft:
    """A transaction in the making. `place` is where it begins, once anything of it has been read."""

    place: str | None = None
    insert: Rows = field(default_factory=dict)
    delete: Rows = field(default_factory=dict)
    replace: Rows = field(default_factory=dict)
    source: str | None = None
    retract: str | None = None

    def add(self, sign: str, relation: str, rows: list[Row]) -> None:
        """Add rows to insert, if the sign is `+`, to delete, if it is `-`, or of a snapshot, if it is `=`."""
        side = {"+": self.insert, "-": self.delete, "=": self.replace}[sign]
        side.setdefault(relation, []).extend(rows)

    def take(self, other: Draft) -> None:
        """Add what another one has."""
        for sign, rows_by_relation in (("+", other.insert), ("-", other.delete), ("=", other.replace)):
            for relation, rows in rows_by_relation.items():
                self.add(sign, relation, rows)

    @property
    def has_facts(self) -> bool:
        """Whether it has facts, or snapshots, which may be empty."""
        return bool(self.insert or self.delete or self.replace)

    def done(self, number: int) -> Update:
        """Return the transaction."""
        assert self.place is not None, "a transaction that begins nowhere"
        return Update(self.insert, self.delete, number, self.place, self.replace, self.source, self.retract)
