"""Turtle: whole files, each parsed by one task."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from upheld.base.errors import FactsError
from upheld.facts.files.reading import GZIP_MAGIC, Unpacked
from upheld.facts.relation import missing_package
from upheld.language.terms.terms import escape
from upheld.pipeline.sources.ntriples import NAMES
from upheld.pipeline.sources.rows import Reading, columns, file_of_row
from upheld.store.spark.files import verbatim

if TYPE_CHECKING:
    import pyarrow

_SCHEMA = "subject string, predicate string, object string, _file string, _bad string, _record string, _row long"

#: Triples that leave a task at a time.
_BATCH = 1 << 14


@dataclass(frozen=True)
class Turtle:
    """Files of Turtle. One label in two files is two blank nodes."""

    spark: SparkSession
    files: tuple[str, ...]
    place: str
    names: tuple[str, ...] = NAMES
    named: bool = False
    types: None = None

    def read(self, names: Sequence[str], types: Sequence[str]) -> Reading:
        try:
            import pyoxigraph  # noqa: F401
        except ImportError:
            raise missing_package("pyoxigraph", "rdf") from None

        def parse(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            for batch in batches:
                for path, content in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist()):
                    yield from _batches(path, content)

        files = self.spark.read.format("binaryFile").load(list(map(verbatim, self.files)))
        frame = files.select(file_of_row(), "content").mapInArrow(parse, _SCHEMA)
        rows = frame.select(*columns([F.col(name) for name in names]), "_file", "_bad", "_record", "_row")

        def located() -> DataFrame:
            return rows

        return Reading(lambda: rows.drop("_row"), located, "Turtle", canonical=True)


def _batches(path: str, content: bytes) -> Iterator[pyarrow.RecordBatch]:
    """Yield the triples of a file, and at the end a bad record if the rest of the file cannot be read."""
    import pyarrow

    schema = pyarrow.schema([(name, pyarrow.string()) for name in (*NAMES, "_file", "_bad", "_record")])
    schema = schema.append(pyarrow.field("_row", pyarrow.int64()))
    rows: list[tuple[Any, ...]] = []
    for row in _rows(path, content):
        rows.append(row)
        if len(rows) == _BATCH:
            yield pyarrow.RecordBatch.from_arrays(list(map(pyarrow.array, zip(*rows), schema.types)), schema=schema)
            rows = []
    if rows:
        yield pyarrow.RecordBatch.from_arrays(list(map(pyarrow.array, zip(*rows), schema.types)), schema=schema)


def _rows(path: str, content: bytes) -> Iterator[tuple[Any, ...]]:
    import pyoxigraph
    from pyoxigraph import BlankNode, Literal

    labels: dict[str, str] = {}
    scope = f"f{zlib.crc32(path.rpartition('/')[2].encode()):08x}_"

    def text(term: Any) -> str:
        if isinstance(term, BlankNode):
            # Brackets make nodes that the parser labels at random; in the order of the file they are always the same.
            return labels.setdefault(term.value, f"_:{scope}b{len(labels)}")
        if isinstance(term, Literal):
            quoted = f'"{escape(term.value)}"'
            if term.language:
                return f"{quoted}@{term.language}"
            plain = term.datatype.value == "http://www.w3.org/2001/XMLSchema#string"
            return quoted if plain else f"{quoted}^^<{term.datatype.value}>"
        return str(term)

    try:
        packed = content.startswith(GZIP_MAGIC)
        data = Unpacked(BufferedReader(BytesIO(content)), Path(path)).whole() if packed else content
        for triple in pyoxigraph.parse(input=data, format=pyoxigraph.RdfFormat.TURTLE, without_named_graphs=True):
            yield (text(triple.subject), text(triple.predicate), text(triple.object), path, None, None, None)
    except SyntaxError as error:
        yield (None, None, None, path, "bad-record", error.msg, error.lineno)
    except FactsError as error:
        yield (None, None, None, path, error.problems[0].slug, error.problems[0].message, None)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        yield (None, None, None, path, "unreadable-file", f"the file cannot be unpacked: {error}", None)
