"""`Materialisation`: a program, its explicit facts, and all facts that follow from them."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self, SupportsIndex, overload
from weakref import WeakMethod, finalize

from upheld.algebra.engine import Engine, Freed, Remote
from upheld.algebra.sets import FactSet, settle
from upheld.arguments import ALGORITHM_OR_NONE, PROGRAM_OR_NONE, RULES, UPDATES, checked
from upheld.data.change import ByRelation, Change
from upheld.data.columns import Row
from upheld.data.relation import Relation
from upheld.engines import EngineChoice, facts_reader, open_engine
from upheld.errors import Problem, UsageError, count, warn
from upheld.ingest.by_relation import FactsGiven, by_name, fitted_facts
from upheld.language.core import Core, Predicate
from upheld.language.growth import growing_rules
from upheld.language.hypertrees.deciding import Decision
from upheld.language.strata import Stratification, stratify
from upheld.language.syntax.ast import Program
from upheld.maintain.overlay import make
from upheld.maintain.registry import Algorithm
from upheld.maintain.rule_changes import Rules, change_rules
from upheld.maintain.update import Outcome, Requested, State, merged, net_effect
from upheld.materialisation.decomposition import decompose_for
from upheld.materialisation.idle import park_when_idle
from upheld.materialisation.inspection import Inspection
from upheld.materialisation.preview import Previewed, end_preview
from upheld.materialisation.progress import ProgressGiven, reporting
from upheld.materialisation.record import (
    Checkpoint,
    Record,
    idle_seconds,
    open_checkpoint,
    open_state,
    sized,
    sizes_of,
)
from upheld.materialisation.replacement import check_replaced, difference
from upheld.materialisation.reports.history import Past
from upheld.materialisation.reports.log import log_materialisation, log_update
from upheld.materialisation.reports.profile import Costs
from upheld.materialisation.reports.progress_display import ShownProgress
from upheld.materialisation.representation import Plain, representation_of
from upheld.materialisation.rule_changes import (
    Edited,
    RemovedRules,
    read_rule_change,
    refuse_facts_with_rules,
    refuse_rule_changes,
)
from upheld.materialisation.saved_bookkeeping import Reopened, can_keep, keep_books
from upheld.materialisation.saving import Facts, write_facts
from upheld.materialisation.sparql import SparqlStore
from upheld.materialisation.stream import Queue, follow, follow_async
from upheld.materialisation.views import History, Version, not_copied
from upheld.materialisation.warming import made_up, rehearse
from upheld.runtime.interruptions import interrupted_once
from upheld.runtime.limits import Limits
from upheld.runtime.statistics import Statistics
from upheld.runtime.turns import Turns
from upheld.store import Base, Draft, Store, check_program, digest


class Materialisation(Inspection):
    """All facts that follow from a program and explicit facts. `update` keeps them so.

    >>> m = materialise("path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z).", {"edge": [(1, 2), (2, 3)]})
    >>> m["path"].to_set() == {(1, 2), (2, 3), (1, 3)}
    True

    Any number of threads may use it. They take turns, first come, first served, and each finds what some update has
    left: see docs/how-to/use-threads.md.
    """

    def __init__(
        self,
        core: Core,
        strata: Stratification,
        engine: str | EngineChoice,
        algorithm: str,
        limits: Limits | None,
        equality: str,
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
        self._chosen_engine = engine
        self._open(limits)
        self._read = facts_reader(engine)
        #: Digest of the program, which identifies it where facts are saved, once it is known.
        self._digest: str | None = None
        #: The version that it was restored from or saved as last.
        self._base: Base | None = None
        self.statistics = Statistics()
        self._state: State
        #: Whoever uses the engine waits for a turn.
        self._turns = Turns()
        self._history = History(core)
        self._costs, self._past = Costs(), Past()
        #: The rules that were removed, as far as the strata still have their dependencies.
        self._removed_rules = RemovedRules()
        #: The store that answers SPARQL, once there is one.
        self._sparql: SparqlStore | None = None
        #: The explicit facts, if the engine may lose them, and why its tasks are to be started again from these, if so.
        self._record: Record | None = None
        self._down: str | None = None
        #: Where each version is written before it is acknowledged, if the engine has such a folder.
        self._checkpoint: Checkpoint | None = None
        #: Ends the watch that parks a materialisation which nobody uses, if there is one.
        self._end_watch: Callable[[], object] = _nothing
        if self._remote is not None:
            self._record, ready = Record(core), WeakMethod(self._be_ready)
            self._turns.prepare = lambda: (ready() or _nothing)()

    def _open(self, limits: Limits | None) -> None:
        engine = self._engine = open_engine(self._chosen_engine, self._written, limits)
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
            facts = [(predicate, record.take(predicate, rows)) for predicate, rows in facts]
            without = [(predicate, record.leave_out(predicate, rows)) for predicate, rows in without]
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
        if self._remote is not None:
            facts = sized(facts)
            self._remote.expect(sizes_of(facts))
        E: FactSet = self._engine.named("E")
        represented = self._represented_as(self._engine, self._core, self._strata, E, self._equality)
        self._representation = represented
        for predicate, rows in facts:
            E |= self._engine.load(predicate, rows)
        for predicate, rows in without:
            E -= self._engine.load(predicate, rows)
        with self._engine.meter.run() as self.statistics:
            if represented.decomposes:
                self._decompose(E, *self._options)
            if progress:
                watcher = ShownProgress() if progress is True else progress
                self._engine.meter.watcher = reporting(represented, self._strata, watcher)
                self._engine.meter.ended = watcher.end if isinstance(watcher, ShownProgress) else None
            self._state = represented.materialise(self._algorithm, self._strata, reopened)
        self._costs.begin(self.statistics, self._engine.meter.work)
        log_materialisation(self.statistics, self.algorithm)
        if reopened is not None and (reopened.then or reopened.now):
            with interrupted_once() as interruptions:
                self._update_or_abandon(lambda: [self._since(reopened)], None, interruptions)
            self._history, self._past = History(self._written), Past()  # nobody has seen what was there before

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
        self._derive(record.facts())
        self._down = None
        again = f"started its tasks again, from {count(len(record), 'explicit fact')} of version {self.version}"
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

    # -- leaving -------------------------------------------------------------------------------------------------------

    def _copy_with(
        self,
        explicit: Iterable[tuple[str, Iterable[Row]]],
        engine: str | EngineChoice | None = None,
        core: Core | None = None,
    ) -> Self:
        limits, chosen = self._engine.meter.limits, engine or self._chosen_engine
        program = core or self._written
        copy = type(self)(program, stratify(program), chosen, "rematerialise", limits, self._equality)
        copy._materialise(explicit, (), "never", "granular", None)
        return copy

    def __repr__(self) -> str:
        with self._turns.look():
            sizes = ", ".join(f"{p.name}: {len(self[p.name])}" for p in self._visible())
        return f"<Materialisation {sizes}>"

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

    def save(self, folder: str | Path) -> int:
        """Write all facts and the bookkeeping to a folder as its next version, and return the version number.

        The save is atomic: until it is complete, the folder has the previous version. `restore` opens the last version.
        Saving fails if the folder belongs to another program, or if somebody else has saved a version since this
        materialisation was restored from the folder or saved there. Other threads wait until the save is complete.

        Args:
            folder: Folder of the saved state; created if it does not exist.
        """
        with self._turns.look():
            store = open_state(self._chosen_engine, folder)
            store.check_follows(self._base)
            other = store.manifest is not None and store.manifest.program != self._program_digest()
            if store.manifest is not None and other and not store.has(self._base):  # else its rules have changed since
                check_program(store.manifest, self._written, self._equality, store.folder)
            return draft_of(self, store).commit()

    def _bookkeeping_writer(self) -> Callable[[Draft], None] | None:
        """Return how to add the bookkeeping to a version; None if it cannot be saved."""
        if self._representation.saves_bookkeeping and can_keep(self._state):
            return lambda draft: keep_books(draft, self._core, self._state)
        return None

    def _program_digest(self) -> str:
        self._digest = self._digest or digest(self._written, self._equality)
        return self._digest

    # -- changing ------------------------------------------------------------------------------------------------------

    @property
    def algorithm(self) -> str:
        """The name of the algorithm that `update` uses by default."""
        return self._algorithm.name

    @checked(algorithm=ALGORITHM_OR_NONE)
    def update(
        self,
        insert: FactsGiven | None = None,
        delete: FactsGiven | None = None,
        *,
        replace: FactsGiven | None = None,
        algorithm: str | None = None,
    ) -> Change:
        """Delete and insert explicit facts, bring all derived facts up to date, and return the change.

        Deletions come first, so a fact in both `insert` and `delete` is explicit afterwards. An update that fails
        leaves everything as it was.

        Args:
            insert: Facts to insert, in the forms that `materialise` accepts.
            delete: Explicit facts to delete, in the same forms.
            replace: Snapshots of relations: all explicit facts that each of these relations has afterwards. The
                difference is computed, and only that is maintained.
            algorithm: Algorithm for this and later updates. If it needs other bookkeeping, everything is derived once
                more to build it, which the statistics report.
        """
        chosen = self._represented_as.algorithm(algorithm) if algorithm else None
        return self._update_to(insert, delete, replace, chosen)

    @checked(add=RULES, remove=RULES, program=PROGRAM_OR_NONE)
    def preview(
        self,
        insert: FactsGiven | None = None,
        delete: FactsGiven | None = None,
        *,
        replace: FactsGiven | None = None,
        add: str | Sequence[str] = (),
        remove: str | Sequence[str] = (),
        program: str | Path | Program | None = None,
    ) -> Change:
        """Return the change that `update` or `change_rules` would make, and change nothing.

        It costs as much as the change. Facts and rules are checked as for `update` and `change_rules`.

        Args:
            insert: As for `update`.
            delete: As for `update`.
            replace: As for `update`.
            add: As for `change_rules`.
            remove: As for `change_rules`.
            program: The program to change to: `replace` of `change_rules`.

        >>> m = materialise("q(x) :- p(x).", {"p": [1, 2]})
        >>> m.preview(delete={"p": [1]}), len(m["q"])
        (<Change -1 p, -1 q>, 2)
        >>> m.preview(add="r(x) :- q(x), x > 1.")
        <Change +1 r>
        """
        try:
            if add or remove or program is not None:
                refuse_facts_with_rules(insert, delete, replace)
                self._change_rules(add, remove, program, end_preview)
            else:
                self._update_to(insert, delete, replace, None, end_preview)
        except Previewed as preview:
            return preview.change
        raise AssertionError("a preview that was committed")

    def _update_to(
        self,
        insert: FactsGiven | None,
        delete: FactsGiven | None,
        replace: FactsGiven | None,
        algorithm: Algorithm | None,
        before_commit: Callable[[Change], None] | None = None,
    ) -> Change:
        minus, plus, whole = self._fitted(delete), self._fitted(insert), self._fitted(replace)
        check_replaced(whole, minus, plus)
        with interrupted_once() as interruptions, self._turns.work():

            def load() -> list[Requested]:
                return [self._load(minus, plus), *([difference(self._state.E, whole)] if whole else [])]

            return self._update_or_abandon(load, algorithm, interruptions, before_commit=before_commit)

    def warm(self) -> None:
        """Compile now whatever updates, queries and explanations of this program need, and change nothing.

        Kernels are compiled when there is enough to do, each for the types that it meets first; call this before a
        stream whose first updates must not wait for the compiler. It previews updates of a few facts, with the indexes
        and the bookkeeping that they need, and frees the memory of deleted facts. Without explicit facts, it does so
        on a copy with made-up ones.

        >>> m = materialise("q(x) :- p(x).", {"p": [1, 2]})
        >>> m.warm()
        >>> m.version, len(m["q"])
        (0, 2)
        """
        if not any(len(self.explicit(name)) for name in self.relations):
            facts = made_up(self)
            if facts:
                with self._copy_with(self._fitted(facts).items()) as copy:
                    copy.update(algorithm=self.algorithm)
                    copy.warm()
            return
        self._warm_engine()
        rehearse(self, self.preview)
        self.compact()  # frees what the rehearsal has left
        self._warm_engine()  # with the indexes that it has made

    def _warm_engine(self) -> None:
        with interrupted_once(), self._turns.work():
            self._engine.warm()

    @checked(add=RULES, remove=RULES, replace=PROGRAM_OR_NONE)
    def change_rules(
        self,
        add: str | Sequence[str] = (),
        remove: str | Sequence[str] = (),
        *,
        replace: str | Path | Program | None = None,
    ) -> Change:
        """Add and remove rules, bring all derived facts up to date, and return the change.

        Removed rules go first. Only what the changed rules derive is worked on, not the rest of the program. A change
        that fails leaves rules and facts as they were.

        Args:
            add: Rules to add, as texts in the dialect of the program; declarations and facts may be among them.
            remove: Rules of the program to remove, up to the names of variables and the order of the body.
            replace: A program to change to, as for `materialise`. Rules that are in both programs stay. Explicit facts
                are kept, but for those that only the text of the old program states.

        >>> m = materialise("path(x, y) :- edge(x, y).", {"edge": [(1, 2), (2, 3)]})
        >>> m.change_rules(add="path(x, z) :- path(x, y), edge(y, z).")
        <Change +1 path>
        >>> m.change_rules(remove="path(x, z) :- edge(y, z), path(x, y).")
        <Change -1 path>
        """
        return self._change_rules(add, remove, replace)

    def _change_rules(
        self,
        add: str | Sequence[str],
        remove: str | Sequence[str],
        program: str | Path | Program | None,
        before_commit: Callable[[Change], None] | None = None,
    ) -> Change:
        refuse_rule_changes(self._represented_as, self._remote is not None)
        asked = read_rule_change(add, remove, program)
        with interrupted_once() as interruptions, self._turns.work():
            edit = asked(self._written, self._equality)
            state, known = self._state, self._known_relations
            rules = Rules(self._core, *self._removed_rules)
            edited = Edited.of(edit, self._written, rules, self._options[1], state, known)
            new = self._declare(edited.plan.predicates)
            try:
                return self._update_or_abandon(
                    lambda: [self._load(*edited.facts())], None, interruptions, before_commit=before_commit,
                    edited=edited,
                )  # fmt: skip
            except BaseException:
                self._engine.forget_rules(edited.plan.new_rules())
                for predicate in new:
                    self._engine.forget(predicate)
                    del self._known_relations[predicate.name]
                raise

    def _follow(self, edited: Edited) -> None:
        """Go on with the program that the rules were changed to."""
        self._written, self._core = edited.written, edited.plan.rules.core
        self._removed_rules, self._strata = edited.past(), self._state.strata
        there = {id(rule) for rule in self._written.rules}
        self._decisions = tuple(decision for decision in self._decisions if id(decision.rule) in there)
        self._digest, self._past = None, Past()
        self.__dict__.pop("_explainer", None)
        self._watch_growth(self._written)
        self._engine.forget_rules(edited.plan.temporary())

    def compact(self) -> Freed:
        """Free the memory of deleted facts, and return the number of rows, texts and bytes freed.

        Updates free memory gradually; call this after a large deletion to free all of it at once. It takes time
        proportional to all rows, and temporarily memory for a part of the largest table. Facts, relations returned
        earlier and bookkeeping do not change.

        >>> m = materialise("q(x) :- p(x).", {"p": [(str(i),) for i in range(1000)]})
        >>> change = m.update(delete={"p": [(str(i),) for i in range(10, 1000)]})
        >>> freed = m.compact()
        >>> freed.rows, freed.texts, len(m["q"]), len(change.deleted["q"])
        (1980, 990, 10, 990)
        """
        with interrupted_once(), self._turns.work():
            return self._engine.compact(keep=self._state.sets())

    @overload
    def stream(
        self,
        updates: Iterable[object],
        *,
        algorithm: str | None = ...,
        look_ahead: bool = ...,
        merge_waiting: int = ...,
    ) -> Iterator[Change]: ...

    @overload
    def stream(
        self,
        updates: AsyncIterable[object],
        *,
        algorithm: str | None = ...,
        look_ahead: bool = ...,
        merge_waiting: int = ...,
    ) -> AsyncIterator[Change]: ...

    @checked(algorithm=ALGORITHM_OR_NONE, updates=UPDATES)
    def stream(
        self,
        updates: Iterable[object] | AsyncIterable[object],
        *,
        algorithm: str | None = None,
        look_ahead: bool = True,
        merge_waiting: int = 1,
    ) -> Iterator[Change] | AsyncIterator[Change]:
        """Apply a stream of updates and yield the change of each; asynchronously for an asynchronous iterable.

        An update that fails is rolled back and ends the stream.

        Args:
            updates: Iterable of updates: each is an `upheld.Update`, or a dictionary with facts to `insert`, to
                `delete`, and to `replace` relations by.
            algorithm: Algorithm for these and later updates.
            look_ahead: Skip work that the next update would undo, if that has arrived. `adaptive`, `bf-marking` and
                `dred-marking` use it. In a list the next update has always arrived; for an iterator this is unknown
                unless it has a method `ready`, as `upheld.Arrivals` has.
            merge_waiting: Apply up to this many updates that have arrived as one; `Change.updates` has their numbers.

        >>> m = materialise("path(x, y) :- edge(x, y).", {"edge": [(0, 1)]})
        >>> for change in m.stream([{"insert": {"edge": [(1, 2), (3, 4)]}}, {"delete": {"edge": [(3, 4)]}}]):
        ...     print(change.updates, change.inserted["path"].to_rows(), change.deleted["path"].to_rows())
        (1,) [(1, 2), (3, 4)] []
        (2,) [] [(3, 4)]
        """
        chosen = self._represented_as.algorithm(algorithm) if algorithm else None  # what is unknown is refused at once

        def make(given: list[_Waiting], numbers: tuple[int, ...], ahead: Sequence[_Waiting]) -> Change:
            with interrupted_once() as interruptions, self._turns.work():
                # The difference between a snapshot and the facts is known when all updates before it were made.
                known = ahead and not any(waiting.replace for waiting in ahead)
                seen = merged([self._loaded(waiting) for waiting in ahead]) if known else None
                updates = [(self._loaded(given[0]), given.pop(0).replace) for _ in range(len(given))]
                return self._update_or_abandon(lambda: self._in_sequence(updates), chosen, interruptions, seen, numbers)

        def load(delete: FactsGiven, insert: FactsGiven, replace: FactsGiven) -> _Waiting:
            waiting = _Waiting(self._fitted(delete), self._fitted(insert), self._fitted(replace))
            check_replaced(waiting.replace, waiting.delete, waiting.insert)
            with self._turns.work():
                self._loaded(waiting)
            return waiting

        queue = Queue(load, make, look_ahead, merge_waiting)
        return follow_async(queue, updates) if isinstance(updates, AsyncIterable) else follow(queue, updates)

    def _in_sequence(self, waiting: list[tuple[Requested, Mapping[str, Iterable[Row]]]]) -> list[Requested]:
        """Return updates that follow each other, each snapshot as the difference from the facts before it.

        It empties the list: sets that nobody holds any more cost nothing.
        """
        updates: list[Requested] = []
        while waiting:
            update, snapshots = waiting.pop(0)
            updates.append(update)
            if snapshots:
                before, E = merged(updates), self._state.E
                updates.append(difference(settle((E - before.minus) | before.plus), snapshots))
        return updates

    def _loaded(self, waiting: _Waiting) -> Requested:
        """Return an update that is waiting as sets of the engine; if that was started meanwhile, load it again."""
        if waiting.engine is not self._engine or waiting.loaded is None:
            with self._engine.meter.run():
                sets = self._load(waiting.delete, waiting.insert)
                # Settled: what is waiting must outlast whatever is done meanwhile.
                waiting.loaded = Requested(settle(sets.minus), settle(sets.plus))
            waiting.engine = self._engine
        return waiting.loaded

    def _update_or_abandon(
        self,
        load: Callable[[], list[Requested]],
        algorithm: Algorithm | None,
        interruptions: interrupted_once,
        ahead: Requested | None = None,
        numbers: tuple[int, ...] = (),
        before_commit: Callable[[Change], None] | None = None,
        edited: Edited | None = None,
    ) -> Change:
        """Make the updates that are given as one, or leave everything as it was.

        `before_commit` may still refuse the change, by raising an error. `edited` changes the rules as well.
        """
        engine, before = self._engine, self._algorithm
        self._history.settle()
        try:
            engine.reclaim(keep=self._state.sets())  # not at the end: what is interrupted here has changed nothing yet
            with engine.meter.run() as statistics:
                self._convert(algorithm or before)
                E_minus, E_plus, ignored = net_effect(self._state.E, load())
                change, version = self._make(
                    E_minus, E_plus, ignored, statistics, interruptions, ahead, numbers, before_commit, edited
                )
            self._acknowledge(change)
            if edited is None:
                self._past.note(version.number, change, version.age - self._history.now.age, self._written)
            else:
                self._follow(edited)
            self._history.advance(change, version)
            self._costs.note(change, engine.meter.work)
            log_update(version.number, change, self.algorithm)
            return change
        except BaseException:
            self._algorithm = before
            if self._remote is None or not self._remote.is_lost():
                engine.abandon(keep=self._state.sets())
            raise

    def _make(
        self,
        E_minus: FactSet,
        E_plus: FactSet,
        ignored: FactSet,
        statistics: Statistics,
        interruptions: interrupted_once,
        ahead: Requested | None,
        updates: tuple[int, ...],
        before_commit: Callable[[Change], None] | None,
        edited: Edited | None,
    ) -> tuple[Change, Version]:
        """Bring the state up to date, looking ahead to the next update if there is one.

        Return what changed, and the version that it leads to.
        """
        state = self._state
        layer, marks, bookkeeping, strata = state.layer, state.marks, state.bookkeeping, state.strata
        predicates: Mapping[str, Predicate] = self._core.predicates
        core = self._written
        if edited is not None:
            predicates, core = edited.plan.predicates, edited.written
        try:
            with self._engine.transaction():
                outcome = self._update(E_minus, E_plus, ahead, edited)
                sides = self._representation.changed(state, outcome)
                deleted, inserted = (ByRelation(predicates, side) for side in sides)
                asserted, retracted, ignored_facts = (
                    ByRelation(predicates, {name: facts.rows(name) for name in facts.predicates()})
                    for facts in (E_plus, E_minus, ignored)
                )
                change = Change(inserted, deleted, ignored_facts, asserted, retracted, statistics, updates)
                if before_commit is not None:
                    before_commit(change)
                following = self._history.now.after(change, core)
                interruptions.too_late()  # no interruption may come between the sets and what speaks of them
                state.layer, state.marks = outcome.layer, outcome.marks
        except BaseException:
            state.layer, state.marks, state.bookkeeping, state.strata = layer, marks, bookkeeping, strata
            raise
        return change, following

    def _acknowledge(self, change: Change) -> None:
        """Enter the change of an update, which all tasks have made by now, into the record and into the checkpoint.

        The record is what counts: tasks that have made an update which could not be entered are given up.
        """
        if self._record is None:
            return
        try:
            self._record.log(change)
            if self._checkpoint is not None:
                try:
                    self._checkpoint.log(change, self._base, self._draft)
                except BaseException:
                    self._record.log(change.inverse())
                    raise
        except BaseException as error:
            assert self._remote is not None, "a record of facts that cannot be lost"
            self._remote.lose(f"an update could not be recorded: {error}")
            raise

    def _update(self, E_minus: FactSet, E_plus: FactSet, ahead: Requested | None, edited: Edited | None) -> Outcome:
        update = self._representation.update(self._algorithm)
        if edited is not None:
            return change_rules(self._state, edited.plan, update, E_minus, E_plus)
        return make(self._state, update, self._algorithm.look_ahead, E_minus, E_plus, ahead)

    def _convert(self, algorithm: Algorithm) -> None:
        """Begin the bookkeeping that an algorithm relies on, if it is not the one at hand."""
        self._state = self._representation.convert(algorithm, self._state)
        statistics = self._engine.meter.statistics
        if instances := statistics.instances["conversion"]:
            kinds = " and ".join(algorithm.bookkeeping.kinds)
            statistics.choices.append(f"began to keep {kinds} for {algorithm.name}, by {instances} rule instances")
        self._algorithm = algorithm

    def _fitted(self, facts: FactsGiven | None) -> Mapping[str, Iterable[Row]]:
        return fitted_facts(self._core, by_name(facts), self._read)

    def _load(self, delete: Mapping[str, Iterable[Row]], insert: Mapping[str, Iterable[Row]]) -> Requested:
        return Requested(self._engine.load_all(delete), self._engine.load_all(insert))


def _nothing() -> None:
    """Stand for a method of what is gone."""


_LOST = "has lost a task"
_LOOK = "look at the log of its executor for the reason: a process was stopped, or ran out of memory"


@dataclass
class _Waiting:
    """An update of a stream that waits: its facts, and the sets of these in an engine."""

    delete: Mapping[str, Iterable[Row]]
    insert: Mapping[str, Iterable[Row]]
    replace: Mapping[str, Iterable[Row]]
    engine: Engine | None = None
    loaded: Requested | None = None


def draft_of(m: Materialisation, store: Store, change: Change | None = None) -> Draft:
    """Return the next version of a store in the making, with all facts of a materialisation.

    If the last version holds the facts as they were before the last update, it is enough to write its `change`.
    """
    with m._turns.look():
        return _draft_of(m, m, store, change)


def _draft_of(m: Materialisation, facts: Facts, store: Store, change: Change | None) -> Draft:
    draft = Draft.begin(store, m._program_digest())
    draft.when_in_place = lambda base: setattr(m, "_base", base)
    with draft:
        write_facts(draft, {p.name: p for p in m._visible()}, facts, change, m._bookkeeping_writer())
    return draft


class _Now:
    """The facts of a materialisation as its engine has them. For a thread that has its turn."""

    def __init__(self, m: Materialisation):
        self._m = m

    def __getitem__(self, name: str) -> Relation:
        return self._m._relation(self._m._predicate(name), self._m._rows(name))

    def explicit(self, name: str) -> Relation:
        return self._m._relation(self._m._predicate(name), self._m._state.E.rows(name))
