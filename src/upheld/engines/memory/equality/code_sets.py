"""Sets of constants by their codes: unions, groups that pairs connect, members in the place of representatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from upheld.algebra.equality import Constants
from upheld.compiler.equality.equality import constant_columns
from upheld.engines.memory.kernels import components
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Table

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CodeSet:
    """Codes of constants, ascending and distinct."""

    codes: Codes

    def __len__(self) -> int:
        return len(self.codes)

    def __or__(self, other: Constants) -> CodeSet:
        return CodeSet(np.union1d(self.codes, own_codes(other)))

    def __sub__(self, other: Constants) -> CodeSet:
        return CodeSet(np.setdiff1d(self.codes, own_codes(other), assume_unique=True))


def spread(
    values: Codes, columns: Sequence[int], several: Flags, classes: Callable[[int], Codes]
) -> tuple[Codes, Codes]:
    """Return the rows that have members of classes in the place of their representatives, and the row each is made of.

    A class is an array of codes; `several` says which codes have one. All rows of all combinations are formed.
    """
    of = np.arange(len(values))
    for column in columns:
        large = several[values[:, column]]
        if not large.any():
            continue
        distinct, which = np.unique(values[large, column], return_inverse=True)
        members = [classes(c) for c in distinct.tolist()]
        sizes = np.array([len(mine) for mine in members], np.int64)
        lengths, starts = np.ones(len(values), np.int64), np.zeros(len(values), np.int64)
        lengths[large], starts[large] = sizes[which], (np.cumsum(sizes) - sizes)[which]
        row = np.repeat(np.arange(len(values)), lengths)
        within = np.arange(len(row)) - (np.cumsum(lengths) - lengths)[row]
        values, of, spread = values[row], of[row], large[row]
        values[spread, column] = np.concatenate(members)[(starts[row] + within)[spread]]
    return values, of


def connected(left: Codes, right: Codes) -> tuple[Codes, Codes]:
    """Return the codes that occur, ascending, and for each the number of the group that pairs put it into."""
    codes, places = np.unique(np.concatenate([left, right]), return_inverse=True)
    groups = np.empty(len(codes), np.int64)
    components.connect(places[: len(left)], places[len(left) :], groups)
    return codes, groups


def is_one(members: Codes, codes: Codes, groups: Codes) -> bool:
    """Return whether members are all in one group."""
    at = np.searchsorted(codes, members)
    if len(codes) == 0 or (at == len(codes)).any() or (codes[at] != members).any():
        return False
    return bool((groups[at] == groups[at[0]]).all())


def mention(table: Table, rows: Rows, wanted: Codes) -> Flags:
    """Return which rows have some of the codes in a column of constants."""
    mentions = np.zeros(len(rows), np.bool_)
    for column in constant_columns(table.types):
        mentions |= np.isin(table.rows[rows, column], wanted)
    return mentions


def own_codes(constants: Constants) -> Codes:
    assert isinstance(constants, CodeSet), "constants of another engine"
    return constants.codes
