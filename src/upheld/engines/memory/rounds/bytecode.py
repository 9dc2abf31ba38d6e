"""Plans as numbers, for the kernels that go through rounds.

    plan   rule, table and truth of the atom it begins with, whether its rank counts, steps; where its head is, what is
           looked up first, the variables, and, where it is the only one and follows an index, the step, or -1; checks
           (pairs of a column and a constant), equal columns (pairs), variables (pairs of a column and register);
           the steps
    step   where the next one is, whether all is known, table, index, truth, whether negated, whether its rank counts;
           what is known, equal columns, variables
    head   table, and what is known
    first  the index that the first step looks into, -2 - table for the tuple index of a table, or -1 for none; how many
           values it looks for, and for each the column of the fact it begins with, or -1 and a constant; for an only
           step where each value of the head is from, and its column there, or the constant

What is known is a triple for each column: the column, and the register that has its value, or -1 and a constant. Each
list comes behind its length. Before all plans it says where they are, table by table.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from upheld.engines.memory.plans.plan import AtomStep, Place, Places, Plan
from upheld.engines.memory.rounds.addresses import address_of
from upheld.engines.memory.rounds.interpreter import (
    A_CONSTANT,
    BY_VALUE,
    COUNT,
    FROM_FACT,
    FROM_MATCH,
    INDEX_FIELDS,
    NO_INDEX,
    NO_REGISTER,
    NO_STEP,
    ONE_NUMBER,
    PLAN_CHECKS,
    PLAN_FIRST,
    PLAN_HEAD,
    PLAN_ONLY_STEP,
    PLAN_RANKED,
    PLAN_RULE,
    PLAN_STEPS,
    PLAN_TABLE,
    PLAN_TRUTH,
    PLAN_VARIABLES,
    STEP_FILTERS,
    STEP_INDEX,
    STEP_KNOWN,
    STEP_NEGATED,
    STEP_NEXT,
    STEP_RANKED,
    STEP_TABLE,
    STEP_TRUTH,
    TABLE_FIELDS,
    TUPLE_INDEX,
    TWO_NUMBERS,
)
from upheld.engines.memory.storage.codec import Codec, Codes
from upheld.engines.memory.storage.partitions import Part
from upheld.engines.memory.storage.table import BlockIndex, Column, Table
from upheld.language.core import Atom, Rule
from upheld.language.syntax.ast import Constant

Numbers = npt.NDArray[np.int64]


class Start:
    """A plan, the atom whose facts it begins with, and whether their ranks count."""

    def __init__(self, plan: Plan, atom: Atom, place: Place, ranked: bool):
        self.plan, self.atom, self.place, self.ranked = plan, atom, place, ranked

    @property
    def is_simple(self) -> bool:
        """Whether the plan only follows indexes and looks facts up."""
        return all(isinstance(s, AtomStep) and (s.known or s.filters) for s in self.plan.steps)


class RoundCode:
    """The plans of some rules as numbers, with the tables and indexes that they look into."""

    def __init__(self, starts: Sequence[Start], heads: Sequence[Table], tables: dict[str, Table], codec: Codec):
        self._codec = codec
        #: The tables of heads, each once, and then all others.
        self.heads = list(dict.fromkeys(heads))
        self.tables = list(self.heads)
        self._indexes: list[tuple[Table, Table | Part, tuple[int, ...]]] = []
        #: The places whose truth tables the plans look into.
        self.places: list[Place] = []
        self.rules: list[Rule] = []
        by_table: dict[int, list[int]] = {}
        self._code: list[int] = [0] * len(starts)
        for start in starts:
            table = self._number(self.tables, tables[start.atom.predicate])
            by_table.setdefault(table, []).append(self._add_plan(start, table))
        listed = [by_table.get(t, []) for t in range(len(self.tables))]
        self._code[: len(starts)] = [at for plans in listed for at in plans]
        self.code: Numbers = np.array(self._code, np.int64)
        self.begins: Numbers = np.cumsum([0, *map(len, listed)], dtype=np.int64)
        self.registers = 1 + max((len(s.plan.rule.variables()) for s in starts), default=0)
        self.steps = max((len(s.plan.steps) for s in starts), default=0)
        self.arity = max((t.arity for t in self.tables), default=0)
        self._sizes = [t.n for t in self.tables]
        self.table_lines: Numbers = np.zeros((len(self.tables), TABLE_FIELDS), np.int64)
        self.index_lines: Numbers = np.zeros((len(self._indexes), INDEX_FIELDS), np.int64)
        self._told: list[tuple[object, ...]] = [()] * (len(self.tables) + len(self._indexes))
        self.numbers = {table: t for t, table in enumerate(self.tables)}

    def is_stale(self) -> bool:
        """Return whether a table has grown so much that other plans may be better."""
        return any(t.n > 8 * then + 64 for t, then in zip(self.tables, self._sizes, strict=True))

    # -- what is looked into -------------------------------------------------------------------------------------------

    def look_up(self, rank: str, total: str, support: str) -> None:
        """Write down where tables and indexes are now; the latter learn of all rows."""
        for t, table in enumerate(self.tables):
            line = self.table_lines[t]
            columns = table.column(rank), table.column(total), table.column(support)
            self._tell_of_table(t, table, line, columns)
            line[COUNT] = table.n
        for x, (table, source, known) in enumerate(self._indexes):
            index = source.index(known)
            arrays: tuple[npt.NDArray[Any], ...]
            if isinstance(index, BlockIndex):
                arrays = index.slots, index.entries, index.pool
            else:
                arrays = index.slots, index.following, index.slots
            at = len(self.tables) + x
            if not _same(self._told[at], arrays):
                slots, following, pool = [address_of(array) for array in arrays]
                size = len(index.slots)
                self.index_lines[x] = (
                    self.numbers[table], isinstance(index, BlockIndex), slots, size, _shift(size), following, pool,
                )  # fmt: skip
                self._told[at] = arrays

    def _tell_of_table(self, t: int, table: Table, line: Numbers, columns: tuple[Column, Column, Column]) -> None:
        arrays = table.rows, table.flags, table.slots, *columns
        if _same(self._told[t], arrays):
            return
        rows, flags, slots, *numbers = map(address_of, arrays)
        kind = BY_VALUE
        if table.keys.ndim == 1:
            kind = ONE_NUMBER if table.arity == 1 else TWO_NUMBERS
        size = len(table.slots)
        room = min(len(table.rows), size * 3 // 4)
        wide = table.rows.dtype == np.int64
        indexed = any(table is other for other, _, _ in self._indexes)
        line[:] = (rows, wide, table.arity, kind, flags, slots, size, _shift(size), table.n, room, *numbers, indexed)
        self._told[t] = arrays

    # -- writing -------------------------------------------------------------------------------------------------------

    def _number(self, of: list[Table], one: Table) -> int:
        if one not in of:
            of.append(one)
        return of.index(one)

    def _place(self, place: Place) -> int:
        if place not in self.places:
            self.places.append(place)
        return self.places.index(place)

    def _add_plan(self, start: Start, table: int) -> int:
        """Write a plan, and return where it is."""
        plan, code = start.plan, self._code
        registers = {v: r for r, v in enumerate(plan.rule.variables())}
        at = len(code)
        self.rules.append(plan.rule)
        code += [0] * PLAN_CHECKS
        code[at + PLAN_RULE], code[at + PLAN_TABLE] = len(self.rules) - 1, table
        code[at + PLAN_TRUTH], code[at + PLAN_RANKED] = self._place(start.place), start.ranked
        code[at + PLAN_STEPS], code[at + PLAN_ONLY_STEP] = len(plan.steps), NO_STEP
        self._add_atom(start.atom, registers, at)
        held = plan.start
        only = plan.steps[0] if len(plan.steps) == 1 else None
        if isinstance(only, AtomStep) and not only.filters and not len(only.equal):
            code[at + PLAN_ONLY_STEP] = len(code)
        for step in plan.steps:
            assert isinstance(step, AtomStep), "a step that only follows an index or looks a fact up"
            self._add_step(step, held, registers)
            held = step.variables
        code[at + PLAN_HEAD] = len(code)
        code.append(self._number(self.tables, plan.head))
        self._add_known(range(plan.head.arity), plan.terms, plan.constants, held, registers)
        code[at + PLAN_FIRST] = len(code)
        self._add_first(start)
        if code[at + PLAN_ONLY_STEP] != NO_STEP:
            self._add_sources(start)
        return at

    def _add_first(self, start: Start) -> None:
        """Write what the first step of a plan looks up."""
        if not start.plan.steps:
            self._code += [NO_INDEX, 0]
            return
        step = start.plan.steps[0]
        assert isinstance(step, AtomStep), "a step that only follows an index or looks a fact up"
        self._code += [TUPLE_INDEX - self._number(self.tables, step.table) if step.filters else self._index(step)]
        self._code.append(len(step.known))
        columns = _columns(start.atom)
        for t in step.terms.tolist():
            self._code += (columns[start.plan.start[t]], 0) if t >= 0 else (NO_REGISTER, int(step.constants[-1 - t]))

    def _add_sources(self, start: Start) -> None:
        """Write where the values of the head of a plan of one step are from."""
        plan, step = start.plan, start.plan.steps[0]
        assert isinstance(step, AtomStep), "a step that only follows an index or looks a fact up"
        columns = _columns(start.atom)
        matched = dict(zip(step.variables[len(step.kept) :], step.added.tolist(), strict=True))
        for t in plan.terms.tolist():
            if t < 0:
                self._code += (A_CONSTANT, int(plan.constants[-1 - t]))
            elif (name := step.variables[t]) in matched:
                self._code += (FROM_MATCH, matched[name])
            else:
                self._code += (FROM_FACT, columns[name])

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
        self._code[at + PLAN_VARIABLES] = len(self._code)
        self._add_pairs([(column, registers[v]) for v, column in first.items()])

    def _add_step(self, step: AtomStep, held: tuple[str, ...], registers: dict[str, int]) -> None:
        code, at = self._code, len(self._code)
        index = NO_INDEX if step.filters else self._index(step)
        place = self._place(step.place)
        code += [0] * STEP_KNOWN
        code[at + STEP_FILTERS], code[at + STEP_NEGATED], code[at + STEP_RANKED] = (
            step.filters,
            step.negated,
            step.ranked,
        )
        code[at + STEP_TABLE], code[at + STEP_INDEX] = self._number(self.tables, step.table), index
        code[at + STEP_TRUTH] = place
        self._add_known(step.known, step.terms, step.constants, held, registers)
        self._add_pairs(step.equal.tolist())
        new = step.variables[len(step.kept) :] if not step.filters else ()
        self._add_pairs([(c, registers[v]) for c, v in zip(step.added.tolist(), new, strict=True)])
        code[at + STEP_NEXT] = len(code)

    def _index(self, step: AtomStep) -> int:
        wanted = step.table, step.source, step.known
        if wanted not in self._indexes:
            self._indexes.append(wanted)
        return self._indexes.index(wanted)

    def _add_known(
        self, columns: Sequence[int], terms: Places, constants: Codes, held: tuple[str, ...], registers: dict[str, int]
    ) -> None:
        self._code.append(len(columns))
        for column, t in zip(columns, terms.tolist(), strict=True):
            source = (registers[held[t]], 0) if t >= 0 else (NO_REGISTER, int(constants[-1 - t]))
            self._code += [column, *source]

    def _add_pairs(self, pairs: Sequence[Sequence[int]]) -> None:
        self._code.append(len(pairs))
        for pair in pairs:
            self._code += map(int, pair)


def _columns(atom: Atom) -> dict[str, int]:
    """Return the first column of each variable of an atom."""
    found: dict[str, int] = {}
    for column, term in enumerate(atom.terms):
        if not isinstance(term, Constant):
            found.setdefault(term.name, column)
    return found


def _same(told: tuple[object, ...], arrays: tuple[object, ...]) -> bool:
    return len(told) == len(arrays) and all(map(operator.is_, told, arrays))


def _shift(size: int) -> int:
    return 64 - (size.bit_length() - 1)
