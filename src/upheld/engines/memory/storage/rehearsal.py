"""A rehearsal with rows of no meaning: a table grows, gets indexes and loses rows, so that its kernels are compiled."""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.kernels import hashing
from upheld.engines.memory.storage.arrays import FLAGS
from upheld.engines.memory.storage.block_index import BlockIndex
from upheld.engines.memory.storage.pairs.index import PairIndex
from upheld.engines.memory.storage.pairs.shape import rectangle
from upheld.engines.memory.storage.table import Table

#: Rows of the rehearsal: enough to make every index grow.
ROWS = 200


def rehearse(table: Table) -> None:
    """Let a table of the same columns, width and indexes grow and shrink."""
    scratch = Table(table.name, table.types)
    if table.rows.dtype == np.int64:
        scratch.fit(-(1 << 40), 1 << 40)
    indexes = [scratch.blocks(k) if isinstance(i, BlockIndex) else scratch.index(k) for k, i in table.indexes.items()]
    for n in (ROWS // 2, ROWS):
        scratch.make_room(n - scratch.n)
        scratch.rows[scratch.n : n] = np.arange(scratch.n, n)[:, None]
        scratch.n = n
        assert len(scratch.slots) > n, "a tuple index with all rows"
        for index in indexes:
            index.catch_up(scratch)
    for columns in table.indexes:
        scratch.link(columns, ROWS)
    removed, last = np.arange(1, dtype=np.int32), np.arange(ROWS - 1, ROWS, dtype=np.int32)
    for index in indexes:
        index.remove(scratch, removed)
        index.renumber(scratch, last, removed)
    _rehearse_pairs(scratch)
    hashing.remove_rows(scratch.keys, removed, scratch.slots)
    hashing.renumber_rows(scratch.keys, last, removed, scratch.slots)
    scratch.move_rows(last, removed, ROWS - 1)
    for _ in scratch.trim(0):
        pass


def _rehearse_pairs(scratch: Table) -> None:
    """Find and enter the rows of a binary table by direct address."""
    if scratch.arity == 2 and scratch.rows.dtype == np.int32:
        index = PairIndex(rectangle(ROWS, ROWS))
        index.catch_up(scratch.rows, scratch.n)
        out = np.empty(1, np.int32)
        pairs, reject = scratch.rows[:1].copy(), np.ones(1 << 16, np.bool_)
        index.find(pairs, out)
        index.enter(pairs, reject, None, (scratch.rows, scratch.flags, scratch.n), FLAGS(1), out, 0)
