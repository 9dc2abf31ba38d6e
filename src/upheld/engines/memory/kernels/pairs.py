"""The kernels of matrices with a bit, or a count, for each pair of values. `hashing` names the arrays."""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.kernels.jit import kernel

#: The largest value of a cell of counts.
FULL = 255


@kernel
def pair_limits(rows, candidates):
    """Return the lowest value in these rows, and one more than the highest of each of the two columns."""
    lowest, width, height = np.int64(0), np.int64(0), np.int64(0)
    for row in candidates:
        x, y = np.int64(rows[row, 0]), np.int64(rows[row, 1])
        lowest = min(lowest, x, y)
        width = max(width, x + 1)
        height = max(height, y + 1)
    return lowest, width, height


@kernel
def set_pairs(rows, candidates, words, width, height):
    """Set the bits of the pairs in these rows; pairs beyond the matrix are left out."""
    for row in candidates:
        x, y = np.int64(rows[row, 0]), np.int64(rows[row, 1])
        if 0 <= x < width and 0 <= y < height:
            cell = x * height + y
            words[cell >> 6] |= np.uint64(1) << np.uint64(cell & 63)


@kernel
def count_pairs(words):
    """Return the number of bits that are set."""
    count = np.int64(0)
    for word in words:
        while word:
            word &= word - np.uint64(1)
            count += 1
    return count


@kernel
def are_within(pairs, width, height):
    """Return whether all pairs are within the matrix."""
    within = True
    for i in range(len(pairs)):
        x, y = np.int64(pairs[i, 0]), np.int64(pairs[i, 1])
        within &= 0 <= x < width and 0 <= y < height
    return within


@kernel
def unseen_pairs(pairs, words, width, height, out):
    """Write the pairs whose bits are not set, and set them; pairs beyond the matrix are all written."""
    count = 0
    for i in range(len(pairs)):
        x, y = np.int64(pairs[i, 0]), np.int64(pairs[i, 1])
        if 0 <= x < width and 0 <= y < height:
            cell = x * height + y
            bit = np.uint64(1) << np.uint64(cell & 63)
            word = words[cell >> 6]
            if word & bit:
                continue
            words[cell >> 6] = word | bit
        out[count, 0] = pairs[i, 0]
        out[count, 1] = pairs[i, 1]
        count += 1
    return count


@kernel
def unknown_pairs(pairs, words, width, height, out):
    """Write the pairs whose bits are not set, without setting them; pairs beyond the matrix are all written."""
    count = 0
    for i in range(len(pairs)):
        x, y = np.int64(pairs[i, 0]), np.int64(pairs[i, 1])
        out[count, 0] = pairs[i, 0]
        out[count, 1] = pairs[i, 1]
        known = False
        if 0 <= x < width and 0 <= y < height:
            cell = x * height + y
            known = words[cell >> 6] >> np.uint64(cell & 63) & np.uint64(1) != np.uint64(0)
        count += not known
    return count


# A cell of counts is 0 for a pair that has to be looked up, else one more than the times that it was counted. Threads
# beside the one that looks pairs up count in cells of their own: there a cell is 0 as long as its pair was not met.


@kernel
def know_pairs(rows, candidates, flags, truth, cells, width, height):
    """Let the pairs in these rows be counted, as far as they belong to a set; pairs beyond the matrix are left out.

    Return how many are not left out.
    """
    count = 0
    for row in candidates:
        if truth[flags[row]]:
            x, y = np.int64(rows[row, 0]), np.int64(rows[row, 1])
            if 0 <= x < width and 0 <= y < height:
                cell = x * height + y
                cells[cell] = max(cells[cell], np.uint8(1))
                count += 1
    return count


@kernel
def tally_pairs(pairs, cells, width, height, out):
    """Count pairs; write those that have to be looked up, which are counted from then on, and those beyond the matrix.

    From the end of `out` backwards, pairs are written whose cells were full: they have been counted `FULL` - 1 times,
    and are counted anew. Return how many were written at either end.
    """
    count, filled = 0, 0
    for i in range(len(pairs)):
        x, y = np.int64(pairs[i, 0]), np.int64(pairs[i, 1])
        if 0 <= x < width and 0 <= y < height:
            cell = x * height + y
            counted = cells[cell]
            if counted == FULL:
                filled += 1
                out[len(out) - filled, 0] = pairs[i, 0]
                out[len(out) - filled, 1] = pairs[i, 1]
                counted = np.uint8(1)
            cells[cell] = counted + np.uint8(1)
            if counted > 0:
                continue
        out[count, 0] = pairs[i, 0]
        out[count, 1] = pairs[i, 1]
        count += 1
    return count, filled


@kernel
def count_known_pairs(pairs, known, counts, width, height, out):
    """Count the pairs whose cells in `known` are not 0 in the cells `counts`, which may be the same.

    The others are written, and so are pairs whose cells are full.
    """
    count = 0
    for i in range(len(pairs)):
        x, y = np.int64(pairs[i, 0]), np.int64(pairs[i, 1])
        if 0 <= x < width and 0 <= y < height:
            cell = x * height + y
            counted = max(counts[cell], np.uint8(known[cell] > 0))
            if 0 < counted < FULL:
                counts[cell] = counted + np.uint8(1)
                continue
        out[count, 0] = pairs[i, 0]
        out[count, 1] = pairs[i, 1]
        count += 1
    return count


@kernel
def take_counts(rows, candidates, cells, width, height, left, out, counts):
    """Write which of these rows have been counted, and how often; cells that are not 0 become `left`."""
    count = 0
    for row in candidates:
        x, y = np.int64(rows[row, 0]), np.int64(rows[row, 1])
        if 0 <= x < width and 0 <= y < height:
            cell = x * height + y
            counted = cells[cell]
            if counted > 0:
                out[count] = row
                counts[count] = np.int64(counted) - 1
                count += counted > 1
                cells[cell] = left
    return count
