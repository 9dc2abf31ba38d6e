"""The state that the parts of the memory engine share: tables, dictionary, sets, pending work and the journal.

Sets, joins, counters and classes get the context, never the engine. So a file of the engine imports only files below
it, and the memory of an engine is freed as soon as nobody holds it: the context knows its engine by a weak reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from upheld.algebra.meter import Meter
from upheld.algebra.sets import SetEngine
from upheld.base.threads import Threads
from upheld.engines.memory.kernels import flags as flag_kernels
from upheld.engines.memory.sets.bits import Bits
from upheld.engines.memory.sets.journal import Journal
from upheld.engines.memory.sets.pending import Pending
from upheld.engines.memory.sets.truth_tables import NOTHING, Spelling, Truth, TruthTables
from upheld.engines.memory.storage.arrays import FLAGS, Rows
from upheld.engines.memory.storage.atom_classes import Groupings
from upheld.engines.memory.storage.codec import Codec
from upheld.engines.memory.storage.column_names import ColumnNames
from upheld.engines.memory.storage.holders import Holders
from upheld.engines.memory.storage.partitions import Parts
from upheld.engines.memory.storage.strata import Placing
from upheld.engines.memory.storage.table import Table, Touched


class Context:
    """The shared state of one engine. `engine` is that engine, or a weak reference to it."""

    def __init__(self, engine: SetEngine, meter: Meter, codec: Codec, groupings: Groupings, threads: Threads):
        self.engine, self.meter, self.codec, self.threads = engine, meter, codec, threads
        self.tables: dict[str, Table] = {}
        self.touched = Touched()
        #: The parts of tables, by the atoms of the program.
        self.parts: dict[str, Parts] = {}
        self.placing = Placing(groupings, codec)
        self.truths = TruthTables()
        self.bits = Bits()
        self.pending = Pending()
        self.journal = Journal()
        self.columns = ColumnNames(self.tables)
        self.holders = Holders()
        #: The tables with a column that counts derivations for a moment: see `scratch`.
        self.scratched: list[Table] = []
        #: Counts attempts. A failed one restores the sets that are older than `kept_before`.
        self.clock = self.kept_before = 0

    def truth_of(self, spelling: Spelling | None) -> Truth:
        """Return the truth table of an expression; None stands for the empty set."""
        return NOTHING if spelling is None else self.truths[spelling]

    @contextmanager
    def new_bit(self, name: str) -> Iterator[int]:
        """Take a bit for a set while it is made; if that fails, clear the bit in all rows and give it back."""
        bit = self.bits.take(name)
        try:
            yield bit
        except BaseException:
            self.clear(bit)
            raise

    @contextmanager
    def marked(self, rows: dict[Table, Rows]) -> Iterator[Truth]:
        """Give rows a bit for the time of a block, which gets its truth table."""
        with self.new_bit("marked") as bit:
            for table, some in rows.items():
                flag_kernels.set_bits(table.flags, some, FLAGS(1 << bit))
            yield self.truths[bit]
            for table, some in rows.items():
                flag_kernels.clear_bits(table.flags, some, FLAGS(~(1 << bit) & 0xFFFF))
            self.bits.give_back(bit)

    def clear(self, bit: int) -> None:
        """Clear a bit in all rows there are, and give it back."""
        for table in self.tables.values():
            table.flags &= FLAGS(~(1 << bit) & 0xFFFF)
        self.bits.give_back(bit)

    def nbytes(self) -> int:
        """Return the bytes of tables, their indexes and the dictionary."""
        tables = sum(table.nbytes() + table.nbytes_of_indexes() for table in self.tables.values())
        parts = [index for p in self.parts.values() for part in p.indexed() for index in part.indexes.values()]
        return tables + sum(index.nbytes() for index in parts) + self.codec.pool.nbytes()
