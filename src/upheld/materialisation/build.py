"""Functions that create a materialisation: from a program and facts, or from a saved state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from upheld.base.errors import FactsError, Problem, UsageError, is_whole, quote, require, warn
from upheld.base.limits import Limits, limited
from upheld.compiler.compile import compile_program
from upheld.compiler.equality.equality import check_equality, with_equality
from upheld.compiler.hypertrees.modes import check_mode
from upheld.compiler.lints.programs import lint, some, unused_facts, without_facts
from upheld.compiler.strata import check_stratification, stratify
from upheld.engines import EngineChoice, chosen_engine, chosen_threads, facts_reader
from upheld.facts.columns import Row
from upheld.facts.ingest import facts_of
from upheld.facts.ingest.by_relation import FactsGiven, by_name, fitted_facts
from upheld.language.ast import Program
from upheld.language.core import Core
from upheld.language.syntax.files import read_text
from upheld.language.terms.vocabulary import COLUMNS
from upheld.maintain.registry import Algorithm, algorithm_named
from upheld.materialisation.constraints import REFUSE, default_choice, treatment
from upheld.materialisation.materialisation import Materialisation
from upheld.materialisation.persistence.bookkeeping import Reopened, serves
from upheld.materialisation.persistence.feeds import Feed
from upheld.materialisation.persistence.record import OnCluster, check_unused, open_checkpoint, open_state
from upheld.materialisation.programs import compile_saved, parse
from upheld.materialisation.progress import ProgressGiven, check_progress
from upheld.materialisation.representation import representation_of
from upheld.materialisation.updates.sources import Sources

if TYPE_CHECKING:
    from upheld.store.manifest import Manifest, SavedBooks
    from upheld.store.versions import Store


@limited
def materialise(
    program: str | Path | Program,
    facts: FactsGiven | None = None,
    *,
    engine: str | EngineChoice = "memory",
    algorithm: str = "adaptive",
    decompose: str = "auto",
    equality: str = "off",
    limits: Limits | None = None,
    threads: int | None = None,
    stratification: str = "granular",
    progress: ProgressGiven = None,
    confined: bool = False,
    on_violation: str | None = None,
) -> Materialisation:
    """Return the materialisation of a program and facts: all facts that follow from them.

    A program without declarations takes the types of its columns from the facts and from their use in rules.

    Args:
        program: Path of a `.dl` or `.dlog` file, text of a `.dl` program, name of a rule set (`rdfs`, `owl2rl`), or a
            `Program`.
        facts: For each relation, rows, a data frame, an Arrow table, or the path of a file. For a `.dlog` program
            also a graph, the path of an RDF file or of a folder of RDF files, or a list of paths.
        engine: `memory`, `reference`, `spark`, or an `upheld.SparkEngine` on your own session.
        algorithm: Algorithm for updates: `adaptive`, `ranked`, `counting`, `counting-by-rounds`, `dred`, `fbf`, `bf`,
            `dred-c`, `bf-c` or `rematerialise`; for streams also `dred-marking` or `bf-marking`. With
            `equality="rewrite"`, `adaptive`, `bf` or `rematerialise`.
        decompose: Which cyclic rules to decompose: those estimated to pay off (`auto`), none (`never`), or all that can
            be decomposed (`always`). With `all`, acyclic rules are decomposed as well, along their join trees, which
            is meant for comparisons. The facts are the same.
        equality: Treatment of `owl:sameAs` in a `.dlog` program: an ordinary property (`off`), a congruence by rules
            (`axioms`), or a congruence by one representative per class of equal constants (`rewrite`), which takes less
            time and memory. With `rewrite`, `eqrel` relations of a `.dl` program are stored as classes.
        limits: Limits on facts, rounds, time and memory.
        threads: Number of threads of the memory engine for large pieces of work, by default as many as there are
            cores. The facts, the changes and the statistics are the same for any number.
        stratification: One stratum for each group of mutually recursive atoms (`granular`), groups that do not depend
            on each other in one stratum (`levels`), or as few strata as negation allows (`coarsest`). The facts are the
            same.
        progress: Function that is called with a `Progress` now and then; True shows a bar in a notebook, and a line on
            standard error elsewhere, while a run takes longer than a moment.
        confined: Refuse `.include` of files outside the program's folder.
        on_violation: Whether to `refuse` facts, updates and rule changes that violate a constraint, or to `report` the
            violations: see `Materialisation.violations` and `Change.violations`. By default constraints of a `.dl`
            program refuse, and facts of `violation` of a `.dlog` program are reported.

    >>> m = materialise('path(x, y) :- edge(x, y).', {"edge": [("a", "b")]})
    >>> m["path"].to_set()
    {('a', 'b')}
    """
    check_options(engine, algorithm, decompose, equality, threads, stratification, progress, on_violation)
    parsed = parse(program, confined=confined)
    given = by_name(facts)
    known = {d.name for d in parsed.declarations}
    types: dict[str, tuple[str, ...]] = {}
    if parsed.dialect == "dlog":
        types = {name: ("term",) * len(columns) for name, columns in COLUMNS.items() if name in given}
        known |= types.keys()
    chosen = chosen_threads(engine, threads)
    read = facts_reader(engine, chosen)
    inferred = {name: facts_of(name, data, read=read) for name, data in given.items() if name not in known}
    types |= {name: found.types for name, found in inferred.items() if found.types}
    names = {name: found.columns for name, found in inferred.items() if found.columns is not None}
    core = compile_program(parsed, types).core.with_columns(names)
    unused = list(unused_facts(parsed, given))
    if unknown := [problem for problem in unused if problem.severity == "error"]:
        raise FactsError(unknown)
    warn(some([*lint(parsed), *without_facts(parsed, given), *unused]))
    ready: dict[str, object] = {
        name: inferred[name].again() if name in inferred else data for name, data in given.items()
    }
    fitted = fitted_facts(core, ready, read, chosen).items()
    store = open_checkpoint(engine)
    if store is not None:
        check_unused(store)
    m = materialise_core(
        core,
        fitted,
        engine=engine,
        algorithm=algorithm,
        decompose=decompose,
        equality=equality,
        limits=limits,
        threads=threads,
        stratification=stratification,
        progress=progress,
        on_violation=on_violation,
    )
    return _with_checkpoint(m)


#: The other spelling.
materialize = materialise


def check_options(
    engine: str | EngineChoice = "memory",
    algorithm: str = "adaptive",
    decompose: str = "auto",
    equality: str = "off",
    threads: int | None = None,
    stratification: str = "granular",
    progress: ProgressGiven = None,
    on_violation: str | None = None,
) -> None:
    """Refuse options that are wrong whatever the program and the facts are, before these are read."""
    chosen_threads(engine, threads)
    algorithm_named(algorithm)
    check_mode(decompose)
    check_equality(equality)
    check_stratification(stratification)
    check_progress(progress)
    treatment(on_violation, REFUSE)


def _with_checkpoint(m: Materialisation) -> Materialisation:
    """Return a materialisation whose first version is in the folder for checkpoints of its engine, if it has one."""
    try:
        m._begin_checkpoint()
    except BaseException:
        m.close()
        raise
    return m


def materialise_core(
    core: Core,
    facts: Iterable[tuple[str, Iterable[Row]]],
    without: Iterable[tuple[str, Iterable[Row]]] = (),
    *,
    engine: str | EngineChoice,
    algorithm: str = "adaptive",
    decompose: str = "auto",
    equality: str = "off",
    limits: Limits | None = None,
    threads: int | None = None,
    stratification: str = "granular",
    progress: ProgressGiven = None,
    reopened: Reopened | None = None,
    on_violation: str | None = None,
    stated: bool = True,
) -> Materialisation:
    """Return the materialisation of a compiled program and of facts that fit its relations.

    Facts of `without` are left out. `reopened` is the saved bookkeeping of an earlier materialisation, if any. Facts
    that the program states are explicit facts if they are `stated` still.
    """
    check_options(engine, algorithm, decompose, equality, threads, stratification, progress, on_violation)
    written, core = core, with_equality(core, equality)
    own: dict[str, list[Row]] = {}
    for predicate, row in core.facts if stated else core.facts - written.facts:
        own.setdefault(predicate, []).append(row)
    if not representation_of(core, equality).decomposes and decompose in ("always", "all"):
        raise UsageError(
            Problem(
                "rewrite-decomposes-nothing",
                "`decompose` cannot be combined with `equality=rewrite`",
                hint="leave `decompose` out, or use `equality=axioms`",
            )
        )
    materialisation = Materialisation(
        core, stratify(core, stratification), engine, algorithm, limits, equality, chosen_threads(engine, threads)
    )
    materialisation._on_violation = treatment(on_violation, default_choice(core))
    try:
        materialisation._materialise(chain(facts, own.items()), without, decompose, stratification, progress, reopened)
        if materialisation._on_violation == REFUSE:
            materialisation._refuse_violations()
    except BaseException:
        materialisation.close()
        raise
    return materialisation


@limited
def restore(
    program: str | Path | Program,
    folder: str | Path | Store,
    *,
    engine: str | EngineChoice = "memory",
    algorithm: str = "adaptive",
    decompose: str = "auto",
    equality: str = "off",
    limits: Limits | None = None,
    threads: int | None = None,
    stratification: str = "granular",
    progress: ProgressGiven = None,
    confined: bool = False,
    version: int | None = None,
    on_violation: str | None = None,
    edited: bool = False,
) -> Materialisation:
    """Return the materialisation saved in a folder, on any engine: by the same program, or by one edited since.

    All files are checked against their saved length and SHA-256; a damaged version is refused. The saved bookkeeping is
    used if the algorithm can, followed by one update for explicit facts that have changed since. Otherwise everything
    is derived again, which costs as much as `materialise`.

    With `edited`, explicit facts are kept, and the rules of the saved program are changed to the rules of this one, as
    by `Materialisation.change_rules`. `Materialisation.program_change` has the difference and the change that it made.

    Args:
        program: The program that was saved, or an edited one, as for `materialise`.
        folder: Folder of the saved state.
        engine: As for `materialise`; need not be the engine that saved the state.
        algorithm: As for `materialise`.
        decompose: As for `materialise`.
        equality: As for `materialise`; must be the value that was saved.
        limits: As for `materialise`.
        threads: As for `materialise`.
        stratification: As for `materialise`.
        progress: As for `materialise`.
        confined: As for `materialise`.
        version: Number of an earlier version that is still there; by default the last one.
        on_violation: As for `materialise`. A state that was saved with violations opens with `report`.
        edited: Accept a program that differs from the saved one.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> m = materialise("q(x) :- p(x).", {"p": [1, 2]})
    >>> change = m.update(delete={"p": [1]})
    >>> m.save(folder)
    1
    >>> restore("q(x) :- p(x).", folder)["q"].to_set()
    {(2,)}
    >>> print(restore("q(x) :- p(x). r(x) :- q(x).", folder, edited=True).program_change)
    program changed since version 1:
    + r(x) :- q(x).
    <Change +1 r>
    """
    from upheld.store.versions import Store

    check_options(engine, algorithm, decompose, equality, threads, stratification, progress, on_violation)
    require(isinstance(edited, bool), "edited", "True or False", edited)
    require(version is None or is_whole(version), "version", "a whole number, or None", version)
    if isinstance(folder, Store):
        store = folder
        if version is not None:
            store.look(version)
    else:
        store = open_state(engine, folder, version)
    parsed = parse(program, confined=confined)
    options: dict[str, Any] = {
        "engine": chosen_engine(engine),
        "algorithm": algorithm,
        "decompose": decompose,
        "equality": equality,
        "limits": limits,
        "threads": threads,
        "stratification": stratification,
        "progress": progress,
        "on_violation": on_violation,
    }
    while True:
        saved = store.last()
        try:
            if edited and not _is_saved(parsed, saved, equality):
                return _edited(parsed, store, saved, **options)
            return _restored(compile_saved(parsed, saved), store, saved, **options)
        except FactsError:
            # A writer may have made two versions meanwhile, and removed the files of this one.
            if version is None:
                store.look()
            if store.version == saved.version:
                raise


def _is_saved(program: Program, saved: Manifest, equality: str) -> bool:
    """Return whether a program is the one that saved a version."""
    from upheld.store.programs import other_program

    return other_program(saved, with_equality(compile_saved(program, saved), equality), equality) is None


def _edited(program: Program, store: Store, saved: Manifest, *, equality: str, **options: Any) -> Materialisation:
    """Return the materialisation of one version with the rules of another program."""
    from upheld.compiler.edits import exchanged, replacing
    from upheld.materialisation.reports.program_change import program_change
    from upheld.materialisation.updates.rule_changes import refuse_rule_changes
    from upheld.store.programs import other_program

    store.check()
    text, dialect = store.program()
    old = compile_saved(read_text(text, dialect, f"<program of version {saved.version}>"), saved)
    as_evaluated = with_equality(old, equality)
    if other_program(saved, as_evaluated, equality) is not None:
        message = f"version {saved.version} was not saved with `equality={equality}`"
        hint = "pass the value of `equality` that it was saved with"
        raise UsageError(Problem("other-program", message, place=store.folder, hint=hint))
    refuse_rule_changes(representation_of(as_evaluated, equality), isinstance(options["engine"], OnCluster))
    replacing(as_evaluated, program, equality)  # what it refuses is refused before anything is derived
    # Rules of both programs are the edited program's: explanations name their places there.
    places = compile_saved(program, saved).rules
    m = _restored(replace(old, rules=tuple(exchanged(old.rules, places))), store, saved, equality=equality, **options)
    try:
        before, m._opened_as = m._written, saved.program
        change = m.change_rules(replace=program)
        m.program_change = program_change(saved.version, before, m._written, change)
    except BaseException:
        m.close()
        raise
    return m


def _restored(
    core: Core,
    store: Store,
    saved: Manifest,
    *,
    engine: str | EngineChoice,
    algorithm: str,
    equality: str,
    **options: Any,
) -> Materialisation:
    """Return the materialisation of one version."""
    from upheld.store.programs import check_program, digest

    as_evaluated = with_equality(core, equality)
    check_program(saved, as_evaluated, equality, store.folder)
    store.check()
    reader = _SavedFacts(store, saved, engine)
    chosen = algorithm_named(algorithm)
    is_saved = representation_of(as_evaluated, equality).saves_bookkeeping
    books = saved.books if is_saved and serves(saved.books, chosen) else None
    given, without = reader.explicit(saved.relations) if books is None else (reader.explicit_of(books), [])
    m = materialise_core(
        core,
        given,
        without,
        engine=engine,
        algorithm=algorithm,
        equality=equality,
        **options,
        reopened=reader.reopened(books, chosen) if books is not None else None,
        # Facts that the program states are among those that were saved, unless an update has deleted them.
        stated=False,
    )
    m._digest, m._base = digest(as_evaluated, equality), store.base
    m._sources = reader.sources()
    m._sources_saved = m._sources.revision, saved.identity
    m._sources.note_saved(m._sources.revision)
    m._past.feed = Feed(store, m.version) if saved.feed is not None else None
    wrong = [name for name, relation in saved.relations.items() if len(m[name]) != relation.sizes[1]]
    if wrong:
        sizes = f"{quote(wrong[0])} has {len(m[wrong[0]])} facts where {saved.relations[wrong[0]].sizes[1]} were saved"
        hint = "restore the folder from a copy, or save a materialisation again"
        raise FactsError(Problem("bad-state", sizes, place=store.folder, hint=hint))
    return _with_checkpoint(m)


_ByName = list[tuple[str, Iterable[Row]]]


class _SavedFacts:
    """Reads what a version has, as an engine loads it."""

    def __init__(self, store: Store, saved: Manifest, engine: str | EngineChoice):
        self._store, self._saved, self._engine = store, saved, engine

    def explicit(self, names: Iterable[str]) -> tuple[_ByName, _ByName]:
        """Return the explicit facts of relations, with some that are to be left out."""
        given: _ByName = []
        without: _ByName = []
        for name in names:
            relation = self._saved.relations[name]
            for side, tables in zip((given, without), self._store.explicit(name)):
                side += [(name, self._rows(name, table, relation.column_types)) for table in tables]
        return given, without

    def explicit_of(self, books: SavedBooks) -> _ByName:
        """Return the explicit facts of the version whose bookkeeping was saved."""
        return [rows for name in books.relations for rows in self._written(books, name, "explicit", 0)]

    def reopened(self, books: SavedBooks, algorithm: Algorithm) -> Reopened:
        """Return the saved bookkeeping that an algorithm needs, and the explicit facts that have changed since."""
        facts = partial(self._all_facts, books, len(algorithm.bookkeeping.columns))
        now = self._saved.relations
        since = [name for name in now if now[name].changes or now[name].explicit != books.relations[name].explicit]
        then = [rows for name in since for rows in self._written(books, name, "explicit", 0)]
        return Reopened(books, self._saved.version, facts, then, *self.explicit(since))

    def _all_facts(self, books: SavedBooks, width: int, by_others: bool) -> Iterator[tuple[str, Iterable[Row]]]:
        """Yield all facts of relations with `width` counters, for this process or for others to read."""
        from upheld.materialisation.persistence.saved_rows import SavedRows

        for name, relation in books.relations.items():
            numbers = width if books.numbers.get(name) else 0
            types = (*relation.column_types, *("number",) * numbers)
            shared = SavedRows.of(self._store, name, relation, types) if by_others else None
            yield from self._written(books, name, "facts", numbers) if shared is None else [(name, shared)]

    def sources(self) -> Sources:
        """Return the sources of the explicit facts."""
        saved = self._saved.sources
        return Sources.saved(saved.names, self._claimed(saved.files)) if saved else Sources()

    def _claimed(self, relations: Iterable[str]) -> Iterator[tuple[str, Row, str]]:
        for name in relations:
            for table in self._store.sources(name):
                rows = self._rows(name, table.remove_column(0), self._saved.relations[name].column_types)
                yield from ((name, row, claims) for row, claims in zip(rows, table.column(0).to_pylist(), strict=True))

    def _written(self, books: SavedBooks, name: str, kind: str, numbers: int) -> _ByName:
        """Return the rows of a file of a relation: its columns, followed by `numbers` counters."""
        relation = books.relations[name]
        types = (*relation.column_types, *("number",) * numbers)
        table = self._store.as_written(relation, kind, len(books.numbers.get(name, ())) if kind == "facts" else 0)
        if table is None:
            return []
        return [(name, self._rows(name, table.select(list(range(len(types)))), types))]

    def _rows(self, name: str, table: Any, types: Sequence[str]) -> Iterable[Row]:
        return facts_of(name, table, types, (), facts_reader(self._engine)).rows if types else [()] * table.num_rows
