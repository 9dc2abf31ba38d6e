"""Sets of facts as bits in the flags of rows, and expressions over them as truth tables.

A named set is a bit. A settled set is a list of rows, and a bit once an expression speaks of it. Either is a list of
rows alone while it lends its bit to another set: see `bits`. An expression is kept as it was written until it is
settled; whether a row belongs to it is then one look into a table of all values that flags can have. Membership is free
of the size of the sets, and listing costs the size of the smallest set that must be listed.

An expression means what it meant when it was written. So before a named set changes, derivations that have not been
settled yet are evaluated, and expressions that mention the set are listed.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

from upheld.algebra.sets import FactSet, Profile, SetEngine
from upheld.compiler.strata import Stratification, Stratum
from upheld.engines.memory.sets.bit_matrix import DenseBits
from upheld.engines.memory.sets.bits import WIDEST
from upheld.engines.memory.sets.collected import Collected
from upheld.engines.memory.sets.context import Context
from upheld.engines.memory.sets.rows_by_table import numbered_rows, profile, selected_rows, set_bit
from upheld.engines.memory.sets.truth_tables import NO_FACTS, NOTHING, Spelling, Truth, selected
from upheld.engines.memory.storage.arrays import Rows, each_once
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Table
from upheld.facts.columns import Columns
from upheld.language.core import Atom

NO_ROWS: Rows = np.empty(0, np.int32)


class MemorySet:
    """A set of facts of the memory engine."""

    context: Context
    #: Whether the set can change.
    is_named = False
    #: At most how many sets an evaluation of this one reads.
    width = 1

    @property
    def engine(self) -> SetEngine:
        return self.context.engine

    # Sets known to be empty are left out of expressions at once: in an update most are. A named set stays in
    # its expression, which keeps the meaning it has now.

    def __or__(self, other: FactSet) -> MemorySet:
        right = own_set(other)
        if self.is_void() and not right.is_named:
            return right
        if right.is_void() and not self.is_named:
            return self
        return Combined(self.context, "|", self, right)

    def __and__(self, other: FactSet) -> MemorySet:
        right = own_set(other)
        if self.is_void() or right.is_void():
            return nothing(self.context)
        return Combined(self.context, "&", self, right)

    def __sub__(self, other: FactSet) -> MemorySet:
        right = own_set(other)
        if self.is_void():
            return nothing(self.context)
        if right.is_void() and not self.is_named:
            return self
        return Combined(self.context, "-", self, right)

    def __ior__(self, other: FactSet) -> Self:
        raise AssertionError("only a named set can be changed")

    def __isub__(self, other: FactSet) -> Self:
        raise AssertionError("only a named set can be changed")

    def in_stratum(self, stratum: Stratum) -> MemorySet:
        if self.is_void() or not self.context.placing.tables(self, stratum):
            return nothing(self.context)
        return OfStratum(self.context, self, stratum)

    def rows(self, predicate: str) -> Columns:
        table = self.context.tables.get(predicate)
        if table is None:
            return Columns((), (), 0)
        rows = self.of(table)  # before the rows of the table are looked at: it may have to derive them, and grow it
        return self.context.codec.reading.chosen(table.held(), rows, table.types)

    def predicates(self) -> set[str]:
        return {table.name for table in self.tables()}

    def classes(self, strata: Stratification) -> set[int]:
        return self.context.placing.classes(self, strata)

    def classes_apart(self, other: FactSet, stratum: Stratum) -> set[int]:
        one, two, placing = self - other, own_set(other) - self, self.context.placing
        return placing.classes_in(one, stratum) | placing.classes_in(two, stratum)

    def count(self, predicate: str | None = None) -> int:
        if predicate is not None:
            table = self.context.tables[predicate]
            return len(self.of(table)) if self.may_have(table) else 0
        return sum(len(rows) for _, rows in self.listed())

    def profiles(self, atoms: Sequence[Atom]) -> list[Profile]:
        codec, tables = self.context.codec, [self.context.tables[atom.predicate] for atom in atoms]
        return [profile(codec, table, self.of(table), atom) for table, atom in zip(tables, atoms, strict=True)]

    def at_most(self, predicate: str) -> int:
        return self.context.tables[predicate].n

    def __bool__(self) -> bool:
        return any(len(rows) for _, rows in self.listed())

    # -- what the engine asks for --------------------------------------------------------------------------------------

    def is_void(self) -> bool:
        """Return whether the set is known to be empty, without work."""
        return False

    def has_work(self) -> bool:
        """Return whether something must be derived or counted to know the set."""
        return False

    def spelling(self) -> Spelling:
        """Return the expression of membership over flags; a set that has no bit yet gets one."""
        raise NotImplementedError

    def tables(self) -> list[Table]:
        """Return the tables that may have rows in the set."""
        raise NotImplementedError

    def may_have(self, table: Table) -> bool:
        """Return whether a table is one of `tables`."""
        raise NotImplementedError

    def tables_of(self, names: Collection[str]) -> list[Table]:
        """Return the tables of `tables` with one of some names. It takes the time of the shorter list."""
        mine = self.tables()
        if len(mine) <= len(names):
            return [table for table in mine if table.name in names]
        return [table for table in map(self.context.tables.__getitem__, names) if self.may_have(table)]

    def of(self, table: Table) -> Rows:
        """Return the rows of a table that are in the set, each once."""
        raise NotImplementedError

    def of_tables(self, tables: Collection[Table]) -> dict[Table, Rows]:
        """Return the rows of some tables that are in the set, each once, without tables that have none."""
        return {table: rows for table in tables if len(rows := self.of(table))}

    def listed(self) -> Iterator[tuple[Table, Rows]]:
        """Yield the rows of the set, each once, table by table."""
        for table in self.tables():
            yield table, self.of(table)

    def is_most_of(self, table: Table) -> bool:
        """Return whether the set is too large in a table for its rows there to be listed."""
        return False

    def among(self, table: Table, rows: Rows) -> Rows:
        """Return the rows that are in the set, of some rows of a table."""
        return selected(table, rows, self.context.truths[self.spelling()])

    def settled(self) -> Settled:
        """Return the set, computed."""
        return Settled(self.context, self.known_rows())

    def known_rows(self) -> dict[Table, Rows]:
        """Return the rows of a set for which nothing must be derived, each once."""
        return self.of_tables(self.tables())

    def collect(self, collected: Collected, reject: Spelling | None) -> None:
        """Collect the rows of the set, except those that `reject` holds for."""
        for table, rows in self.listed():
            collected.take(table, rows, self.context.truth_of(reject))

    def leaves(self) -> Iterator[MemorySet]:
        """Yield the sets that the expression is made from."""
        yield self

    def list_read(self, read: set[int]) -> None:
        """Add the identities of the sets that an evaluation of this one reads."""
        read.add(id(self))

    @property
    def spent(self) -> bool:
        """Whether a derivation in the expression has been settled, and so cannot be asked for again."""
        return False


class Settled(MemorySet):
    """A list of rows for each table, and once an expression speaks of it a bit that says whether a row is in it."""

    def __init__(self, context: Context, rows: dict[Table, Rows], bit: int | None = None):
        self.context, self._rows, self._bit = context, rows, bit
        self._count = sum(map(len, rows.values()))
        #: Matrices of pairs in which these rows were put as they were found, for a set that takes the rows next.
        self.pairs: dict[Table, DenseBits] = {}
        #: The evaluation that last asked for the bit.
        self._asked_in = -1
        if bit is not None:
            context.bits.give(bit, self, rows)
        if rows:
            context.holders.add_list(self)

    def moved(self, table: Table, old: Rows, new: Rows) -> None:
        rows = self._rows.get(table, NO_ROWS)
        if len(rows) and len(old):
            places = np.minimum(np.searchsorted(-old, -rows), len(old) - 1)
            self._rows[table] = np.where(old[places] == rows, new[places], rows)

    @property
    def in_use(self) -> bool:
        return self.context.bits.are_needed(self._asked_in)

    def dense(self, table: Table) -> DenseBits | None:
        return None

    def keeping_cost(self) -> tuple[bool, int]:
        return False, self._count

    def lend(self) -> None:
        self.release()

    def release(self) -> None:
        bit, self._bit = self._bit, None
        if bit is not None:
            self.context.bits.release(bit)

    def spelling(self) -> Spelling:
        if self._bit is None:
            if not self:
                return NO_FACTS
            bit = self.context.bits.take("settled")
            set_bit(self._rows.items(), bit)
            self._bit = bit
            self.context.bits.give(bit, self, self._rows)
        self._asked_in = self.context.bits.evaluation
        return self._bit

    def settled(self) -> Settled:
        return self

    def tables(self) -> list[Table]:
        return list(self._rows)

    def may_have(self, table: Table) -> bool:
        return table in self._rows

    def of(self, table: Table) -> Rows:
        return self._rows.get(table, NO_ROWS)

    def known_rows(self) -> dict[Table, Rows]:
        return {table: rows for table, rows in self._rows.items() if len(rows)}

    def count(self, predicate: str | None = None) -> int:
        return self._count if predicate is None else super().count(predicate)

    def counts(self) -> dict[str, int]:
        """Return the number of facts of each predicate."""
        return {table.name: len(rows) for table, rows in self._rows.items()}

    def listed(self) -> Iterator[tuple[Table, Rows]]:
        return iter(self._rows.items())

    def is_void(self) -> bool:
        return not self._count

    def __bool__(self) -> bool:
        return self._count > 0


class Deferred(MemorySet):
    """A set that is not computed before it must be; `now` is its settled self once it is."""

    #: Whether rules must be applied or derivations counted to compute it.
    derives = False

    def __init__(self, context: Context):
        self.context = context
        self.now: Settled | None = None
        context.pending.sets.append(weakref.ref(self))

    @property
    def is_computed(self) -> bool:
        return self.now is not None

    def force(self) -> Settled:
        """Settle the set as it is now, for all later uses."""
        if self.now is None:
            assert not self.spent, "a derivation is settled once; settle it by itself to use it twice"
            if self.width > WIDEST:
                narrow(self.operands())
            with self.context.bits.evaluating():
                self.now = self._collected() if self.has_work() else Settled(self.context, self.known_rows())
            self.drop()
            self.width = 1
        return self.now

    def _collected(self) -> Settled:
        with self.context.new_bit("collected") as bit:
            collected = Collected(self.context, bit)
            self.collect(collected, None)
            rows = collected.rows()
            if rows:
                settled = Settled(self.context, rows, bit)
                settled.pairs = collected.pairs
                return settled
        self.context.bits.give_back(bit)
        return nothing(self.context)

    def settled(self) -> Settled:
        return self.force()

    def operands(self) -> list[MemorySet]:
        """Return the sets that the set is to be computed from."""
        raise NotImplementedError

    def list_read(self, read: set[int]) -> None:
        if self.now is not None:
            self.now.list_read(read)
            return
        read.add(id(self))  # what is found gets a bit as well
        for operand in self.operands():
            operand.list_read(read)

    def drop(self) -> None:
        """Let go of what the set was to be computed from."""
        raise NotImplementedError

    def in_stratum(self, stratum: Stratum) -> MemorySet:
        if self.now is not None:
            return self.now.in_stratum(stratum)
        return OfStratum(self.context, self, stratum)  # its tables are not known yet

    def is_void(self) -> bool:
        return self.now is not None and self.now.is_void()

    def spelling(self) -> Spelling:
        return self.force().spelling()

    def tables(self) -> list[Table]:
        return self.force().tables()

    def may_have(self, table: Table) -> bool:
        return self.force().may_have(table)

    def of(self, table: Table) -> Rows:
        return self.force().of(table)

    def of_tables(self, tables: Collection[Table]) -> dict[Table, Rows]:
        return self.force().of_tables(tables)

    def listed(self) -> Iterator[tuple[Table, Rows]]:
        return self.force().listed()

    def __bool__(self) -> bool:
        return bool(self.force())


class Combined(Deferred):
    """`left operator right`.

    Where no rule must be applied to compute it, the rows of one table are listed without those of other tables: a
    stratum reads few of the relations that have changed so far.
    """

    def __init__(self, context: Context, operator: str, left: MemorySet, right: MemorySet):
        self.operator = operator
        self.left: MemorySet | None = left
        self.right: MemorySet | None = right
        self.width = 1 + left.width + right.width
        super().__init__(context)

    def drop(self) -> None:
        self.left = self.right = None

    def operands(self) -> list[MemorySet]:
        assert self.left is not None and self.right is not None, "an expression without operands"
        return [self.left, self.right]

    def list_read(self, read: set[int]) -> None:
        if self.now is not None or self.has_work():
            super().list_read(read)
        else:  # a truth table, without a bit of its own
            for operand in self.operands():
                operand.list_read(read)

    def has_work(self) -> bool:
        if self.now is not None:
            return False
        assert self.left is not None and self.right is not None, "an expression without operands"
        return self.left.has_work() or self.right.has_work()

    def spelling(self) -> Spelling:
        if self.now is not None:
            return self.now.spelling()
        assert self.left is not None and self.right is not None, "an expression without operands"
        assert self.context.bits.evaluation, "an expression of sets that may lend their bits meanwhile"
        return (self.operator, self.left.spelling(), self.right.spelling())

    def tables(self) -> list[Table]:
        if self.now is not None or self.has_work():
            return super().tables()
        left, right = self.operands()
        return list(dict.fromkeys((*left.tables(), *right.tables()))) if self.operator == "|" else left.tables()

    def may_have(self, table: Table) -> bool:
        if self.now is not None or self.has_work():
            return super().may_have(table)
        left, right = self.operands()
        return left.may_have(table) or (self.operator == "|" and right.may_have(table))

    def of(self, table: Table) -> Rows:
        if self.now is not None or self.has_work():
            return super().of(table)
        if self.width > WIDEST:
            narrow(self.operands())
        left, right = self.operands()
        with self.context.bits.evaluating():
            mine = left.of(table)
            if self.operator != "|":
                return selected(table, mine, self._wanted()) if len(mine) else mine
            more = right.of(table)
        if not len(mine) or not len(more):
            return mine if len(mine) else more
        return each_once(np.concatenate([mine, more]))

    def of_tables(self, tables: Collection[Table]) -> dict[Table, Rows]:
        if self.now is not None or self.has_work():
            return super().of_tables(tables)
        if self.width > WIDEST:
            narrow(self.operands())
        left, right = self.operands()
        with self.context.bits.evaluating():
            mine = left.of_tables(tables)
            if self.operator != "|":
                return selected_rows(mine, self._wanted()) if mine else mine
            return _together(mine, right.of_tables(tables))

    def _wanted(self) -> Truth:
        """Return the truth table of the rows of the left operand that an intersection or a difference keeps."""
        _, right = self.operands()
        spelling = right.spelling()
        return self.context.truths[("~", spelling, spelling) if self.operator == "-" else spelling]

    def known_rows(self) -> dict[Table, Rows]:
        if self.now is not None:
            return super().known_rows()
        left, right = self.operands()
        if self.operator == "|":
            return _together(left.known_rows(), right.known_rows())
        wanted = self._wanted()
        return selected_rows(left.known_rows(), wanted)

    def collect(self, collected: Collected, reject: Spelling | None) -> None:
        if self.now is not None:
            super().collect(collected, reject)
            return
        left, right = self.operands()
        if self.operator == "|":
            left.collect(collected, reject)
            right.collect(collected, reject)
        else:
            spelling = right.spelling()
            outside = spelling if self.operator == "-" else ("~", spelling, spelling)
            left.collect(collected, outside if reject is None else ("|", reject, outside))

    def leaves(self) -> Iterator[MemorySet]:
        if self.now is None:
            assert self.left is not None and self.right is not None, "an expression without operands"
            yield from self.left.leaves()
            yield from self.right.leaves()

    @property
    def spent(self) -> bool:
        return self.now is None and (self.left is None or any(leaf.spent for leaf in self.leaves()))


class OfStratum(Deferred):
    """The facts of a set that belong to a stratum."""

    def __init__(self, context: Context, facts: MemorySet, stratum: Stratum):
        self.facts: MemorySet | None = facts
        self.stratum = stratum
        self.width = 1 + facts.width
        super().__init__(context)

    def drop(self) -> None:
        self.facts = None

    def operands(self) -> list[MemorySet]:
        assert self.facts is not None, "a part of nothing"
        return [self.facts]

    def has_work(self) -> bool:
        if self.now is not None:
            return False
        assert self.facts is not None, "a part of nothing"
        return self.facts.has_work()

    def _rows(self) -> Iterator[tuple[Table, Rows]]:
        assert self.facts is not None, "a part of nothing"
        return self.context.placing.rows(self.facts, self.stratum)

    def known_rows(self) -> dict[Table, Rows]:
        if self.now is not None:
            return super().known_rows()
        return {table: rows for table, rows in self._rows() if len(rows)}

    def collect(self, collected: Collected, reject: Spelling | None) -> None:
        if self.now is not None:
            super().collect(collected, reject)
            return
        for table, rows in self._rows():
            collected.take(table, rows, self.context.truth_of(reject))

    def leaves(self) -> Iterator[MemorySet]:
        if self.now is None:
            assert self.facts is not None, "a part of nothing"
            yield from self.facts.leaves()

    @property
    def spent(self) -> bool:
        return self.now is None and (self.facts is None or any(leaf.spent for leaf in self.leaves()))


def _together(some: dict[Table, Rows], more: dict[Table, Rows]) -> dict[Table, Rows]:
    """Return the rows of two sets, each once."""
    for table, rows in more.items():
        mine = some.get(table)
        some[table] = rows if mine is None else each_once(np.concatenate([mine, rows]))
    return some


def narrow(operands: Sequence[MemorySet]) -> None:
    """Settle the widest of some expressions until an evaluation has bits for all the sets that it reads."""
    while True:
        read: set[int] = set()
        for operand in operands:
            operand.list_read(read)
        if len(read) < WIDEST:
            return
        max((o for o in operands if isinstance(o, Deferred) and o.now is None), key=lambda o: o.width).force()


def nothing(context: Context) -> Settled:
    """Return the empty set."""
    return Settled(context, {})


def load_codes(context: Context, *facts: tuple[Table, Codes]) -> Settled:
    """Return a set of the facts of some tables with these codes, an array of them for each column."""
    with context.new_bit("loaded") as bit:
        collected = Collected(context, bit)
        for table, codes in facts:
            if codes.size:
                table.fit(int(codes.min()), int(codes.max()))
            if not table.n and table.arity and collected.append_ascending(table, codes):  # files are often sorted
                continue
            values = np.ascontiguousarray(codes.T, table.rows.dtype)
            if not table.n:  # most are distinct, so growing step by step would copy all of them a few times
                table.make_room(len(values))
            collected.enter(table, values, NOTHING)
        if rows := collected.rows():
            return Settled(context, rows, bit)
    context.bits.give_back(bit)
    return nothing(context)


def membership(facts: FactSet) -> Truth:
    """Return the truth table of a set, to be used before another set asks for a bit."""
    mine = own_set(facts)
    if mine.width > WIDEST:
        narrow([mine])
    with mine.context.bits.evaluating():
        return mine.context.truths[mine.spelling()]


def filtered(facts: FactSet, test: Callable[[Table, Rows], npt.NDArray[np.bool_]]) -> Settled:
    """Return the facts of a set for whose rows a test on their numbers holds."""
    mine = own_set(facts)
    chosen = ((table, rows[test(table, rows)]) for table, rows in _counted_rows(mine).items())
    return Settled(mine.context, {table: rows for table, rows in chosen if len(rows)})


def with_numbers(facts: FactSet, column: str, least: int, most: int) -> Settled:
    """Return the facts of a set with a number between two limits in a column."""
    mine = own_set(facts)
    if mine.is_void():
        return nothing(mine.context)
    return Settled(mine.context, numbered_rows(_counted_rows(mine), column, least, most))


def _counted_rows(facts: MemorySet) -> dict[Table, Rows]:
    """Return the rows of a set, once all pending derivations are counted."""
    facts.context.pending.count_all()
    if facts.width > WIDEST:
        narrow([facts])
    with facts.context.bits.evaluating():
        return dict(facts.listed()) if facts.has_work() else facts.known_rows()


def own_set(facts: FactSet) -> MemorySet:
    assert isinstance(facts, MemorySet), "a set of another engine"
    return facts
