"""The description of a pipeline: program, sources, sinks and settings, from Python or from a TOML file. No Spark."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from upheld.base.errors import Problem, UsageError, described_type, nearest, quote
from upheld.base.memory import size_of
from upheld.facts.files.reading import unreadable
from upheld.language.ast import Program
from upheld.materialisation.programs import parse

#: The formats of files that sources are read from, by how their names end; `.gz` may follow.
EXTENSIONS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".facts": "tsv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".orc": "orc",
    ".nt": "ntriples",
    ".ttl": "turtle",
}
SOURCE_FORMATS = tuple(dict.fromkeys(EXTENSIONS.values()))
SINK_FORMATS = ("parquet", "csv", "view", "changes", "table")
MODES = ("auto", "driver", "distributed")
TRIGGERS = ("available-now", "continuous")
#: Names of a source of facts: the name of an update file, or the number of a micro-batch.
SOURCES_OF_UPDATES = ("file", "batch")

#: The settings that are paths.
_FOLDERS = ("state", "dictionary", "quarantine", "report")


def option(*types: type, choices: Sequence[str] = (), default: Any = None) -> Any:
    """Return a field that callers set: by a value of one of these types, or by a sequence of values of the last one."""
    return field(default=default, metadata={"types": types, "choices": tuple(choices)})


@dataclass(frozen=True)
class Source:
    """Where facts of a relation come from: files, a table that Spark knows, or a DataFrame; one of the three."""

    relation: str
    #: A file, a folder or a glob, or several.
    path: tuple[str, ...] = option(tuple, str, default=())
    table: str | None = option(str)
    frame: Any = field(default=None, metadata={"types": ()})
    #: By default what the name of the files says.
    format: str | None = option(str, choices=SOURCE_FORMATS)
    #: The columns of the source that make the relation, in its order: names, or numbers from one.
    columns: tuple[str | int, ...] = option(tuple, str, int, default=())
    #: Whether the first line of each CSV or TSV file names the columns. By default that of `.csv` does.
    header: bool | None = option(bool)
    #: The separator of CSV or TSV fields.
    delimiter: str | None = option(str)
    #: Whether one label in two RDF files is two blank nodes (`file`) or one (`shared`).
    blank_nodes: str = option(str, choices=("file", "shared"), default="file")
    #: Its name in messages.
    place: str = ""


@dataclass(frozen=True)
class Sink:
    """Where relations go."""

    format: str = option(str, choices=SINK_FORMATS, default="parquet")
    #: The folder that gets a folder for each relation.
    path: str | None = option(str)
    #: By default the outputs of the program, and if it names none all that rules derive.
    relations: tuple[str, ...] = option(tuple, str, default=())
    #: The prefix of the names of views.
    prefix: str = option(str, default="")
    #: The number of files for each relation; by default Spark's.
    files: int | None = option(int)
    #: The columns that a table is partitioned by. Each of its relations has them.
    partition_by: tuple[str, ...] = option(tuple, str, default=())
    place: str = ""


@dataclass(frozen=True)
class Stream:
    """Where updates come from: a folder that update files are put into, or a streaming DataFrame."""

    path: str | None = option(str)
    frame: Any = field(default=None, metadata={"types": ()})
    #: The relation of tables that have no column `relation`. By default the name of the file.
    relation: str | None = option(str)
    #: Whether to end when all there is has been applied, or to go on with what comes.
    trigger: str = option(str, choices=TRIGGERS, default="available-now")
    #: Seconds from one look for new updates to the next, where these go on. By default there is no pause.
    interval: int = option(int, default=0)
    #: The number of files that are taken at a time, and make one update. By default it is one.
    files: int | None = option(int)
    #: Whether each file is a table of all facts of its relation, instead of a file of updates.
    snapshot: bool = option(bool, default=False)
    #: The source of facts whose transaction names none: the name of their `file`, or the number of their `batch`. By
    #: default they have no source.
    source: str | None = option(str, choices=SOURCES_OF_UPDATES)
    place: str = ""


@dataclass(frozen=True)
class Settings:
    """How a pipeline runs."""

    #: The folder of versions of all facts, which streams of updates go on from. By default none are kept.
    state: str | None = option(str)
    #: The folder of the dictionary, which later runs extend. By default it is in that of the state, or forgotten.
    dictionary: str | None = option(str)
    #: The folder for rows that do not fit. By default they are an error.
    quarantine: str | None = option(str)
    #: The file that gets the report of the run, as JSON.
    report: str | None = option(str)
    #: Where rules are applied: `driver` is the memory engine in the driver, `distributed` is one Spark job whose tasks
    #: hold the facts and work in step, and `auto` chooses between the two.
    mode: str = option(str, choices=MODES, default="auto")
    #: Whether facts and updates that violate a constraint are refused or reported. By default as for `materialise`.
    on_violation: str | None = option(str, choices=("refuse", "report"))
    #: The memory that the driver may use for facts, such as `4g`. By default half of the machine's.
    driver_memory: str | None = option(str)
    #: The memory of Spark's Java, where a session is started.
    memory: str = option(str, default="2g")
    #: The cores of a session that is started. By default all.
    cores: int | None = option(int)


@dataclass(frozen=True)
class Job:
    """A pipeline as it was asked for, checked as far as that can be done without looking at data."""

    program: Program
    sources: tuple[Source, ...]
    sinks: tuple[Sink, ...]
    settings: Settings
    stream: Stream | None = None


def job_of(
    program: str | Path | Program,
    sources: Mapping[str, object],
    sinks: Sequence[Mapping[str, object]],
    settings: Mapping[str, object],
    stream: object = None,
) -> Job:
    """Return the job that arguments of a call describe; raise all that is wrong with them."""
    problems: list[Problem] = []
    result = []
    by_relation: object = sources
    if not isinstance(by_relation, Mapping):
        message, note = f"`sources` is {described_type(sources)}", "it is a dictionary: a source by relation"
        raise UsageError(Problem("bad-job", message, place="sources", note=note, hint='write `{"edge": "edges.csv"}`'))
    for number, sink in enumerate(sinks) if isinstance(sinks, list | tuple) else [(None, sinks)]:
        if number is None or not isinstance(sink, Mapping):
            place = "sinks" if number is None else f"sinks[{number}]"
            message, note = f"`{place}` is {described_type(sink)}", "`sinks` is a list of dictionaries"
            hint = 'write `[{"path": "out"}]`'
            raise UsageError(Problem("bad-job", message, place=place, note=note, hint=hint))
    for relation, given in sources.items():
        for number, one in enumerate(given if isinstance(given, list) else [given], start=1):
            place = f'sources["{relation}"]' + (f"[{number - 1}]" if isinstance(given, list) else "")
            if isinstance(one, str | os.PathLike):
                one = {"path": str(one)}
            elif not isinstance(one, Mapping):
                one = {"frame": one}
            result.append(_source({**one, "relation": relation}, place, Path(), problems))
    drains = [_sink(one, f"sinks[{number}]", Path(), problems) for number, one in enumerate(sinks)]
    chosen = _within(Path(), _checked(Settings, settings, "settings", problems), *_FOLDERS)
    if isinstance(stream, str | os.PathLike):
        stream = {"path": str(stream)}
    elif stream is not None and not isinstance(stream, Mapping):
        stream = {"frame": stream}
    updates = _stream(stream, "stream", Path(), chosen, problems) if stream is not None else None
    _check_settings(chosen, "settings", problems)
    if problems:
        raise UsageError(problems)
    return Job(parse(program), tuple(result), tuple(drains), Settings(**chosen), updates)


def read_job(path: Path, instead: Mapping[str, object] | None = None) -> Job:
    """Return the job that a TOML file describes, with some settings `instead` of its own.

    Its paths are relative to the folder of the file.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        if isinstance(error, OSError):
            raise UsageError(unreadable(path, error)) from None
        raise UsageError(Problem("bad-job", f"this is not TOML: {error}", place=str(path))) from None
    problems: list[Problem] = []
    known = ("program", "source", "sink", "stream", "run")
    for name in tables.keys() - set(known):
        problems.append(_unknown(name, f"a job has no table {quote(name)}", known, str(path)))
    program = _program(tables.get("program"), path, problems)
    sources = [
        _source(one, f"{path} [[source]] {number}", path.parent, problems, in_file=True)
        for number, one in enumerate(_tables(tables, "source", path, problems), start=1)
    ]
    sinks = [
        _sink(one, f"{path} [[sink]] {number}", path.parent, problems)
        for number, one in enumerate(_tables(tables, "sink", path, problems), start=1)
    ]
    settings = {**(_table(tables, "run", path, problems) or {}), **(instead or {})}
    chosen = _within(path.parent, _checked(Settings, settings, f"{path} [run]", problems), *_FOLDERS)
    stream = _table(tables, "stream", path, problems)
    updates = None
    if stream is not None:
        updates = _stream(stream, f"{path} [stream]", path.parent, chosen, problems, in_file=True)
    _check_settings(chosen, f"{path} [run]", problems)
    if problems:
        raise UsageError(problems)
    assert program is not None, "a job without a program and without a problem"
    return Job(parse(program), tuple(sources), tuple(sinks), Settings(**chosen), updates)


# -- the parts ---------------------------------------------------------------------------------------------------------


def _program(table: object, path: Path, problems: list[Problem]) -> str | Path | None:
    place = f"{path} [program]"
    match table:
        case {"file": str(file), **rest} if not rest:
            return path.parent / file
        case {"text": str(text), **rest} if not rest:
            return text + "\n"  # so that no text is taken for the name of a file
    note = "`[program]` has `file`, the path of a `.dl` or `.dlog` file, or `text`, and nothing else"
    problems.append(Problem("bad-job", "there is no program", place=place, note=note))
    return None


def _tables(tables: Mapping[str, object], name: str, path: Path, problems: list[Problem]) -> list[dict[str, Any]]:
    entries = tables.get(name, [])
    if isinstance(entries, list) and all(isinstance(one, dict) for one in entries):
        return entries
    problems.append(
        Problem("bad-job", f"`{name}` is not a list of tables", place=str(path), hint=f"write `[[{name}]]`")
    )
    return []


def _table(tables: Mapping[str, object], name: str, path: Path, problems: list[Problem]) -> dict[str, Any] | None:
    entry = tables.get(name)
    if entry is None or isinstance(entry, dict):
        return entry
    problems.append(Problem("bad-job", f"`{name}` is not a table", place=str(path), hint=f"write `[{name}]`"))
    return None


def _source(
    given: Mapping[str, object], place: str, folder: Path, problems: list[Problem], in_file: bool = False
) -> Source:
    known = dict(given)
    relation = known.pop("relation", None)
    values = _within(folder, _checked(Source, known, place, problems, in_file), "path")
    if not isinstance(relation, str):
        problems.append(Problem("bad-job", "the source names no relation", place=place, hint='add `relation = "edge"`'))
    if sum(known.get(name) is not None for name in ("path", "table", "frame")) != 1:
        note = "a source has one of `path`, `table` and, in Python, a DataFrame"
        problems.append(Problem("bad-job", f"nothing says where {quote(relation)} comes from", place=place, note=note))
    if values.get("delimiter") is not None and not re.fullmatch(r"[^\r\n\"]", values["delimiter"]):
        message = f"the delimiter {quote(values['delimiter'])} is not one character"
        problems.append(Problem("bad-job", message, place=place, note="it must not be a quote or a line break"))
    return Source(relation=str(relation), place=place, **values)


def _sink(given: Mapping[str, object], place: str, folder: Path, problems: list[Problem]) -> Sink:
    values = _within(folder, _checked(Sink, given, place, problems), "path")
    format = values.get("format", "parquet")
    if (format == "view") == ("path" in given):
        message = "a view has no path" if format == "view" else f"the sink of format {quote(format)} has no path"
        problems.append(Problem("bad-job", message, place=place, note="all sinks but views name the folder they fill"))
    if not re.fullmatch(r"\w*", values.get("prefix", ""), re.ASCII):
        message, note = (
            f"`prefix` is {quote(values['prefix'])}, which is not a prefix of view names",
            "it has letters, digits and `_`",
        )
        problems.append(Problem("bad-job", message, place=place, note=note))
    if values.get("files") is not None and values["files"] < 1:
        problems.append(Problem("bad-job", f"{quote(values['files'])} files for each relation", place=place))
    for name, formats in (("partition_by", ["table"]), ("files", ["parquet", "csv", "changes"])):
        if values.get(name) and format not in formats:
            message = f"the sink of format {quote(format)} has {quote(name)}"
            note = f"that is an option of {', '.join(map(quote, formats))}"
            problems.append(Problem("bad-job", message, place=place, note=note))
    return Sink(place=place, **values)


def _stream(
    given: Mapping[str, object],
    place: str,
    folder: Path,
    settings: Mapping[str, object],
    problems: list[Problem],
    in_file: bool = False,
) -> Stream:
    values = _within(folder, _checked(Stream, given, place, problems, in_file), "path")
    if (given.get("path") is None) == (given.get("frame") is None):
        note = "a stream has one of `path`, the folder of update files, and, in Python, a streaming DataFrame"
        problems.append(Problem("bad-job", "nothing says where updates come from", place=place, note=note))
    if given.get("frame") is not None and values.get("source") == "file":
        message, hint = "updates of a streaming DataFrame have no files", 'write `source = "batch"`'
        problems.append(Problem("bad-job", message, place=place, hint=hint))
    if values.get("files", 1) < 1 or values.get("interval", 0) < 0:
        message = "`files` must be at least 1, and `interval` must not be negative"
        problems.append(Problem("bad-job", message, place=place))
    if "state" not in settings:
        message, note = "a stream of updates has no state", "updates are applied to the facts of its last version"
        hint = 'name the folder of the state in `[run]`, as in `state = "state"`'
        problems.append(Problem("bad-job", message, place=place, note=note, hint=hint))
    return Stream(place=place, **values)


def _check_settings(settings: Mapping[str, Any], place: str, problems: list[Problem]) -> None:
    for name in ("memory", "driver_memory"):
        if name in settings and size_of(settings[name]) is None:
            message, note = (
                f"the option {quote(name)} is {quote(settings[name])}",
                "a size is a number with k, m, g or t",
            )
            problems.append(Problem("bad-job", message, place=place, note=note, hint="write it as in `4g`"))
    if settings.get("cores", 1) < 1:
        message = f"the option `cores` is {quote(settings['cores'])}"
        problems.append(Problem("bad-job", message, place=place, note="a session has one core at least"))


def _checked(
    cls: type[Source] | type[Sink] | type[Settings] | type[Stream],
    given: Mapping[str, object],
    place: str,
    problems: list[Problem],
    in_file: bool = False,
) -> dict[str, Any]:
    """Return the options that were given, those for several values as tuples, after refusing the wrong ones.

    A job file has no options whose values are objects of Python.
    """
    known = {
        f.name: f.metadata for f in fields(cls) if f.metadata.get("types") or ("types" in f.metadata and not in_file)
    }
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            public = [k for k in known if k != "frame"]
            problems.append(_unknown(name, f"there is no option {quote(name)}", public, place))
            continue
        types, choices = known[name]["types"], known[name].get("choices", ())
        several = types[:1] == (tuple,)
        parts = list(value) if several and isinstance(value, list | tuple) else [value]
        parts = [os.fspath(part) if isinstance(part, os.PathLike) else part for part in parts]
        wanted = types[1:] if several else types
        if wanted and not (parts and all(type(part) in wanted for part in parts)):
            kinds = " or ".join({str: "text", bool: "`true` or `false`", int: "a whole number"}[t] for t in wanted)
            message = f"the option {quote(name)} is {quote(value)}"
            note = f"it is {kinds}" + (", or a list of such" if several else "")
            problems.append(Problem("bad-job", message, place=place, note=note))
        elif any("\0" in part for part in parts if isinstance(part, str)):
            message = f"the option {quote(name)} is {quote(value)}, which has a NUL in it"
            problems.append(Problem("bad-job", message, place=place, hint="remove that character"))
        elif choices and value not in choices:
            message, note = f"unknown {name} {quote(value)}", f"it is one of {', '.join(map(quote, choices))}"
            problems.append(Problem("bad-job", message, place=place, note=note, hint=nearest(str(value), choices)))
        else:
            values[name] = tuple(parts) if several else parts[0]
    return values


def _unknown(name: str, message: str, known: Sequence[str], place: str) -> Problem:
    note = f"these are known: {', '.join(map(quote, known))}"
    return Problem("unknown-option", message, place=place, note=note, hint=nearest(name, known))


def _within(folder: Path, values: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return options with their relative paths taken from a folder: Spark's Java may work in another one."""

    def absolute(path: str) -> str:
        return path if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+:", path) else str(folder.absolute() / path)

    for name in names:
        if name in values:
            value = values[name]
            values[name] = tuple(map(absolute, value)) if isinstance(value, tuple) else absolute(value)
    return values
