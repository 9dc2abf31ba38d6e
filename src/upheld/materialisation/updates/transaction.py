"""Transactions: several updates that are committed together, or rolled back together."""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from upheld.algebra.engine import Attempt, Engine
from upheld.algebra.work import WorkDone
from upheld.base.errors import Problem, UsageError, count
from upheld.base.statistics import summed
from upheld.facts.change import ByRelation, Change, relation_of
from upheld.facts.columns import Row
from upheld.facts.relation import Relation
from upheld.language.core import Core, Predicate
from upheld.maintain.update import State
from upheld.materialisation.updates.sources import Claimed
from upheld.materialisation.versions.views import together


class Transaction:
    """Several updates of a materialisation that are committed together: see `Materialisation.transaction`.

    `change` is the change of all of them, once they are committed; until then, and after a rollback, it is None.

    Args:
        part: The state before the transaction, and the changes made so far.
        end: Function that commits the transaction, or rolls it back if its argument is False.
    """

    change: Change | None = None

    def __init__(self, part: Part, end: Callable[[bool], None]):
        self._part, self._end = part, end

    @property
    def is_open(self) -> bool:
        """Whether it was neither committed nor rolled back."""
        return self._part.is_open

    def commit(self) -> Change:
        """Commit the updates made so far, and return their change. The rest of the block is outside the transaction.

        The end of the block commits by itself.
        """
        self._check_open("commit")
        self._end(True)
        assert self.change is not None, "a transaction that was committed without a change"
        return self.change

    def rollback(self) -> None:
        """Undo the updates made so far. The rest of the block is outside the transaction."""
        self._check_open("rollback")
        self._end(False)

    def _check_open(self, method: str) -> None:
        if not self.is_open or self._part.thread != get_ident():
            ended = "has ended" if not self.is_open else "belongs to another thread"
            raise UsageError(
                Problem(
                    "transaction-over",
                    f"the transaction {ended}, so `{method}` has nothing to do",
                    note="a transaction ends with its block, with `commit` or with `rollback`",
                    hint="begin another one with `m.transaction()`",
                )
            )

    def __repr__(self) -> str:
        state = "open" if self.is_open else "rolled back" if self.change is None else "committed"
        return f"<Transaction {state}, {count(len(self._part.changes), 'update')}>"


class Part:
    """The open transaction of a materialisation: what was there before, and the changes made so far.

    The engine is in one transaction of its own from the beginning to the end; each update is an attempt in it.
    """

    def __init__(self, engine: Engine, state: State):
        self.thread, self.is_open = get_ident(), True
        self.changes: list[Change] = []
        #: The violations that went with each change, and the work of each.
        self.resolved: list[Mapping[str, Relation]] = []
        self.work: list[WorkDone] = []
        #: The claims of sources that each update has changed, as they were before it.
        self.claims: list[Claimed] = []
        self._engine, self._state = engine, state
        self._before = state.bookkeeping, state.strata
        #: All bookkeeping since: the journal of the engine has entries for columns of each.
        self._bookkeeping: list[object] = []
        self._unfinished: Attempt | None = None
        self._block = ExitStack()
        state.earlier = state.bookkeeping.sets()
        self._block.enter_context(engine.transaction())

    @contextmanager
    def update(self) -> Iterator[None]:
        """A block that makes an update, or leaves everything as it was before the block."""
        self.finish_undoing()
        self._bookkeeping.append(self._state.bookkeeping)
        with self._engine.attempt() as attempt:
            self._unfinished = attempt
            try:
                yield
                self._engine.complete()
            except BaseException:
                self.finish_undoing()
                raise
            self._unfinished = None

    def finish_undoing(self) -> None:
        """Undo an update that failed, if an interruption has kept it from being undone."""
        if self._unfinished is not None:
            self._unfinished.undo()
            self._unfinished = None

    def commit(self) -> None:
        """Commit the transaction of the engine."""
        self._block.close()
        self._state.earlier = ()

    def roll_back(self) -> None:
        """Undo the transaction of the engine, if it has not failed already, and restore the state."""
        error = _RolledBack()
        try:
            self._block.__exit__(_RolledBack, error, None)
        finally:
            state = self._state
            state.bookkeeping, state.strata = self._before
            state.earlier = ()

    def combined(self, core: Core, predicates: Mapping[str, Predicate]) -> Change:
        """Return the change of all updates together."""
        if len(self.changes) == 1:
            return self.changes[0]
        inserted, deleted = _net(predicates, [(c.inserted, c.deleted) for c in self.changes])
        asserted, retracted = _net(predicates, [(c.asserted, c.retracted) for c in self.changes])
        ignored: dict[str, set[Row]] = {}
        for relation in (relation for change in self.changes for relation in change.ignored.held()):
            ignored.setdefault(relation.name, set()).update(relation.stored_set())
        statistics = summed(change.statistics for change in self.changes)
        violations: dict[str, Relation] = {}
        for name in {name: None for change in self.changes for name in change.violations}:
            none = relation_of(core.predicates[name], ())
            sides = zip(self.changes, self.resolved, strict=True)
            came, _ = together((c.violations.get(name, none), resolved.get(name, none)) for c, resolved in sides)
            if len(came):
                violations[name] = relation_of(core.predicates[name], came)
        parts = inserted, deleted, ByRelation(predicates, ignored), asserted, retracted
        return Change(*parts, statistics, violations=violations)


class _RolledBack(Exception):
    """Ends the transaction of an engine, so that it restores the state before it."""


def _net(
    predicates: Mapping[str, Predicate], sides: Sequence[tuple[ByRelation, ByRelation]]
) -> tuple[ByRelation, ByRelation]:
    """Return the facts that came and that went with changes that were made one after the other."""
    names = {relation.name for pair in sides for side in pair for relation in side.held()}
    net = {name: together((came.some(name), went.some(name)) for came, went in sides) for name in sorted(names)}
    came, went = ({name: frozenset(pair[i]) for name, pair in net.items()} for i in (0, 1))
    return ByRelation(predicates, came), ByRelation(predicates, went)


def refuse_in_transaction(part: Part | None, action: str, hint: str = "do it before or after the block") -> None:
    """Refuse an action within the open transaction of this thread."""
    if part is not None and part.thread == get_ident():
        note = "a transaction has updates of facts, queries and explanations"
        raise UsageError(Problem("in-transaction", f"{action} within a transaction", note=note, hint=hint))
