"""Facts as users see them: the expansions of normal facts, created lazily, and how they have changed."""

from __future__ import annotations

from functools import cache

import numpy as np

from upheld.algebra.expansion import Blocks, Expansions, Parts, Rows, between, pair_blocks
from upheld.compiler.equality.equality import constant_columns
from upheld.engines.memory.equality.membership import NOBODY, Membership
from upheld.engines.memory.storage.arrays import Rows as RowNumbers
from upheld.engines.memory.storage.codec import Reading
from upheld.engines.memory.storage.table import Table


def expanded(reading: Reading, membership: Membership, table: Table, rows: RowNumbers) -> Rows:
    """Return the expansions of normal facts."""
    held = table.held()
    special = membership.special(table, rows, NOBODY)
    if not special.any():
        return reading.chosen(held, rows, table.types)
    columns = constant_columns(table.types)
    chosen = table.rows[rows[special]]
    classes = membership.classes_in(chosen, columns)
    sizes = np.ones(len(membership.now), np.int64)
    for representative, members in classes.items():
        sizes[representative] = len(members)
    count = int(np.count_nonzero(~special)) + int(np.prod([sizes[chosen[:, c]] for c in columns], axis=0).sum())

    def make() -> Parts:
        blocks: Blocks = {
            r: {r: tuple(reading.decode(members, "term"))}
            for r, members in zip(reading.decode(np.array(list(classes)), "term"), classes.values(), strict=True)
        }
        return Parts(
            reading.chosen(held, rows[~special], table.types), reading.decode_rows(chosen, table.types), blocks
        )

    return Expansions(make, count=lambda: count)


def changed(
    reading: Reading, membership: Membership, table: Table, rows: tuple[RowNumbers, RowNumbers]
) -> tuple[Rows, Rows]:
    """Return the expansions that disappeared and appeared, given normal facts as `Classes.changed` is."""
    touched, held = membership.touched(), table.held()
    special = [membership.special(table, mine, touched.codes) for mine in rows]
    if not any(mine.any() for mine in special):
        return reading.chosen(held, rows[0], table.types), reading.chosen(held, rows[1], table.types)
    both = np.concatenate([held.rows[mine[which]] for mine, which in zip(rows, special, strict=True)])
    classes = membership.classes_in(both, constant_columns(table.types))
    others = [(np.full(len(members), r), members) for r, members in classes.items()]

    @cache
    def blocks() -> tuple[Blocks, Blocks]:
        # A class that is as it was is a block; one that is not is several.
        alike = np.concatenate([NOBODY, *(r for r, _ in others)])
        members = np.concatenate([NOBODY, *(mine for _, mine in others)])
        fresh = ~np.isin(members, touched.codes)
        alike, members = alike[fresh], members[fresh]
        parts = (touched.codes, members), (touched.before, alike), (touched.now, alike)
        constants, before, now = (reading.decode(np.concatenate(part), "term") for part in parts)
        return pair_blocks(zip(constants, before, now, strict=True))

    def make(side: int) -> Parts:
        mine, which = rows[side], special[side]
        plain = reading.chosen(held, mine[~which], table.types)
        return Parts(plain, reading.decode_rows(held.rows[mine[which]], table.types), blocks()[side])

    return between(lambda: make(0), lambda: make(1))
