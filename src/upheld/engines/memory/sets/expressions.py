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
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from upheld.algebra.sets import FactSet
from upheld.data.columns import Columns
from upheld.engines.memory.kernels import flags as flag_kernels
from upheld.engines.memory.sets.bit_matrix import DenseBits, dense_bits
from upheld.engines.memory.sets.bits import BITS, WIDEST
from upheld.engines.memory.storage.table import FLAGS, Rows, Table, distinct_rows, distinct_values
from upheld.language.core import Atom
from upheld.language.strata import Stratification, Stratum
from upheld.language.syntax.ast import Constant
from upheld.runtime.interruptions import uninterrupted

if TYPE_CHECKING:
    from upheld.engines.memory.engine import MemoryEngine

Truth = npt.NDArray[np.bool_]
#: An expression spelled out: a bit, or an operator and two operands.
Spelling = int | tuple[str, "Spelling", "Spelling"]
#: The empty set needs no bit.
_NO_FACTS: Spelling = ("-", 0, 0)

#: Entries of a log from which on it is made anew if it holds more rows than the table has.
_MOST_LOGGED = 256

_ALL_FLAGS = np.arange(1 << BITS, dtype=np.uint32)
_NO_ROWS: Rows = np.empty(0, np.int32)
_NO_CONSTANTS = np.empty(0, np.int64)
NOTHING: Truth = np.zeros(1 << BITS, np.bool_)


#: Truth tables that are kept: 16 MB of them.
_MOST_TABLES = 256


class TruthTables:
    """The truth tables of the expressions met so far."""

    def __init__(self) -> None:
        self._tables: dict[Spelling, Truth] = {}

    def __getitem__(self, spelling: Spelling) -> Truth:
        found = self._tables.get(spelling)
        if found is None:
            if len(self._tables) >= _MOST_TABLES:
                self._tables.clear()
            found = self._tables[spelling] = self._make(spelling)
        return found

    def _make(self, spelling: Spelling) -> Truth:
        if isinstance(spelling, int):
            return (_ALL_FLAGS >> spelling & 1).astype(np.bool_)
        operator, left, right = spelling
        if operator == "~":
            return ~self[left]
        if operator == "|":
            return self[left] | self[right]
        if operator == "&":
            return self[left] & self[right]
        return self[left] & ~self[right]


class MemorySet:
    """A set of facts of the memory engine."""

    engine: MemoryEngine
    #: At most how many sets an evaluation of this one reads.
    width = 1

    # What is known to be empty is left out of expressions at once: in an update most sets are. A named set stays in
    # its expression, which keeps the meaning it has now.

    def __or__(self, other: FactSet) -> MemorySet:
        right = own_set(other)
        if self.is_void() and not isinstance(right, Named):
            return right
        if right.is_void() and not isinstance(self, Named):
            return self
        return Combined(self.engine, "|", self, right)

    def __and__(self, other: FactSet) -> MemorySet:
        right = own_set(other)
        if self.is_void() or right.is_void():
            return self.engine.nothing
        return Combined(self.engine, "&", self, right)

    def __sub__(self, other: FactSet) -> MemorySet:
        right = own_set(other)
        if self.is_void():
            return self.engine.nothing
        if right.is_void() and not isinstance(self, Named):
            return self
        return Combined(self.engine, "-", self, right)

    def __ior__(self, other: FactSet) -> Self:
        raise AssertionError("only a named set can be changed")

    def __isub__(self, other: FactSet) -> Self:
        raise AssertionError("only a named set can be changed")

    def in_stratum(self, stratum: Stratum) -> MemorySet:
        if self.is_void() or not any(stratum.may_hold(table.name) for table in self.tables()):
            return self.engine.nothing
        return OfStratum(self.engine, self, stratum)

    def rows(self, predicate: str) -> Columns:
        table = self.engine.tables.get(predicate)
        if table is None:
            return Columns((), (), 0)
        rows = self.of(table)  # before the rows of the table are looked at: it may have to derive them, and grow it
        # A row never changes, so it may be read later.
        return self.engine.codec.chosen(table.rows, rows, table.types)

    def predicates(self) -> set[str]:
        return {table.name for table in self.tables()}

    def classes(self, strata: Stratification) -> set[int]:
        return self.engine.placing.classes(self, strata)

    def count(self, predicate: str | None = None) -> int:
        if predicate is not None:
            return len(self.of(self.engine.tables[predicate]))
        return sum(len(rows) for _, rows in self.listed())

    def profile(self, atom: Atom) -> tuple[int, tuple[int, ...]]:
        table = self.engine.tables[atom.predicate]
        rows = self.of(table)
        for column, term in enumerate(atom.terms):
            if isinstance(term, Constant):
                rows = rows[table.rows[rows, column] == self.engine.codec.encode_one(term.value, term.type)]
        return len(rows), tuple(distinct_values(table.rows[rows, column]) for column in range(table.arity))

    def at_most(self, predicate: str) -> int:
        return self.engine.tables[predicate].n

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
        """Return how membership is told from flags; a set that has no bit yet gets one."""
        raise NotImplementedError

    def tables(self) -> list[Table]:
        """Return the tables that may have rows in the set."""
        raise NotImplementedError

    def of(self, table: Table) -> Rows:
        """Return the rows of a table that are in the set, each once."""
        raise NotImplementedError

    def listed(self) -> Iterator[tuple[Table, Rows]]:
        """Yield the rows of the set, each once, table by table."""
        for table in self.tables():
            yield table, self.of(table)

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


class Named(MemorySet):
    """A set under a name: a bit, and a log of the rows that were put in, as long as that is worth its memory.

    While it lends its bit it is a list of rows, `_lent`.
    """

    def __init__(self, engine: MemoryEngine, name: str):
        self.engine, self.name, self.made = engine, name, engine.clock
        self._bit = engine.bits.take(name)
        self._asked_in = engine.bits.evaluation
        self._lent: Settled | None = None
        self.logs: dict[Table, list[Rows] | None] = {}
        self._logged: dict[Table, int] = {}
        self._dense: dict[Table, DenseBits] = {}
        self._asked: dict[Table, int] = {}
        self._released = False
        engine.bits.give(self._bit, self, self.logs)

    @property
    def bit(self) -> int:
        """The bit of the set, which keeps it until the evaluation under way is over."""
        if self._lent is not None:
            self._take_back_bit(self._lent)
        self._asked_in = self.engine.bits.evaluation
        return self._bit

    @property
    def in_use(self) -> bool:
        return self.engine.bits.are_needed(self._asked_in)

    def keeping_cost(self) -> tuple[bool, int]:
        size = sum(table.n if self.is_most_of(table) else self._logged.get(table, 0) for table in self.logs)
        return self.engine.keeps(self), size

    def lend(self) -> None:
        with uninterrupted():
            self._lent = Settled(self.engine, dict(self.listed()))
            self.engine.bits.lenders.add(self)
            self.engine.reclaiming.give_up_if_copied(self)
            self._dense.clear()
            self._asked.clear()
            self.engine.bits.release(self._bit)

    def _take_back_bit(self, lent: Settled) -> None:
        with uninterrupted():
            bit = self.engine.bits.take(self.name)
            for table, rows in lent.listed():
                # The rows may have got other numbers since, and the log has the old ones.
                self.logs[table] = None if self.is_most_of(table) else [rows]
                self._logged[table] = len(rows)
                flag_kernels.set_bits(table.flags, rows, FLAGS(1 << bit))
            self._bit, self._lent = bit, None
            self.engine.bits.lenders.discard(self)
            self.engine.bits.give(bit, self, self.logs)

    def __ior__(self, other: FactSet) -> Self:  # type: ignore[override]
        added = self.engine.settle_for_change(own_set(other))
        if added.is_void():
            return self
        self.engine.about_to_change(self)
        bits = FLAGS(1 << self.bit)
        for table, rows in added.listed():
            if self.engine.keeps(self):
                self._note_added(table, rows[~self.engine.truths[self.bit][table.flags[rows]]])
            self._log(table, rows)  # before the bits: a row that an interruption leaves in the set is in its log
            flag_kernels.set_bits(table.flags, rows, bits)
            if table in self._dense:
                self._dense[table].add(table, rows)
        return self

    def __isub__(self, other: FactSet) -> Self:  # type: ignore[override]
        removed = self.engine.settle_for_change(own_set(other))
        if removed.is_void():
            return self
        self.engine.about_to_change(self)
        keep = FLAGS(~(1 << self.bit) & 0xFFFF)
        for table, rows in removed.listed():
            if self.engine.keeps(self):
                self._note_removed(table, rows)
            self._forget_dense(table)
            flag_kernels.clear_bits(table.flags, rows, keep)
        return self

    def has_taken(self, table: Table, rows: Rows) -> None:
        """Note rows that a kernel has put into the set, and that were not in it."""
        if self.engine.keeps(self):
            self._note_added(table, rows)
        self._log(table, rows)
        if table in self._dense:
            self._dense[table].add(table, rows)

    def _note_added(self, table: Table, fresh: Rows) -> None:
        def undo() -> None:
            self._forget_dense(table)
            flag_kernels.clear_bits(table.flags, fresh, FLAGS(~(1 << self.bit) & 0xFFFF))

        self.engine.journal.note(undo, lambda: [(table, fresh)])

    def _note_removed(self, table: Table, rows: Rows) -> None:
        gone = rows[self.engine.truths[self.bit][table.flags[rows]]]

        def undo() -> None:
            bit = self.bit  # before the log: a set that takes its bit back begins another one
            self._log(table, gone)
            flag_kernels.set_bits(table.flags, gone, FLAGS(1 << bit))

        self.engine.journal.note(undo, lambda: [(table, gone)])
        self.engine.reclaiming.removed += len(gone)

    def _forget_dense(self, table: Table) -> None:
        if self._dense.pop(table, None):
            self._asked.pop(table)

    def dense(self, table: Table) -> DenseBits | None:
        """Return the rows of the set in a table as a matrix of bits, if it is worth having one.

        Whether it is, and how large, is asked anew each time that the table has doubled: so the asking stays cheap.
        """
        if self.is_most_of(table) and table.n > 2 * self._asked.get(table, 0):
            self._asked[table] = table.n
            made = dense_bits(table, self.of(table))
            if made is not None:
                self._dense[table] = made
        return self._dense.get(table)

    def _log(self, table: Table, rows: Rows) -> None:
        log = self.logs.setdefault(table, [])
        if log is None:
            return
        if len(log) > _MOST_LOGGED and self._logged[table] > 2 * table.n:
            self.of(table)  # rows that come and go stand in the log each time; not those that have no bit yet
            log = self.logs[table]
            assert log is not None, "a log that is made anew"
        self._logged[table] = self._logged.get(table, 0) + len(rows)
        if 2 * self._logged[table] > table.n and table.n > 4096:
            self.logs[table] = None  # most of the table: reading its flags is as good as a list
        else:
            log.append(rows)

    def moved(self, logs: Mapping[Table, list[Rows] | None]) -> None:
        """Go on with other numbers of the same rows, and other codes of the same texts."""
        for table in self.logs:
            log = self.logs[table] = logs.get(table, [])
            self._logged[table] = sum(map(len, log or ()))
        self._dense.clear()
        self._asked.clear()

    def is_most_of(self, table: Table) -> bool:
        """Return whether the set has held so much of a table that its rows there are not listed."""
        return self.logs.get(table, ()) is None

    def is_void(self) -> bool:
        return not self.logs

    def release(self) -> None:
        if not self._released and self._lent is None:
            self.engine.bits.release(self._bit)
        self._released = True

    def spelling(self) -> Spelling:
        if self._lent is not None:
            return self.bit
        self._asked_in = self.engine.bits.evaluation
        return self._bit

    def has(self, predicate: str, row: Sequence[object]) -> bool:
        """Return whether a row, which may have values of any types, is that of a fact."""
        table = self.engine.tables[predicate]
        codes = self.engine.codec.find_row(row, table.types)
        if codes is None:
            return False
        found = int(table.find(codes, 1, np.arange(table.arity), _NO_CONSTANTS)[0])
        return found >= 0 and bool(table.flags[found] >> self.bit & 1)

    def tables(self) -> list[Table]:
        return list(self.logs)

    def of(self, table: Table) -> Rows:
        if self._lent is not None:
            return self._lent.of(table)
        truth = self.engine.truths[self._bit]
        log = self.logs.get(table, [])
        if log is None:
            out = np.empty(table.n, np.int32)
            return out[: flag_kernels.scan(table.flags, table.n, truth, out)]
        if not log:
            return _NO_ROWS
        # A row may have left the set and come back, so it may stand in the log twice.
        rows = log[0] if len(log) == 1 else distinct_rows(np.concatenate(log))
        out = np.empty(len(rows), np.int32)
        rows = out[: flag_kernels.select(rows, table.flags, truth, out)]
        self.logs[table] = [rows]
        self._logged[table] = len(rows)
        return rows


class Settled(MemorySet):
    """A list of rows for each table, and once an expression speaks of it a bit that says whether a row is in it."""

    def __init__(self, engine: MemoryEngine, rows: dict[Table, Rows], bit: int | None = None):
        self.engine, self._rows, self._bit = engine, rows, bit
        self._count = sum(map(len, rows.values()))
        #: The evaluation that last asked for the bit.
        self._asked_in = -1
        if bit is not None:
            engine.bits.give(bit, self, rows)
        if rows:
            engine.reclaiming.hold(self)

    def moved(self, rows: dict[Table, Rows]) -> None:
        """Go on with other numbers of the same rows; the set has no bit."""
        assert self._bit is None, "a bit in rows that have moved"
        self._rows = rows

    @property
    def in_use(self) -> bool:
        return self.engine.bits.are_needed(self._asked_in)

    def keeping_cost(self) -> tuple[bool, int]:
        return False, self._count

    def lend(self) -> None:
        self.release()

    def release(self) -> None:
        bit, self._bit = self._bit, None
        if bit is not None:
            self.engine.bits.release(bit)

    def spelling(self) -> Spelling:
        if self._bit is None:
            if not self:
                return _NO_FACTS
            bit = self.engine.bits.take("settled")
            for table, rows in self._rows.items():
                flag_kernels.set_bits(table.flags, rows, FLAGS(1 << bit))
            self._bit = bit
            self.engine.bits.give(bit, self, self._rows)
        self._asked_in = self.engine.bits.evaluation
        return self._bit

    def tables(self) -> list[Table]:
        return list(self._rows)

    def of(self, table: Table) -> Rows:
        return self._rows.get(table, _NO_ROWS)

    def count(self, predicate: str | None = None) -> int:
        return self._count if predicate is None else super().count(predicate)

    def listed(self) -> Iterator[tuple[Table, Rows]]:
        return iter(self._rows.items())

    def is_void(self) -> bool:
        return not self._count

    def __bool__(self) -> bool:
        return self._count > 0


class Deferred(MemorySet):
    """A set that is not computed before it must be; `now` is its settled self once it is."""

    def __init__(self, engine: MemoryEngine):
        self.engine = engine
        self.now: Settled | None = None
        engine.deferred.append(weakref.ref(self))

    def force(self) -> Settled:
        """Settle the set as it is now, for all later uses."""
        if self.now is None:
            assert not self.spent, "a derivation is settled once; settle it by itself to use it twice"
            if self.width > WIDEST:
                narrow(self.operands())
            engine = self.engine
            with engine.bits.evaluating():
                self.now = engine.collect(self) if self.has_work() else engine.settled(engine.rows_of(self))
            self.drop()
            self.width = 1
        return self.now

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
        return OfStratum(self.engine, self, stratum)  # its tables are not known yet

    def is_void(self) -> bool:
        return self.now is not None and self.now.is_void()

    def spelling(self) -> Spelling:
        return self.force().spelling()

    def tables(self) -> list[Table]:
        return self.force().tables()

    def of(self, table: Table) -> Rows:
        return self.force().of(table)

    def __bool__(self) -> bool:
        return bool(self.force())


class Combined(Deferred):
    """`left operator right`."""

    def __init__(self, engine: MemoryEngine, operator: str, left: MemorySet, right: MemorySet):
        self.operator = operator
        self.left: MemorySet | None = left
        self.right: MemorySet | None = right
        self.width = 1 + left.width + right.width
        super().__init__(engine)

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
        assert self.engine.bits.evaluation, "an expression of sets that may lend their bits meanwhile"
        return (self.operator, self.left.spelling(), self.right.spelling())

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

    def __init__(self, engine: MemoryEngine, facts: MemorySet, stratum: Stratum):
        self.facts: MemorySet | None = facts
        self.stratum = stratum
        self.width = 1 + facts.width
        super().__init__(engine)

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

    def leaves(self) -> Iterator[MemorySet]:
        if self.now is None:
            assert self.facts is not None, "a part of nothing"
            yield from self.facts.leaves()

    @property
    def spent(self) -> bool:
        return self.now is None and (self.facts is None or any(leaf.spent for leaf in self.leaves()))


def narrow(operands: Sequence[MemorySet]) -> None:
    """Settle the widest of some expressions until an evaluation has bits for all the sets that it reads."""
    while True:
        read: set[int] = set()
        for operand in operands:
            operand.list_read(read)
        if len(read) < WIDEST:
            return
        max((o for o in operands if isinstance(o, Deferred) and o.now is None), key=lambda o: o.width).force()


def own_set(facts: FactSet) -> MemorySet:
    assert isinstance(facts, MemorySet), "a set of another engine"
    return facts
