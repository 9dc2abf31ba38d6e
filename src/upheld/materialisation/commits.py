"""Commits of a materialisation: an update is made, checked and acknowledged, or everything stays as it was."""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from upheld.algebra.counters import ChangedRows, RowsByName, SmallUpdate, UnreadChange
from upheld.algebra.sets import FactSet
from upheld.base.interruptions import interrupted_once
from upheld.base.statistics import Statistics
from upheld.facts.change import ByRelation, Change, unread_change
from upheld.facts.relation import Relation
from upheld.language.core import Core, Predicate
from upheld.maintain.registry import Algorithm
from upheld.maintain.update import Outcome, Requested, net_effect
from upheld.materialisation.constraints import REPORT, Refusal, treatment, violations_among
from upheld.materialisation.lifecycle import Lifecycle
from upheld.materialisation.persistence.feeds import Programs
from upheld.materialisation.reports.log import log_update
from upheld.materialisation.updates.sources import Claimed
from upheld.materialisation.updates.transaction import refuse_in_transaction
from upheld.materialisation.versions.views import Version

if TYPE_CHECKING:
    from upheld.materialisation.updates.rule_changes import Edited

#: The violations that an update resolves and makes by default.
_NO_VIOLATIONS: tuple[Mapping[str, Relation], Mapping[str, Relation]] = ({}, {})

#: Called with a change before it is committed, which it refuses by raising an error.
BeforeCommit = Callable[[Change], None]


class Commits(Lifecycle):
    """A materialisation whose state, history, sources and record change together."""

    def _update_or_abandon(
        self,
        load: Callable[[], list[Requested]],
        algorithm: Algorithm | None,
        interruptions: interrupted_once,
        before_commit: BeforeCommit | None = None,
        edited: Edited | None = None,
        planned: Claimed | None = None,
        rows: tuple[RowsByName, RowsByName] | None = None,
    ) -> Change:
        """Make the updates that are given as one, or leave everything as it was.

        `before_commit` may still refuse the change, by raising an error. `edited` changes the rules as well. `planned`
        has the claims of sources once the updates are loaded. `rows` are what one update deletes and inserts, if that
        is all it does: the engine may make it as a whole, and nothing is loaded.
        """
        engine, before, transaction = self._engine, self._algorithm, self._open_transaction
        if transaction is not None and algorithm is not None and algorithm.name != before.name:
            refuse_in_transaction(transaction, "the algorithm cannot change")
        self._history.settle()
        try:
            if transaction is None:  # not at the end: what is interrupted here has changed nothing yet
                engine.reclaim(keep=self._state.sets())
            with engine.meter.run() as statistics:
                self._convert(algorithm or before)
                small = self._small_update(rows) if rows is not None else None
                change, version = self._make(small, load, statistics, interruptions, before_commit, edited)
            undo = None
            if planned is not None or self._sources:
                undo = self._sources.commit(planned or Claimed(), change)
            if transaction is not None:
                transaction.changes.append(change)
                if undo is not None:
                    transaction.claims.append(undo)
                transaction.work.append(engine.meter.done)
                self._history.advance(change, version)
                return change
            programs = (self._written, edited.written) if edited is not None else None
            try:
                self._acknowledge(change, version.number, version.age - self._history.now.age, programs)
            except BaseException:
                if undo is not None:
                    self._sources.enter(undo)
                raise
            if edited is not None:
                self._follow(edited)
            self._history.advance(change, version)
            self._costs.note(change, engine.meter.done)
            log_update(version.number, change, self.algorithm)
        except BaseException:
            self._algorithm = before
            self._tables.discard()
            if self._remote is None or not self._remote.is_lost():
                engine.abandon(keep=self._state.sets())
            raise
        self._publish_tables()
        return change

    def _small_update(self, rows: tuple[RowsByName, RowsByName]) -> SmallUpdate | None:
        """Return an update that the engine may make as a whole, if it can."""
        begin = self._algorithm.small_update
        return begin(self._state, *rows) if begin is not None and self._representation.shows_rows else None

    def _make(
        self,
        small: SmallUpdate | None,
        load: Callable[[], list[Requested]],
        statistics: Statistics,
        interruptions: interrupted_once,
        before_commit: BeforeCommit | None,
        edited: Edited | None,
    ) -> tuple[Change, Version]:
        """Bring the state up to date; return what changed, and the version that it leads to."""
        state, part = self._state, self._open_transaction
        bookkeeping, strata = state.bookkeeping, state.strata
        predicates: Mapping[str, Predicate] = self._core.predicates
        core = self._written
        if edited is not None:
            predicates, core = edited.plan.predicates, edited.written
        try:
            effect = net_effect(state.E, load()) if small is None else small.effect
            with self._engine.transaction() if part is None else part.update():
                unread = small.make(state.I) if small is not None else None
                resolved, violations = _NO_VIOLATIONS
                if unread is not None:
                    if core.constraints:
                        resolved, violations = (_violations_in(core, unread, side) for side in (0, 1))
                    change = unread_change(self._core, unread, statistics, violations)
                else:
                    E_minus, E_plus, ignored = effect if isinstance(effect, tuple) else effect()
                    rows = self._changed(self._update(E_minus, E_plus, edited), E_minus, E_plus, ignored)
                    if core.constraints:
                        resolved, violations = (violations_among(core, side) for side in rows[:2])
                    gone, new, retracted, asserted, spare = (ByRelation(predicates, side) for side in rows)
                    change = Change(new, gone, spare, asserted, retracted, statistics, violations=violations)
                if before_commit is not None:
                    before_commit(change)
                if part is None and self._tables:
                    self._tables.prepare(change)
                version = self._history.after(change, core)
                interruptions.too_late()  # no interruption may come between the sets and what speaks of them
        except BaseException:
            state.bookkeeping, state.strata = bookkeeping, strata
            raise
        if part is not None:
            part.resolved.append(resolved)
        return change, version

    def _changed(self, outcome: Outcome, E_minus: FactSet, E_plus: FactSet, ignored: FactSet) -> ChangedRows:
        """Return the rows that users see, of facts that have changed or were to be changed."""
        explicit = ({name: facts.rows(name) for name in facts.predicates()} for facts in (E_minus, E_plus, ignored))
        return ChangedRows(*self._representation.changed(self._state, outcome), *explicit)

    def _update(self, E_minus: FactSet, E_plus: FactSet, edited: Edited | None) -> Outcome:
        if edited is not None:
            from upheld.maintain.rule_changes import change_rules

            update = self._representation.update(self._algorithm)
            return change_rules(self._state, edited.plan, update, E_minus, E_plus)
        return self._representation.make(self._algorithm, self._state, E_minus, E_plus, self._remote)

    def _convert(self, algorithm: Algorithm) -> None:
        """Begin the bookkeeping that an algorithm relies on, if it is not the one at hand."""
        self._state = self._representation.convert(algorithm, self._state)
        statistics = self._engine.meter.statistics
        if instances := statistics.instances.get("conversion"):
            kinds = " and ".join(algorithm.bookkeeping.kinds)
            statistics.choices.append(f"began to keep {kinds} for {algorithm.name}, by {instances} rule instances")
        self._algorithm = algorithm

    def _follow(self, edited: Edited) -> None:
        """Go on with the program that the rules were changed to."""
        self._written, self._core = edited.written, edited.plan.rules.core
        self._removed_rules, self._strata = edited.past(), self._state.strata
        there = {id(rule) for rule in self._written.rules}
        self._decisions = tuple(decision for decision in self._decisions if id(decision.rule) in there)
        self._digest = None
        self.__dict__.pop("_explainer", None)
        self._watch_growth(self._written)
        self._engine.forget_rules(edited.plan.temporary())

    def _acknowledge(self, change: Change, number: int, facts: int, programs: Programs | None = None) -> None:
        """Enter the change of an update, which all tasks have made by now, into the record and into the checkpoint.

        The record is what counts: tasks that have made an update which could not be entered are given up. The past has
        the change before, as the checkpoint may have a feed.
        """
        self._past.note(number, change, facts, programs)
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
            self._past.take_back()
            assert self._remote is not None, "a record of facts that cannot be lost"
            self._remote.lose(f"an update could not be recorded: {error}")
            raise

    def _checking(self, subject: str, on_violation: str | None, core: Core | None = None) -> BeforeCommit | None:
        """Return what refuses a change that violates a constraint, before it is committed; None if it is reported.

        `core` is the program from then on, if the change is one of rules.
        """
        if on_violation is not None:
            hint = "pass it to `m.transaction`, which checks constraints at the end"
            refuse_in_transaction(self._open_transaction, "`on_violation` cannot be chosen", hint)
        if treatment(on_violation, self._on_violation) == REPORT or self._is_in_transaction():
            return None
        if not (core or self._written).constraints:
            return None

        def refuse(change: Change) -> None:
            if change.violations:
                from upheld.explain import Explainer

                program = core or self._written
                explainer = self._explainer if core is None else Explainer(core)
                explain = partial(self._representation.explain, explainer, program, self._state)
                raise Refusal(program, explain, subject).error(change.violations)

        return refuse

    def _is_in_transaction(self) -> bool:
        """Return whether this thread has an open transaction."""
        return self._open_transaction is not None and self._open_transaction.thread == get_ident()

    def _refuse_violations(self) -> None:
        """Raise if the facts that there are violate a constraint."""
        violations = self.violations()
        if violations:
            raise Refusal(self._written, self._explained, "the program with its facts").error(violations)


def _violations_in(core: Core, change: UnreadChange, side: int) -> Mapping[str, Relation]:
    """Return the violations of constraints on a side of a change, which is read only if there are any."""
    return violations_among(core, change.read(side)) if core.constraints.keys() & change.sizes(side).keys() else {}


class Previewed(Exception):
    """Ends the transaction of a preview, so that the engine restores the state before it."""

    def __init__(self, change: Change):
        super().__init__("the update was a preview")
        self.change = change


def end_preview(change: Change) -> None:
    """Read all rows of a change, which the engine is about to forget, and end its transaction."""
    for facts in (change.inserted, change.deleted, change.ignored, change.asserted, change.retracted):
        for relation in facts.held():
            relation.detach()
    for relation in change.violations.values():
        relation.detach()
    raise Previewed(change)
