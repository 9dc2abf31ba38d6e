"""Two atoms with one new variable between them, where many bindings have the same rows of one of them.

    cycle(x, y, z, w) :- edge(x, y), edge(y, z), edge(z, w), edge(w, x).

With x, y and z known, w is looked for in edge(z, w) and edge(w, x), binding by binding. All bindings with the same x
can do it at once, from the other end: their z are marked, then edge(w, x) gives each w, and edge(z, w) the z that it
comes from; where such a z is marked, there is an instance. This scans once per x instead of once per
binding. In this way paths of two edges are joined with paths of two edges, and none is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from upheld.engines.memory.kernels.hashing import PATIENCE, hash_key, mix, place, same_key, shift_of
from upheld.engines.memory.kernels.indexes import hash_columns
from upheld.engines.memory.kernels.jit import kernel
from upheld.engines.memory.plans.plan import ChoiceStep, Place
from upheld.engines.memory.sets.truth_tables import Truth
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.codec import Codes

#: Cost of looking up a row, where a step of a walk costs one.
LOOK_UP = 3

#: Bindings from which on it pays to ask whether they meet.
FEWEST_TO_MEET = 256

#: Rows of a walk that take as long as a binding.
WALKED = 8

_FEWEST_MARKS = 32


class Meeting:
    """A batch of bindings at a choice between two atoms, of which one is near; the keys wanted of each are given."""

    def __init__(self, step: ChoiceStep, near: int, wanted: tuple[Codes, Codes]):
        self.near = near
        self._joins = step.ways[self.near][0], step.ways[1 - self.near][0]
        self._columns = step.columns[self.near], step.columns[1 - self.near]
        join, far = self._joins
        self._index, self._far_index = join.source.blocks(join.known), far.source.blocks((self._columns[1],))
        self._keys = self._index.find(join.table, wanted[self.near])
        self._far_wanted = wanted[1 - self.near]

    def which(self) -> npt.NDArray[np.bool_]:
        """Return for each binding whether it pays to meet."""
        out = np.empty(len(self._keys), np.bool_)
        (join, far), index, far_index = self._joins, self._index, self._far_index
        which_meet(
            self._keys, index.entries, index.pool, join.table.rows, self._columns[0],
            far_index.slots, far_index.entries, far_index.pool, far.table.rows, self._columns[1], far.fan_out, out,
        )  # fmt: skip
        return out

    def matches(
        self, which: npt.NDArray[np.int64], truths: Mapping[Place, Truth], room: int
    ) -> Iterator[tuple[Rows, tuple[Rows, Rows], int, int]]:
        """Yield bindings, by their places in `which`, with a row of each atom, as many as there is room for.

        After their number comes the number of rows that were walked to find them.
        """
        parents, near, distant = (np.empty(room, np.int32) for _ in range(3))
        keys, wanted = self._keys.take(which), self._far_wanted.take(which, 0)
        if wanted.shape[1] == 1:
            wanted = wanted[:, 0]  # most keys are single values, and one number is compared in half the time
        (join, far), index, far_index = self._joins, self._index, self._far_index
        cursor = np.array([0, 0, 0, -1, 0])
        while cursor[0] < len(keys):
            # The tables may have grown, and their arrays moved, since the last time round.
            count = meet(
                keys, (index.slots, index.entries, index.pool),
                (join.table.rows, self._columns[0], join.table.flags, truths[join.place]),
                wanted, (far_index.slots, far_index.entries, far_index.pool),
                (far.table.rows, self._columns[1], far.table.flags, truths[far.place]),
                np.array(far.known), cursor, (parents, near, distant),
            )  # fmt: skip
            yield parents, (distant, near) if self.near else (near, distant), count, int(cursor[4])


def side_with_runs(wanted: tuple[Codes, Codes]) -> int | None:
    """Return which of two atoms has fewer runs of keys, if most keys wanted of it are the same as the one before."""
    first, second = (count_runs(w) for w in wanted)
    return int(second < first) if 2 * min(first, second) < len(wanted[0]) else None


@kernel
def count_runs(wanted):
    """Return how many times a key is not the same as the one before."""
    count = 0
    for i in range(len(wanted)):
        same = i > 0
        for k in range(wanted.shape[1]):
            same = same and wanted[i, k] == wanted[i - 1, k]
        count += not same
    return count


@kernel
def end_of_run(keys, start):
    stop = start + 1
    while stop < len(keys) and keys[stop] == keys[start]:
        stop += 1
    return stop


@kernel
def find_value(value, rows, column, slots, entries, pool):
    """Return the number of a value in an index of blocks over one column, or -1."""
    mask, shift = len(slots) - 1, shift_of(len(slots))
    h = mix(np.uint64(0), value)
    at = place(h, shift)
    key = np.int64(slots[at])
    while key >= 0 and rows[pool[entries[key, 0]], column] != value:
        at = (at + 1) & mask
        key = np.int64(slots[at])
    return key


@kernel
def wants(wanted, i, rows, row, columns):
    if wanted.ndim == 1:
        return wanted[i] == rows[row, columns[0]]
    for k in range(len(columns)):
        if wanted[i, k] != rows[row, columns[k]]:
            return False
    return True


@kernel
def which_meet(
    keys, entries, pool, rows, column, far_slots, far_entries, far_pool, far_rows, far_column, fan_out, out
):  # fmt: skip
    """Write for each binding whether it should meet the others of its run, by what walking and looking up would cost.

    `keys` are the blocks of the near atom, whose runs share a walk; `fan_out` is how many rows the far atom has for a
    binding. A walk is counted only as far as it may cost.
    """
    start = 0
    while start < len(keys):
        stop = end_of_run(keys, start)
        meets = True
        if keys[start] >= 0:
            first, length = entries[keys[start], 0], entries[keys[start], 1]
            # Each near row is looked up twice: here, and when it is walked.
            left = (stop - start) * (LOOK_UP * min(fan_out, np.float64(length)) - 1) - 2 * LOOK_UP * length
            k = 0
            while left >= 0 and k < length:
                key = find_value(rows[pool[first + k], column], far_rows, far_column, far_slots, far_entries, far_pool)
                if key >= 0:
                    left -= far_entries[key, 1]
                k += 1
            meets = left >= 0
        for i in range(start, stop):
            out[i] = meets
        start = stop


@kernel
def meet(keys, near_index, near_table, wanted, far_index, far_table, far_columns, cursor, triples):
    """Write bindings with a row of the near and one of the far atom, which agree on a column each; return how many.

    `wanted` are the values that bindings have in the other columns of the far atom. The cursor holds the first binding
    of a run, how far the blocks of both atoms have been walked for it, the next binding to be written or -1, and at
    last, for the caller, the rows that this call has walked.

        near_index, far_index   slots, entries and pool of an index of blocks
        near_table, far_table   rows, the column on which the atoms agree, flags, and the truth table of the set
        triples                 take the places of bindings, near rows and far rows
    """
    _, entries, pool = near_index
    far_slots, far_entries, far_pool = far_index
    rows, column, flags, truth = near_table
    far_rows, far_column, far_flags, far_truth = far_table
    parents, matches, far_matches = triples
    result, tried, walked = 0, 0, 0
    start, near, far, binding = cursor[0], cursor[1], cursor[2], cursor[3]
    marks, following = np.empty(0, np.int32), np.empty(len(keys), np.int32)
    while start < len(keys):
        stop = end_of_run(keys, start)
        first, length = np.int64(0), np.int64(0)
        size, shift = _FEWEST_MARKS, np.uint64(0)
        if keys[start] >= 0:
            first, length = entries[keys[start], 0], entries[keys[start], 1]
            while size < 2 * (stop - start):
                size *= 2
            shift = shift_of(size)
            if size > len(marks):
                marks = np.empty(size, np.int32)
            marks[:size] = -1
            for i in range(start, stop):
                at = place(hash_key(wanted, i), shift)
                while marks[at] >= 0 and not same_key(wanted, marks[at], wanted, i):
                    at = (at + 1) & (size - 1)
                following[i] = marks[at]
                marks[at] = i
            tried += stop - start
        while near < length:
            row = pool[first + near]
            if truth[flags[row]]:
                key = find_value(rows[row, column], far_rows, far_column, far_slots, far_entries, far_pool)
                far_first, far_length = (far_entries[key, 0], far_entries[key, 1]) if key >= 0 else (0, 0)
                while far < far_length:
                    other = far_pool[far_first + far]
                    if binding < 0:
                        at = place(hash_columns(far_rows, other, far_columns), shift)
                        while marks[at] >= 0 and not wants(wanted, marks[at], far_rows, other, far_columns):
                            at = (at + 1) & (size - 1)
                        if marks[at] >= 0 and far_truth[far_flags[other]]:
                            binding = np.int64(marks[at])
                    while binding >= 0:
                        if result == len(parents):
                            cursor[0], cursor[1], cursor[2], cursor[3], cursor[4] = start, near, far, binding, walked
                            return result
                        parents[result] = binding
                        matches[result] = row
                        far_matches[result] = other
                        result += 1
                        binding = np.int64(following[binding])
                    far += 1
                tried += far_length
                walked += far_length
                far = 0
            near += 1
            if tried - result > PATIENCE:
                cursor[0], cursor[1], cursor[2], cursor[3], cursor[4] = start, near, 0, -1, walked
                return result
        near = 0
        walked += stop - start
        start = stop
    cursor[0], cursor[4] = start, walked
    return result
