"""Plans as numbers, for the kernels that go through rounds.

    plan   rule, table and truth of the atom it begins with, whether its rank counts, steps; where its head is, what is
           looked up first, the variables, and, where it is the only one and follows an index, the step, or -1; checks
           (pairs of a column and a constant), equal columns (pairs), variables (pairs of a column and register);
           the steps
    step   where the next one is, what it does, table, index, truth, whether negated, whether its rank counts;
           what is known, equal columns, variables
    head   table, and what is known
    first  the index that the first step looks into, -2 - table for the tuple index of a table, or -1 for none; how many
           values it looks for, and for each the column of the fact it begins with, or -1 and a constant; for an only
           step where each value of the head is from, and its column there, or the constant

What is known is a triple for each column: the column, and the register that has its value, or -1 and a constant. A step
that computes has its two operands there, and its result, if any, is its variable. Each list comes behind its length.
Before all plans it says where they are, table by table.
"""

from __future__ import annotations

import operator
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from upheld.engines.memory.bytecode import records as r
from upheld.engines.memory.bytecode.operations import Operation, operations
from upheld.engines.memory.kernels import hashing
from upheld.engines.memory.kernels.addresses import address_of
from upheld.engines.memory.plans.plan import AtomStep, BuiltinStep, ChoiceStep, Place, Places, Plan, Step
from upheld.engines.memory.storage.arrays import Column, Rows
from upheld.engines.memory.storage.block_index import BlockIndex
from upheld.engines.memory.storage.chain_index import ChainIndex
from upheld.engines.memory.storage.codec import Codec, Codes
from upheld.engines.memory.storage.partitions import Part
from upheld.engines.memory.storage.table import Table
from upheld.language.ast import Constant
from upheld.language.core import Atom, Rule

Numbers = npt.NDArray[np.int64]

#: Derivations that one call may handle.
MOST_HANDLED = 1 << 16

#: Pairs of a table and a row that Python sorts by table sooner than arrays do.
_FEW_PAIRS = 128


class Bench:
    """The arrays of a kernel: values of variables, heights, open steps, values of a fact, instances, and places.

    It is empty between two calls, so one serves all plans, and is made larger for those that ask for more room.
    """

    def __init__(self) -> None:
        self._size = self._wanted = (0, 0, 0, 0)

    def make_room(self, code: Code) -> None:
        wanted = code.registers, code.steps, code.arity, MOST_HANDLED
        if wanted == self._wanted or all(have >= want for have, want in zip(self._size, wanted, strict=True)):
            return
        registers, steps, arity, instances = map(max, self._size, wanted)
        self.arrays = (
            np.empty(registers, np.int64),
            np.empty(steps + 1, np.int64),
            np.empty((steps + 1, 3), np.int64),
            np.empty(arity + 1, np.int64),
            np.empty((instances, r.VALUES + arity), np.int64),
            np.empty(hashing.GROUP, np.int64),
        )
        # Last: an update that is interrupted in here must not leave a size that the arrays do not have.
        self._size = registers, steps, arity, instances
        self._wanted = wanted


class Start:
    """A plan, the atom whose facts it begins with, and whether their ranks count."""

    def __init__(self, plan: Plan, atom: Atom, place: Place | None, ranked: bool):
        self.plan, self.atom, self.place, self.ranked = plan, atom, place, ranked

    @property
    def is_simple(self) -> bool:
        """Whether the plan only follows indexes, looks facts up, and computes what kernels can."""
        return all(
            (isinstance(s, AtomStep) and bool(s.known or s.filters))
            or (isinstance(s, BuiltinStep) and operations(s) is not None)
            for s in self.plan.steps
        )


class Code:
    """Plans as numbers, with the tables and indexes that they look into."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self.tables: list[Table] = []
        #: The names of the tables, and the types of their columns: for whoever must not hold the tables.
        self.shapes: list[tuple[str, tuple[str, ...]]] = []
        self.numbers: dict[Table, int] = {}
        self._indexes: dict[tuple[Table, Table | Part, tuple[int, ...]], int] = {}
        self._indexed: set[Table] = set()
        #: The places whose truth tables the plans look into; None has all facts.
        self.places: list[Place | None] = []
        self.rules: list[Rule] = []
        self._code: list[int] = []
        self.code: Numbers = np.empty(0, np.int64)
        #: The most variables and steps of a plan, and columns of a table.
        self.registers, self.steps, self.arity = 1, 0, 0
        self.table_lines: Numbers = np.zeros((0, r.TABLE_FIELDS), np.int64)
        self.index_lines: Numbers = np.zeros((0, r.INDEX_FIELDS), np.int64)
        #: The arrays of tables and of indexes that lines were written of last.
        self._arrays: dict[Table, tuple[object, ...]] = {}
        self._index_arrays: dict[int, tuple[object, ...]] = {}

    def by_table(self, pairs: npt.NDArray[np.int32]) -> list[tuple[Table, Rows]]:
        """Return the rows of pairs of the number of a table and a row."""
        return by_table(self.tables, pairs)

    # -- what is looked into -------------------------------------------------------------------------------------------

    def forget_columns(self) -> None:
        """Let go of columns of numbers: the next ones are written down anew."""
        self._arrays.clear()

    def _tell_of_table(self, t: int, arrays: tuple[npt.NDArray[Any], ...]) -> None:
        """Write down where a table is now: rows, flags and slots, and columns of ranks, totals and supports."""
        table = self.tables[t]
        if not _same(self._arrays.get(table, ()), arrays):
            line = self.table_lines[t]
            rows, flags, slots, *numbers = map(address_of, arrays)
            kind = r.BY_VALUE
            if table.keys.ndim == 1:
                kind = r.ONE_NUMBER if table.arity == 1 else r.TWO_NUMBERS
            size = len(table.slots)
            room = min(len(table.rows), size * 3 // 4)
            wide = table.rows.dtype == np.int64
            indexed = table in self._indexed
            line[:] = (
                rows, wide, table.arity, kind, flags, slots, size, shift_of(size), 0, room, *numbers, indexed,
            )  # fmt: skip
            self._arrays[table] = arrays
        self.table_lines[t, r.COUNT] = table.n

    def _tell_of_index(
        self, x: int, table: Table, source: Table | Part, known: tuple[int, ...]
    ) -> ChainIndex | BlockIndex:
        """Write down where an index is now, and return it; it learns of all rows."""
        index = source.index(known)
        if not self._knows(x, index):
            arrays = _arrays_of(index)
            slots, following, pool = [address_of(array) for array in arrays]
            size = len(index.slots)
            self.index_lines[x, :r.KNOWN_ROWS] = (
                self.numbers[table], isinstance(index, BlockIndex), slots, size, shift_of(size), following, pool,
            )  # fmt: skip
            self._index_arrays[x] = arrays
        return index

    def _knows(self, x: int, index: ChainIndex | BlockIndex) -> bool:
        """Return whether an index is where it was when it was last written down."""
        return _same(self._index_arrays.get(x, ()), _arrays_of(index))

    # -- writing -------------------------------------------------------------------------------------------------------

    def _number(self, table: Table) -> int:
        number = self.numbers.get(table)
        if number is None:
            number = self.numbers[table] = len(self.tables)
            self.tables.append(table)
            self.shapes.append((table.name, table.types))
            self.arity = max(self.arity, table.arity)
        return number

    def _place(self, place: Place | None) -> int:
        if place not in self.places:
            self.places.append(place)
        return self.places.index(place)

    def _add_plan(self, start: Start, table: int) -> int:
        """Write a plan, and return where it is."""
        plan, code = start.plan, self._code
        registers = {v: i for i, v in enumerate(plan.rule.variables())}
        at = len(code)
        self.rules.append(plan.rule)
        code += [0] * r.PLAN_CHECKS
        code[at + r.PLAN_RULE], code[at + r.PLAN_TABLE] = len(self.rules) - 1, table
        code[at + r.PLAN_TRUTH], code[at + r.PLAN_RANKED] = self._place(start.place), start.ranked
        code[at + r.PLAN_ONLY_STEP] = r.NO_STEP
        self._add_atom(start.atom, registers, at)
        held = plan.start
        only = plan.steps[0] if len(plan.steps) == 1 else None
        if isinstance(only, AtomStep) and not only.filters and not len(only.equal):
            code[at + r.PLAN_ONLY_STEP] = len(code)
        for step in plan.steps:
            code[at + r.PLAN_STEPS] += self._add_step(step, held, registers)
            held = step.variables
        self.registers = max(self.registers, 1 + len(registers))
        self.steps = max(self.steps, code[at + r.PLAN_STEPS])
        code[at + r.PLAN_HEAD] = len(code)
        head, terms, constants = self._head(plan, held)
        code.append(head)
        self._add_known(range(len(terms)), terms, constants, held, registers)
        code[at + r.PLAN_FIRST] = len(code)
        self._add_first(start)
        if code[at + r.PLAN_ONLY_STEP] != r.NO_STEP:
            self._add_sources(start)
        return at

    def _head(self, plan: Plan, held: tuple[str, ...]) -> tuple[int, Places, Codes]:
        """Return the table of the rows that instances of a plan make, and where the values of a row are from."""
        return self._number(plan.head), plan.terms, plan.constants

    def _add_first(self, start: Start) -> None:
        """Write what the first step of a plan looks up."""
        step = start.plan.steps[0] if start.plan.steps else None
        if not isinstance(step, AtomStep):
            self._code += [r.NO_INDEX, 0]
            return
        self._code += [r.TUPLE_INDEX - self._number(step.table) if step.filters else self._index(step)]
        self._code.append(len(step.known))
        columns = _columns(start.atom)
        for t in step.terms.tolist():
            self._code += (columns[start.plan.start[t]], 0) if t >= 0 else (r.NO_REGISTER, int(step.constants[-1 - t]))

    def _add_sources(self, start: Start) -> None:
        """Write where the values of the head of a plan of one step are from."""
        plan, step = start.plan, start.plan.steps[0]
        assert isinstance(step, AtomStep), "a step that only follows an index or looks a fact up"
        columns = _columns(start.atom)
        matched = dict(zip(step.variables[len(step.kept) :], step.added.tolist(), strict=True))
        _, terms, constants = self._head(plan, step.variables)
        for t in terms.tolist():
            if t < 0:
                self._code += (r.A_CONSTANT, int(constants[-1 - t]))
            elif (name := step.variables[t]) in matched:
                self._code += (r.FROM_MATCH, matched[name])
            else:
                self._code += (r.FROM_FACT, columns[name])

    def _add_atom(self, atom: Atom, registers: dict[str, int], at: int) -> None:
        first = _columns(atom)
        checks, equal = [], []
        for column, term in enumerate(atom.terms):
            if isinstance(term, Constant):
                checks.append((column, self._codec.constant(term.value, term.type)))
            elif first[term.name] != column:
                equal.append((first[term.name], column))
        self._add_pairs(checks)
        self._add_pairs(equal)
        self._code[at + r.PLAN_VARIABLES] = len(self._code)
        self._add_pairs([(column, registers[v]) for v, column in first.items()])

    def _add_step(self, step: Step, held: tuple[str, ...], registers: dict[str, int]) -> int:
        """Write a step, or one for each operation of a built-in; return how many were written."""
        if isinstance(step, BuiltinStep):
            computed = operations(step)
            assert computed is not None, "a built-in that kernels can compute"
            for operation in computed:
                self._add_operation(operation, registers)
            return len(computed)
        assert isinstance(step, AtomStep), "a step that only follows an index or looks a fact up"
        self._add_match(step, held, registers)
        return 1

    def _add_operation(self, operation: Operation, registers: dict[str, int]) -> None:
        code, at = self._code, len(self._code)
        code += [0] * r.STEP_KNOWN
        code[at + r.STEP_KIND], code[at + r.STEP_INDEX] = operation.kind, r.NO_INDEX
        code.append(len(operation.operands))
        for k, operand in enumerate(operation.operands):
            if isinstance(operand, Constant):
                code += [k, r.NO_REGISTER, self._codec.constant(operand.value, operand.type)]
            else:
                code += [k, registers[operand], 0]
        self._add_pairs([])
        results = [operation.result] if operation.result is not None else []
        self._add_pairs([(0, registers.setdefault(name, len(registers))) for name in results])
        code[at + r.STEP_NEXT] = len(code)

    def _add_match(self, step: AtomStep, held: tuple[str, ...], registers: dict[str, int]) -> None:
        code, at = self._code, len(self._code)
        index = r.NO_INDEX if step.filters else self._index(step)
        place = self._place(step.place)
        code += [0] * r.STEP_KNOWN
        code[at + r.STEP_KIND], code[at + r.STEP_NEGATED] = r.LOOKS_UP if step.filters else r.FOLLOWS, step.negated
        code[at + r.STEP_RANKED], code[at + r.STEP_TRUTH] = step.ranked, place
        code[at + r.STEP_TABLE], code[at + r.STEP_INDEX] = self._number(step.table), index
        self._add_known(step.known, step.terms, step.constants, held, registers)
        self._add_pairs(step.equal.tolist())
        new = step.variables[len(step.kept) :] if not step.filters else ()
        self._add_pairs([(c, registers[v]) for c, v in zip(step.added.tolist(), new, strict=True)])
        code[at + r.STEP_NEXT] = len(code)

    def _index(self, step: AtomStep) -> int:
        self._indexed.add(step.table)
        return self._indexes.setdefault((step.table, step.source, step.known), len(self._indexes))

    def _add_known(
        self, columns: Sequence[int], terms: Places, constants: Codes, held: tuple[str, ...], registers: dict[str, int]
    ) -> None:
        self._code.append(len(columns))
        for column, t in zip(columns, terms.tolist(), strict=True):
            source = (registers[held[t]], 0) if t >= 0 else (r.NO_REGISTER, int(constants[-1 - t]))
            self._code += [column, *source]

    def _add_pairs(self, pairs: Sequence[Sequence[int]]) -> None:
        self._code.append(len(pairs))
        for pair in pairs:
            self._code += map(int, pair)


class Columns(NamedTuple):
    """The names of the columns of ranks, of the numbers that are counted, and of supports, where they are needed."""

    rank: str | None = None
    numbers: str | None = None
    support: str | None = None


class RoundCode(Code):
    """The plans of some rules as numbers, all of them written at once: from body atoms and, backwards, from heads."""

    def __init__(
        self,
        starts: Sequence[Start],
        heads: Sequence[Table],
        tables: dict[str, Table],
        codec: Codec,
        backwards: Sequence[Start] = (),
    ):
        super().__init__(codec)
        #: The tables of heads, each once; all others come after them.
        self.heads = list(dict.fromkeys(heads))
        for table in self.heads:
            self._number(table)
        self._code += [0] * (len(starts) + len(backwards))
        forward, backward = (self._add_by_table(mine, tables) for mine in (starts, backwards))
        listed = [plans.get(t, []) for plans in (forward, backward) for t in range(len(self.tables))]
        self._code[: len(starts) + len(backwards)] = [at for mine in listed for at in mine]
        self.code = np.array(self._code, np.int64)
        begins: Numbers = np.cumsum([0, *map(len, listed)], dtype=np.int64)
        self.begins, self.backward = begins[: len(self.tables) + 1], begins[len(self.tables) :]
        self._sizes = [t.n for t in self.tables]
        self.table_lines = np.zeros((len(self.tables), r.TABLE_FIELDS), np.int64)
        self.index_lines = np.zeros((len(self._indexes), r.INDEX_FIELDS), np.int64)

    def _add_by_table(self, starts: Sequence[Start], tables: dict[str, Table]) -> dict[int, list[int]]:
        """Write plans, and return where they are, by the table they begin with."""
        plans: dict[int, list[int]] = {}
        for start in starts:
            number = self._number(tables[start.atom.predicate])
            plans.setdefault(number, []).append(self._add_plan(start, number))
        return plans

    def take_over_rows(self, state: Numbers) -> bool:
        """Take over the rows that a kernel has entered; return whether it goes on once tables are looked up again.

        It does if it has stopped for want of room, which is made here, or for indexes that must learn of rows.
        """
        for table, line in zip(self.tables, self.table_lines, strict=True):
            table.count_rows(int(line[r.COUNT]))
        if state[r.OUTCOME] == r.WANTS_ROOM:
            for table in self.heads:
                table.make_room(int(state[r.WANTED]))
        return bool(state[r.OUTCOME] in (r.WANTS_ROOM, r.GREW))

    def is_stale(self) -> bool:
        """Return whether a table has grown so much that other plans may be better."""
        return any(t.n > 8 * then + 64 for t, then in zip(self.tables, self._sizes, strict=True))

    def look_up(self, columns: Columns) -> None:
        """Write down where tables and indexes are now; the latter learn of all rows."""
        for t, table in enumerate(self.tables):
            numbers = (_column(table, name, True) for name in columns)
            self._tell_of_table(t, (table.rows, table.flags, table.slots, *numbers))
        for source, x in self._indexes.items():
            self._tell_of_index(x, *source)


class PlanCode(Code):
    """Plans as numbers, written one by one."""

    def __init__(self, tables: dict[str, Table], codec: Codec):
        super().__init__(codec)
        self._by_name = tables
        self._sources: list[tuple[Table, Table | Part, tuple[int, ...]]] = []
        self._used = 0

    def add(self, start: Start) -> int:
        """Write a plan, and return where it is."""
        at = self._add_plan(start, self._number(self._by_name[start.atom.predicate]))
        self._write_out()
        return at

    def _write_out(self) -> None:
        """Make the arrays as large as what has been written, which they have then."""
        self._sources += islice(self._indexes, len(self._sources), None)
        self.code = grown(self.code, len(self._code))
        self.code[self._used : len(self._code)] = self._code[self._used :]
        self._used = len(self._code)
        self.table_lines = grown(self.table_lines, len(self.tables))
        self.index_lines = grown(self.index_lines, len(self._sources))

    def reads(self, start: Start) -> tuple[frozenset[int], frozenset[int], frozenset[int]]:
        """Return the numbers of tables, indexes and places of a plan that was written."""
        steps = [step for step in start.plan.steps if isinstance(step, AtomStep)]
        tables = {start.plan.head, self._by_name[start.atom.predicate], *(step.table for step in steps)}
        indexes = {self._index(step) for step in steps if not step.filters}
        places = {self._place(start.place), *(self._place(step.place) for step in steps)}
        return frozenset(self.numbers[table] for table in tables), frozenset(indexes), frozenset(places)

    def look_up(self, tables: Iterable[int], indexes: Iterable[int], counted: Container[int], columns: Columns) -> None:
        """Write down where some tables and indexes are now. The `counted` ones have the columns."""
        rank, numbers, support = columns
        for t in tables:
            table, is_counted = self.tables[t], t in counted
            arrays = (
                table.rows, table.flags, table.slots, _column(table, rank, is_counted),
                _column(table, numbers, is_counted), _column(table, support, is_counted),
            )  # fmt: skip
            self._tell_of_table(t, arrays)
        for x in indexes:
            self._tell_of_index(x, *self._sources[x])


def without_choices(plan: Plan) -> Plan:
    """Return a plan that always takes the first of two ways: for few facts, to choose costs more than it saves."""
    if not any(isinstance(step, ChoiceStep) for step in plan.steps):
        return plan
    steps: list[Step] = []
    for step in plan.steps:
        steps += step.ways[0] if isinstance(step, ChoiceStep) else [step]
    return replace(plan, steps=tuple(steps))


def _column(table: Table, name: str | None, is_counted: bool) -> Column:
    """Return a column, or any array in place of one that no plan reads."""
    if name is None:
        return table.slots
    return table.column(name) if is_counted else table.columns.get(name, table.slots)


def grown(lines: Numbers, count: int) -> Numbers:
    """Return an array with room for lines: twice as many as are wanted, if it has to be another one."""
    if len(lines) >= count:
        return lines
    return np.concatenate([lines, np.zeros((2 * count - len(lines), *lines.shape[1:]), np.int64)])


def _columns(atom: Atom) -> dict[str, int]:
    """Return the first column of each variable of an atom."""
    found: dict[str, int] = {}
    for column, term in enumerate(atom.terms):
        if not isinstance(term, Constant):
            found.setdefault(term.name, column)
    return found


def _arrays_of(index: ChainIndex | BlockIndex) -> tuple[npt.NDArray[Any], ...]:
    """Return all arrays of an index that kernels read: each may move while the others stay."""
    if isinstance(index, BlockIndex):
        return index.slots, index.entries, index.pool
    return index.slots, index.following, index.slots


def _same(before: tuple[object, ...], arrays: tuple[object, ...]) -> bool:
    return len(before) == len(arrays) and all(map(operator.is_, before, arrays))


def shift_of(size: int) -> int:
    return 64 - (size.bit_length() - 1)


def rows_of_few(tables: Sequence[Table], pairs: list[list[int]]) -> list[tuple[Table, Rows]]:
    """Return the rows of few pairs of the number of a table and a row."""
    rows_of: dict[int, list[int]] = {}
    for t, row in pairs:
        if t in rows_of:
            rows_of[t].append(row)
        else:
            rows_of[t] = [row]
    return [(tables[t], np.array(rows, np.int32)) for t, rows in sorted(rows_of.items())]


def by_table(tables: Sequence[Table], pairs: npt.NDArray[np.signedinteger[Any]]) -> list[tuple[Table, Rows]]:
    """Return the rows of pairs of the number of a table and a row. Further columns, as a log has them, are left out."""
    if len(pairs) <= _FEW_PAIRS:
        return rows_of_few(tables, pairs[:, : r.QUEUE_FIELDS].tolist())
    numbers = pairs[:, r.QUEUE_TABLE]
    first = int(numbers[0])
    if (numbers == first).all():  # as a rule
        return [(tables[first], pairs[:, r.QUEUE_ROW].astype(np.int32))]
    order = np.argsort(numbers, kind="stable")
    ascending = numbers[order]
    begins = np.flatnonzero(np.concatenate([[True], ascending[1:] != ascending[:-1]]))
    parts = np.split(pairs[order, r.QUEUE_ROW].astype(np.int32), begins[1:])
    return [(tables[k], rows) for k, rows in zip(ascending[begins].tolist(), parts, strict=True)]
