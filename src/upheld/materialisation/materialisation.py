"""`Materialisation`: a program, its explicit facts, and all facts that follow from them."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, overload

from upheld.algebra.counters import RowsByName
from upheld.algebra.engine import Engine, Freed
from upheld.algebra.sets import settle
from upheld.base.errors import require
from upheld.base.interruptions import interrupted_once, uninterrupted
from upheld.facts.change import Change, numbered
from upheld.facts.columns import Row
from upheld.facts.ingest.by_relation import FactsGiven, by_name, fitted_facts
from upheld.language.ast import Program
from upheld.language.core import Core
from upheld.language.syntax.files import require_program
from upheld.maintain.marking.marking import Marked
from upheld.maintain.registry import Algorithm
from upheld.maintain.update import Requested, check_replaced, difference, merged
from upheld.materialisation.commits import BeforeCommit, Commits, Previewed, end_preview
from upheld.materialisation.constraints import REFUSE, Refusal, treatment
from upheld.materialisation.persistence.feeds import RowsByName as StoredRows
from upheld.materialisation.reports.log import log_update
from upheld.materialisation.updates.sources import SOURCE, Claimed, Rows, is_source
from upheld.materialisation.updates.stream import Queue, Sides, follow, follow_async, updates_text
from upheld.materialisation.updates.transaction import Part, Transaction, refuse_in_transaction
from upheld.materialisation.warming import made_up, rehearse

if TYPE_CHECKING:
    from upheld.materialisation.updates.rule_changes import Asked

#: Rows of an update that the engine may make as a whole.
FEW_ROWS = 1 << 10


class Materialisation(Commits):
    """All facts that follow from a program and explicit facts. `update` keeps them so.

    >>> m = materialise("path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z).", {"edge": [(1, 2), (2, 3)]})
    >>> m["path"].to_set() == {(1, 2), (2, 3), (1, 3)}
    True

    Any number of threads may use it. They take turns, first come, first served, and each finds what some update has
    left: see docs/how-to/use-threads.md.
    """

    def __repr__(self) -> str:
        with self._turns.look():
            sizes = ", ".join(f"{p.name}: {len(self[p.name])}" for p in self._visible())
        return f"<Materialisation {sizes}>"

    @property
    def algorithm(self) -> str:
        """The name of the algorithm that `update` uses by default."""
        return self._algorithm.name

    def update(
        self,
        insert: FactsGiven | None = None,
        delete: FactsGiven | None = None,
        *,
        replace: FactsGiven | None = None,
        algorithm: str | None = None,
        on_violation: str | None = None,
        source: str | None = None,
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
            on_violation: Whether to `refuse` an update that violates a constraint, or to `report` its violations in the
                change. By default as for `materialise`.
            source: Name of the source of these facts. Facts are inserted, deleted and replaced as claims of this source
                alone: a fact stays explicit while another source claims it. Without a source, `delete` deletes facts
                whatever their sources, and `insert` inserts them for the unnamed source.

        >>> m = materialise("q(x) :- p(x).", {"p": [1]})
        >>> m.update(insert={"p": [1, 2]}, source="feed-7")
        <Change +1 p, +1 q>
        >>> m.update(delete={"p": [1, 2]}, source="feed-7")
        <Change -1 p, -1 q>
        """
        chosen = None if algorithm is None else self._represented_as.algorithm(algorithm)
        checking = self._checking("the update", on_violation)
        return self._update_to(insert, delete, replace, chosen, checking, source)

    def retract(self, source: str, *, on_violation: str | None = None) -> Change:
        """Delete all facts of a source, and return the change; facts that another source claims stay.

        It costs what the facts of this source and their consequences cost, however many other facts there are.

        Args:
            source: Name of a source, as for `update`. A name that no update has had is an error.
            on_violation: As for `update`.

        >>> m = materialise("q(x) :- p(x).", {"p": [1]})
        >>> change = m.update(insert={"p": [1, 2]}, source="feed-7")
        >>> m.retract("feed-7"), m.sources()
        (<Change -1 p, -1 q>, {'feed-7': 0})
        """
        require(is_source(source), "source", SOURCE, source)
        with interrupted_once() as interruptions, self._turns.work():
            rows, planned = self._sources.facts_of(source), Claimed()
            return self._update_or_abandon(
                lambda: [self._claimed(planned, source, rows, {}, {})], None, interruptions,
                before_commit=self._checking("the update", on_violation), planned=planned,
            )  # fmt: skip

    def sources(self) -> dict[str, int]:
        """Return the number of facts of each source that updates have named.

        Facts that were given without a source, which belong to the unnamed source, are not among them.

        >>> m = materialise("q(x) :- p(x).", {"p": [1]})
        >>> change = m.update(insert={"p": [2, 3]}, source="feed-7")
        >>> m.sources()
        {'feed-7': 2}
        """
        with self._turns.look():
            return self._sources.sizes()

    def preview(
        self,
        insert: FactsGiven | None = None,
        delete: FactsGiven | None = None,
        *,
        replace: FactsGiven | None = None,
        add: str | Sequence[str] = (),
        remove: str | Sequence[str] = (),
        program: str | Path | Program | None = None,
        source: str | None = None,
    ) -> Change:
        """Return the change that `update` or `change_rules` would make, and change nothing.

        It costs as much as the change. Facts and rules are checked as for `update` and `change_rules`; violations of
        constraints are reported in the change.

        Args:
            insert: As for `update`.
            delete: As for `update`.
            replace: As for `update`.
            add: As for `change_rules`.
            remove: As for `change_rules`.
            program: The program to change to: `replace` of `change_rules`.
            source: As for `update`.

        >>> m = materialise("q(x) :- p(x).", {"p": [1, 2]})
        >>> m.preview(delete={"p": [1]}), len(m["q"])
        (<Change -1 p, -1 q>, 2)
        >>> m.preview(add="r(x) :- q(x), x > 1.")
        <Change +1 r>
        """
        from upheld.materialisation.updates.rule_changes import refuse_facts_with_rules, rule_texts

        added, removed = rule_texts(add, "add"), rule_texts(remove, "remove")
        try:
            if added or removed or program is not None:
                refuse_facts_with_rules(insert, delete, replace, source)
                self._change_rules(added, removed, program, lambda _: end_preview)
            else:
                self._update_to(insert, delete, replace, None, end_preview, source)
        except Previewed as preview:
            return preview.change
        raise AssertionError("a preview that was committed")

    def _update_to(
        self,
        insert: FactsGiven | None,
        delete: FactsGiven | None,
        replace: FactsGiven | None,
        algorithm: Algorithm | None,
        before_commit: BeforeCommit | None,
        source: str | None,
    ) -> Change:
        require(source is None or is_source(source), "source", SOURCE, source)
        minus, plus = self._fitted(delete, "delete"), self._fitted(insert, "insert")
        whole = self._fitted(replace, "replace")
        if whole:
            check_replaced(whole, minus, plus)
        with interrupted_once() as interruptions, self._turns.work():
            planned = Claimed() if source is not None or self._sources else None

            def load() -> list[Requested]:
                if planned is not None and source is not None:
                    return [self._claimed(planned, source, minus, plus, whole)]
                if planned is not None:
                    self._sources.plain(planned, minus, plus)
                return [self._load(minus, plus), *([difference(self._state.E, whole)] if whole else [])]

            rows = self._rows_of(minus, plus) if planned is None and not whole else None
            return self._update_or_abandon(
                load, algorithm, interruptions, before_commit=before_commit, planned=planned, rows=rows
            )

    def _claimed(self, planned: Claimed, source: str, delete: Rows, insert: Rows, replace: Rows) -> Requested:
        """Return the update of the explicit facts by which a source claims other facts, and plan its claims."""

        def explicit(name: str, rows: list[Row]) -> set[Row]:
            return set(settle(self._engine.load(name, rows) & self._state.E).rows(name))

        return self._load(*self._sources.claimed(planned, source, delete, insert, replace, explicit))

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
                with self._copy_with(self._fitted(facts, "facts").items()) as copy:
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

    def change_rules(
        self,
        add: str | Sequence[str] = (),
        remove: str | Sequence[str] = (),
        *,
        replace: str | Path | Program | None = None,
        on_violation: str | None = None,
    ) -> Change:
        """Add and remove rules, bring all derived facts up to date, and return the change.

        Removed rules go first. Only what the changed rules derive is worked on, not the rest of the program. A change
        that fails leaves rules and facts as they were.

        Args:
            add: Rules to add, as texts in the dialect of the program; declarations and facts may be among them.
            remove: Rules of the program to remove, up to the names of variables and the order of the body.
            replace: A program to change to, as for `materialise`. Rules that are in both programs stay. Explicit facts
                are kept, but for those that only the text of the old program states.
            on_violation: As for `update`. A constraint that is added must not be violated either.

        >>> m = materialise("path(x, y) :- edge(x, y).", {"edge": [(1, 2), (2, 3)]})
        >>> m.change_rules(add="path(x, z) :- path(x, y), edge(y, z).")
        <Change +1 path>
        >>> m.change_rules(remove="path(x, z) :- edge(y, z), path(x, y).")
        <Change -1 path>
        """
        if replace is not None:
            require_program(replace, "replace")
        treatment(on_violation, REFUSE)
        return self._change_rules(
            add, remove, replace, lambda core: self._checking("the rule change", on_violation, core)
        )

    def _change_rules(
        self,
        add: str | Sequence[str],
        remove: str | Sequence[str],
        program: str | Path | Program | None,
        before_commit: Callable[[Core], BeforeCommit | None],
    ) -> Change:
        from upheld.materialisation.updates.rule_changes import read_rule_change, refuse_rule_changes

        refuse_rule_changes(self._represented_as, self._remote is not None)
        refuse_in_transaction(self._open_transaction, "rules cannot change")
        return self._change_written(read_rule_change(add, remove, program), before_commit)

    def _change_program(self, core: Core, minus: StoredRows, plus: StoredRows) -> Change:
        from upheld.compiler.edits import Edit

        dropped, stated = (
            frozenset((name, row) for name, rows in side.items() for row in rows) for side in (minus, plus)
        )
        return self._change_written(lambda written, equality: Edit(core, dropped, stated), lambda core: None)

    def _change_written(self, asked: Asked, before_commit: Callable[[Core], BeforeCommit | None]) -> Change:
        from upheld.maintain.rule_changes import Rules
        from upheld.materialisation.updates.rule_changes import Edited

        with interrupted_once() as interruptions, self._turns.work():
            edit = asked(self._written, self._equality)
            state, known = self._state, self._known_relations
            rules = Rules(self._core, *self._removed_rules)
            edited = Edited.of(edit, self._written, rules, self._options[1], state, known)
            new = self._declare(edited.plan.predicates)
            try:
                return self._update_or_abandon(
                    lambda: [self._load(*edited.facts())], None, interruptions,
                    before_commit=before_commit(edited.written), edited=edited,
                )  # fmt: skip
            except BaseException:
                self._engine.forget_rules(edited.plan.new_rules())
                for predicate in new:
                    self._engine.forget(predicate)
                    del self._known_relations[predicate.name]
                raise

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
        refuse_in_transaction(self._open_transaction, "the memory of deleted facts cannot be freed")
        with interrupted_once(), self._turns.work():
            return self._engine.compact(keep=self._state.sets())

    @overload
    def stream(
        self,
        updates: Iterable[object],
        *,
        algorithm: str | None = ...,
        merge_waiting: int = ...,
        on_violation: str | None = ...,
    ) -> Iterator[Change]: ...

    @overload
    def stream(
        self,
        updates: AsyncIterable[object],
        *,
        algorithm: str | None = ...,
        merge_waiting: int = ...,
        on_violation: str | None = ...,
    ) -> AsyncIterator[Change]: ...

    def stream(
        self,
        updates: Iterable[object] | AsyncIterable[object],
        *,
        algorithm: str | None = None,
        merge_waiting: int = 1,
        on_violation: str | None = None,
    ) -> Iterator[Change] | AsyncIterator[Change]:
        """Apply a stream of updates and yield the change of each; asynchronously for an asynchronous iterable.

        An update that fails, or that violates a constraint and is refused, is rolled back and ends the stream.

        Args:
            updates: Iterable of updates: each is an `upheld.Update`, or a dictionary with facts to `insert`, to
                `delete`, and to `replace` relations by; it may have a `source`, as for `update`, such as the name of a
                file or the number of a batch. An update with `retract` and nothing else retracts a source.
            algorithm: Algorithm for these and later updates. `bf-marking` and `dred-marking` look at the next update
                if that has arrived. In a list it has always arrived; for an iterator this is unknown unless it has a
                method `ready`, as `upheld.Arrivals` has.
            merge_waiting: Apply up to this many updates that have arrived as one; `Change.updates` has their numbers.
            on_violation: As for `update`.

        >>> m = materialise("path(x, y) :- edge(x, y).", {"edge": [(0, 1)]})
        >>> for change in m.stream([{"insert": {"edge": [(1, 2), (3, 4)]}}, {"delete": {"edge": [(3, 4)]}}]):
        ...     print(change.updates, change.inserted["path"].to_rows(), change.deleted["path"].to_rows())
        (1,) [(1, 2), (3, 4)] []
        (2,) [] [(3, 4)]
        """
        # Wrong arguments are refused at once, not with the first update.
        require(isinstance(updates, Iterable | AsyncIterable), "updates", "an iterable of updates", updates)
        chosen = None if algorithm is None else self._represented_as.algorithm(algorithm)
        treatment(on_violation, REFUSE)

        def looks_ahead() -> bool:
            return (chosen or self._algorithm).bookkeeping is Marked

        def make(given: list[_Waiting], numbers: tuple[int, ...], ahead: Sequence[_Waiting]) -> Change:
            with interrupted_once() as interruptions, self._turns.work():
                # The difference between a snapshot and the facts is known when all updates before it were made.
                known = ahead and looks_ahead() and not any(waiting.replace or waiting.source for waiting in ahead)
                seen = merged([self._loaded(waiting) for waiting in ahead]) if known else None
                first = given[0]
                rows = self._rows_waiting(first) if len(given) == 1 and seen is None else None
                planned = Claimed() if first.source is not None or self._sources else None
                if rows is not None:
                    minus, plus = rows

                    def requested() -> list[Requested]:
                        return [self._load(minus, plus)]

                elif planned is not None and (source := first.source) is not None:
                    gone = self._sources.facts_of(source) if first.is_retraction else first.delete

                    def requested() -> list[Requested]:
                        return [self._claimed(planned, source, gone, first.insert, first.replace)]

                else:
                    if planned is not None:
                        for waiting in given:
                            self._sources.plain(planned, waiting.delete, waiting.insert)
                    updates = [(self._loaded(given[0]), given.pop(0).replace) for _ in range(len(given))]

                    def requested() -> list[Requested]:
                        return self._in_sequence(updates)

                def announced() -> list[Requested]:
                    if seen is not None:
                        self._state.bookkeeping = Marked(self._state.keeping(Marked).marks, seen)
                    return requested()

                change = self._update_or_abandon(
                    announced, chosen, interruptions,
                    before_commit=self._checking(updates_text(numbers), on_violation), planned=planned, rows=rows,
                )  # fmt: skip
                return numbered(change, numbers)

        def load(sides: Sides) -> _Waiting:
            delete, insert, replace = (self._fitted(getattr(sides, name), name) for name in Sides._fields[:3])
            waiting = _Waiting(delete, insert, replace, sides.source or sides.retract, sides.retract is not None)
            if waiting.replace:
                check_replaced(waiting.replace, waiting.delete, waiting.insert)
            # With a source it depends on the claims of all updates before, and few rows may not have to be loaded.
            if waiting.source is None and self._rows_waiting(waiting) is None:
                with self._turns.work():
                    self._loaded(waiting)
            return waiting

        def alone(waiting: _Waiting) -> bool:
            return waiting.source is not None or bool(waiting.replace and self._sources)

        queue = Queue(load, make, looks_ahead, merge_waiting, alone)
        return follow_async(queue, updates) if isinstance(updates, AsyncIterable) else follow(queue, updates)

    def transaction(self, *, on_violation: str | None = None) -> AbstractContextManager[Transaction]:
        """Return a `with` block whose updates are committed together at its end, as one version.

        Queries in the block see its updates; other threads see all of them or none, and wait with their own updates
        until the block ends. An exception rolls everything back. An update that fails by itself leaves the transaction
        as it was before that update. Constraints are checked at the end: an update may violate one that a later update
        satisfies. Rules cannot change in a transaction, and transactions do not nest.

        Args:
            on_violation: Whether to `refuse` a transaction that violates a constraint, or to `report` its violations in
                the change. By default as for `materialise`.

        >>> m = materialise("path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z).", {"edge": [(1, 2)]})
        >>> with m.transaction() as t:
        ...     change = m.update(insert={"edge": [(2, 3), (3, 4)]})
        ...     change = m.update(delete={"edge": [(3, 4)]})
        ...     len(m["path"])
        3
        >>> t.change, m.version
        (<Change +1 edge, +2 path>, 1)
        """
        return self._in_transaction(treatment(on_violation, self._on_violation))

    @contextmanager
    def _in_transaction(self, choice: str) -> Iterator[Transaction]:
        with self._turns.hold():
            part = self._begin()
            t = Transaction(part, lambda commits: self._commit(t, part, choice) if commits else self._undo(part))
            try:
                yield t
            except BaseException:
                if part.is_open:
                    self._undo(part)
                raise
            if part.is_open:
                t.commit()

    def _begin(self) -> Part:
        with interrupted_once(), self._turns.work():
            self._history.settle()
            self._engine.reclaim(keep=self._state.sets())
            part = Part(self._engine, self._state)
            self._history.begin()
            self._open_transaction = part
        return part

    def _commit(self, t: Transaction, part: Part, choice: str) -> None:
        """Commit a transaction, or undo it if that fails or violates a constraint."""
        core = self._written
        with interrupted_once() as interruptions, self._turns.work():
            try:
                part.finish_undoing()
                change = part.combined(core, self._core.predicates)
                if change.violations and choice == REFUSE:
                    explain = partial(self._representation.explain, self._explainer, core, self._state)
                    with self._engine.meter.run():
                        raise Refusal(core, explain, "the transaction").error(change.violations)
                self._tables.prepare(change)
                interruptions.too_late()  # no interruption may come between the sets and what speaks of them
                part.commit()
                before, after = self._history.now, self._history.tip
                if part.changes:
                    self._acknowledge(change, after.number, after.age - before.age)
            except BaseException:
                self._tables.discard()
                self._undo(part)
                raise
            part.is_open, self._open_transaction = False, None
            self._history.commit()
            t.change = change
            if part.changes:
                self._costs.note(change, *part.work)
                log_update(after.number, change, self.algorithm)
            self._publish_tables()

    def _undo(self, part: Part) -> None:
        """Restore the state before a transaction."""
        with uninterrupted():
            try:
                self._history.roll_back()
            finally:
                part.is_open, self._open_transaction = False, None
                while part.claims:
                    self._sources.enter(part.claims.pop())
                part.roll_back()
                if self._remote is None or not self._remote.is_lost():
                    self._engine.abandon(keep=self._state.sets())

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

    def _rows_of(
        self, delete: Mapping[str, Iterable[Row]], insert: Mapping[str, Iterable[Row]]
    ) -> tuple[RowsByName, RowsByName] | None:
        """Return the rows that an update without sources deletes and inserts, if they are few.

        An engine in other processes makes no small updates: it loads the facts while they wait.
        """
        if self._remote is not None:
            return None
        count = 0
        for side in (delete, insert):
            for rows in side.values():
                if type(rows) is not list and not isinstance(rows, Sized):
                    return None
                count += len(rows)
        return (delete, insert) if count <= FEW_ROWS else None  # type: ignore[return-value]

    def _rows_waiting(self, waiting: _Waiting) -> tuple[RowsByName, RowsByName] | None:
        """Return the rows that an update of a stream deletes and inserts, if that is all it does, and they are few."""
        if waiting.source is not None or waiting.replace or self._sources:
            return None
        return self._rows_of(waiting.delete, waiting.insert)

    def _loaded(self, waiting: _Waiting) -> Requested:
        """Return an update that is waiting as sets of the engine; if that was started meanwhile, load it again."""
        if waiting.engine is not self._engine or waiting.loaded is None:
            with self._engine.meter.run():
                sets = self._load(waiting.delete, waiting.insert)
                # Settled: what is waiting must outlast whatever is done meanwhile.
                waiting.loaded = Requested(settle(sets.minus), settle(sets.plus))
            waiting.engine = self._engine
        return waiting.loaded

    def _fitted(self, facts: FactsGiven | None, parameter: str) -> Mapping[str, Iterable[Row]]:
        return {} if facts is None else fitted_facts(self._core, by_name(facts, parameter), self._read, self._threads)

    def _load(self, delete: Mapping[str, Iterable[Row]], insert: Mapping[str, Iterable[Row]]) -> Requested:
        return Requested(self._engine.load_all(delete), self._engine.load_all(insert))


@dataclass
class _Waiting:
    """An update of a stream that waits: its facts, and the sets of these in an engine."""

    delete: Mapping[str, Iterable[Row]]
    insert: Mapping[str, Iterable[Row]]
    replace: Mapping[str, Iterable[Row]]
    source: str | None = None
    #: Whether it retracts its source, and has no facts of its own.
    is_retraction: bool = False
    engine: Engine | None = None
    loaded: Requested | None = None
