"""Where derived facts go: into the tables, as rows found for the first time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from upheld.engines.memory.joins.batch import CHUNK
from upheld.engines.memory.kernels import counts as count_kernels
from upheld.engines.memory.kernels import flags as flag_kernels
from upheld.engines.memory.kernels import hashing
from upheld.engines.memory.kernels import rows as row_kernels
from upheld.engines.memory.plans.plan import AtomStep, Places, Plan
from upheld.engines.memory.sets.bit_matrix import BITS_PER_DELTA_ROW, FEWEST_ROWS, NO_PAIRS, DenseBits, dense_bits
from upheld.engines.memory.sets.expressions import Named, Spelling, Truth
from upheld.engines.memory.sets.journal import Used
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import FLAGS, Rows, Table, key_view
from upheld.errors import EvaluationError, FactsError, Problem, quote
from upheld.runtime.interruptions import uninterrupted

if TYPE_CHECKING:
    from upheld.engines.memory.engine import MemoryEngine

MadeRows = npt.NDArray[np.signedinteger]


class Collected:
    """Rows found so far, each once: those with the bit have been found."""

    def __init__(self, engine: MemoryEngine, bit: int):
        self.engine = engine
        self.bit = FLAGS(1 << bit)
        self.truth = engine.truths[bit]
        self._out: dict[Table, Rows] = {}
        self._found: dict[Table, int] = {}
        self._seen: dict[Table, DenseBits] = {}
        #: The number of rows found at which to ask next whether bits for pairs are worth while.
        self._ask_at: dict[Table, int] = {}

    def rows(self) -> dict[Table, Rows]:
        return {t: self._out[t][:found] for t, found in self._found.items() if found}

    def found(self, table: Table) -> int:
        """Return how many rows of a table have been found."""
        return self._found.get(table, 0)

    def take(self, table: Table, rows: Rows, reject: Truth) -> None:
        """Find some rows of a table, except those that `reject` holds for or that were found before."""
        out = np.empty(len(rows), np.int32)
        fresh = out[: flag_kernels.mark(rows, table.flags, reject, self.bit, out)]
        found = self._found.get(table, 0)
        self._out[table] = fresh if not found else np.concatenate([self._out[table][:found], fresh])
        self._found[table] = found + len(fresh)

    def sink(self, plan: Plan, reject: Spelling | None, start: Table | None, work: int) -> HeadSink:
        """Return what finds the head rows of a plan that begins with so many rows of a table."""
        self._begin_with_known_pairs(plan.head, reject, work)
        return HeadSink(self, plan, self.engine.truth_of(reject), plan.has_wide_values(start))

    def _begin_with_known_pairs(self, table: Table, reject: Spelling | None, work: int) -> None:
        """Take the bits of a set whose rows need not be looked up, if there is enough work to be worth a copy."""
        if table in self._seen or not isinstance(reject, int) or work < FEWEST_ROWS:
            return
        named = self.engine.bits.owner(reject)
        dense = named.dense(table) if isinstance(named, Named) else None
        if dense is not None and work * BITS_PER_DELTA_ROW >= dense.width * dense.height:
            self._seen[table] = dense.copy()

    def tally(
        self, table: Table, made: MadeRows, reject: Truth, numbers: str, amount: int, log: Rows, logged: Used
    ) -> None:
        """As `enter`; besides add an amount to the number of each row, and write the rows into the log."""
        width, wanted, bit, known = len(made), key_view(made), self.bit, table.n
        table.column(numbers)

        def step(i: int, out: Rows, found: int) -> tuple[int, int, int]:
            return count_kernels.tally_rows(  # type: ignore[no-any-return]
                wanted, i, width, table.keys, table.n, table.slots, table.flags, reject, bit, out, found,
                table.columns[numbers], amount, log, logged,
            )  # fmt: skip

        self._all(table, width, step)
        if amount < 0 and table.n > known:
            raise never_counted(table.name)

    def known_pairs(self, table: Table) -> DenseBits:
        """Return the pairs of a table that have been found, or need not be, as far as they are held as bits."""
        return self._seen.get(table, NO_PAIRS)

    def _all(self, table: Table, width: int, step: Callable[[int, Rows, int], tuple[int, int, int]]) -> None:
        """Go through all wanted keys, with room for what is found."""
        out, found = self._out.get(table), self._found.get(table, 0)
        if out is None:
            out = self._out[table] = np.empty(min(width, CHUNK) + hashing.GROUP, np.int32)
        i = 0
        while i < width:
            try:
                i, table.n, found = step(i, out, found)
            except BaseException:
                with uninterrupted():
                    table.mend()
                raise
            if i < 0:
                raise too_many_derivations(table.name)
            if i < width:
                if found + hashing.GROUP > len(out):
                    out = self._out[table] = np.concatenate([out, np.empty(len(out) + hashing.GROUP, np.int32)])
                table.make_room(min(width - i, CHUNK))
        self._found[table] = found

    def enter(self, table: Table, made: MadeRows, reject: Truth) -> int:
        """Find rows by their values, and return how many have been found; those not in the table yet are entered."""
        seen = self._seen.get(table)
        if seen is not None and made.dtype == np.int32:
            made = seen.unseen(made)
        return self.enter_unseen(table, made, reject)

    def enter_unseen(self, table: Table, made: MadeRows, reject: Truth) -> int:
        """As `enter`, for rows that are known not to be in `known_pairs`, where they have been put."""
        width, wanted, bit = len(made), key_view(made), self.bit

        def step(i: int, out: Rows, found: int) -> tuple[int, int, int]:
            return row_kernels.find_or_add(  # type: ignore[no-any-return]
                wanted, i, width, table.keys, table.n, table.slots, table.flags, reject, bit, out, found
            )

        self._all(table, width, step)
        out, found = self._out[table], self._found[table]
        if table not in self._seen and found > self._ask_at.get(table, FEWEST_ROWS):
            self._ask_at[table] = 2 * found
            dense = dense_bits(table, out[:found])
            if dense is not None:
                self._seen[table] = dense
        return found


class HeadSink:
    """Finds the head rows of a plan."""

    def __init__(self, collected: Collected, plan: Plan, reject: Truth, wide: bool):
        self.collected, self.plan, self.reject, self.wide = collected, plan, reject, wide
        #: How many instances have come.
        self.instances = 0

    def take(self, B: Codes, width: int) -> None:
        plan = self.plan
        self._enter(made_rows(plan.head, plan.terms, plan.constants, B, width, self.wide))

    def take_joined(self, B: Codes, step: AtomStep, parents: Rows, matches: Rows, count: int) -> None:
        self._enter(made_joined_rows(self.plan, B, step, parents, matches, count, self.wide))

    def _enter(self, rows: MadeRows) -> None:
        self._met(len(rows))
        self._found(self.collected.enter(self.plan.head, rows, self.reject))

    def known_pairs(self) -> DenseBits:
        """Return the heads that need not be made again, as far as they are known."""
        return self.collected.known_pairs(self.plan.head)

    def take_made(self, rows: MadeRows, instances: int) -> None:
        """Take the heads of so many instances that were not among the known pairs."""
        self._met(instances)
        self._found(self.collected.enter_unseen(self.plan.head, rows, self.reject))

    def _met(self, instances: int) -> None:
        self.instances += instances
        self.collected.engine.meter.instances(self.plan.rule, instances)

    def _found(self, facts: int) -> None:
        self.collected.engine.meter.found(facts)


def made_rows(table: Table, terms: Places, constants: Codes, B: Codes, width: int, wide: bool) -> MadeRows:
    """Return the rows that terms name under bindings; the table is widened first if a value asks for it."""
    if wide:
        values = [int(c) for c in constants]
        for t in terms[terms >= 0]:
            values += [int(B[t].min()), int(B[t].max())]
        table.fit(min(values, default=0), max(values, default=0))
    made = np.empty((width, table.arity), table.rows.dtype)
    row_kernels.make_rows(B, width, terms, constants, made)
    return made


def made_joined_rows(
    plan: Plan, B: Codes, step: AtomStep, parents: Rows, matches: Rows, count: int, wide: bool
) -> MadeRows:
    """Return the head rows of bindings joined with matched rows, with no batch in between."""
    table = plan.head
    made = np.empty((count, table.arity), np.int64 if wide else table.rows.dtype)
    row_kernels.make_joined_rows(B, parents, step.table.rows, matches, count, plan.joined_terms, plan.constants, made)
    if wide and made.size:
        table.fit(int(made.min()), int(made.max()))
        made = made.astype(table.rows.dtype)
    return made


def too_many_derivations(predicate: str) -> EvaluationError:
    return EvaluationError(
        Problem(
            "too-many-derivations",
            f"a fact of {quote(predicate)} has more than {count_kernels.LARGEST} derivations",
            note="the algorithm counts the derivations of each fact, in 32 bits",
            hint="use an algorithm that does not count, such as `bf`, or `dred`",
        )
    )


def never_counted(predicate: str) -> FactsError:
    return FactsError(
        Problem(
            "bookkeeping-mismatch",
            f"a fact of {quote(predicate)} loses a derivation that was never counted",
            note="the bookkeeping of this state does not fit its facts: the state was damaged or changed by hand",
            hint="restore the state with `algorithm=dred`, which uses no bookkeeping, and save it again",
        )
    )


def selected(table: Table, rows: Rows, truth: Truth) -> Rows:
    """Return those of the rows that belong to a set."""
    out = np.empty(len(rows), np.int32)
    return out[: flag_kernels.select(rows, table.flags, truth, out)]
