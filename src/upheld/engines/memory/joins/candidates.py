"""Candidates to derive heads, a few rows at a time: the chain or block that the first join of a backward plan looks at.

For each head and rule a cursor says how far it has been read, so that reading goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from upheld.engines.memory.joins.batch import ROW, extended, fewer_rows
from upheld.engines.memory.kernels import rows as row_kernels
from upheld.engines.memory.kernels.rows import CHUNK
from upheld.engines.memory.plans.plan import AtomStep, ChoiceStep, Plan, Step
from upheld.engines.memory.sets.truth_tables import Truth
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.block_index import BlockIndex
from upheld.engines.memory.storage.chain_index import ChainIndex
from upheld.engines.memory.storage.codec import Codes

#: Cursors before the first row of a key and after the last one.
BEGINNING, END = -2, -1

#: Times that the number of candidates of a head is doubled, up to a chunk of them at once.
MOST_DOUBLINGS = CHUNK.bit_length() - 1


@dataclass(eq=False)
class Candidates:
    """Candidates for heads by one rule: for each binding of the head the key it looks for, and how far it has come."""

    step: AtomStep
    #: The steps of the plan after this one.
    rest: Plan
    index: ChainIndex | BlockIndex
    B: Codes
    wanted: Codes
    cursors: Codes
    #: The rows of the heads.
    rows: Rows
    #: Whether no atom was matched before the step.
    whole: bool

    def take(self, chosen: Codes, limits: Codes, truth: Truth) -> Iterator[Codes]:
        """Yield bindings extended by further rows, at most its limit for each chosen one."""
        table = self.step.table
        ends = np.cumsum(limits)
        room = min(CHUNK, int(ends[-1]))
        parents, matches = np.empty(room, np.int32), np.empty(room, np.int32)
        start = 0
        while start < len(chosen):
            before = ends[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + CHUNK, "right")))
            found = self.index.probe_some(
                table, self.wanted, chosen[start:stop], limits[start:stop], self.cursors, truth, self.step.equal,
                parents, matches,
            )  # fmt: skip
            if found:
                yield extended(self.B, self.step, parents, matches, found)
            start = stop


def candidates(plan: Plan, at: int, B: Codes, width: int) -> Iterator[Candidates]:
    """Yield the candidates of bindings before a step that joins."""
    step, later = plan.steps[at], plan.steps[at + 1 :]
    if isinstance(step, AtomStep):
        yield _begun(plan, at, step, later, B)
        return
    assert isinstance(step, ChoiceStep), "a step that joins nothing"
    fewer = fewer_rows(step, B, width)
    for (join, check), mine in zip(step.ways, (fewer, ~fewer), strict=True):
        if mine.any():
            yield _begun(plan, at, join, (check, *later), B.compress(mine, 1))


def _begun(plan: Plan, at: int, step: AtomStep, later: tuple[Step, ...], B: Codes) -> Candidates:
    width = B.shape[1]
    wanted = np.empty((width, len(step.known)), np.int64)
    row_kernels.make_rows(B, width, step.terms, step.constants, wanted)
    held = plan.steps[at - 1].variables if at else plan.start
    rest = replace(plan, start=step.variables, steps=later)
    rows, cursors = B[held.index(ROW)].astype(np.int32), np.full(width, BEGINNING, np.int64)
    whole = not any(isinstance(s, AtomStep) for s in plan.steps[:at])
    return Candidates(step, rest, step.source.index(step.known), B, wanted, cursors, rows, whole)


def fan_out(step: Step) -> float:
    """Return about how many rows a step that joins has for a binding."""
    if isinstance(step, ChoiceStep):
        return min(join.fan_out for join, _ in step.ways)
    assert isinstance(step, AtomStep), "a step that joins nothing"
    return step.fan_out


def first_join(plan: Plan) -> int | None:
    """Return the first step of a plan that joins, and so may have many rows for a binding."""
    return next((i for i, step in enumerate(plan.steps) if _joins(step)), None)


def _joins(step: Step) -> bool:
    return isinstance(step, ChoiceStep) or (isinstance(step, AtomStep) and bool(step.known) and not step.filters)
