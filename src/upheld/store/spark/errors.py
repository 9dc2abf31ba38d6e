"""Errors of Spark about files and tables that it cannot read, translated to ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from upheld.base.errors import FactsError, Problem
from upheld.store.spark.files import shown_uri


@contextmanager
def explained(place: str) -> Iterator[None]:
    """Raise a `FactsError` for what Spark cannot read; `place` is where, if Spark does not say."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        problem = _problem(str(error), place)
        if problem is None:
            raise
        raise FactsError(problem) from None


def _problem(said: str, place: str) -> Problem | None:
    """Return the problem that Spark speaks of, if it is one of the data."""
    causes = re.findall(r"Caused by: [\w.$]+: (.*)", said)
    reason = shown_uri(causes[-1].strip()) if causes else ""
    match = re.search(r"\[FAILED_READ_FILE\.(\w+)\] Encountered error while reading file (\S+?)\.?(?:\s|$)", said)
    if match:
        file = shown_uri(match[2])
        header = re.search(r"CSV header does not conform to the schema\.\s+Header: (.*)\s+Schema: (.*)", said)
        if header:
            message = f"the header is `{header[1].strip()}` where that of the first file is `{header[2].strip()}`"
            return Problem("mixed-schemas", message, place=file, note=ONE_SCHEMA, hint=TWO_SOURCES)
        if match[1] == "PARQUET_COLUMN_DATA_TYPE_MISMATCH":
            message = f"a column has another type than in the first file: {reason}"
            return Problem("mixed-schemas", message, place=file, note=ONE_SCHEMA, hint=TWO_SOURCES)
        if "Permission denied" in said:
            return Problem("no-permission", "no permission to read the file", place=file, hint="change the permissions")
        hint = "restore or download the file again, or leave it out"
        return Problem("unreadable-file", f"the file cannot be read: {reason}", place=file, hint=hint)
    if "java.net.URISyntaxException" in said:
        message, hint = "Spark cannot read a path with these characters", "rename the file or its folder"
        return Problem("unreadable-file", message, place=place, hint=hint)
    if "[UNABLE_TO_INFER_SCHEMA]" in said or "org.apache.orc." in said:
        hint = "restore or download the file again, or leave it out"
        return Problem("unreadable-file", "the file cannot be read: it is damaged, or empty", place=place, hint=hint)
    if "[TABLE_OR_VIEW_NOT_FOUND]" in said or "[PARSE_SYNTAX_ERROR]" in said:
        message, note = "Spark knows no table or view of this name", "the session's catalogue has the tables"
        return Problem("unknown-table", message, place=place, note=note, hint="correct the name, or make a view first")
    return None


ONE_SCHEMA = "the files of a source have the same columns, of the same types"
TWO_SOURCES = "make a source of its own for such files; several sources may fill one relation"
