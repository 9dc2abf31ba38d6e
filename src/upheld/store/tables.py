"""Facts of relations as tables that Parquet can hold, with the status that a version gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from upheld.facts.columns import Row
from upheld.facts.relation import Relation

if TYPE_CHECKING:
    import pyarrow

#: The status of a fact in a file of changes.
EXPLICIT, DERIVED, GONE = "explicit", "derived", "gone"

#: The column of a relation without columns, as Parquet must have one.
HOLDS = "holds"


def is_file(path: str) -> bool:
    """Return whether a path of a manifest is that of a file, and not of a folder that Spark has written."""
    return path.endswith((".parquet", ".dl", ".dlog", ".json"))


def statuses(inserted: Relation, deleted: Relation, asserted: Relation, retracted: Relation) -> dict[str, Relation]:
    """Return what there is to say of each fact that an update has changed."""
    if not len(asserted) and not len(retracted):
        return {DERIVED: inserted, GONE: deleted}
    new, gone, stated = inserted.stored_set(), deleted.stored_set(), asserted.stored_set()
    derived = (new - stated) | (retracted.stored_set() - gone)
    return {
        EXPLICIT: asserted,
        DERIVED: Relation(inserted.name, inserted.columns, inserted.stored_types, derived),
        GONE: deleted,
    }


def plain_table(relation: Relation) -> pyarrow.Table:
    """Return a relation as Parquet can hold it."""
    import pyarrow

    if relation.columns:
        return relation.to_arrow()
    return pyarrow.table({HOLDS: pyarrow.array([True] * len(relation), pyarrow.bool_())})


def marked_table(relation: Relation, status: str) -> pyarrow.Table:
    """Return facts with what is said of them; columns have no names of their own, which that of the status might be."""
    import pyarrow

    first = pyarrow.array([status] * len(relation), pyarrow.string())
    if not relation.columns:
        return pyarrow.table({"status": first})
    values = relation.to_arrow().rename_columns([f"c{i}" for i in range(len(relation.columns))])
    return values.add_column(0, "status", first)


def row_key(row: Row) -> Row:
    """Return the key of a row, in which all NaN are equal."""
    return tuple("nan" if value != value else value for value in row)


def mask(values: Any) -> pyarrow.Array:
    import pyarrow

    return pyarrow.array(values, pyarrow.bool_())
