"""A run of a pipeline, stage by stage: read, encode, materialise, write."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from operator import add

import pyarrow
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from upheld.base.errors import Problem, UpheldError, UsageError, count, nearest, quote, warn
from upheld.base.limits import Limits
from upheld.compiler.compile import compile_program
from upheld.compiler.lints.programs import lint, some, without_facts
from upheld.compiler.strata import stratify
from upheld.engines.spark.session import ARROW, configured
from upheld.engines.spark.sparkengine import SparkEngine
from upheld.facts.columns import Columns, Row
from upheld.facts.stored import TEXTS, StoredFacts, StoredFile
from upheld.language.core import Core
from upheld.language.terms.vocabulary import COLUMNS
from upheld.materialisation.build import materialise_core
from upheld.materialisation.lifecycle import draft_of, tasks_see, texts_in_tasks
from upheld.materialisation.materialisation import Materialisation
from upheld.materialisation.persistence import saved_rows
from upheld.pipeline import table_files
from upheld.pipeline.dictionary import Dictionary, identify, laid_out, texts_of
from upheld.pipeline.job import Job, Sink, Source
from upheld.pipeline.modes import distributed, driver, shared_folder
from upheld.pipeline.modes.choosing import Sizes, bytes_of, fits
from upheld.pipeline.modes.choosing import choose as choose_mode
from upheld.pipeline.modes.driver import Derived, Facts, Frames
from upheld.pipeline.modes.shared_folder import SharedFolder, local_path
from upheld.pipeline.progress import StageProgress
from upheld.pipeline.report import Choice, PipelineRun, Recorder, StageWatcher
from upheld.pipeline.sinks import Writer, view_name
from upheld.pipeline.sources.arrow import WANTED, Arrived, Storing
from upheld.pipeline.sources.arrow import load as load_plain
from upheld.pipeline.sources.choosing import choose, find, known_names, known_types
from upheld.pipeline.sources.rows import Table
from upheld.pipeline.sources.validation import Load, check, quarantined
from upheld.store.kept.manifest import Shape
from upheld.store.kept.table import KeptTable
from upheld.store.programs import digest
from upheld.store.spark.errors import explained
from upheld.store.spark.files import FileSystem, child
from upheld.store.spark.versioned_files import AnyFiles
from upheld.store.tables import plain_table
from upheld.store.versions import Store

#: Facts are held for seconds: packing them costs more than it saves (2 us a triple).
_HOLDING = {"spark.sql.inMemoryColumnarStorage.compressed": "false"}


@dataclass(frozen=True)
class Finished:
    """The result of a run: all facts, the compiled program, and the public result."""

    materialisation: Materialisation
    core: Core
    result: PipelineRun


def run(
    job: Job, limits: Limits, spark: SparkSession, watcher: StageWatcher | None, progress: StageProgress | None = None
) -> Finished:
    """Run a job on a session. `progress` reports how far rules have come, now and in later updates."""
    recorder = Recorder(spark, watcher, job.program)
    if progress is None and watcher is not None:
        progress = StageProgress(watcher, spark, job.program)
    report = recorder.report
    with ExitStack() as kept, configured(spark, {**ARROW, **_HOLDING}):
        with recorder.stage("find") as stage:
            tables = _find(spark, job)
            core = _compiled(job, tables)
            loads = _loads(core, tables)
            store = open_state(spark, job)
            dictionary = Dictionary.open(spark, _dictionary_of(job))
            stage.result = count(len(loads), "source")
        writer = kept.enter_context(writing(spark))
        with recorder.stage("read") as stage, explained(", ".join(load.table.place for load in loads[:1])):
            folder = shared_folder.shared_folder(spark, job) if job.settings.mode == "distributed" else None
            plain = _plain(spark, job, loads, folder) if dictionary.folder is None else {}
            facts = _read(kept, core, job, loads, plain)
            stage.result = count(sum(load.read for load in loads), "row")
            _quarantine(job, loads, writer)
        report.sources = [load.told() for load in loads]
        with recorder.stage("encode") as stage:
            texts = _loaded(job, core, facts, spark) if dictionary.folder is None else None
            if texts is None:
                texts = _encode(kept, facts, dictionary, writer)
            else:
                dictionary.size += texts.new
            report.dictionary = {"texts": dictionary.size, "new": texts.new}
            stage.result = f"{count(texts.count, 'text')}, {texts.new:,} of them new"
            if texts.by_tasks:
                stage.result = "tasks give texts their codes"
        with recorder.stage("materialise") as stage:
            if progress is not None:
                progress.stage = stage
            m, derived = _materialise(job, core, facts, texts, limits, recorder, progress, spark, folder)
            if job.stream is None:
                kept.callback(m.close)
            frames, sizes = derived.frames, derived.sizes
            report.relations = {name: {"explicit": of[0], "facts": of[1]} for name, of in sizes.items()}
            facts_now = sum(size for _, size in sizes.values())
            stage.result = f"{count(facts_now, 'fact')}, in {count(derived.rounds, 'round')}"
        with recorder.stage("write") as stage:
            for sink in job.sinks:
                names = sink.relations or by_default(core)
                if sink.format == "table":
                    for table in tables_of(spark, sink, core).values():
                        _write_table(writer, table, m, derived, digest(core, "off"))
                else:
                    writer.write(sink, Frames(names, frames.__getitem__), derived.write)
                written = {name: sizes[name][1] for name in names}
                report.sinks.append({"format": sink.format, "path": sink.path, "relations": written})
            if store is None:
                writer.commit()
            else:
                draft = draft_of(m, store)
                notes = {**outputs_noted(store, writer.feeds, writer.tables), "mode": recorder.report.mode}
                writer.commit(draft, notes)
                report.state = {"folder": store.folder, "version": store.version}
            stage.result = count(len(job.sinks), "sink") + (f", version {store.version}" if store else "")
    if job.settings.report is not None:
        FileSystem(spark).write_text(job.settings.report, json.dumps(report.to_dict(), indent=2) + "\n")
    return Finished(m, core, PipelineRun(frames, report, derived))


def _write_table(writer: Writer, table: KeptTable, m: Materialisation, derived: Derived, program: str) -> None:
    """Bring a table up to date: by tasks, if they have written its relation to files and see the folder."""
    name = table.shape.relation
    count, folder = derived.sizes[name][1], local_path(table.folder)
    if derived.write is not None and folder is not None and count >= saved_rows.MANY:
        os.makedirs(folder, exist_ok=True)
        if tasks_see(m, folder):
            return writer.table_draft(table, table_files.caught_up(table, derived.frames[name], count, folder), program)
    writer.table(table, plain_table(m[name]), program)


def open_state(spark: SparkSession, job: Job) -> Store | None:
    """Return the state of a job, if it keeps one, with all that belongs to its last version in place."""
    if job.settings.state is None:
        return None
    store = Store.open(job.settings.state, AnyFiles(spark))
    places = [sink.path for sink in job.sinks if sink.path is not None]
    places += [folder for folder in (_dictionary_of(job), job.settings.quarantine) if folder is not None]
    store.finish(places)
    return store


def feeds_of(store: Store) -> dict[str, int]:
    """Return, by folder, the versions of feeds that match the last version of a state."""
    return dict(store.manifest.notes.get("feeds", {})) if store.manifest else {}


def outputs_noted(store: Store, feeds: Mapping[str, int], tables: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Return the notes of a version about the feeds and tables that belong to it, with their new versions."""
    known = store.manifest.notes.get("tables", {}) if store.manifest else {}
    return {"feeds": {**feeds_of(store), **feeds}, "tables": {**known, **tables}}


def tables_of(spark: SparkSession, sink: Sink, core: Core) -> dict[str, KeptTable]:
    """Return the tables of a sink by relation; raise if a folder of them has something else."""
    assert sink.path is not None, "a table without a path"
    names = sink.relations or by_default(core)
    shapes = {name: Shape.of(core.predicates[name], sink.partition_by) for name in names}
    return {name: KeptTable.open(child(sink.path, name), AnyFiles(spark), shape) for name, shape in shapes.items()}


def _dictionary_of(job: Job) -> str | None:
    settings = job.settings
    return settings.dictionary or (f"{settings.state}/dictionary" if settings.state else None)


@contextmanager
def writing(spark: SparkSession) -> Iterator[Writer]:
    writer = Writer(spark)
    try:
        yield writer
    finally:
        writer.discard()


# -- finding -----------------------------------------------------------------------------------------------------------


def _find(spark: SparkSession, job: Job) -> list[tuple[Source, Table]]:
    """Return the table of each source; raise all that cannot be found."""
    result: list[tuple[Source, Table]] = []
    problems: list[Problem] = []
    failed: type[UpheldError] = UpheldError
    for source in job.sources:
        try:
            result.append((source, find(spark, source)))
        except UpheldError as error:
            failed = type(error)
            problems.extend(error.problems)
    if problems:
        raise failed(problems)
    return result


def _compiled(job: Job, tables: list[tuple[Source, Table]]) -> Core:
    """Return the program in core form; relations that it does not declare have types and names of their sources."""
    declared = {declaration.name for declaration in job.program.declarations}
    given = {source.relation for source, _ in tables}
    types: dict[str, tuple[str, ...]] = {}
    if job.program.dialect == "dlog":
        types = {name: ("term",) * len(columns) for name, columns in COLUMNS.items() if name in given}
        declared |= types.keys()
    names: dict[str, tuple[str, ...]] = {}
    for source, table in tables:
        if source.relation in declared:
            continue
        if known := known_types(table, source):
            types.setdefault(source.relation, known)
        if called := known_names(table, source):
            names.setdefault(source.relation, called)
    core = compile_program(job.program, types).core.with_columns(names)
    problems = list(_unknown_relations(job, core))
    for source, _ in tables:
        if source.relation in core.predicates and not core.predicates[source.relation].arity:
            message = f"{quote(source.relation)} has no columns to be read from a source"
            hint = "state it in the program, or give it a column"
            problems.append(Problem("bad-job", message, place=source.place, hint=hint))
    for directive in core.directives:
        if directive.kind == "input" and directive.relation not in given:
            message = f"the relation {quote(directive.relation)} is an input and has no source"
            hint = "add a source for it, or remove its `.input`"
            problems.append(Problem("missing-source", message, span=directive.span, hint=hint))
    if problems:
        raise UsageError(problems)
    warn(some([*lint(job.program), *without_facts(job.program, given, "add a source for it, or declare it")]))
    return core


def _unknown_relations(job: Job, core: Core) -> Iterator[Problem]:
    """Yield what a job calls relations and the program does not know, and relations that go to one place."""
    known = [p.name for p in core.predicates.values() if not p.hidden]
    used = [(source.relation, source.place) for source in job.sources]
    used += [(name, sink.place) for sink in job.sinks for name in sink.relations]
    if job.stream is not None and job.stream.relation is not None:
        used.append((job.stream.relation, job.stream.place))
    for name, place in used:
        if name not in known:
            note = f"the relations are {', '.join(map(quote, known[:20])) or 'none'}"
            message, hint = f"unknown relation {quote(name)}", nearest(name, known)
            yield Problem("unknown-relation", message, place=place, note=note, hint=hint)
    filled: dict[str, str] = {}
    for sink in job.sinks:
        names = sink.relations or by_default(core)
        if not names:
            message, hint = "there is nothing for the sink to get", "name `relations`, or add an `.output`"
            yield Problem("bad-job", message, place=sink.place, hint=hint)
        for name in names:
            yield from _unknown_partitions(sink, core, name)
            place = f"view {view_name(sink, name)}" if sink.path is None else child(sink.path, name)
            if place in filled:
                message = f"{quote(name)} would take the place of what {filled[place]} writes to {quote(place)}"
                yield Problem("bad-job", message, place=sink.place, hint="give one of them another path or prefix")
            filled[place] = f"{sink.place} for {quote(name)}"


def _unknown_partitions(sink: Sink, core: Core, relation: str) -> Iterator[Problem]:
    """Yield the columns that a table is to be partitioned by, and that its relation does not have."""
    columns = core.predicates[relation].columns if relation in core.predicates else sink.partition_by
    for name in sink.partition_by:
        if name not in columns:
            message = f"{quote(relation)} has no column {quote(name)} to be partitioned by"
            note = f"its columns are {', '.join(map(quote, columns)) or 'none'}"
            yield Problem("unknown-column", message, place=sink.place, note=note, hint=nearest(name, columns))


def check_relations(job: Job, core: Core) -> None:
    """Raise what a job calls relations and the program does not know."""
    if problems := list(_unknown_relations(job, core)):
        raise UsageError(problems)


def by_default(core: Core) -> list[str]:
    """Return the outputs of a program; if it names none, the relations that its rules derive."""
    named = dict.fromkeys(d.relation for d in core.directives if d.kind == "output")
    derived = dict.fromkeys(rule.head.predicate for rule in core.rules)
    return list(named) or [name for name in derived if not core.predicates[name].hidden]


def outputs_of(job: Job, core: Core) -> list[str]:
    """Return the relations that somebody will look at."""
    return list(dict.fromkeys([*by_default(core), *(name for sink in job.sinks for name in sink.relations)]))


def _loads(core: Core, tables: list[tuple[Source, Table]]) -> list[Load]:
    """Return what is to be read of each source; raise all columns that are missing or do not fit."""
    loads: list[Load] = []
    problems: list[Problem] = []
    failed: type[UpheldError] = UpheldError
    for source, table in tables:
        predicate = core.predicates[source.relation]
        try:
            names = choose(table, source, predicate)
            loads.append(Load(source, table, table.read(names, predicate.types), predicate, names))
        except UpheldError as error:
            failed = type(error)
            problems.extend(error.problems)
    if problems:
        raise failed(problems)
    return loads


# -- reading and encoding ----------------------------------------------------------------------------------------------


def _plain(
    spark: SparkSession, job: Job, loads: list[Load], folder: SharedFolder | None
) -> dict[str, tuple[Columns | StoredFacts, int]]:
    """Return the facts of relations that come by Arrow, and the bytes of their texts.

    Their files are plain, and there is room for them. With a folder for files they go there, and not to the driver.
    """
    sources: dict[str, list[Load]] = {}
    for load in loads:
        sources.setdefault(load.predicate.name, []).append(load)
    sources = {name: of for name, of in sources.items() if all(load.reading.plain for load in of)}
    chosen = [load for of in sources.values() for load in of]
    readers = [load.reading.plain for load in chosen if load.reading.plain is not None]
    storing = Storing(folder.path, tuple(load.predicate.types for load in chosen)) if folder else None
    came = dict(zip(map(id, chosen), load_plain(spark, readers, bytes_of(job.settings.driver_memory), storing)))
    result: dict[str, tuple[Columns | StoredFacts, int]] = {}
    for name, of in sources.items():
        parts = [arrived for load in of if (arrived := came[id(load)]) is not None]
        if len(parts) == len(of) and folder is not None:
            files = [file for load, part in zip(of, parts) for file in _files(spark, load, part, folder)]
            result[name] = StoredFacts(of[0].predicate.types, files, folder), sum(file.bytes for file in files)
        elif len(parts) == len(of):
            tables = [table for load, part in zip(of, parts) for table in _tables(spark, load, part)]
            types = of[0].predicate.types
            texts = sum(column.nbytes for t in tables for column, type in zip(t.columns, types) if type in TEXTS)
            result[name] = driver.columns_of(types, pyarrow.concat_tables(tables)), texts
    return result


def _tables(spark: SparkSession, load: Load, arrived: Arrived) -> Iterator[pyarrow.Table]:
    """Yield the rows of a source that came by Arrow, after Spark has read the lines that were left for it."""
    types = load.predicate.types
    yield pyarrow.schema([(f"c{i}", WANTED[type]) for i, type in enumerate(types)]).empty_table()
    load.plain = sum(table.num_rows for table in arrived.rows)
    if (rest := _rest(spark, load, arrived)) is not None:
        yield laid_out(rest, types).toArrow()
    yield from arrived.rows


def _files(spark: SparkSession, load: Load, arrived: Arrived, folder: SharedFolder) -> Iterator[StoredFile]:
    """Yield the files with the rows of a source, after Spark has read the lines that were left for it."""
    load.plain = sum(file.rows for file in arrived.files)
    if (rest := _rest(spark, load, arrived)) is not None:
        yield from distributed.store_rows(rest, load.predicate.types, folder)
    yield from arrived.files


def _rest(spark: SparkSession, load: Load, arrived: Arrived) -> DataFrame | None:
    """Return the rows of the lines of a source that were left for Spark, if there are some."""
    load.has_rest = bool(arrived.rest)
    return load.rows(spark.createDataFrame(pyarrow.concat_tables(arrived.rest))) if arrived.rest else None


def _read(
    kept: ExitStack, core: Core, job: Job, loads: list[Load], plain: Mapping[str, tuple[Columns | StoredFacts, int]]
) -> list[Facts]:
    """Return the facts of each relation, read once; raise bad rows, unless these are to be quarantined."""
    sources: dict[str, list[Load]] = {}
    for load in loads:
        sources.setdefault(load.predicate.name, []).append(load)

    def held(name: str) -> DataFrame:
        # Parsing costs more than holding: texts of N-Triples took 5 us a row to parse and 2 to hold and take back.
        rows = reduce(DataFrame.unionAll, (load.rows() for load in sources[name])).persist(StorageLevel.MEMORY_AND_DISK)
        kept.callback(rows.unpersist)
        return rows

    by_spark = {name: held(name) for name in sources if name not in plain}
    counts = [_counted(name, rows, core.predicates[name].types) for name, rows in by_spark.items()]
    found = {row["name"]: row for row in reduce(DataFrame.unionAll, counts).collect()} if counts else {}
    if job.settings.quarantine is None:
        check(loads)
    facts = []
    for name in sources:
        predicate = core.predicates[name]
        if name in plain:
            rows, size = plain[name]
            loaded, stored = (None, rows) if isinstance(rows, StoredFacts) else (rows, None)
            facts.append(Facts(predicate, partial(held, name), len(rows), size, loaded, stored))
        else:
            row = found[name]
            facts.append(Facts(predicate, partial(by_spark.__getitem__, name), row["n"], row["bytes"] or 0))
    return facts


def _counted(name: str, rows: DataFrame, types: Sequence[str]) -> DataFrame:
    """Return the number of rows, and the bytes of all texts in them."""
    bytes = [F.octet_length(f"c{i}") for i, type in enumerate(types) if type in TEXTS]
    together = F.sum(reduce(add, bytes)) if bytes else F.lit(0).cast("bigint")
    return rows.agg(F.lit(name).alias("name"), F.count(F.lit(1)).alias("n"), together.alias("bytes"))


def _quarantine(job: Job, loads: list[Load], writer: Writer) -> None:
    folder = job.settings.quarantine
    if folder is None:
        return
    rows = quarantined(loads)
    if rows is None and FileSystem(writer.spark).exists(folder):
        rows = writer.spark.createDataFrame([], "text string")  # else the rows of another run would stay
    if rows is not None:
        writer.folder(folder.rstrip("/"), rows, "json")


@dataclass(frozen=True)
class TextsOfRun:
    """The texts of a run: distinct `id` and `text`, or None if there are none, and what they amount to."""

    pairs: DataFrame | None
    count: int = 0
    characters: int = 0
    new: int = 0
    #: The facts in the driver, if there is room for all of their texts.
    loaded: list[tuple[str, Columns]] | None = None
    #: Whether tasks give texts their codes, which are counted then; `count` and `characters` are bounds.
    by_tasks: bool = False


def _mode(job: Job, core: Core, sizes: Sizes, spark: SparkSession) -> tuple[str, Choice]:
    """Return the mode of a run, and why."""
    is_recursive = any(stratum.recursive for stratum in stratify(core))
    return choose_mode(job.settings, sizes, spark.sparkContext.defaultParallelism, is_recursive)


def _loaded(job: Job, core: Core, facts: list[Facts], spark: SparkSession) -> TextsOfRun | None:
    """Return the texts of facts that are in the driver, or come there as they are if there is room and need for them.

    None if there are others.
    """
    values = sum(one.count * sum(type in TEXTS for type in one.predicate.types) for one in facts)
    most = _sizes(facts, values, sum(one.bytes for one in facts))
    if fits(job.settings, most) and _mode(job, core, most, spark)[0] == "driver":
        loaded = driver.load(facts, None)
        count, characters = driver.distinct_texts(loaded)
        return TextsOfRun(None, count, characters, count, loaded)
    with_texts = list(filter(_has_texts, facts))
    if job.settings.mode == "distributed" and any(one.stored is not None for one in with_texts):
        files = [file for one in with_texts if one.stored is not None for file in one.stored.files]
        others = sum(one.count for one in with_texts if one.stored is None)
        return TextsOfRun(None, sum(file.texts for file in files) + others, most.characters, by_tasks=True)
    there = [(one.predicate.name, one.loaded) for one in with_texts if one.loaded is not None]
    if len(there) < len(with_texts):
        return None
    count, characters = driver.distinct_texts(there)
    return TextsOfRun(None, count, characters, count)


def _has_texts(facts: Facts) -> bool:
    return any(type in TEXTS for type in facts.predicate.types)


def _sizes(facts: list[Facts], texts: int, characters: int) -> Sizes:
    values = sum(one.count * one.predicate.arity for one in facts)
    return Sizes(sum(one.count for one in facts), values, texts, characters)


def _encode(kept: ExitStack, facts: list[Facts], dictionary: Dictionary, writer: Writer) -> TextsOfRun:
    """Have the texts of facts added to the dictionary when the run ends well."""
    with_texts = list(filter(_has_texts, facts))
    if not with_texts:
        return TextsOfRun(None)
    texts = reduce(DataFrame.unionAll, (texts_of(one.rows, one.predicate.types) for one in with_texts))
    pairs = texts.distinct().select(identify(F.col("text")).alias("id"), "text").persist(StorageLevel.MEMORY_AND_DISK)
    kept.callback(pairs.unpersist)
    sizes = pairs.agg(F.count(F.lit(1)).alias("count"), F.sum(F.length("text")).alias("characters")).first()
    assert sizes is not None, "an aggregate without a row"
    missing = dictionary.missing(pairs)
    new = sizes["count"] if missing is pairs else missing.count()
    dictionary.add(missing, new, writer)
    return TextsOfRun(pairs, sizes["count"], sizes["characters"] or 0, new)


# -- materialising -----------------------------------------------------------------------------------------------------


def _materialise(
    job: Job,
    core: Core,
    facts: list[Facts],
    texts: TextsOfRun,
    limits: Limits,
    recorder: Recorder,
    progress: StageProgress | None,
    spark: SparkSession,
    folder: SharedFolder | None,
) -> tuple[Materialisation, Derived]:
    mode, choice = _mode(job, core, _sizes(facts, texts.count, texts.characters), spark)
    recorder.report.choices.append(choice)
    recorder.report.mode = mode
    outputs = outputs_of(job, core)
    rows: Iterable[tuple[str, Iterable[Row]]]
    if mode == "distributed":
        folder = folder or shared_folder.shared_folder(spark, job)
        recorder.report.choices.append(shared_folder.choice_of(folder))
        if progress is not None:
            progress.is_shown_by_engine = True
        rows = distributed.load(facts, folder)
    else:
        rows = texts.loaded if texts.loaded is not None else driver.load(facts, texts.pairs)
        limits = driver.bounded(job.settings, limits)
    m = materialise_core(
        core,
        rows,
        engine=SparkEngine(spark) if mode == "distributed" else "memory",
        algorithm=algorithm_for(job),
        limits=limits,
        progress=progress,
        on_violation=job.settings.on_violation,
    )
    recorder.report.violations = {name: len(relation) for name, relation in m.violations().items()}
    numbers = {name: (len(m.explicit(name)), len(m[name])) for name in m.relations}
    if mode == "distributed" and folder is not None:
        if texts.by_tasks:
            known = texts_in_tasks(m)
            recorder.report.dictionary = {"texts": known, "new": known}
        return m, _of_tasks(job, core, m, outputs, numbers, spark, folder)
    frames: Mapping[str, DataFrame] = Frames(outputs, lambda name: driver.to_spark(spark, m[name]))
    if job.stream is not None or mode == "distributed":
        frames = dict(frames)  # as they are now: updates will follow, or tasks end
    return m, Derived(frames, numbers, m.statistics.rounds, m)


def _of_tasks(
    job: Job,
    core: Core,
    m: Materialisation,
    outputs: list[str],
    numbers: dict[str, tuple[int, int]],
    spark: SparkSession,
    folder: SharedFolder,
) -> Derived:
    """Return the relations of tasks, which write them now: updates will follow, or tasks end."""
    frames: dict[str, DataFrame] = {}
    for name in outputs:
        frame = distributed.frame(spark, m, core.predicates[name], folder)
        frames[name] = driver.to_spark(spark, m[name]) if frame is None else frame
    if any(sink.format == "view" for sink in job.sinks):
        shared_folder.held_for_views(spark, folder)
    return Derived(frames, numbers, m.statistics.rounds, (m, folder), partial(distributed.write, m))


def algorithm_for(job: Job) -> str:
    """Return how updates are made; if none will be, no bookkeeping is begun."""
    return "adaptive" if job.stream is not None or job.settings.state is not None else "rematerialise"
