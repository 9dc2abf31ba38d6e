"""Writing facts files: sorted, and either all of them or none."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from upheld.columns import Row
from upheld.errors import FactsError, Problem, quote
from upheld.factfiles.formats import Format
from upheld.language.ast import Value
from upheld.language.values import float_text, sorted_rows

#: What makes the text of a facts file, as `facts_text` does.
Writer = Callable[[Iterable[Row], Sequence[str], Format], str]

_RULE = "===============\n"


@dataclass(frozen=True)
class Output:
    """Rows and the file they go to."""

    path: Path
    rows: Iterable[Row]
    types: Sequence[str]
    format: Format


def facts_text(rows: Iterable[Row], types: Sequence[str], format: Format) -> str:
    """Return the text of a facts file: a line per row, sorted; `()` for the row of no columns.

    Without `rfc4180` symbols stand as they are, so a symbol with a delimiter or a line break in it does not read back.
    """
    ordered = sorted_rows(rows, types)
    header = header_text(format)
    if not types:
        return header + "()\n" * len(ordered)
    as_text = [_as_text(type, format.rfc4180) for type in types]
    columns = [map(convert, column) for convert, column in zip(as_text, zip(*ordered))]
    return header + "".join(f"{format.delimiter.join(fields)}\n" for fields in zip(*columns))


def header_text(format: Format) -> str:
    """Return the line of column names, if the format has one."""
    return format.delimiter.join(format.columns) + "\n" if format.headers else ""


def stdout_text(rows: Iterable[Row], types: Sequence[str], format: Format, to_text: Writer = facts_text) -> str:
    """Return what `IO=stdout` prints for a relation: its name and rows between lines, as Soufflé does."""
    title = f"---------------\n{format.relation}\n"
    text = to_text(rows, types, format)
    header, body = text.split("\n", 1) if format.headers else ("", text)
    return title + (header + "\n" if header else "") + _RULE + body + _RULE


def _as_text(type: str, rfc4180: bool) -> Callable[[Value], str]:
    if type == "float":
        return float_text  # type: ignore[return-value]
    return enclosed if rfc4180 and type in ("symbol", "term") else str


def enclosed(text: Value) -> str:
    """Return a text in quotes, as RFC 4180 has it."""
    return '"' + str(text).replace('"', '""') + '"'


def write_facts(path: Path, rows: Iterable[Row], types: Sequence[str], format: Format) -> None:
    """Write a facts file. If it cannot be written whole, what was there before stays."""
    write_all([Output(path, rows, types, format)])


def write_all(outputs: Iterable[Output], to_text: Writer = facts_text) -> None:
    """Write several facts files. If one of them cannot be written, none is replaced, and all reasons are raised."""
    staged: list[tuple[Path, Path]] = []
    problems: list[Problem] = []
    written: dict[Path, str] = {}
    try:
        for output in outputs:
            target = Path(os.path.realpath(output.path))
            if written.setdefault(target, output.format.relation) != output.format.relation:
                problems.append(_same_file(output, written[target]))
                continue
            temporary = target.with_name(f".upheld-{token_hex(8)}.tmp")
            staged.append((temporary, target))
            try:
                _stage(temporary, target, output, to_text)
            except (OSError, ValueError) as error:
                problems.append(unwritable(output.path, error))
        if problems:
            raise FactsError(problems)
        for temporary, target in staged:
            try:
                os.replace(temporary, target)
            except OSError as error:
                raise FactsError(unwritable(target, error)) from None
    finally:
        for temporary, _ in staged:
            with suppress(OSError):  # where nothing could be made, there is nothing to remove
                temporary.unlink()


def _stage(temporary: Path, target: Path, output: Output, to_text: Writer) -> None:
    """Write the output to a temporary file beside its target, unless the target is nothing that may be replaced."""
    if target.exists():
        # Renaming would replace a device or a pipe, and would not ask whether the file is write-protected.
        if not target.is_file():
            raise IsADirectoryError
        if not os.access(target, os.W_OK):
            raise PermissionError
    data = to_text(output.rows, output.types, output.format).encode()
    with temporary.open("xb") as file:
        file.write(gzip.compress(data, mtime=0) if output.format.compress else data)
    if target.exists():
        shutil.copymode(target, temporary)


def _same_file(output: Output, other: str) -> Problem:
    message = f"{quote(output.format.relation)} and {quote(other)} would be written to the same file"
    hint = "give one of them another `filename`"
    return Problem("same-file", message, place=str(output.path), hint=hint)


def unwritable(path: Path, error: Exception) -> Problem:
    """Return the problem of a file that could not be written."""
    place = str(path)
    match error:
        case FileNotFoundError() | NotADirectoryError():
            message = f"there is no folder {quote(path.parent)} to write to"
            return Problem("missing-file", message, place=place, hint="make the folder, or name another one")
        case IsADirectoryError():
            message = "this is a folder, a device or a pipe"
            return Problem("not-a-file", message, place=place, hint="name a file, or use `IO=stdout`")
        case PermissionError():
            return Problem(
                "no-permission", "no permission to write the file", place=place, hint="change its permissions"
            )
        case _:
            reason = getattr(error, "strerror", None) or error
            return Problem("unwritable-file", f"the file cannot be written: {reason}", place=place)
