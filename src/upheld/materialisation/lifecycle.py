"""How a materialisation begins and ends: it opens an engine, loads and derives facts, is parked, saved and closed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self, SupportsIndex
from weakref import WeakMethod, finalize, proxy

from upheld.algebra.engine import Remote
from upheld.algebra.sets import FactSet, settle
from upheld.base.errors import Problem, UsageError, are_texts, count, is_path, require, warn
from upheld.base.interruptions import interrupted_once, uninterrupted
from upheld.base.limits import Limits
from upheld.base.statistics import Statistics
from upheld.base.threads import ONE_THREAD, Threads
from upheld.base.turns import Turns, park_when_idle
from upheld.compiler.growth import growing_rules
from upheld.compiler.strata import Stratification, stratify
from upheld.engines import EngineChoice, chosen_threads, facts_reader, open_engine
from upheld.facts.change import Change, relation_of
from upheld.facts.columns import Row
from upheld.facts.relation import Relation
from upheld.facts.stored import StoredFacts
from upheld.language.core import Core, Predicate
from upheld.language.syntax.printer import to_text
from upheld.maintain.update import Requested, State
from upheld.materialisation.constraints import REPORT, default_choice
from upheld.materialisation.inspection import Inspection
from upheld.materialisation.persistence.bookkeeping import Numbered, Reopened, keep_books
from upheld.materialisation.persistence.facts import Facts, write_facts
from upheld.materialisation.persistence.feeds import Feed, Noted, Past, write_feed
from upheld.materialisation.persistence.kept import Keeping, KeptTables
from upheld.materialisation.persistence.record import (
    Checkpoint,
    Record,
    files_of,
    idle_seconds,
    open_checkpoint,
    open_state,
    sized,
    sizes_of,
    together,
)
from upheld.materialisation.programs import decompose_for
from upheld.materialisation.progress import ProgressGiven, ProgressWatcher, reporting
from upheld.materialisation.reports.log import log_materialisation
from upheld.materialisation.reports.profile import Costs
from upheld.materialisation.reports.progress_display import ShownProgress
from upheld.materialisation.representation import Plain, representation_of
from upheld.materialisation.updates.sources import Sources
from upheld.materialisation.updates.transaction import Part, refuse_in_transaction
from upheld.materialisation.versions.sparql import SparqlStore
from upheld.materialisation.versions.views import History, not_copied

if TYPE_CHECKING:
    from upheld.compiler.hypertrees.modes import Decision
    from upheld.materialisation.reports.program_change import ProgramChange
    from upheld.materialisation.updates.rule_changes import RemovedRules
    from upheld.store.draft import ClaimedFacts, Draft
    from upheld.store.versions import Base, Store


class Lifecycle(Inspection):
    """The methods of `Materialisation` that open its engine, derive its facts for the first time, save and close it."""

    def __init__(
        self,
        core: Core,
        strata: Stratification,
        engine: str | EngineChoice,
        algorithm: str,
        limits: Limits | None,
        equality: str,
        threads: Threads = ONE_THREAD,
    ):
        #: The program as its author knows it, and as it is evaluated: with some of its rules decomposed.
        self._written = self._core = core
        self._strata = strata
        self._decisions: tuple[Decision, ...] = ()
        self._equality = equality
        #: How the state holds the facts that users see.
        self._representation: Plain
        self._represented_as = representation_of(core, equality)
        self._algorithm = self._represented_as.algorithm(algorithm)
        self._chosen_engine, self._threads = engine, threads
        self._open(limits)
        self._read = facts_reader(engine, threads)
        #: Digest of the program, which identifies it where facts are saved, once it is known.
        self._digest: str | None = None
        #: The difference to the program that saved the state, if an edited program has opened it.
        self.program_change: ProgramChange | None = None
        #: The version that it was restored from or saved as last.
        self._base: Base | None = None
        self.statistics = Statistics()
        self._state: State
        #: Whether a change that violates a constraint is refused or reported.
        self._on_violation = default_choice(core)
        #: Whoever uses the engine waits for a turn.
        self._turns = Turns()
        #: The sources of explicit facts, and the version of a folder that has them as of some revision.
        self._sources, self._sources_saved = Sources(), (-1, "")
        self._history = History(core)
        #: The transaction that is open, if there is one.
        self._open_transaction: Part | None = None
        self._costs, self._past = Costs(), Past()
        #: The rules that were removed, as far as the strata still have their dependencies.
        self._removed_rules: RemovedRules | tuple[()] = ()
        #: The store that answers SPARQL, once there is one.
        self._sparql: SparqlStore | None = None
        #: The explicit facts, if the engine may lose them, and why its tasks are to be started again from these, if so.
        self._record: Record | None = None
        self._down: str | None = None
        #: Tables on disk that each change is written to, and the program whose saved state an edited one has opened.
        self._tables = KeptTables()
        self._opened_as: str | None = None
        #: Where each version is written before it is acknowledged, if the engine has such a folder.
        self._checkpoint: Checkpoint | None = None
        #: Ends the watch that parks a materialisation which nobody uses, if there is one.
        self._end_watch: Callable[[], object] = _nothing
        if self._remote is not None:
            self._record, ready = Record(core), WeakMethod(self._be_ready)
            self._turns.prepare = lambda: (ready() or _nothing)()

    def _open(self, limits: Limits | None) -> None:
        engine = self._engine = open_engine(self._chosen_engine, self._written, limits, self._threads)
        #: The engine as one whose facts may be lost, if it is one.
        self._remote = engine if isinstance(engine, Remote) else None
        #: The relations that the engine knows, those that the program no longer has among them.
        self._known_relations = dict(self._written.predicates)
        self._watch_growth(self._written)

    def _watch_growth(self, core: Core) -> None:
        self._engine.meter.may_grow = lambda: any(growing_rules(stratify(core)))

    def _materialise(
        self,
        facts: Iterable[tuple[str, Iterable[Row]]],
        without: Iterable[tuple[str, Iterable[Row]]],
        decompose: str,
        stratification: str,
        progress: ProgressGiven,
        reopened: Reopened | None = None,
    ) -> None:
        if self._record is not None:
            record = self._record
            facts, without = record.take(facts), record.leave_out(without)
        self._options = decompose, stratification
        self._derive(facts, without, progress, reopened)
        if self._remote is not None and (idle := idle_seconds(self._chosen_engine)) is not None:
            park = WeakMethod(self.park)
            self._end_watch = finalize(self, park_when_idle(self._turns, idle, lambda: (park() or _nothing)()))

    def _derive(
        self,
        facts: Iterable[tuple[str, Iterable[Row]]],
        without: Iterable[tuple[str, Iterable[Row]]] = (),
        progress: ProgressGiven = None,
        reopened: Reopened | None = None,
    ) -> None:
        """Load explicit facts into the engine, which has none, and derive all that follows from them."""
        pieces: Iterable[Mapping[str, Iterable[Row]]] = ({predicate: rows} for predicate, rows in facts)
        if self._remote is not None:
            # Facts in files come last: this process then need not know the texts in them to load the others.
            counted = sorted(sized(facts), key=lambda one: isinstance(one[1], StoredFacts))
            self._remote.expect(sizes_of(counted))
            pieces = together(counted)
        E: FactSet = self._engine.named("E")
        represented = self._represented_as(self._engine, self._core, self._strata, E, self._equality)
        self._representation = represented
        for piece in pieces:
            E |= self._engine.load_all(piece)
        for predicate, rows in without:
            E -= self._engine.load(predicate, rows)
        with self._engine.meter.run() as self.statistics:
            if represented.decomposes:
                self._decompose(E, *self._options)
            self._report_progress(progress)
            self._state = represented.materialise(self._algorithm, self._strata, reopened)
        self._costs.begin(self.statistics, self._engine.meter.done)
        log_materialisation(self.statistics, self.algorithm)
        if reopened is not None and (reopened.then or reopened.now):
            with interrupted_once() as interruptions:
                self._update_or_abandon(lambda: [self._since(reopened)], None, interruptions)
            self._history, self._past = History(self._written), Past()  # nobody has seen what was there before

    def _report_progress(self, progress: ProgressGiven) -> None:
        """Report the progress of this and later runs: to the caller, and to those who watch the tasks of the engine."""
        if not progress:
            return  # the driver need not know then how far tasks have come
        watcher, meter = ShownProgress() if progress is True else progress, self._engine.meter
        watchers: list[ProgressWatcher] = [watcher]
        if self._remote is not None:
            remote = proxy(self._remote)  # which holds the meter
            watchers.append(lambda now: remote.show(now.seconds, str(now)))
        meter.watcher = reporting(self._representation, self._strata, watchers)
        meter.ended = watcher.end if isinstance(watcher, ShownProgress) else None

    def _since(self, reopened: Reopened) -> Requested:
        """Return what has changed in the explicit facts since the version that was taken over."""
        then, now = self._engine.named("E then"), self._engine.named("E now")
        for name, rows in reopened.then:
            then |= self._engine.load(name, rows)
        for name, rows in reopened.now:
            now |= self._engine.load(name, rows)
        for name, rows in reopened.without:
            now -= self._engine.load(name, rows)
        return Requested(settle(then - now), settle(now - then))

    def _be_ready(self) -> None:
        """Start the tasks of the engine again if they have ended by themselves. For the beginning of a turn."""
        remote, record = self._remote, self._record
        assert remote is not None and record is not None, "an engine whose facts cannot be lost"
        if self._down is None and not remote.is_lost():
            return
        # Until all is there again: what fails below is tried again by whoever comes next.
        why = self._down = self._down or _LOST
        self._engine.close()
        self._open(self._engine.meter.limits)
        self._core, self._strata = self._written, stratify(self._written, self._options[1])
        self._derive(record.facts(), record.without())
        self._down = None
        explicit = count(self._state.E.count(), "explicit fact")
        again = f"started its tasks again, from {explicit} of version {self.version}"
        self.statistics.choices.append(f"{why}, and {again}")
        if why == _LOST:
            warn([Problem("tasks-started-again", f"the engine {why}, and {again}", hint=_LOOK)])

    def _decompose(self, E: FactSet, mode: str, stratification: str) -> None:
        """Decompose rules. The nodes of their decompositions are relations of the program from now on."""
        decomposed = decompose_for(self._written, E, mode)
        self._decisions = decomposed.decisions
        if decomposed.core is not self._written:
            self._declare(decomposed.core.predicates)
            self._core = decomposed.core
            self._strata = stratify(self._core, stratification)

    def _begin_checkpoint(self) -> None:
        """Write each version to the folder for checkpoints of the engine from now on, if it has one."""
        store = open_checkpoint(self._chosen_engine)
        if store is not None:
            checkpoint = Checkpoint(store)
            with self._turns.work():
                checkpoint.begin(self._base, self._draft)
            self._checkpoint = checkpoint

    def _draft(self, store: Store, change: Change | None) -> Draft:
        """Return the next version of a store in the making. For a thread that has its turn."""
        return _draft_of(self, _Now(self), store, change)

    def _declare(self, predicates: Mapping[str, Predicate]) -> list[Predicate]:
        """Let the engine know relations, and return those that it did not know."""
        new = [predicate for name, predicate in predicates.items() if name not in self._known_relations]
        for predicate in new:
            self._engine.declare(predicate)
            self._known_relations[predicate.name] = predicate
        return new

    def _copy_with(
        self,
        explicit: Iterable[tuple[str, Iterable[Row]]],
        engine: str | EngineChoice | None = None,
        core: Core | None = None,
        algorithm: str = "rematerialise",
    ) -> Self:
        limits, chosen = self._engine.meter.limits, engine or self._chosen_engine
        program = core or self._written
        threads = self._threads if engine is None else chosen_threads(engine, None)
        copy = type(self)(program, stratify(program), chosen, algorithm, limits, self._equality, threads)
        copy._on_violation = REPORT
        copy._materialise(explicit, (), "never", "granular", None)
        return copy

    def park(self) -> None:
        """End the tasks of an engine that keeps its facts in other processes until they are needed again.

        The next call starts them again: it loads the explicit facts, which this process keeps, and derives everything
        from them, which costs as much as `materialise`. With other engines it has no effect.

        >>> m = materialise("q(x) :- p(x).", {"p": [1, 2]})
        >>> m.park()
        >>> len(m["q"])
        2
        """
        if self._down is None and self._remote is not None:
            refuse_in_transaction(self._open_transaction, "a materialisation cannot be parked")
            with self._turns.work():
                self._down = "was parked"
                self._engine.close()

    def close(self) -> None:
        """End the tasks of an engine that keeps its facts in other processes; otherwise it has no effect.

        A `with` block closes the materialisation at its end. Relations whose rows were read before stay as they are.

        >>> with materialise("q(x) :- p(x).", {"p": [1, 2]}) as m:
        ...     len(m["q"])
        2
        """
        refuse_in_transaction(self._open_transaction, "a materialisation cannot be closed")
        self._turns.prepare = None
        self._end_watch()
        with self._turns.work():
            self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise UsageError(not_copied("materialisation"))

    def save(self, folder: str | Path, *, feed: bool | None = None) -> int:
        """Write all facts and the bookkeeping to a folder as its next version, and return the version number.

        The save is atomic: until it is complete, the folder has the previous version. `restore` opens the last version.
        Saving fails if the folder belongs to another program, or if somebody else has saved a version since this
        materialisation was restored from the folder or saved there. Other threads wait until the save is complete.

        Args:
            folder: Folder of the saved state; created if it does not exist.
            feed: Whether the state keeps a feed: what each update from now on changes in the explicit facts and in the
                rules, so that `history` reaches back to this version, however often it is saved and restored. By
                default it does if the version before does; False ends the feed.
        """
        from upheld.store.programs import check_program

        refuse_in_transaction(self._open_transaction, "a materialisation cannot be saved")
        with self._turns.look():
            store = open_state(self._chosen_engine, folder)
            store.check_follows(self._base)
            other = store.manifest is not None and store.manifest.program != self._program_digest()
            if store.manifest is not None and other and not store.has(self._base):  # else its rules have changed since
                check_program(store.manifest, self._written, self._equality, store.folder)
            return draft_of(self, store, feed=feed).commit()

    def keep(self, relation: str, folder: str | Path, *, partition_by: Sequence[str] = ()) -> Keeping:
        """Write the facts of a relation to a folder as a table, and bring it up to date with each change from now on.

        The table is a set of Parquet files and a manifest that names them, which is replaced in one step: `read_table`
        and readers of `table_files` find the facts of one version, never half of an update. Each `update`, transaction,
        update of a `stream` and rule change writes the files anew whose rows it changes, before it returns. If they
        cannot be written, it is refused, and nothing changes.

        If the folder has the table of this relation and program already, only the difference is written. A table has
        one writer at a time.

        Args:
            relation: Name of the relation.
            folder: Folder of the table; created if it does not exist.
            partition_by: Names of columns; rows that differ in them are in different files.

        >>> import tempfile
        >>> m = materialise("path(x, y) :- edge(x, y).", {"edge": [(1, 2)]})
        >>> with m.keep("path", tempfile.mkdtemp()) as kept:
        ...     change = m.update(insert={"edge": [(2, 3)]})
        ...     kept.version
        2
        """
        from upheld.store.kept.manifest import Shape
        from upheld.store.kept.table import KeptTable, check_program
        from upheld.store.tables import plain_table

        require(is_path(folder), "folder", "a path", folder)
        require(are_texts(partition_by), "partition_by", "a list of names", partition_by)
        refuse_in_transaction(self._open_transaction, "a table cannot be begun")
        with self._turns.work():
            predicate = self._predicate(relation)
            shape = Shape.of(predicate, partition_by)
            table = KeptTable.open(str(folder), files_of(self._chosen_engine), shape)
            program = self._program_digest()
            check_program(table, {program, self._opened_as or program})
            self._tables.add(table)
            try:
                draft = table.caught_up(plain_table(_Now(self)[relation]))
                if draft is not None:
                    table.put(draft, program, {"update": self.version})
            except BaseException:
                self._tables.remove(table)
                raise
        return Keeping(table, partial(self._tables.remove, table))

    def _publish_tables(self) -> None:
        """Bring tables up to date with the change that was committed. For a thread that has its turn."""
        if self._tables:
            with uninterrupted():
                self._tables.publish(self._program_digest(), self.version)

    def _bookkeeping_writer(self, in_tasks: Numbered) -> Callable[[Draft], None] | None:
        """Return how to add the bookkeeping to a version; None if it cannot be saved."""
        if self._representation.saves_bookkeeping and self._state.bookkeeping.is_saved:
            return lambda draft: keep_books(draft, self._core, self._state, in_tasks)
        return None

    def _program_digest(self) -> str:
        if self._digest is None:
            from upheld.store.programs import digest

            self._digest = digest(self._written, self._equality)
        return self._digest


def _nothing() -> None:
    """Stand for a method of what is gone."""


_LOST = "has lost a task"
_LOOK = "look at the log of its executor for the reason: a process was stopped, or ran out of memory"


def draft_of(m: Lifecycle, store: Store, change: Change | None = None, feed: bool | None = None) -> Draft:
    """Return the next version of a store in the making, with all facts of a materialisation.

    If the last version holds the facts as they were before the last update, it is enough to write its `change`. `feed`
    is whether the state shall keep a feed, by default if it does.
    """
    with m._turns.look():
        return _draft_of(m, m, store, change, feed)


def _draft_of(m: Lifecycle, facts: Facts, store: Store, change: Change | None, feed: bool | None = None) -> Draft:
    from upheld.compiler.edits import program_of
    from upheld.store.draft import Draft

    draft = Draft.begin(store, m._program_digest())
    with draft:
        program = program_of(m._written)
        draft.keep_program(to_text(program), program.dialect)
        saved = m._sources.revision, draft.store.base.identity if draft.store.base else ""
        if saved != m._sources_saved:
            _write_sources(m, draft, is_next=saved[1] != "" and saved[1] == m._sources_saved[1])
        numbered: Numbered = _here
        if m._remote is not None:
            from upheld.materialisation.persistence.in_tasks import InTasks

            shown, is_live = m._representation.shown(m._state), m._representation.is_live
            facts = InTasks(m._remote, m._state.E, shown, m._predicate, is_live, facts, store.folder)
            numbered = facts.numbered
        keep = m._bookkeeping_writer(numbered)
        write_facts(draft, {p.name: p for p in m._visible()}, facts, change, keep)
        unsaved, number = m._past.feed, m.version
        updates = number + (unsaved.offset if unsaved is not None else 0)
        added = write_feed(draft, unsaved, m._written, m._equality, updates, feed)
        # The draft is not among the arguments: it would hold itself, and with it the materialisation.
        draft.when_in_place = partial(
            _in_place, m, draft.store, m._sources.revision, added, number, draft.feed is not None
        )
    return draft


def _here(predicate: Predicate, counters: Sequence[object], columns: tuple[str, ...]) -> None:
    """Let this process write the facts of a predicate with their counters."""


def _in_place(
    m: Lifecycle,
    store: Store,
    revision: int,
    added: Sequence[Noted] | None,
    number: int,
    has_feed: bool,
    base: Base | None,
) -> None:
    """Note the version that has the facts of a materialisation now, its sources as of some revision, and its feed.

    `added` are the updates that were added to the feed; if it has just begun, `number` is that of the last update.
    """
    m._base, m._sources_saved = base, (revision, base.identity if base else "")
    m._sources.note_saved(revision)
    past = m._past
    if past.feed is not None and added is not None:
        past.feed.saved(added, store)
    elif has_feed:
        past.feed = Feed(store, number)
    elif past.feed is not None and store.has(past.feed.base):
        past.feed = None


def _write_sources(m: Lifecycle, draft: Draft, is_next: bool) -> None:
    """Write the sources of facts: what has changed, if the version before has the sources as they were last saved."""
    changed = m._sources.changed() if is_next else None
    if changed is not None and draft.sources is not None:
        known = {p.name for p in m._visible()}
        if not known.issuperset((*changed, *draft.sources.files)):  # rules have changed, and some relation is gone
            changed = None
    names = m._sources.relations() if changed is None else changed
    draft.keep_sources(m._sources.names(), _claimed_facts(m, names), changes=changed is not None)


def _claimed_facts(m: Lifecycle, names: Iterable[str]) -> dict[Predicate, ClaimedFacts]:
    """Return the facts of named sources of some relations, as a store writes them."""
    from upheld.store.draft import ClaimedFacts

    def claimed(predicate: Predicate) -> ClaimedFacts:
        name = predicate.name

        def groups(is_whole: bool) -> Iterator[tuple[str, Relation]]:
            for claims, rows in m._sources.groups(name, is_whole):
                yield claims, relation_of(predicate, set(rows))

        return ClaimedFacts(m._sources.count(name), groups)

    return {predicate: claimed(predicate) for predicate in map(m._predicate, names)}


class _Now:
    """The facts of a materialisation as its engine has them. For a thread that has its turn."""

    def __init__(self, m: Lifecycle):
        self._m = m

    def __getitem__(self, name: str) -> Relation:
        return self._m._relation(self._m._predicate(name), self._m._rows(name))

    def explicit(self, name: str) -> Relation:
        return self._m._relation(self._m._predicate(name), self._m._state.E.rows(name))


def write_by_tasks(m: Lifecycle, name: str, folder: str) -> list[tuple[str, int]] | None:
    """Have the tasks of an engine write a relation to a folder; return the files with their rows.

    Return None if this process has to write it: it has the facts, or makes them of those that tasks have.
    """
    predicate = m._predicate(name)
    if m._remote is None or not predicate.arity or not m._representation.is_live(name):
        return None
    with m._turns.look():
        assert m._remote is not None, "an engine that has changed its kind"
        return m._remote.write(m._representation.shown(m._state), name, predicate.columns, folder)


def tasks_see(m: Lifecycle, folder: str) -> bool:
    """Return whether all tasks of an engine see a folder of this process."""
    with m._turns.look():
        return m._remote is not None and m._remote.sees(folder)


def texts_in_tasks(m: Lifecycle) -> int:
    """Return how many texts have codes in the tasks of an engine, those in the rules among them."""
    with m._turns.look():
        assert m._remote is not None, "an engine without tasks"
        return m._remote.texts()
