"""Plain files by Arrow: what nearly every file holds, read by tasks in columns, for the driver or for other tasks.

Spark's readers make a row of each line and a Java object of each text, which takes several times as long. A file with
anything in it that is not plain, right or wrong, is read again by Spark, so the rows and the errors equal what
Spark's readers give, whichever of the two gave them. Of N-Triples only the lines that are not plain are.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, ipc, parquet
from pyspark.sql import SparkSession

from upheld.base.errors import FactsError
from upheld.facts.files.reading import Unpacked
from upheld.facts.stored import TEXTS, StoredFile, write_stored
from upheld.language.terms.ntriples import are_canonical
from upheld.language.terms.ntriples_grammar import PLAIN_TRIPLE
from upheld.language.terms.terms import XSD
from upheld.language.types.columns import ColumnType, NotAValue
from upheld.language.types.primitive import TYPES
from upheld.pipeline.sources.coded import codes_of_texts
from upheld.store.spark.files import shown

#: Bytes of a file that a task reads at a time: few files are cut for tasks of less, and more would not stay in caches.
_LEAST, _MOST = 1 << 22, 1 << 23
#: Bytes that a task reads in all, unless they are one part.
_TASK = 1 << 26
#: Rows that leave a task at a time.
_BATCH = 1 << 18
#: Bytes that are parsed at a time: no line may be longer.
_BLOCK = 1 << 20
#: Bytes in memory for each byte of a packed file, and copies of all of them on their way.
_UNPACKED, _COPIES = 8, 4

#: Bytes that Spark's readers treat specially: other line ends, our line separator, the replacement character and the
#: byte order mark.
_SPECIAL = b"\r", b"\0", b"\x01"
_SPECIAL_SIGNS = "\N{REPLACEMENT CHARACTER}".encode(), "\N{BYTE ORDER MARK}".encode()

#: How the names of delimited files end, unless they are packed.
DELIMITED = (".csv", ".tsv", ".facts")

_INTEGER, _FLOAT = r"^-?[0-9]{1,18}$", r"^-?[0-9]{1,15}(\.[0-9]{1,15})?([eE][+-]?[0-9]{1,2})?$"
_ARROW = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
}
_SPARK = {type: name for name, type in _ARROW.items()}
#: Where Spark writes the types of columns into a Parquet file.
_STATED = b"org.apache.spark.sql.parquet.row.metadata"
#: Names of the types there.
_ON_RECORD = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}
_ON_RECORD |= {type: type for type in ("float", "double", "string")}
#: The types of columns for the primitive types.
WANTED = {type.name: pa.type_for_alias(type.arrow) for type in TYPES.values()}

_STRING_TYPE = f"^^<{XSD}string>"


class NotPlain(Exception):
    """Something that only Spark's readers know."""


@dataclass(frozen=True)
class Split:
    """A part of a file: its bytes, or its row groups, from the first to before the last."""

    file: str
    first: int
    last: int
    #: Its size in memory.
    bytes: int


class Plain(Protocol):
    """How tasks read the plain files of a source."""

    def splits(self, tasks: int) -> list[Split]:
        """Return the parts of files for a number of tasks; raise `NotPlain` if Python cannot read the files."""

    def read(self, split: Split) -> tuple[pa.Table, pa.Table | None]:
        """Return the rows of a part, of Arrow's types for the relation's, and lines that are left for Spark."""


@dataclass
class Arrived:
    """Output of the fast path: rows in columns `c0`, `c1`, ..., and lines `value` of files `_file` left for Spark.

    Rows for other tasks are in files.
    """

    rows: list[pa.Table] = field(default_factory=list)
    files: list[StoredFile] = field(default_factory=list)
    rest: list[pa.Table] = field(default_factory=list)


@dataclass(frozen=True)
class Storing:
    """Where tasks write the rows of sources, and the types of the columns of each source."""

    folder: str
    types: tuple[tuple[str, ...], ...]


def load(
    spark: SparkSession, sources: Sequence[Plain], room: int, storing: Storing | None = None
) -> list[Arrived | None]:
    """Return the rows of sources, read by one job into the driver or into files; None for each that is not plain.

    If they are to come to the driver and their bytes may not fit, all are None.
    """
    tasks = spark.sparkContext.defaultParallelism
    splits: list[tuple[int, Split]] = []
    found: list[Arrived | None] = []
    for number, source in enumerate(sources):
        try:
            splits += [(number, split) for split in source.splits(tasks)]
            found.append(Arrived())
        except (NotPlain, OSError, pa.ArrowException):
            found.append(None)
    if storing is None and _COPIES * sum(split.bytes for _, split in splits) > room:
        return [None] * len(sources)
    if not splits:
        return found
    readers = tuple(sources)
    tasks = min(len(splits), max(tasks, sum(split.bytes for _, split in splits) // _TASK))
    places = spark.sparkContext.parallelize(range(len(splits)), tasks)

    def read(places: Iterable[int]) -> Iterator[_Told]:
        for at in places:
            number, split = splits[at]
            yield from _told(number, readers[number], split, storing)

    # A query would have Java copy all bytes into its rows and out of them, and be planned.
    for number, is_rest, data in places.mapPartitions(read).collect():
        arrived = found[number]
        if data is None:
            found[number] = None
        elif arrived is not None and isinstance(data, bytes):
            (arrived.rest if is_rest else arrived.rows).append(unpacked(data))
        elif arrived is not None:
            arrived.files.append(StoredFile(*data))
    return found


#: The number of a source, whether these are lines for Spark, and packed rows, a file of rows, or None.
_Told = tuple[int, bool, bytes | StoredFile | None]


def _told(number: int, source: Plain, split: Split, storing: Storing | None) -> Iterator[_Told]:
    """Yield the rows of a part, many packed into one piece or stored in a file; or None, that it is not plain."""
    try:
        rows, rest = source.read(split)
    except (NotPlain, OSError, EOFError, zlib.error, pa.ArrowException):
        yield number, False, None
        return
    if storing is not None and rows.num_rows:
        yield number, False, write_stored(rows, storing.types[number], storing.folder)
    for table, is_rest in ((None if storing else rows, False), (rest, True)):
        if table is not None:
            for data in packed(table, _BATCH):
                yield number, is_rest, data


# -- text files --------------------------------------------------------------------------------------------------------


def _local(file: str) -> str:
    """Return the path of a file that Python can open; paths on other file systems are not among them."""
    path = shown(file)
    if "%" in file or not path.startswith("/"):
        raise NotPlain
    return path


def first_line(file: str) -> str:
    """Return the first line of a text file; raise `NotPlain` or `OSError` if Spark may take another for it, or none."""
    path = _local(file)
    if not path.lower().endswith(DELIMITED):
        raise NotPlain
    with open(path, "rb") as stream:
        line = stream.readline(_BLOCK)
    if not line.endswith(b"\n") or not line.isascii() or any(special in line for special in _SPECIAL):
        raise NotPlain
    return line[:-1].decode()


def _text_splits(files: Sequence[str], extensions: Sequence[str], tasks: int) -> list[Split]:
    splits = []
    sizes = {file: _size(file) for file in files}
    width = min(max(sum(sizes.values()) // tasks + 1, _LEAST), _MOST)
    for file, size in sizes.items():
        if not file.removesuffix(".gz").lower().endswith(tuple(extensions)):
            raise NotPlain  # Spark unpacks what is packed in other ways, by its name
        if file.endswith(".gz"):
            splits.append(Split(_local(file), 0, size, _UNPACKED * size))
        else:
            ends = [(at, min(at + width, size)) for at in range(0, size, width)]
            splits += [Split(_local(file), first, last, last - first) for first, last in ends]
    return splits


def _size(file: str) -> int:
    with open(_local(file), "rb") as stream:
        return stream.seek(0, 2)


def _lines(split: Split, header: bytes | None = None) -> bytes:
    """Return the lines that begin in a part of a file, without its header; raise `NotPlain` for odd bytes."""
    with open(split.file, "rb") as stream:
        if split.file.endswith(".gz"):
            try:
                data = Unpacked(stream, Path(split.file)).whole()
            except FactsError:  # it unpacks out of proportion: Spark never holds all of it at once
                raise NotPlain from None
        else:
            begin, end = (_line_from(stream, at) for at in (split.first, split.last))
            stream.seek(begin)
            data = stream.read(end - begin)
    if header is not None and not split.first:
        if not data.startswith(header):
            raise NotPlain
        data = data[len(header) :]
    if any(special in data for special in _SPECIAL):
        raise NotPlain
    if not data.isascii() and any(sign in data for sign in _SPECIAL_SIGNS):
        raise NotPlain
    return data


def _line_from(stream: IO[bytes], at: int) -> int:
    """Return where the first line begins that begins at a place or after it."""
    if not at:
        return 0
    stream.seek(at - 1)
    stream.readline()
    return stream.tell()


def _fields(data: bytes, names: Sequence[str], delimiter: str, chosen: Sequence[str]) -> pa.Table:
    if not data:
        return pa.table({name: pa.array([], pa.string()) for name in chosen})
    return csv.read_csv(
        pa.BufferReader(data),
        csv.ReadOptions(use_threads=False, block_size=_BLOCK, column_names=list(names)),
        csv.ParseOptions(delimiter=delimiter, quote_char=False, escape_char=False),
        csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), include_columns=list(chosen)),
    )


@dataclass(frozen=True)
class PlainDelimited:
    """Lines of fields without quotes."""

    files: tuple[str, ...]
    delimiter: str
    header: bytes | None
    names: tuple[str, ...]
    chosen: tuple[str, ...]
    types: tuple[str, ...]

    def splits(self, tasks: int) -> list[Split]:
        if len(self.delimiter) != 1 or not self.delimiter.isascii():
            raise NotPlain
        return _text_splits(self.files, DELIMITED, tasks)

    def read(self, split: Split) -> tuple[pa.Table, pa.Table | None]:
        data = _lines(split, self.header)
        if b'"' in data:
            raise NotPlain
        table = _fields(data, self.names, self.delimiter, list(dict.fromkeys((self.names[0], *self.chosen))))
        if self.delimiter.isspace() or len(self.names) == 1:
            # Spark leaves out lines of nothing but white space.
            blank = pc.equal(pc.utf8_trim_whitespace(table[0]), "")
            if pc.any(blank).as_py():
                raise NotPlain
        columns = [_number(table[name], type) for name, type in zip(self.chosen, self.types)]
        return pa.Table.from_arrays(columns, [f"c{i}" for i in range(len(columns))]), None


def _number(texts: pa.ChunkedArray, type: str) -> pa.ChunkedArray:
    """Return texts as values of a type, whose texts both Spark and Arrow must take for the same."""
    if isinstance(type, ColumnType) and type.kind != "symbol":
        return _coded(texts, type)
    if type in TEXTS:
        return _checked(texts, type)
    if not pc.all(pc.match_substring_regex(texts, _FLOAT if type == "float" else _INTEGER), min_count=0).as_py():
        raise NotPlain
    return _valued(texts, type)


def _coded(texts: pa.ChunkedArray, type: ColumnType) -> pa.ChunkedArray:
    try:
        return codes_of_texts(texts, type, WANTED[type])
    except NotAValue:
        raise NotPlain from None


def _checked(texts: pa.ChunkedArray, type: str) -> pa.ChunkedArray:
    """Return texts as they are; raise `NotPlain` if they are to be RDF terms and are not all in canonical form."""
    if type == "term" and not are_canonical(texts.unique().to_pylist()):
        raise NotPlain
    return texts


def _valued(column: pa.ChunkedArray, type: str) -> pa.ChunkedArray:
    values = column.cast(WANTED[type])  # raises what a number cannot be without loss
    return pc.add(values, 0.0) if type == "float" else values  # no -0.0


@dataclass(frozen=True)
class PlainTriples:
    """N-Triples. Lines that have escapes, blank nodes, comments or odd spaces are left, and so are bad ones."""

    files: tuple[str, ...]
    #: The places of the columns among subject, predicate and object.
    chosen: tuple[int, ...]

    def splits(self, tasks: int) -> list[Split]:
        if any(quote(shown(file)) != shown(file) for file in self.files):
            raise NotPlain  # Spark's name of the file is another, which distinguishes the blank nodes of files
        return _text_splits(self.files, (".nt",), tasks)

    def read(self, split: Split) -> tuple[pa.Table, pa.Table | None]:
        data = _lines(split)
        lines = _fields(data, ["value"], "\x01", ["value"])["value"]
        is_plain = pc.match_substring_regex(lines, PLAIN_TRIPLE)
        rest = None
        if not pc.all(is_plain, min_count=0).as_py():
            odd = lines.filter(pc.invert(is_plain))
            files = pa.repeat(pa.scalar(f"file://{split.file}"), len(odd))
            rest = pa.table({"value": odd, "_file": files})
            lines = lines.filter(is_plain)
        subject, predicate, object = _cut(lines)
        found = subject, predicate, object
        return pa.table({f"c{i}": found[place] for i, place in enumerate(self.chosen)}), rest


def _cut(lines: pa.ChunkedArray) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return the three terms of plain lines."""
    flat = pa.concat_arrays([pc.split_pattern(chunk, " ", max_splits=2).flatten() for chunk in lines.chunks] or _NONE)
    count = len(flat) // 3
    subject, predicate, last = (flat.take(pa.array(np.arange(i, 3 * count, 3))) for i in range(3))
    object = pc.utf8_slice_codeunits(last, 0, -len(" ."))
    strings = pc.ends_with(object, _STRING_TYPE)
    if pc.any(strings).as_py():
        object = pc.if_else(strings, pc.utf8_slice_codeunits(object, 0, -len(_STRING_TYPE)), object)
    return subject, predicate, object


_NONE = [pa.array([], pa.string())]


# -- Parquet -----------------------------------------------------------------------------------------------------------


def parquet_columns(file: str) -> dict[str, str]:
    """Return Spark's names of the column types of a Parquet file; raise `NotPlain` if only Spark knows."""
    metadata = parquet.read_metadata(_local(file))
    columns = {column.name: _SPARK.get(column.type, "") for column in metadata.schema.to_arrow_schema()}
    if "" in columns.values() or len({name.lower() for name in columns}) < metadata.num_columns:
        raise NotPlain
    stated = (metadata.metadata or {}).get(_STATED)
    if stated is not None and _fields_in(stated) != [(name, _ON_RECORD[type], {}) for name, type in columns.items()]:
        raise NotPlain  # such as a length of time, which is stored as a number
    return columns


def _fields_in(stated: bytes) -> list[tuple[object, object, object]]:
    """Return names, types and what else is said of columns by the record that Spark leaves in a file."""
    try:
        return [(field["name"], field["type"], field["metadata"]) for field in json.loads(stated)["fields"]]
    except (ValueError, TypeError, LookupError):
        raise NotPlain from None


@dataclass(frozen=True)
class PlainParquet:
    """Parquet files with the columns of the first one, and a value everywhere."""

    files: tuple[str, ...]
    chosen: tuple[str, ...]
    #: Spark's names of the column types, and the types of the relation.
    given: tuple[str, ...]
    types: tuple[str, ...]

    def splits(self, tasks: int) -> list[Split]:
        if any("." in name for name in self.chosen) or not set(self.given) <= set(_ARROW):
            raise NotPlain
        files = {_local(file): parquet.read_metadata(_local(file)) for file in self.files}
        width = max(1, sum(file.num_row_groups for file in files.values()) // tasks)
        splits = []
        for path, file in files.items():
            for at in range(0, file.num_row_groups, width):
                groups = range(at, min(at + width, file.num_row_groups))
                size = sum(file.row_group(i).total_byte_size for i in groups)
                splits.append(Split(path, groups.start, groups.stop, _UNPACKED * size))
        return splits

    def read(self, split: Split) -> tuple[pa.Table, pa.Table | None]:
        with parquet.ParquetFile(split.file) as file:
            table = file.read_row_groups(range(split.first, split.last), columns=list(self.chosen), use_threads=False)
        columns = []
        for name, given, type in zip(self.chosen, self.given, self.types):
            if name not in table.column_names:
                raise NotPlain
            column = table[name]
            if column.type != _ARROW[given] or column.null_count:
                raise NotPlain
            column.validate(full=True)  # of texts, that they are UTF-8
            if isinstance(type, ColumnType) and type.kind != "symbol":
                raise NotPlain  # another type of Spark's, or its nulls
            columns.append(_checked(column, type) if type in TEXTS else _valued(column, type))
        return pa.Table.from_arrays(columns, [f"c{i}" for i in range(len(columns))]), None


#: Java takes ten times as long to pass a byte on as this takes to save it.
_OPTIONS = ipc.IpcWriteOptions(compression="lz4", use_threads=False)


def packed(table: pa.Table, rows: int) -> Iterator[bytes]:
    """Yield a table in parts of at most `rows` rows."""
    for at in range(0, table.num_rows, rows):
        sink = pa.BufferOutputStream()
        with ipc.new_stream(sink, table.schema, options=_OPTIONS) as stream:
            stream.write_table(table.slice(at, rows))
        yield sink.getvalue().to_pybytes()


def unpacked(data: pa.Buffer | bytes) -> pa.Table:
    """Return a part of a table."""
    return ipc.open_stream(data).read_all()
