"""The members of classes of equal constants, as arrays over their codes; every change is journalled.

A class of several has its members in an array. Arrays of members are never changed, only replaced, so that what was
made from them may be looked at later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from upheld.compiler.equality.equality import constant_columns
from upheld.engines.memory.equality.code_sets import Flags, mention
from upheld.engines.memory.sets.collected import MadeRows
from upheld.engines.memory.sets.context import Context
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Table

NOBODY: Codes = np.empty(0, np.int64)


class Touched(NamedTuple):
    """Constants with their representatives of before and of now."""

    codes: Codes
    before: Codes
    now: Codes


class Membership:
    """For each code of a text its representative, and for each representative of several constants its class."""

    def __init__(self, context: Context, same_as: int):
        self._context, self._same_as = context, same_as
        self.now: Codes = NOBODY
        self.has_several: Flags = np.empty(0, np.bool_)
        self.classes: dict[int, Codes] = {}
        #: How often explicit facts mention each constant.
        self.mentions: Codes = NOBODY
        #: Constants that got another representative since the classes were remembered, with the one they had.
        self._moved: list[tuple[Codes, Codes]] = []
        #: Whether a constant is among them, or was the representative of one.
        self._is_moved: Flags = np.empty(0, np.bool_)
        context.holders.add(self)

    def use(self, codes: Codes) -> Flags:
        """Return which codes are of constants that the classes know of; the others are alone, and stay so if freed."""
        self.catch_up()
        used = (self.mentions[codes] != 0) | self.has_several[codes] | (self.now[codes] != codes)
        return used | self._is_moved[codes] | (codes == self._same_as)

    def catch_up(self) -> None:
        """Give each constant that has come since the last time a class of its own."""
        count, known = self._context.codec.codes(), len(self.now)
        if count > known:
            more = np.arange(known, max(count, 2 * known))  # codes still to come are singletons as well
            no, mentions = np.zeros(len(more), np.bool_), np.zeros(len(more), np.int64)
            self.now = np.concatenate([self.now, more])
            self.has_several = np.concatenate([self.has_several, no])
            self._is_moved = np.concatenate([self._is_moved, no])
            self.mentions = np.concatenate([self.mentions, mentions])

    def of(self, representative: int) -> Codes:
        """Return the class that a constant represents."""
        members = self.classes.get(representative)
        return np.array([representative], np.int64) if members is None else members

    def together(self, representatives: Codes) -> Codes:
        """Return the members of classes, in some order."""
        self.catch_up()
        several = self.has_several[representatives]
        classes = (self.classes[c] for c in representatives[several].tolist())
        return np.concatenate([representatives[~several], *classes])

    def special(self, table: Table, rows: Rows, touched: Codes) -> Flags:
        """Return which rows have a constant that represents several, or is one of `touched`."""
        self.catch_up()
        special = mention(table, rows, touched) if len(touched) else np.zeros(len(rows), np.bool_)
        for column in constant_columns(table.types):
            special |= self.has_several[table.rows[rows, column]]
        return special

    def classes_in(self, values: MadeRows, columns: Sequence[int]) -> dict[int, Codes]:
        """Return the classes of several constants whose representatives occur in columns."""
        codes = np.unique(values[:, list(columns)])
        return {c: self.classes[c] for c in codes[self.has_several[codes]].tolist()}

    # -- changes -------------------------------------------------------------------------------------------------------

    def set(self, classes: dict[int, Codes]) -> None:
        """Give the members of classes a representative; what they represented before is gone."""
        self.catch_up()
        for representative, members in classes.items():
            before = self.now[members]
            old = {c: self.classes.get(c) for c in {representative, *np.unique(before).tolist()}}
            self._note(members, before, old)
            self._move(members, before)
            self.now[members] = representative
            for c in old:
                self._put(c, None)
            self._put(representative, members if len(members) > 1 else None)

    def leave_alone(self, representative: int) -> None:
        """Make each member of a class a singleton."""
        members = self.classes.get(representative)
        if members is None:
            return
        before = self.now[members]
        self._note(members, before, {representative: members})
        self._move(members, before)
        self._put(representative, None)
        self.now[members] = members

    def count(self, codes: Codes, sign: int) -> None:
        """Add or subtract a mention for each of some codes."""
        self.catch_up()
        distinct, numbers = np.unique(codes, return_counts=True)
        before = self.mentions[distinct]

        def undo() -> None:
            self.mentions[distinct] = before

        self._context.journal.note(undo)
        self.mentions[distinct] = before + sign * numbers

    def _put(self, representative: int, members: Codes | None) -> None:
        self.has_several[representative] = members is not None
        if members is None:
            self.classes.pop(representative, None)
        else:
            self.classes[representative] = members

    def _move(self, members: Codes, before: Codes) -> None:
        """Note that constants get another representative than the one they had before."""
        self._moved.append((members, before))
        self._is_moved[members] = True
        self._is_moved[before] = True

    def _note(self, members: Codes, before: Codes, old: dict[int, Codes | None]) -> None:
        def undo() -> None:
            self.now[members] = before
            for c, mine in old.items():
                self._put(c, mine)

        self._context.journal.note(undo)

    # -- since the classes were remembered -----------------------------------------------------------------------------

    def remember(self) -> None:
        self._is_moved[np.concatenate([NOBODY, *(codes for pair in self._moved for codes in pair)])] = False
        self._moved.clear()

    def touched(self) -> Touched:
        """Return the constants of all classes that differ from those remembered."""
        moved, first = np.unique(np.concatenate([NOBODY, *(c for c, _ in self._moved)]), return_index=True)
        before = np.concatenate([NOBODY, *(b for _, b in self._moved)])[first]
        differ = before != self.now[moved]
        moved, before = moved[differ], before[differ]
        # The members of classes that a constant joined, and of classes that a constant left.
        codes = np.union1d(moved, self.together(np.union1d(before, self.now[moved])))
        then = self.now[codes].copy()
        then[np.searchsorted(codes, moved)] = before
        return Touched(codes, then, self.now[codes].copy())
