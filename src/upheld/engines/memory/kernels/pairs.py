"""The kernels of bit matrices: a bit for each pair of values. `hashing` names the arrays."""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.kernels.jit import kernel


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
