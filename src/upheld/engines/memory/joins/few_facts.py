"""Rules applied to few facts, many rules in one call of a kernel.

To run a rule as a batch costs some tens of microseconds however few its rows are, and an update of a program with a
thousand rules runs most of them on a handful of rows. So the plans of rules are encoded as numbers once, and one call
of the kernel for small rounds finds the instances of every rule with an atom that matches the facts. The kernel has no
side effects: if it meets too many rows, and for rules that compute, the caller falls back to batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from upheld.base.interruptions import uninterrupted
from upheld.engines.memory.bytecode import many_rules
from upheld.engines.memory.bytecode import records as r
from upheld.engines.memory.bytecode.encoder import Bench, Columns, Numbers, PlanCode, Start
from upheld.engines.memory.kernels.addresses import address_of
from upheld.engines.memory.plans.delta_index import Occurrence
from upheld.engines.memory.plans.plan import AtomStep, Place, Plan
from upheld.engines.memory.sets.collected import Collected, never_counted, too_many_derivations
from upheld.engines.memory.sets.context import Context
from upheld.engines.memory.sets.truth_tables import EVERYTHING, Truth
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.table import Table

#: Facts that a call begins with at most, and pairs of a fact and an atom.
MOST_FACTS, MOST_PAIRS = 1 << 12, 1 << 16

#: Atoms that a call begins with at least: what it prepares costs more than the join of one.
LEAST_ATOMS = 2

NO_COLUMNS = Columns()


#: Pairs of the number of a table and a row.
Pairs = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Written:
    """A plan as numbers: where it is, and the tables, indexes and places that it reads.

    The tables of `counted` have ranks that it reads, or the numbers of its heads.
    """

    plan: Plan
    at: int
    head: int
    tables: frozenset[int]
    indexes: frozenset[int]
    places: frozenset[int]
    counted: frozenset[int]


class Task(NamedTuple):
    """A plan, and the rows of a table that it begins with."""

    written: Written
    table: Table
    rows: Rows


class Truths(Protocol):
    """The truth tables of places."""

    def __getitem__(self, place: Place, /) -> Truth: ...


class Instances:
    """The instances that a call has found, as lines from `HEAD` to `VALUES`."""

    def __init__(self, code: PlanCode, tasks: Sequence[Task], lines: Numbers):
        self.code, self.lines = code, lines
        self.heads = sorted({task.written.head for task in tasks})


class FewFacts:
    """The plans of rules as numbers, written down when they are first asked for."""

    def __init__(self, context: Context):
        self.context = context
        self._code = PlanCode(context.tables, context.codec)
        self._bench = Bench()

    def written(self, occurrence: Occurrence, kind: object, start: Callable[[Occurrence], Start]) -> Written | None:
        """Return the plan of an atom of a rule as numbers; None if it is not simple."""
        written: Written | None = occurrence.written.get(kind)
        if kind not in occurrence.written or (written is not None and written.plan.is_stale()):
            begin = start(occurrence)
            written = occurrence.written[kind] = self._write(begin) if begin.is_simple else None
        return written

    def _write(self, start: Start) -> Written:
        code = self._code
        at = code.add(start)
        ranked = [step.table for step in start.plan.steps if isinstance(step, AtomStep) and step.ranked]
        if start.ranked:
            ranked.append(self.context.tables[start.atom.predicate])
        counted = frozenset(code.numbers[table] for table in (*ranked, start.plan.head))
        return Written(start.plan, at, code.numbers[start.plan.head], *code.reads(start), counted)

    # -- forwards ------------------------------------------------------------------------------------------------------

    def find(self, tasks: Sequence[Task], truths: Truths, columns: Columns) -> Instances | None:
        """Return the instances of some plans; None if there are too many, or too many rows are looked at for them."""
        lines, queue = self._begin(tasks, columns)
        addresses, held = self._addresses(tasks, truths)
        met = np.zeros(len(tasks), np.int64)
        code = self._code
        count = many_rules.find_from_rows(
            code.table_lines, code.index_lines, code.code, addresses, self._bench.arrays, queue, lines, met
        )
        del held
        if count < 0:
            return None
        self._note(tasks, met)
        return Instances(code, tasks, self._bench.arrays[r.LINES][:count])

    # -- backwards -----------------------------------------------------------------------------------------------------

    def collect_derivable(self, tasks: Sequence[Task], truths: Truths, collected: Collected) -> bool:
        """Collect the rows of tasks, which begin with heads, that some plan derives; return whether all were tried."""
        lines, queue = self._begin(tasks, NO_COLUMNS)
        addresses, held = self._addresses(tasks, truths)
        met, out = np.zeros(len(tasks), np.int64), np.empty((len(queue), 2), np.int32)
        code = self._code
        count, is_done = many_rules.find_derivable(
            code.table_lines, code.index_lines, code.code, addresses, self._bench.arrays, queue, lines, met,
            int(collected.bit), out,
        )  # fmt: skip
        del held
        for table, rows in code.by_table(out[:count]):
            collected.put(table, rows)
        self._note(tasks, met)
        return bool(is_done)

    def _note(self, tasks: Sequence[Task], met: Numbers) -> None:
        """Report the numbers of instances that tasks have met in one call of a kernel."""
        some = np.flatnonzero(met)
        rules = [tasks[k].written.plan.rule for k in some.tolist()]
        self.context.meter.instances_together(rules, met[some].tolist())

    # -- what a kernel is given ----------------------------------------------------------------------------------------

    def _begin(self, tasks: Sequence[Task], columns: Columns) -> tuple[Numbers, Pairs]:
        """Write down where tables and indexes are, and return the plans with their parts of a queue of rows."""
        code = self._code
        code.look_up(
            set[int]().union(*(task.written.tables for task in tasks)),
            set[int]().union(*(task.written.indexes for task in tasks)),
            set[int]().union(*(task.written.counted for task in tasks)),
            columns,
        )
        self._bench.make_room(code)
        lines: list[tuple[int, int, int]] = []
        segments: list[Rows] = []
        numbers: list[int] = []
        end, last = 0, None
        for task in tasks:
            if task.rows is not last:  # rules that a table concerns begin with the same rows, mostly
                segments.append(task.rows)
                numbers.append(code.numbers[task.table])
                begin, end, last = end, end + len(task.rows), task.rows
            lines.append((task.written.at, begin, end))
        queue = np.empty((end, 2), np.int32)
        queue[:, 0] = np.repeat(numbers, [len(rows) for rows in segments])
        queue[:, 1] = np.concatenate(segments)
        return np.array(lines, np.int64), queue

    def _addresses(self, tasks: Sequence[Task], truths: Truths) -> tuple[Numbers, list[Truth]]:
        """Return the addresses of the truth tables of places, and the tables, which somebody must hold meanwhile."""
        places = set[int]().union(*(task.written.places for task in tasks))
        held = [EVERYTHING] * len(self._code.places)
        for number in places:
            place = self._code.places[number]
            if place is not None:
                held[number] = truths[place]
        return np.array([address_of(truth) for truth in held], np.int64), held


class Taker(Protocol):
    """Takes the instances that a call has found."""

    @property
    def columns(self) -> Columns:
        """The columns that it counts in."""

    def take(self, instances: Instances) -> None: ...


class HeadTaker:
    """Collects the heads of instances that `reject` does not hold for; those not in a table yet are entered."""

    columns = NO_COLUMNS

    def __init__(self, collected: Collected, reject: Truth):
        self.collected, self.reject = collected, reject

    def take(self, instances: Instances) -> None:
        def run(begin: int, out: Pairs, state: Numbers) -> int:
            return many_rules.enter_heads(  # type: ignore[no-any-return]
                instances.code.table_lines, instances.lines, begin, self.reject, int(self.collected.bit), out, state
            )

        _go_through(instances, NO_COLUMNS, self.collected, run, new_state())


def new_state() -> Numbers:
    """Return the numbers that a kernel keeps from one call to the next."""
    return np.zeros(r.WANTED + 1, np.int64)


def count_heads(
    instances: Instances, collected: Collected, reject: Truth, columns: Columns, sign: int, log: Pairs, state: Numbers
) -> None:
    """Collect heads as `HeadTaker` does, count each instance, and write the heads that were counted into a log."""

    def run(begin: int, out: Pairs, state: Numbers) -> int:
        return many_rules.count_heads(  # type: ignore[no-any-return]
            instances.code.table_lines, instances.lines, begin, reject, int(collected.bit), out, state, sign, log,
            columns.support is not None,
        )  # fmt: skip

    _go_through(instances, columns, collected, run, state)


def _go_through(
    instances: Instances,
    columns: Columns,
    collected: Collected,
    run: Callable[[int, Pairs, Numbers], int],
    state: Numbers,
) -> None:
    """Go through all instances, with room for the rows that are entered, and collect what is found."""
    code, lines = instances.code, instances.lines
    if not len(lines):
        return
    out = np.empty((len(lines), 2), np.int32)
    done = 0
    try:
        while done < len(lines):
            done = run(done, out, state)
            for t in instances.heads:
                code.tables[t].count_rows(int(code.table_lines[t, r.COUNT]))
            wanted = code.tables[int(state[r.WANTED])]
            if state[r.OUTCOME] == r.UNCOUNTED:
                raise never_counted(wanted.name)
            if state[r.OUTCOME] == r.TOO_MANY:
                raise too_many_derivations(wanted.name)
            if done < len(lines):
                wanted.make_room(len(lines) - done)
                code.look_up(instances.heads, (), instances.heads, columns)
    except BaseException:
        with uninterrupted():
            for t in instances.heads:
                code.tables[t].mend()
        raise
    for table, rows in code.by_table(out[: state[r.END]]):
        collected.put(table, rows)
        collected.context.meter.limit_facts(collected.count(table))
