"""The numbers that the papers print, one TSV file a table: a line on its source, a header, and the rows.

Thousands are written out: the papers' `1.14 k` is 1140 here. An empty field is one that the paper leaves empty. The
columns before the first number are the key of a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

#: Columns that name a row rather than give a number of it.
KEYS = ("row", "strat", "level", "task", "deleted")

Row = dict[str, float | None]


@dataclass(frozen=True)
class Printed:
    """A printed table: its source, the columns of its numbers, and its rows by key."""

    source: str
    columns: tuple[str, ...]
    rows: dict[tuple[str, ...], Row]

    def number(self, key: tuple[str, ...], column: str) -> float | None:
        """Return a printed number, or None where the paper prints none."""
        return self.rows.get(key, {}).get(column)


def printed(name: str) -> Printed:
    """Return the table of a file, such as `p1-table3`; one without rows if the paper prints no numbers of it."""
    file = files(__name__).joinpath(f"{name}.tsv")
    if not file.is_file():
        return Printed("", (), {})
    source, header, *lines = file.read_text(encoding="utf-8").splitlines()
    names = header.split("\t")
    keys = [name for name in names if name in KEYS]
    rows: dict[tuple[str, ...], Row] = {}
    for line in lines:
        fields = line.split("\t")
        values = {name: _number(text) for name, text in zip(names, fields, strict=True) if name not in KEYS}
        rows[tuple(fields[: len(keys)])] = values
    return Printed(source.removeprefix("# "), tuple(n for n in names if n not in KEYS and not n.endswith("±")), rows)


def _number(text: str) -> float | None:
    """Return a number; None for an empty field and for text, which figure 8 has in place of points."""
    try:
        return float(text)
    except ValueError:
        return None
