"""Transactions: facts to delete and to insert at once."""

from __future__ import annotations

from dataclasses import dataclass, field

from upheld.data.columns import Row

#: The rows of each relation.
Rows = dict[str, list[Row]]


@dataclass(frozen=True)
class Update:
    """A transaction of an update file. `insert` and `delete` hold the rows of each relation it speaks of."""

    insert: Rows
    delete: Rows
    #: Which transaction of the file this is, counted from one.
    number: int
    #: Where it begins: a file and a line, or a table and a row.
    place: str

    def __repr__(self) -> str:
        signed = (("+", self.insert), ("-", self.delete))
        sizes = [f"{sign}{len(rows)} {name}" for sign, by_name in signed for name, rows in by_name.items()]
        return f"<Update {self.number}: {', '.join(sizes) or 'nothing'}>"


@dataclass
class Draft:
    """A transaction in the making. `place` is where it begins, once anything of it has been read."""

    place: str | None = None
    insert: Rows = field(default_factory=dict)
    delete: Rows = field(default_factory=dict)

    def add(self, sign: str, relation: str, rows: list[Row]) -> None:
        """Add rows to insert, if the sign is `+`, or to delete."""
        (self.insert if sign == "+" else self.delete).setdefault(relation, []).extend(rows)

    def take(self, other: Draft) -> None:
        """Add what another one has."""
        for sign, rows_by_relation in (("+", other.insert), ("-", other.delete)):
            for relation, rows in rows_by_relation.items():
                self.add(sign, relation, rows)

    def done(self, number: int) -> Update:
        """Return the transaction."""
        assert self.place is not None, "a transaction that begins nowhere"
        return Update(self.insert, self.delete, number, self.place)
