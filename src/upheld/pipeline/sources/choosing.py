"""Sources: finding them, choosing their columns, and bringing their rows to the types of the relation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from upheld.base.errors import FactsError, Problem, UsageError, count, nearest, quote
from upheld.facts.ingest.tables import missing_columns, wrong_arity
from upheld.language.core import Predicate
from upheld.pipeline.job import EXTENSIONS, SOURCE_FORMATS, Source
from upheld.pipeline.sources.coded import coded_type, is_coded, made_of
from upheld.pipeline.sources.columnar import Columnar, Given
from upheld.pipeline.sources.delimited import Delimited, JsonLines
from upheld.pipeline.sources.ntriples import NTriples
from upheld.pipeline.sources.rows import Table
from upheld.pipeline.sources.turtle import Turtle
from upheld.store.spark.errors import explained
from upheld.store.spark.files import FileSystem, shown

#: Our types by the names of Spark's types; for types of codes see `coded`, and all others are refused.
TYPES = {
    "tinyint": "number",
    "smallint": "number",
    "int": "number",
    "bigint": "number",
    "decimal(20,0)": "unsigned",
    "float": "float",
    "double": "float",
    "string": "symbol",
}

#: The columns that a relation of each type can be made of.
_FIT = {
    "number": {"number"},
    "unsigned": {"number", "unsigned"},
    "float": {"number", "float"},
    "symbol": {"symbol"},
    "term": {"symbol"},
}


def find(spark: SparkSession, source: Source) -> Table:
    """Return the table that a source names. Files are listed, and the first one is looked at."""
    if source.frame is not None:
        frame: Any = source.frame
        if not isinstance(frame, DataFrame):
            kind = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__name__}".removeprefix("builtins.")
            message = f"the facts of {quote(source.relation)} are a {quote(kind)}"
            note = "a source is the path of files, a table by name, or a Spark DataFrame"
            hint = "make a DataFrame of it with `spark.createDataFrame`"
            raise FactsError(Problem("unsupported-facts", message, place=source.place, note=note, hint=hint))
        return _distinct(Given(frame, source.place))
    if source.table is not None:
        with explained(f"table {quote(source.table)}"):
            return Given(spark.table(source.table), f"table {quote(source.table)}")
    files = [file for path in source.path for file in FileSystem(spark).files(path)]
    format = source.format or _format_of([file.path for file in files], source.place)
    paths = tuple(file.path for file in files)
    place = shown(paths[0])
    with explained(place):
        match format:
            case "csv" | "tsv":
                delimiter = source.delimiter or ("," if format == "csv" else "\t")
                header = format == "csv" if source.header is None else source.header
                filled = [file.path for file in files if file.size] or paths[:1]
                return Delimited.found(spark, filled, place, delimiter, header)
            case "json":
                return JsonLines(spark, paths, place)
            case "parquet" | "orc":
                return Columnar.found(spark, paths, place, format)
            case "ntriples":
                return NTriples(spark, paths, place, source.blank_nodes == "file")
            case "turtle":
                if source.blank_nodes == "shared":
                    note = "the brackets of Turtle make blank nodes that have no labels to share"
                    raise UsageError(Problem("bad-job", "blank nodes of Turtle are not shared", place=place, note=note))
                return Turtle(spark, paths, place)
    raise AssertionError("a format that the job should have refused")


def _distinct(given: Given) -> Given:
    """Return a DataFrame with distinct column names."""
    folded = [name.lower() for name in given.names]
    for name in given.names:
        if folded.count(name.lower()) > 1:
            message, hint = f"two columns are called {quote(name)}", "rename one of them, as with `toDF`"
            raise FactsError(Problem("missing-header", message, place=given.place, hint=hint))
    return given


def _format_of(paths: Sequence[str], place: str) -> str:
    """Return the format of all files, by their extensions."""
    found: dict[str, str] = {}
    for path in paths:
        name = path.rpartition("/")[2].removesuffix(".gz")
        found.setdefault(EXTENSIONS.get("." + name.rpartition(".")[2].lower(), "") if "." in name else "", path)
    if len(found) == 1 and "" not in found:
        return next(iter(found))
    if "" in found:
        message = f"the name of {quote(shown(found['']).rpartition('/')[2])} has no known extension"
    else:
        message = f"there are files of several formats: {', '.join(map(quote, sorted(found)))}"
    hint = f"set `format` to one of {', '.join(map(quote, SOURCE_FORMATS))}, or choose files with a glob"
    raise UsageError(Problem("unknown-format", message, place=place, hint=hint))


# -- columns -----------------------------------------------------------------------------------------------------------


def known_types(table: Table, source: Source) -> tuple[str, ...] | None:
    """Return the types of an undeclared relation, taken from a source; None if it has none."""
    names = table.names
    if names is None:
        return None
    if table.types is None:
        return ("symbol",) * len(source.columns or names)
    types = dict(zip(names, table.types))
    chosen = _named(source.columns, names, table.place) if source.columns else names
    return tuple(TYPES.get(types[name]) or coded_type(types[name]) or "symbol" for name in chosen)


def known_names(table: Table, source: Source) -> tuple[str, ...] | None:
    """Return the names that the columns of a relation nobody has declared take from a source; None if it has none."""
    if table.names is None or not table.named:
        return None
    return _named(source.columns, table.names, table.place) if source.columns else table.names


def choose(table: Table, source: Source, predicate: Predicate) -> tuple[str, ...]:
    """Return the columns of a table that make a relation, in its order; raise those that are missing or do not fit.

    They are the ones that the source lists, else those with the names of the relation's columns. Only a table whose
    columns have no names goes by position.
    """
    wanted, names = predicate.columns, table.names
    if "record" in predicate.types:
        message = f"{quote(predicate.name)} has a column of records, and these come from Spark"
        note = "facts from Spark are numbers and texts"
        hint = "read the fields as columns of another relation, and construct the record in a rule"
        raise FactsError(Problem("unsupported-facts", message, place=source.place, note=note, hint=hint))
    if source.columns and len(source.columns) != predicate.arity:
        message = f"{count(len(source.columns), 'column')} where {quote(predicate.name)} has {predicate.arity}"
        raise FactsError(Problem("wrong-arity", message, place=source.place))
    if names is None:
        chosen = tuple(map(str, source.columns)) or wanted
    elif source.columns:
        chosen = _named(source.columns, names, table.place)
    else:
        folded = {name.lower(): name for name in names}  # Spark ignores case too
        missing = [name for name in wanted if name.lower() not in folded]
        if not missing:
            chosen = tuple(folded[name.lower()] for name in wanted)
        elif table.named:
            hint = "name the columns of the source with `columns = [...]`, in the order of the relation"
            raise FactsError(missing_columns(predicate.name, missing, names, table.place, wanted, hint))
        elif len(names) != predicate.arity:
            raise FactsError(wrong_arity(predicate.name, count(len(names), "column"), predicate.arity, table.place))
        else:
            chosen = names
    if table.types is not None and names is not None:
        types = dict(zip(names, table.types))
        problems = [
            _unfit(name, types[name], type, predicate, table.place)
            for name, type in zip(chosen, predicate.types)
            if not _fits(types[name], type)
        ]
        if problems:
            raise FactsError(problems)
    return chosen


def _fits(theirs: str, type: str) -> bool:
    """Return whether values of a type can be made of one of Spark's types."""
    if is_coded(type):
        return theirs.partition("(")[0] in made_of(type)
    return TYPES.get(theirs) in _FIT[type]


def _named(columns: Sequence[str | int], names: tuple[str, ...], place: str) -> tuple[str, ...]:
    problems = []
    chosen = []
    for column in columns:
        if isinstance(column, int) and 1 <= column <= len(names):
            chosen.append(names[column - 1])
        elif column in names:
            chosen.append(str(column))
        else:
            problems.append(_missing(str(column), names, place))
    if problems:
        raise FactsError(problems)
    return tuple(chosen)


def _missing(name: str, names: tuple[str, ...], place: str) -> Problem:
    note = f"its columns are {', '.join(map(quote, names[:20])) or 'none'}"
    message, hint = f"there is no column {quote(name)}", nearest(name, names)
    return Problem("missing-column", message, place=place, note=note, hint=hint)


def _unfit(name: str, found: str, type: str, predicate: Predicate, place: str) -> Problem:
    accepted = made_of(type) if is_coded(type) else [theirs for theirs, ours in TYPES.items() if ours in _FIT[type]]
    return Problem(
        "ill-typed-column",
        f"column {quote(name)} is of Spark's type {quote(found)}, and {quote(predicate.name)} has a `{type}` there",
        place=place,
        note=f"a `{type}` is made of {', '.join(map(quote, accepted))}",
        hint="cast the column, or declare another type",
    )
