"""Tables on disk that each committed change of a materialisation brings up to date."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from upheld.base.errors import FactsError, Problem, UsageError, quote
from upheld.facts.change import Change

if TYPE_CHECKING:
    from upheld.store.kept.draft import TableDraft
    from upheld.store.kept.table import KeptTable


class KeptTables:
    """The tables of a materialisation, each of the facts of a relation.

    The files of a change are written before it is committed, so that a change which cannot be written is refused;
    afterwards the manifests are replaced.
    """

    def __init__(self) -> None:
        self._tables: list[KeptTable] = []
        self._drafts: list[tuple[KeptTable, TableDraft]] = []

    def __bool__(self) -> bool:
        return bool(self._tables)

    def add(self, table: KeptTable) -> None:
        if any(other.folder == table.folder for other in self._tables):
            message = f"{quote(table.folder)} is kept up to date already"
            raise UsageError(Problem("bad-argument", message, hint="name another folder, or close the first one"))
        self._tables.append(table)

    def remove(self, table: KeptTable) -> None:
        self._tables = [other for other in self._tables if other is not table]

    def prepare(self, change: Change) -> None:
        """Write the files of a change that is about to be committed."""
        for table in self._tables:
            table.check_unchanged()
            name = table.shape.relation
            draft = table.changed(change.inserted.some(name), change.deleted.some(name))
            if draft is not None:
                self._drafts.append((table, draft))

    def discard(self) -> None:
        """Remove the files of a change that was not committed."""
        while self._drafts:
            self._drafts.pop()[1].discard()

    def publish(self, program: str, update: int) -> None:
        """Make the change that was committed the last version of each table."""
        drafts, self._drafts = {id(table): draft for table, draft in self._drafts}, []
        problems: list[Problem] = []
        for table in self._tables:
            try:
                if (draft := drafts.get(id(table))) is not None:
                    table.put(draft, program, {"update": update})
                elif table.is_behind:
                    table.put_in_place()
            except FactsError as error:
                problems += [_behind(table), *error.problems]
        if problems:
            raise FactsError(problems)


def _behind(table: KeptTable) -> Problem:
    message, note = "the update was made, but the table has the version before", "the next update tries again"
    return Problem("table-behind", message, place=table.folder, note=note)


class Keeping:
    """A table that is kept up to date until this is closed; a `with` block closes it at its end.

    The table stays, with the facts of the last update before that. `Materialisation.keep` returns it.

    Args:
        table: The table.
        end: Called when it is closed.
    """

    def __init__(self, table: KeptTable, end: Callable[[], None]) -> None:
        self._table, self._end = table, end

    @property
    def folder(self) -> str:
        """The folder of the table."""
        return self._table.folder

    @property
    def version(self) -> int:
        """The number of the last version of the table."""
        return self._table.version

    def close(self) -> None:
        """Keep the table up to date no longer."""
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Keeping {self._table.shape.relation} in {self.folder}, version {self.version}>"
