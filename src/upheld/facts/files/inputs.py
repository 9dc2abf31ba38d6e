"""The facts of an `.input` directive, wherever they are."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from upheld.facts.columns import Row
from upheld.facts.files.formats import Format
from upheld.facts.files.jsonfiles import json_rows
from upheld.facts.files.reading import Reader, read_bytes

#: The place of standard input in messages.
STANDARD_INPUT = Path("<stdin>")


def input_rows(folder: Path, types: Sequence[str], format: Format, read: Reader) -> Iterable[Row]:
    """Return the facts of a directive. Its file is in `folder`; `read` parses a text with a row on each line."""
    path = folder / format.filename
    match format.io:
        case "stdin":
            return read(sys.stdin.buffer.read(), STANDARD_INPUT, types, format)
        case "jsonfile":
            return json_rows(read_bytes(path), path, types, format)
        case "sqlite":
            # Most programs use no database, and start faster without the module.
            from upheld.facts.files.databases import table_rows

            return table_rows(path, types, format)
        case _:
            return read(read_bytes(path), path, types, format)
