"""Where derived facts go: into the tables, as rows found for the first time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from upheld.algebra.meter import Reports
from upheld.engines.memory.kernels import pairs as pair_kernels
from upheld.engines.memory.kernels import rows as row_kernels
from upheld.engines.memory.plans.plan import AtomStep, Places, Plan
from upheld.engines.memory.sets.bit_matrix import NO_PAIRS
from upheld.engines.memory.sets.collected import Collected, MadeRows
from upheld.engines.memory.sets.truth_tables import Spelling, Truth
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.pairs.shape import PairShape, rectangle
from upheld.engines.memory.storage.table import Table
from upheld.language.ast import Variable
from upheld.language.core import Atom


def head_sink(collected: Collected, plan: Plan, reject: Spelling | None, start: Table | None, work: int) -> HeadSink:
    """Return a sink for a plan that begins with `work` rows of a table; it ignores heads that `reject` holds for."""
    collected.begin_with_known_pairs(plan.head, reject, work)
    return HeadSink(collected, plan, collected.context.truth_of(reject), plan.has_wide_values(start))


Cells = npt.NDArray[np.uint8]


class KnownPairs(NamedTuple):
    """Pairs whose instances are counted as they are found: those with a cell in `known` that is not 0.

    They are counted in the cells `counts`, as far as these are not full.
    """

    known: Cells
    counts: Cells
    shape: PairShape

    def others(self, pairs: MadeRows) -> MadeRows:
        """Count pairs, and return those that are not known, or whose cells are full."""
        out = np.empty_like(pairs)
        return out[: pair_kernels.count_known_pairs(pairs, self.known, self.counts, *self.shape.arguments, out)].copy()


#: No pairs that are counted.
NO_COUNTS = KnownPairs(np.zeros(1, np.uint8), np.zeros(1, np.uint8), rectangle(0, 0))


class HeadsOnly(ABC):
    """A sink that needs nothing but heads, which a kernel of its own may make."""

    @property
    @abstractmethod
    def matrix(self) -> str:
        """The kind of matrix that known pairs have, as the kernels of hot rules distinguish them."""

    def __init__(self, collected: Collected, plan: Plan, reject: Truth, wide: bool):
        self.collected, self.plan, self.reject, self.wide = collected, plan, reject, wide
        #: How many instances have come.
        self.instances = 0
        #: Whether known pairs are left out of heads as they are made.
        self._sifts = False

    @contextmanager
    def sifting(self) -> Iterator[None]:
        """Leave known pairs out of heads that are made in the block, for threads of which none puts pairs there."""
        self._sifts = True
        try:
            yield
        finally:
            self._sifts = False

    def make(self, B: Codes, width: int) -> Heads:
        plan = self.plan
        return self._heads(made_rows(plan.head, plan.terms, plan.constants, B, width, self.wide))

    def make_joined(self, B: Codes, step: AtomStep, parents: Rows, matches: Rows, count: int) -> Heads:
        return self._heads(made_joined_rows(self.plan, B, step, parents, matches, count, self.wide))

    def _heads(self, rows: MadeRows) -> Heads:
        if self.wide:
            rows = narrowed(self.plan.head, rows)
        return Heads(self.others(rows) if self._sifts and rows.dtype == np.int32 else rows, len(rows))

    def may_enter_beside(self, pieces: Sequence[Heads]) -> bool:
        """Return whether one thread may enter heads while others make heads, and is quick to do so."""
        return False

    def in_order(self, table: Table, rows: Rows, atom: Atom) -> Rows:
        """Return rows of an atom in the order in which heads are entered soonest."""
        shape = self.shape
        if shape.has_squares:
            for term in self.plan.rule.head.terms:
                if isinstance(term, Variable) and term in atom.terms:
                    return shape.in_order(table.rows, rows, atom.terms.index(term))
        return rows

    @property
    @abstractmethod
    def shape(self) -> PairShape:
        """The shape of the matrix that known pairs have."""

    @abstractmethod
    def known_pairs(self, matrix: str) -> tuple[Any, ...]:
        """Return the heads that need not be made, for kernels that expect a kind of matrix.

        The kind may have changed since the kernel was chosen. Then it gets none of them.
        """

    @abstractmethod
    def others(self, rows: MadeRows) -> MadeRows:
        """Return the heads that have to be made."""

    @abstractmethod
    def enter(self, piece: Heads) -> None:
        """Take heads."""

    def enter_all(self, pieces: Sequence[Heads]) -> None:
        """Take several pieces, in order."""
        for heads in pieces:
            self.enter(heads)


class HeadSink(HeadsOnly):
    """Finds the head rows of a plan."""

    def __init__(self, collected: Collected, plan: Plan, reject: Truth, wide: bool):
        super().__init__(collected, plan, reject, wide)
        #: The rows of the table, as long as all are heads of this plan and different instances have different ones.
        #: Then heads are appended: there is nothing to be found.
        self._appended = 0 if plan.makes_distinct_heads and not reject[0] else -1
        self._reports: Reports = collected.context.meter

    def reporting_to(self, reports: Reports) -> Self:
        """Report instances and facts elsewhere than to the meter, from now on."""
        self._reports = reports
        return self

    @property
    def matrix(self) -> str:
        return "squares" if self.shape.has_squares else "bits"

    @property
    def shape(self) -> PairShape:
        return self.collected.known_pairs(self.plan.head).shape

    def known_pairs(self, matrix: str) -> tuple[Any, ...]:
        known = self.collected.known_pairs(self.plan.head) if matrix == self.matrix else NO_PAIRS
        return known.words, *known.shape.arguments[: 3 if matrix == "squares" else 2]

    def others(self, rows: MadeRows) -> MadeRows:
        known = self.collected.known_pairs(self.plan.head)
        return rows if known is NO_PAIRS else known.unknown(rows)

    def enter(self, piece: Heads) -> None:
        table, rows = self.plan.head, piece.rows
        self.instances += piece.instances
        self._reports.instances(self.plan.rule, piece.instances)
        if self.wide:
            rows = fitted(table, rows)
        if table.n == self._appended:
            facts = self.collected.append(table, rows)
            self._appended = table.n
        elif piece.are_known:
            facts = self.collected.enter_unseen(table, rows, self.reject)
        else:
            facts = self.collected.enter(table, rows, self.reject)
        self._reports.limit_facts(facts)

    def may_enter_beside(self, pieces: Sequence[Heads]) -> bool:
        plan, head = self.plan, self.plan.head
        if self.wide or (self.collected.known_pairs(head) is NO_PAIRS and head.n != self._appended):
            return False
        # Others may read rows and flags of the head's table, which stay where they are if there is room for more: rows
        # that are entered meanwhile are in none of the sets that are read. Known pairs may be out of date, they are
        # looked at again. But nobody may look into the tuple index, which is brought up to date by whoever asks for it.
        atoms = [step for step in plan.steps if isinstance(step, AtomStep)]
        reads = plan.has_choices or any(step.table is head and (step.filters or not step.known) for step in atoms)
        return not reads and head.has_room(sum(len(heads.rows) for heads in pieces))

    def enter_all(self, pieces: Sequence[Heads]) -> None:
        appends = self.plan.head.n == self._appended or self.collected.known_pairs(self.plan.head) is not NO_PAIRS
        if appends or any(heads.are_known for heads in pieces):
            super().enter_all(pieces)
        elif pieces:
            # In one piece, so that the work is worth sharing.
            self.enter(
                Heads(np.concatenate([heads.rows for heads in pieces]), sum(heads.instances for heads in pieces))
            )


class Heads(NamedTuple):
    """Heads of some instances; of those among the known pairs, some or all are left out."""

    rows: MadeRows
    instances: int
    #: Whether all that were not among the known pairs have been put there.
    are_known: bool = False


def made_rows(table: Table, terms: Places, constants: Codes, B: Codes, width: int, wide: bool) -> MadeRows:
    """Return the rows that terms name under bindings, for `fitted` if values may be wide."""
    heads = np.empty((width, table.arity), np.int64 if wide else table.rows.dtype)
    row_kernels.make_rows(B, width, terms, constants, heads)
    return heads


def made_joined_rows(
    plan: Plan, B: Codes, step: AtomStep, parents: Rows, matches: Rows, count: int, wide: bool
) -> MadeRows:
    """As `made_rows`, under bindings joined with matched rows, with no batch in between."""
    table = plan.head
    heads = np.empty((count, table.arity), np.int64 if wide else table.rows.dtype)
    row_kernels.make_joined_rows(B, parents, step.table.rows, matches, count, plan.joined_terms, plan.constants, heads)
    return heads


def narrowed(table: Table, heads: MadeRows) -> MadeRows:
    """Return wide rows as narrow as those of a table, if their values fit. It only reads: threads may call it."""
    if heads.size and heads.dtype != table.rows.dtype:
        narrow = np.iinfo(table.rows.dtype)
        if narrow.min <= heads.min() and heads.max() <= narrow.max:
            return heads.astype(table.rows.dtype)
    return heads


def fitted(table: Table, heads: MadeRows) -> MadeRows:
    """Return rows with wide values as those of a table, which is widened first if a value asks for it."""
    if heads.size and heads.dtype != table.rows.dtype:
        table.fit(int(heads.min()), int(heads.max()))
    return heads.astype(table.rows.dtype, copy=False)
