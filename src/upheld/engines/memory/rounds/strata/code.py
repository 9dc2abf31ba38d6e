"""The plans of all strata of a program as numbers, for the kernels that go from stratum to stratum.

Nothing is written before a kernel asks for it: an update of a program with thousands of rules needs few of them. The
code of a stratum says which plans begin with which table; the readers of a table say which strata are due when a row
of it changes. Addresses are looked up anew only for tables that have changed since.

No update goes through all lines of this code: kernels list what they write, and `Buffers` clears what was listed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from upheld.compiler.strata import Stratification, Stratum
from upheld.engines.memory.bytecode import records as r
from upheld.engines.memory.bytecode.encoder import Columns, Numbers, PlanCode, Start, grown, without_choices
from upheld.engines.memory.joins.matching import Matcher
from upheld.engines.memory.kernels.hashing import FILL_DENOMINATOR, FILL_NUMERATOR
from upheld.engines.memory.plans.plan import Plan
from upheld.engines.memory.plans.where import Where
from upheld.engines.memory.rounds.strata import records as sr
from upheld.engines.memory.storage.block_index import BlockIndex
from upheld.engines.memory.storage.chain_index import ChainIndex
from upheld.engines.memory.storage.table import Table
from upheld.language.atom_patterns import Pattern, pattern_of
from upheld.language.core import Atom, Rule


class Cell(NamedTuple):
    """The atom that a plan begins with: a positive or negated one of a rule, by its position, in its stratum."""

    stratum: Stratum
    rule: Rule
    position: int
    is_negated: bool

    @property
    def atom(self) -> Atom:
        return (self.rule.negative if self.is_negated else self.rule.positive)[self.position]


class Shape(NamedTuple):
    """The columns with constants, and the pairs of columns with equal values, that some patterns have in common."""

    columns: tuple[int, ...]
    equal: tuple[tuple[int, int], ...]


class Coded(NamedTuple):
    """A pattern as kernels compare it with rows: its shape, and the codes of its constants."""

    shape: Shape
    constants: tuple[int, ...]


#: The pattern of every row.
EVERY_ROW = Coded(Shape((), ()), ())


class StrataCode(PlanCode):
    """The code of a stratification, with the tables, links and indexes that kernels read."""

    def __init__(self, matcher: Matcher, strata: Stratification, columns: Columns):
        super().__init__(matcher.context.tables, matcher.context.codec)
        self._matcher, self.strata, self._columns = matcher, strata, columns
        self._touched = matcher.context.touched
        self._seen = self._touched.last
        #: The matcher gives up its plans when codes of constants change; this code goes with them.
        self.edition = matcher.edition
        self.lines: Numbers = np.zeros((len(strata) + 1, sr.STRATUM_FIELDS), np.int64)
        self.lines[:, [sr.FIRST_MINUS, sr.FIRST_PLUS]] = r.NOBODY
        self.links: Numbers = np.zeros((0, sr.LINK_FIELDS), np.int64)
        self.met: Numbers = np.zeros((0, sr.MET_FIELDS), np.int64)
        #: The predicates whose facts have numbers, in strata with rules. The first has all that no atom names.
        self._counted = {name for s in strata.with_rules for name in s.holds}
        self._counts_unspoken = bool(strata.strata and strata.strata[0].rules)
        self._cells: dict[int, Cell] = {}
        #: The plans in cells that were written, by the tables that they look into, and the rows that these had.
        self._plans: dict[int, dict[int, Plan]] = defaultdict(dict)
        self._sizes: dict[int, int] = {}
        self._indexes_of: dict[int, list[int]] = defaultdict(list)
        self._looked_up: list[ChainIndex | BlockIndex | None] = []
        #: The number of tables whose lines have been written.
        self._told = 0
        self._has_columns = True

    # -- what kernels read ---------------------------------------------------------------------------------------------

    def number_of(self, table: Table) -> int:
        """Return the number of a table."""
        number = self.numbers.get(table)
        if number is None:
            number = self._number(table)
            self._write_out()
        return number

    def forget_columns(self) -> None:
        super().forget_columns()
        self._has_columns = False

    def begin_anew(self) -> None:
        """Begin with other ranks, whose sums are not known yet."""
        self.lines[:, sr.DERIVATIONS] = 0

    def refresh(self) -> None:
        """Write down where tables are now that have changed since this was last done."""
        seen = self._touched.last
        if not self._has_columns:
            for number in range(self._told):
                self._tell(number)
            self._has_columns = True
        for name in self._touched.since(self._seen):
            t = self.numbers.get(self._by_name[name]) if name in self._by_name else None
            if t is not None:
                self._tell(t)
        self._seen = seen

    def _tell(self, t: int) -> None:
        table = self.tables[t]
        is_counted = self._counts_unspoken or table.name in self._counted
        numbers = [table.column(name) if is_counted and name else table.slots for name in self._columns]
        self._tell_of_table(t, (table.rows, table.flags, table.slots, *numbers))
        for x in self._indexes_of.get(t, ()):
            self._check_index(x)
        then = self._sizes.get(t, 0)
        if table.n > then + then // 2 + 16 or then > 2 * table.n + 16:
            self._sizes[t] = table.n
            self._drop_stale_plans(t)

    def _drop_stale_plans(self, t: int) -> None:
        for cell, plan in list(self._plans.get(t, {}).items()):
            if plan.is_stale():
                self._fill(cell, sr.UNWRITTEN_PLAN)
                for table in plan.tables:
                    self._plans[self.numbers[table]].pop(cell, None)

    def _check_index(self, x: int) -> None:
        """Let kernels ask for an index if it is not what it was, or not one that they can enter rows into."""
        _, source, columns = self._sources[x]
        index = source.indexes.get(columns)
        known = -1
        if index is not None and index is self._looked_up[x] and isinstance(source, Table):
            if self._knows(x, index):
                known = index.upto
                self._tell_of_room(x, index)
        self.index_lines[x, r.KNOWN_ROWS] = known

    def look_up_index(self, x: int) -> None:
        """Bring an index up to date, and write down where it is."""
        table, source, columns = self._sources[x]
        index = self._tell_of_index(x, table, source, columns)
        self._looked_up[x] = index
        self._tell_of_room(x, index if isinstance(source, Table) else None)
        self.index_lines[x, r.KNOWN_ROWS] = table.n

    def _tell_of_room(self, x: int, index: ChainIndex | BlockIndex | None) -> None:
        line = self.index_lines[x]
        line[r.ROWS_AT_MOST] = 0
        if isinstance(index, ChainIndex) and not len(index.back):
            line[r.ROWS_AT_MOST] = min(len(index.following), index.rows_before_blocks())
            line[r.DISTINCT_KEYS] = index.distinct
            line[r.KEYS_AT_MOST] = len(index.slots) * FILL_NUMERATOR // FILL_DENOMINATOR

    def absorb(self, state: Numbers) -> None:
        """Let the tables and indexes know of the rows that a kernel has entered, which has listed them."""
        while (t := int(state[sr.FIRST_GROWN_TABLE])) != r.NOBODY:
            self.tables[t].count_rows(int(self.table_lines[t, r.COUNT]))
            state[sr.FIRST_GROWN_TABLE], self.links[t, sr.NEXT_GROWN_TABLE] = (
                self.links[t, sr.NEXT_GROWN_TABLE],
                r.UNLISTED,
            )
        while (x := int(state[sr.FIRST_GROWN_INDEX])) != r.NOBODY:
            index, line = self._looked_up[x], self.index_lines[x]
            assert index is not None, "an index that a kernel knows"
            self._sources[x][0].touch()
            index.upto, index.distinct = int(line[r.KNOWN_ROWS]), int(line[r.DISTINCT_KEYS])
            state[sr.FIRST_GROWN_INDEX], line[r.NEXT_GROWN_INDEX] = line[r.NEXT_GROWN_INDEX], r.UNLISTED

    # -- writing -------------------------------------------------------------------------------------------------------

    def _write_out(self) -> None:
        super()._write_out()
        self.links = grown(self.links, len(self.tables))
        self.met = grown(self.met, len(self.rules))
        for t in range(self._told, len(self.tables)):
            self.links[t, [sr.LAST_CHANGE, sr.READERS, sr.NEXT_GROWN_TABLE, sr.LEVELS]] = (
                r.NOBODY,
                sr.NO_READERS,
                r.UNLISTED,
                sr.NO_LEVELS,
            )
            self._tell(t)
        self._told = len(self.tables)
        for x in range(len(self._looked_up), len(self._sources)):
            self.index_lines[x, [r.KNOWN_ROWS, r.NEXT_GROWN_INDEX]] = -1, r.UNLISTED
            self._looked_up.append(None)
            self._indexes_of[self.numbers[self._sources[x][0]]].append(x)

    def write_stratum(self, s: Stratum) -> None:
        """Write which plans the rules of a stratum have, without the plans."""
        line = self.lines[s.index]
        if s.aggregations or s.classings:
            line[sr.STRATUM_KIND] = sr.OTHER_STRATUM
            return
        if not s.rules:
            line[sr.STRATUM_KIND] = sr.EXPLICIT_STRATUM
            return
        parts: dict[str, dict[int, list[Cell]]] = defaultdict(lambda: defaultdict(list))
        for rule in s.rules:
            own = s.own(rule)
            for i, atom in enumerate(rule.positive):
                parts[atom.predicate][sr.READ_OWN if i in own else sr.READ_OTHERS].append(Cell(s, rule, i, False))
            for i, atom in enumerate(rule.negative):
                parts[atom.predicate][sr.READ_NEGATED].append(Cell(s, rule, i, True))
        code, begin = self._code, len(self._code)
        code += [len(parts), *[sr.NO_PATTERNS] * (sr.READ_FIELDS * len(parts))]
        for k, (name, cells_of) in enumerate(parts.items()):
            record = begin + sr.READ_FIELDS * k
            code[record + sr.READ_TABLE] = self._number(self._by_name[name])
            for part, cells in cells_of.items():
                code[record + part] = self._add_cells(cells, self._by_name[name].types)
        line[sr.STRATUM_KIND], line[sr.STRATUM_CODE] = sr.RULED_STRATUM, begin
        self._write_out()

    def _add_cells(self, cells: Sequence[Cell], types: Sequence[str]) -> int:
        """Write cells for plans by the patterns of the atoms that these begin with."""
        by_pattern: dict[Coded, list[Cell]] = defaultdict(list)
        for cell in cells:
            by_pattern[self._coded(pattern_of(cell.atom), types)].append(cell)
        numbers = {}
        for coded, mine in by_pattern.items():
            numbers[coded] = len(self._code)
            self._code.append(len(mine))
            for cell in mine:
                self._cells[len(self._code)] = cell
                self._code.append(sr.UNWRITTEN_PLAN)
        return self._add_patterns(numbers)

    def write_plans(self, cells: npt.NDArray[np.int32], where: Where) -> None:
        """Write the plans of some cells; a cell may be named more than once."""
        for at in np.unique(cells).tolist():
            self._write_plan(at, where)

    def _write_plan(self, at: int, where: Where) -> None:
        """Write the plan of a cell, if it is simple."""
        s, rule, position, is_negated = self._cells[at]
        assert self._columns.rank is not None, "plans of ranked support"
        start = self._matcher.start(rule, position, is_negated, where, (self._columns.rank, s))
        start = Start(without_choices(start.plan), start.atom, start.place, start.ranked)
        if not start.is_simple:
            self._fill(at, sr.OTHER_PLAN)
            return
        plan = self.add(start)
        self.met[len(self.rules) - 1, sr.NEXT_MET] = r.UNLISTED
        self._fill(at, plan)
        _, indexes, _ = self.reads(start)
        for x in indexes:
            self.look_up_index(x)
        for table in start.plan.tables:
            self._plans[self.numbers[table]][at] = start.plan

    def _fill(self, cell: int, number: int) -> None:
        self._code[cell] = self.code[cell] = number

    def write_readers(self, t: int) -> None:
        """Write which strata read the rows of a table."""
        table, strata = self.tables[t], self.strata
        classes = strata.classes_of(table.name)
        if len(classes) == 1:
            numbers = {EVERY_ROW: self._add_list(strata.reading(classes))}
        else:
            numbers = {
                self._coded(pattern, table.types): self._add_list(strata.reading([strata.classes[pattern]]))
                for pattern, _ in strata.patterns(table.name)
            }
        self.links[t, sr.READERS] = self._add_patterns(numbers)
        self._write_out()

    def write_levels(self, t: int) -> None:
        """Write which strata the rows of a table are in."""
        table = self.tables[t]
        levels = {self._coded(pattern, table.types): level for pattern, level in self.strata.patterns(table.name)}
        self.links[t, sr.LEVELS] = self._add_patterns(levels)
        self._write_out()

    def _add_list(self, numbers: Iterable[int]) -> int:
        at = len(self._code)
        listed = sorted(numbers)
        self._code += [len(listed), *listed]
        return at

    def _coded(self, pattern: Pattern, types: Sequence[str]) -> Coded:
        """Return a pattern with the codes of its constants."""
        first: dict[object, int] = {}
        columns, equal, constants = [], [], []
        for column, (kind, value) in enumerate(pattern[1]):
            if kind == "=":
                columns.append(column)
                constants.append(int(self._codec.constant(value, types[column])))
            elif first.setdefault(value, column) != column:
                equal.append((first[value], column))
        return Coded(Shape(tuple(columns), tuple(equal)), tuple(constants))

    def _add_patterns(self, numbers: dict[Coded, int]) -> int:
        """Write patterns and the number of each, shape by shape."""
        shapes: dict[Shape, list[tuple[tuple[int, ...], int]]] = defaultdict(list)
        for (shape, constants), number in numbers.items():
            shapes[shape].append((constants, number))
        code, at = self._code, len(self._code)
        code.append(len(shapes))
        for (columns, equal), mine in shapes.items():
            begin = len(code)
            code += [0, len(mine), len(columns), *columns]
            self._add_pairs(equal)
            for constants, number in sorted(mine):
                code += [*constants, number]
            code[begin + sr.SHAPE_NEXT] = len(code)
        return at
