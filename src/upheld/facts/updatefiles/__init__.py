"""Update files: transactions of facts to delete and to insert, as text and as tables, read one after the other."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from upheld.base.errors import FactsError, Problem, UsageError, described_type, quote
from upheld.facts.files.reading import unreadable
from upheld.facts.updatefiles.records import FILES, Records, kind_of, records_in, records_of
from upheld.facts.updatefiles.streams import STDIN
from upheld.facts.updatefiles.tables import read_snapshot, read_table, read_tables
from upheld.facts.updatefiles.text import read_text
from upheld.facts.updatefiles.transactions import Update, with_values
from upheld.facts.updatefiles.writing import ChangeFile, fact_texts, transaction_text
from upheld.language.core import Predicate

__all__ = [
    "STDIN",
    "ChangeFile",
    "Update",
    "fact_texts",
    "snapshot_in",
    "transaction_text",
    "updates_in",
    "updates_in_table",
    "updates_of",
]


def updates_of(updates: object, predicates: Mapping[str, Predicate]) -> Iterator[Update]:
    """Yield the transactions of updates of some relations, in whatever form these come.

    Raises `FactsError` in the place of the first transaction that is faulty, with all that is wrong from there on.
    """
    if isinstance(updates, Mapping):
        tables = {name: _records(name, data) for name, data in updates.items()}
        return with_values(read_tables(tables, predicates), predicates)
    if isinstance(updates, str | os.PathLike):
        path = Path(updates)
        if path.is_dir():
            return with_values(read_tables(_in_folder(path), predicates), predicates)
        return updates_in(path, predicates)
    return updates_in_table(updates, predicates)


def updates_in(path: Path, predicates: Mapping[str, Predicate], relation: str | None = None) -> Iterator[Update]:
    """Yield the transactions of a file. `relation` is that of a table which has no column for it, if its name is not.

    Raises as `updates_of` does.
    """
    if path != STDIN and kind_of(path):
        table = read_table(records_in(path), predicates, relation or path.name.partition(".")[0])
        return with_values(table, predicates)
    return with_values(read_text(path, predicates), predicates)


def snapshot_in(path: Path, predicates: Mapping[str, Predicate], relation: str | None = None) -> Iterator[Update]:
    """Yield a transaction that replaces a relation by the rows of a table; its file is named after the relation."""
    if not kind_of(path):
        note = "a snapshot is a table of all facts of a relation; such a file ends in " + ", ".join(map(quote, FILES))
        raise FactsError(Problem("not-an-update-table", "this is not a table", place=str(path), note=note))
    table = read_snapshot(records_in(path), predicates, relation or path.name.partition(".")[0])
    return with_values(table, predicates)


def updates_in_table(
    data: object, predicates: Mapping[str, Predicate], place: str = "updates", relation: str | None = None
) -> Iterator[Update]:
    """Yield the transactions of a data frame or an Arrow table, of one relation if it has no column of relations."""
    table = records_of(data, place)
    if table is None:
        raise _unsupported(data, place)
    return with_values(read_table(table, predicates, relation), predicates)


def _records(relation: str, data: object) -> Records:
    """Return the table of updates that was passed for a relation."""
    place = f'updates["{relation}"]'
    if not isinstance(data, str | os.PathLike):
        table = records_of(data, place)
        if table is None:
            raise _unsupported(data, place)
        return table
    if not kind_of(Path(data)):
        message = f"the updates of {quote(relation)} are the text {quote(data)}, which is not the path of a table"
        note = "such a path ends in " + ", ".join(f"`{suffix}` ({what})" for suffix, what in FILES.items())
        raise UsageError(Problem("unsupported-updates", message, place=place, note=note))
    return records_in(Path(data))


def _in_folder(folder: Path) -> dict[str, Records]:
    """Return the tables in the files of a folder, by the relations that these are named after."""
    try:
        paths = sorted(path for path in folder.iterdir() if kind_of(path))
    except OSError as error:
        raise FactsError(unreadable(folder, error)) from None
    if not paths:
        note = f"a folder of updates has one file per relation, such as `edge.csv`; files end in {', '.join(FILES)}"
        raise FactsError(Problem("missing-file", "the folder has no tables of updates", place=str(folder), note=note))
    found: dict[str, Path] = {}
    for path in paths:
        other = found.setdefault(path.name.partition(".")[0], path)
        if other != path:
            message = f"{quote(other.name)} and {quote(path.name)} are updates of the same relation"
            raise FactsError(Problem("unsupported-updates", message, place=str(folder), hint="remove one of them"))
    return {relation: records_in(path) for relation, path in found.items()}


def _unsupported(data: object, place: str) -> UsageError:
    message = f"the updates are {described_type(data)}"
    accepted = "the path of an update file, a pandas DataFrame, an Arrow table, or a dictionary of tables by relation"
    return UsageError(Problem("unsupported-updates", message, place=place, note=f"updates are {accepted}"))
