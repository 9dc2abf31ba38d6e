"""Backward chaining that goes on where it stopped: the candidates for each head come a few at a time.

For each head and rule a cursor says how far the chain or block of rows has been read that the first join of the rule's
backward plan looks at. What is found there is joined with the rest of the body at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from upheld.algebra.words import FactSet
from upheld.engines.memory import kernels
from upheld.engines.memory.bags import Group, MemoryInstances
from upheld.engines.memory.codes import Codes
from upheld.engines.memory.joins import CHUNK, FunctionSink, extended, fewer_rows
from upheld.engines.memory.matching import ROW, Where, batches
from upheld.engines.memory.plans import IN_P, AtomStep, ChoiceStep, Plan, Step
from upheld.engines.memory.sets import Settled, Truth
from upheld.engines.memory.table import BlockIndex, ChainIndex, Rows, Table
from upheld.language.core import Rule

if TYPE_CHECKING:
    from upheld.engines.memory.engine import MemoryEngine

#: Cursors before the first row of a key and after the last one.
BEGINNING, END = -2, -1
#: The number of candidates of a head is doubled so many times: a chunk of them is taken at once at most.
_MOST_AT_ONCE = CHUNK.bit_length() - 1


@dataclass(eq=False)
class Stream:
    """Candidates for heads by one rule: for each binding of the head the key it looks for, and how far it has come."""

    head: Table
    step: AtomStep
    #: What is left of the plan after the step.
    rest: Plan
    index: ChainIndex | BlockIndex
    B: Codes
    wanted: Codes
    cursors: Codes
    rows: Rows
    #: Whether no atom is matched before the step.
    whole: bool

    def take(self, chosen: Codes, limits: Codes, truth: Truth) -> Iterator[Codes]:
        """Yield bindings extended by further rows, at most so many for each of the chosen ones."""
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


class MemorySearch:
    """Finds the instances that derive facts, a few at a time, each once."""

    def __init__(self, engine: MemoryEngine, rules: Sequence[Rule]):
        self.engine, self.rules = engine, rules
        self._index = engine.matcher.delta_index(rules, "heads")
        self._streams: dict[Table, list[Stream]] = {}
        #: How often a row has been asked for; negative when nothing is left for it.
        (self._turns,) = engine.columns.new(self, "turns")

    def unfinished(self, H: FactSet) -> Settled:
        return self.engine.filtered(H, lambda table, rows: table.column(self._turns)[rows] >= 0)

    def more(self, H: FactSet, P: FactSet, N: FactSet) -> MemoryInstances:
        where = Where(self.engine, P, N)
        found: list[Group] = []
        settled = self.engine.settle_for_change(H)
        asked = self.engine.truths[settled.spelling()]
        for table, rows in settled.listed():
            self._more(table, rows, asked, where, found)
        return MemoryInstances(self.engine, found)

    def _more(self, table: Table, rows: Rows, asked: Truth, where: Where, found: list[Group]) -> None:
        turns = table.column(self._turns)
        rows = rows[turns[rows] >= 0]
        fresh = rows[turns[rows] == 0]
        mine = self._opened(table, fresh, where, found)
        if len(fresh) < len(rows):  # another turn for some: what was opened before is looked at as well
            mine = [s for s in self._streams.get(table, []) if (s.cursors != END).any()] + mine
            self._streams[table] = mine
        else:
            self._streams.setdefault(table, []).extend(mine)
        turns = table.column(self._turns)
        turns[rows] = -turns[rows] - 1
        for stream in mine:
            chosen = np.flatnonzero(asked[table.flags[stream.rows]] & (stream.cursors != END))
            if len(chosen):
                before = np.abs(turns[stream.rows[chosen]]).astype(np.int64) - 1
                self._take(stream, chosen, 1 << np.minimum(before, _MOST_AT_ONCE), where, found)
                left = stream.rows[chosen[stream.cursors[chosen] != END]]
                turns[left] = np.abs(turns[left])

    def _take(self, stream: Stream, chosen: Codes, limits: Codes, where: Where, found: list[Group]) -> None:
        rule, mine = stream.rest.rule, found if stream.whole else []
        join = self.engine.matcher.join(stream.rest, where, FunctionSink(self._taking(stream.rest, mine)))
        for B in stream.take(chosen, limits, where[stream.step.where]):
            self.engine.meter.look(rule)
            join.run(B, B.shape[1])
        if not stream.whole:  # what was matched when it was opened may not hold any more
            found += [group.chosen(group.hold(self.engine, where[IN_P], where["N"])) for group in mine]

    def _taking(self, plan: Plan, found: list[Group]) -> Callable[[Codes, int], None]:
        order = [plan.last.index(v) for v in plan.rule.variables()]

        def take(B: Codes, width: int) -> None:
            self.engine.meter.instances(plan.rule, width)
            found.append(Group(plan.rule, B[order]))

        return take

    def _opened(self, table: Table, rows: Rows, where: Where, found: list[Group]) -> list[Stream]:
        """Return streams for heads that are asked for the first time; what needs no join is found at once."""
        opened: list[Stream] = []
        if not len(rows):
            return opened
        for occurrence, mine in self._index.concerned(table, rows):
            rule = occurrence.rule
            plan, variables = self.engine.matcher.backward_plan(rule, (*rule.variables(), ROW))
            at = next((i for i, s in enumerate(plan.steps) if _joins(s)), None)
            if at is None:
                join = self.engine.matcher.join(plan, where, FunctionSink(self._taking(plan, found)))
            else:
                prefix = replace(plan, steps=plan.steps[:at], later=plan.steps[at:])

                def open_streams(B: Codes, width: int, plan: Plan = plan, at: int = at) -> None:
                    opened.extend(self._streams_of(table, plan, at, B, width))

                join = self.engine.matcher.join(prefix, where, FunctionSink(open_streams))
            for B, width in batches(table, mine, rule.head, variables):
                join.run(B, width)
        return opened

    def _streams_of(self, head: Table, plan: Plan, at: int, B: Codes, width: int) -> Iterator[Stream]:
        step, later = plan.steps[at], plan.steps[at + 1 :]
        if isinstance(step, AtomStep):
            yield self._stream(head, plan, at, step, later, B)
            return
        assert isinstance(step, ChoiceStep), "a step that joins nothing"
        fewer = fewer_rows(step, B, width)
        for (join, check), mine in zip(step.ways, (fewer, ~fewer), strict=True):
            if mine.any():
                yield self._stream(head, plan, at, join, (check, *later), np.ascontiguousarray(B[:, mine]))

    def _stream(self, head: Table, plan: Plan, at: int, step: AtomStep, later: tuple[Step, ...], B: Codes) -> Stream:
        width = B.shape[1]
        wanted = np.empty((width, len(step.known)), np.int64)
        kernels.make_rows(B, width, step.terms, step.constants, wanted)
        held = plan.steps[at - 1].variables if at else plan.start
        rest = replace(plan, start=step.variables, steps=later)
        rows, cursors = B[held.index(ROW)].astype(np.int32), np.full(width, BEGINNING, np.int64)
        whole = not any(isinstance(s, AtomStep) for s in plan.steps[:at])
        return Stream(head, step, rest, step.table.index(step.known), B, wanted, cursors, rows, whole)


def _joins(step: Step) -> bool:
    return isinstance(step, ChoiceStep) or (isinstance(step, AtomStep) and bool(step.known) and not step.filters)
