"""Writing facts files: sorted, and either all of them or none."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path

from upheld.base.errors import FactsError, Problem, quote
from upheld.base.threads import ONE_THREAD, Threads, Work
from upheld.facts.columns import Row
from upheld.facts.files.formats import Format
from upheld.facts.files.jsonfiles import json_text, stored
from upheld.facts.files.replacement import NewFile, Replacement, unwritable
from upheld.language.types.columns import ColumnType
from upheld.language.types.primitive import float_text
from upheld.language.types.records import in_file
from upheld.language.values import Value

#: A function that formats rows as the text of a facts file, like `facts_text`.
Writer = Callable[[Iterable[Row], Sequence[str], Format], str]

#: Rows of all files together from which on it pays to share the work.
WORTH_SHARING = 1 << 15

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
    ordered = stored(rows, types)
    header = header_text(format)
    if not types:
        return header + "()\n" * len(list(ordered))
    write = [as_text(type, format.rfc4180) for type in types]
    columns = [map(convert, column) for convert, column in zip(write, zip(*ordered))]
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


def as_text(type: str, rfc4180: bool) -> Callable[[Value], str]:
    """Return the function that writes the values of a type."""
    if isinstance(type, ColumnType):
        return (lambda code: enclosed(type.text(code))) if rfc4180 and type.kind == "symbol" else type.text
    if type == "float":
        return float_text  # type: ignore[return-value]
    if type == "record":
        return _enclosed_record if rfc4180 else in_file
    return enclosed if rfc4180 and type in ("symbol", "term") else str


def _enclosed_record(value: Value) -> str:
    return enclosed(in_file(value))


def enclosed(text: Value) -> str:
    """Return a text in quotes, as RFC 4180 has it."""
    return '"' + str(text).replace('"', '""') + '"'


def write_all(outputs: Iterable[Output], to_text: Writer = facts_text, threads: Threads = ONE_THREAD) -> None:
    """Write several facts files. If one of them cannot be written, none is replaced, and all reasons are raised.

    Threads write several files at once if these are large.
    """
    problems: list[Problem] = []
    written: dict[Path, list[Output]] = {}
    for output in outputs:
        there = written.setdefault(Path(os.path.realpath(output.path)), [])
        if there and not _together(output, there[0]):
            problems.append(_same_file(output, there[0].format.relation))
        elif output.format not in (other.format for other in there):
            there.append(output)
    with Replacement() as replacement:
        files = [(replacement.begin(parts[0].path), parts) for parts in written.values()]
        failed: list[list[Problem]] = [[] for _ in files]

        def writing(k: int) -> Callable[[Work], None]:
            def write(work: Work) -> None:
                failed[k] = _written(*files[k], to_text)

            return write

        rows = sum(len(part.rows) for _, parts in files for part in parts if isinstance(part.rows, Sized))
        shared = threads if rows >= WORTH_SHARING else ONE_THREAD
        shared.run([writing(k) for k in range(len(files))], lambda: None)
        problems += [problem for of_file in failed for problem in of_file]
        if problems:
            raise FactsError(problems)
        replacement.place()


def _written(file: NewFile, parts: Sequence[Output], to_text: Writer) -> list[Problem]:
    """Write the file of outputs, and return what is wrong with it."""
    try:
        file.write(_data(parts, to_text))
    except FactsError as error:
        return list(error.problems)
    except (OSError, ValueError) as error:
        return [unwritable(parts[0].path, error)]
    return []


def _together(output: Output, other: Output) -> bool:
    """Return whether two outputs may have one file: tables of a database, or the same relation twice."""
    return output.format.io == other.format.io and (
        output.format.io == "sqlite" or output.format.relation == other.format.relation
    )


def _data(outputs: Sequence[Output], to_text: Writer) -> bytes:
    """Return the contents of the file of outputs, all of them in it if it is a database, and else the last one."""
    output = outputs[-1]
    match output.format.io:
        case "sqlite":
            # Most programs use no database, and start faster without the module.
            from upheld.facts.files.databases import with_tables

            return with_tables(output.path, [(part.rows, part.types, part.format) for part in outputs])
        case "jsonfile":
            return json_text(output.rows, output.types, output.format).encode()
        case _:
            data = to_text(output.rows, output.types, output.format).encode()
            return gzip.compress(data, mtime=0) if output.format.compress else data


def _same_file(output: Output, other: str) -> Problem:
    message = f"{quote(output.format.relation)} and {quote(other)} would be written to the same file"
    hint = "give one of them another `filename`"
    return Problem("same-file", message, place=str(output.path), hint=hint)
