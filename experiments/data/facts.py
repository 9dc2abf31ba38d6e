"""Facts as arrays of integers, one for each relation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
#: Rows by relation, as `materialise` and `update` take them.
Facts = dict[str, Numbers]


def distinct(rows: Numbers) -> Numbers:
    """Return the rows without repetitions, each where it first was."""
    _, first = np.unique(rows, axis=0, return_index=True)
    return rows[np.sort(first)]


def count(facts: Facts) -> int:
    """Return the number of facts of all relations."""
    return sum(map(len, facts.values()))


def numbered(facts: Facts, numbers: Numbers) -> Facts:
    """Return the facts that have these numbers when all relations are counted through, in the order of the numbers."""
    batch, begin = {}, 0
    for relation, rows in facts.items():
        mine = numbers[(numbers >= begin) & (numbers < begin + len(rows))] - begin
        if len(mine):
            batch[relation] = rows[mine]
        begin += len(rows)
    return batch
