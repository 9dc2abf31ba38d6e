"""The kernels of matrices with a bit, or a count, for each pair of values. `hashing` names the arrays."""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.kernels.counts import LARGEST
from upheld.engines.memory.kernels.jit import kernel, prefetch

#: Cells that are asked for at once, where rows are in no order of their cells.
AT_ONCE = 64

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


# A matrix has `width` by `height` cells, or a square of them for each cluster of values, where pairs have both values
# in one cluster. Values are then numbered cluster by cluster, and `places` has two entries for each: the cell of its
# pair with value number 0, if that were in its cluster; and its cluster and number.

#: The place of a cluster beside the numbers of its values, and what leaves the number.
CLUSTER = 32
NUMBER = (1 << CLUSTER) - 1


@kernel
def cell_of(x, y, width, height, places):
    """Return the cell of a pair, or -1 if the pair is beyond the matrix."""
    cell = np.int64(-1)
    if 0 <= x < width and 0 <= y < height:
        if len(places) == 0:  # with one square for all instead, a closure of cliques takes a fifth longer
            cell = x * height + y
        elif places[x, 1] >> CLUSTER == places[y, 1] >> CLUSTER:
            cell = places[x, 0] + (places[y, 1] & NUMBER)
    return cell


@kernel
def join_clusters(rows, candidates, clusters, sizes, cells, most):
    """Bring the values of each pair into one cluster; return how many pairs of values are in one cluster then.

    `clusters` holds for each value another one of its cluster, or itself for the leader, to which all values of the
    cluster lead; `sizes` has their number for it. There are `cells` pairs at first. It stops when there are more than
    `most`.
    """
    for row in candidates:
        x, y = np.int64(rows[row, 0]), np.int64(rows[row, 1])
        while clusters[x] != x:
            clusters[x] = clusters[clusters[x]]
            x = np.int64(clusters[x])
        while clusters[y] != y:
            clusters[y] = clusters[clusters[y]]
            y = np.int64(clusters[y])
        if x != y:
            if sizes[x] < sizes[y]:
                x, y = y, x
            cells += 2 * np.int64(sizes[x]) * np.int64(sizes[y])
            clusters[y] = x
            sizes[x] += sizes[y]
            if cells > most:
                break
    return cells


@kernel
def place_clusters(clusters, sizes, places):
    """Write the places of values, by the clusters that they lead to, and return how many clusters there are."""
    count, cell, number = 0, np.int64(0), np.int64(0)
    # For the leader of each cluster: its first cell, its first number, which cluster it is, and the values placed.
    begun = np.zeros((len(clusters), 4), np.int64)
    for value in range(len(clusters)):
        leader = value
        while clusters[leader] != leader:
            leader = clusters[leader]
        size = np.int64(sizes[leader])
        if begun[leader, 3] == 0:
            begun[leader, 0], begun[leader, 1], begun[leader, 2] = cell, number, count
            count += 1
            cell += size * size
            number += size
        first, placed = begun[leader, 1], begun[leader, 3]
        places[value, 0] = begun[leader, 0] + placed * size - first
        places[value, 1] = begun[leader, 2] << CLUSTER | (first + placed)
        begun[leader, 3] += 1
    return count


@kernel
def set_pairs(rows, candidates, words, width, height, places):
    """Set the bits of the pairs in these rows; pairs beyond the matrix are left out. Return how many are."""
    left_out = 0
    for row in candidates:
        cell = cell_of(np.int64(rows[row, 0]), np.int64(rows[row, 1]), width, height, places)
        if cell >= 0:
            words[cell >> 6] |= np.uint64(1) << np.uint64(cell & 63)
        left_out += cell < 0
    return left_out


@kernel
def count_pairs(words):
    """Return the number of bits that are set."""
    count = np.int64(0)
    for word in words:
        # The sums of two bits, of four, of eight, and of all: a matrix is counted whenever a round begins.
        word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
        word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
        word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
        count += np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))
    return count


@kernel
def unseen_pairs(pairs, words, width, height, places, out):
    """Write the pairs whose bits are not set, and set them; pairs beyond the matrix are all written."""
    count = 0
    for i in range(len(pairs)):
        cell = cell_of(np.int64(pairs[i, 0]), np.int64(pairs[i, 1]), width, height, places)
        if cell >= 0:
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
def append_pairs(pairs, marked, words, width, height, places, table, bit, out, count):
    """Append the pairs whose bits are not set to a table that has all the others, and set them.

    If the pairs are `marked`, their bits are set already, and all of them are appended. The first pair beyond the
    matrix ends it. Return how many pairs come before that one, and the number of rows.

        table   rows with room for all pairs, flags and the number of rows
        out     gets the numbers of the new rows, from place `count` on
    """
    rows, flags, n = table
    count -= n
    i = 0
    while i < len(pairs):
        x, y = np.int64(pairs[i, 0]), np.int64(pairs[i, 1])
        cell = cell_of(x, y, width, height, places)
        if cell < 0:
            break
        i += 1
        if not marked:
            set_bit = np.uint64(1) << np.uint64(cell & 63)
            word = words[cell >> 6]
            if word & set_bit:
                continue
            words[cell >> 6] = word | set_bit
        rows[n, 0] = x
        rows[n, 1] = y
        flags[n] = bit
        out[count + n] = n
        n += 1
    return i, n


@kernel
def unknown_pairs(pairs, words, width, height, places, out):
    """Write the pairs whose bits are not set, without setting them; pairs beyond the matrix are all written."""
    count = 0
    for i in range(len(pairs)):
        out[count, 0] = pairs[i, 0]
        out[count, 1] = pairs[i, 1]
        cell = cell_of(np.int64(pairs[i, 0]), np.int64(pairs[i, 1]), width, height, places)
        known = False
        if cell >= 0:
            known = words[cell >> 6] >> np.uint64(cell & 63) & np.uint64(1) != np.uint64(0)
        count += not known
    return count


@kernel
def are_within(pairs, width, height, places):
    """Return whether all pairs are within a matrix of counts."""
    within = True
    for i in range(len(pairs)):
        within &= cell_of(np.int64(pairs[i, 0]), np.int64(pairs[i, 1]), width, height, places) >= 0
    return within


# A cell of counts is 0 for a pair that has to be looked up, else one more than the times that it was counted. Threads
# beside the one that looks pairs up count in cells of their own: there a cell is 0 as long as its pair was not met.
# `of_rows` has one more than the cell of each row's pair, or 0 where it was not asked for: to find the cell in a square
# anew takes as long as all else that is done for a pair. It may be shorter than the rows.


@kernel
def know_pairs(rows, candidates, cells, width, height, places, of_rows):
    """Let the pairs in these rows be counted; pairs beyond the matrix are left out. Return how many are not."""
    count, start = 0, 0
    asked = np.empty(AT_ONCE, np.int64)
    while start < len(candidates):
        stop = min(start + AT_ONCE, len(candidates))
        before = count
        for k in range(start, stop):
            row = candidates[k]
            cell = cell_of(np.int64(rows[row, 0]), np.int64(rows[row, 1]), width, height, places)
            if cell >= 0:
                prefetch(cells, cell)
                asked[count - before] = cell
                count += 1
                if row < len(of_rows):
                    of_rows[row] = cell + 1
        for k in range(count - before):
            cells[asked[k]] = max(cells[asked[k]], np.uint8(1))
        start = stop
    return count


@kernel
def tally_pairs(pairs, cells, width, height, places, out):
    """Count pairs; write those that have to be looked up, which are counted from then on, and those beyond the matrix.

    From the end of `out` backwards, pairs are written whose cells were full: they have been counted `FULL` - 1 times,
    and are counted anew. Return how many were written at either end.
    """
    count, filled = 0, 0
    for i in range(len(pairs)):
        cell = cell_of(np.int64(pairs[i, 0]), np.int64(pairs[i, 1]), width, height, places)
        if cell >= 0:
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
def append_counted_pairs(pairs, cells, width, height, places, table, bit, out, count, full):
    """As `tally_pairs`, where pairs with a cell of 0 are in no row: they are appended, with one derivation.

    The first pair beyond the matrix ends it. Return how many pairs come before that one, the number of rows, and how
    many pairs were written to `full`.

        table   rows with room for all pairs, flags and numbers, `of_rows`, and the number of rows
        out     gets the numbers of the new rows, from place `count` on
    """
    rows, flags, numbers, of_rows, n = table
    count -= n
    i, filled = 0, 0
    while i < len(pairs):
        x, y = np.int64(pairs[i, 0]), np.int64(pairs[i, 1])
        cell = cell_of(x, y, width, height, places)
        if cell < 0:
            break
        i += 1
        counted = cells[cell]
        if counted == 0:
            rows[n, 0] = x
            rows[n, 1] = y
            flags[n] = bit
            numbers[n] = 1
            if n < len(of_rows):
                of_rows[n] = cell + 1
            out[count + n] = n
            n += 1
        elif counted == FULL:
            full[filled, 0] = x
            full[filled, 1] = y
            filled += 1
            counted = np.uint8(1)
        cells[cell] = counted + np.uint8(1)
    return i, n, filled


@kernel
def count_known_pairs(pairs, known, counts, width, height, places, out):
    """Count the pairs whose cells in `known` are not 0 in the cells `counts`, which may be the same.

    The others are written, and so are pairs whose cells are full.
    """
    count = 0
    for i in range(len(pairs)):
        cell = cell_of(np.int64(pairs[i, 0]), np.int64(pairs[i, 1]), width, height, places)
        if cell >= 0:
            counted = max(counts[cell], np.uint8(known[cell] > 0))
            if 0 < counted < FULL:
                counts[cell] = counted + np.uint8(1)
                continue
        out[count, 0] = pairs[i, 0]
        out[count, 1] = pairs[i, 1]
        count += 1
    return count


@kernel
def take_counts(rows, candidates, of_rows, cells, width, height, places, left, out, counts):
    """Write which of these rows have been counted, and how often; cells that are not 0 become `left`."""
    count, start = 0, 0
    asked = np.empty(AT_ONCE, np.int64)
    while start < len(candidates):
        stop = min(start + AT_ONCE, len(candidates))
        for k in range(start, stop):
            row = candidates[k]
            cell = int(of_rows[row]) - 1 if row < len(of_rows) else -1
            if cell < 0:
                cell = cell_of(np.int64(rows[row, 0]), np.int64(rows[row, 1]), width, height, places)
            asked[k - start] = cell
            if cell >= 0:
                prefetch(cells, cell)
        for k in range(start, stop):
            cell = int(asked[k - start])
            counted = cells[cell] if cell >= 0 else np.uint8(0)
            if counted > 0:
                out[count] = candidates[k]
                counts[count] = np.int64(counted) - 1
                count += int(counted > 1)
                cells[cell] = left
        start = stop
    return count


# An index of pairs has one more than the row of each pair in its cell, and 0 for pairs of no row.


@kernel
def index_pairs(rows, start, n, cells, width, height, places):
    """Enter the rows from `start` to n, up to the first one beyond the matrix; return whether there was none."""
    asked = np.empty(AT_ONCE, np.int64)
    while start < n:
        stop = min(start + AT_ONCE, n)
        for row in range(start, stop):
            cell = cell_of(np.int64(rows[row, 0]), np.int64(rows[row, 1]), width, height, places)
            if cell < 0:
                return False
            asked[row - start] = cell
            prefetch(cells, cell)
        for row in range(start, stop):
            cells[asked[row - start]] = row + 1
        start = stop
    return True


@kernel
def find_pairs(pairs, cells, width, height, places, out):
    """Write for each pair its row, or -1; pairs beyond the matrix have none."""
    asked = np.empty(AT_ONCE, np.int64)
    for start in range(0, len(pairs), AT_ONCE):
        stop = min(start + AT_ONCE, len(pairs))
        for i in range(start, stop):
            cell = cell_of(np.int64(pairs[i, 0]), np.int64(pairs[i, 1]), width, height, places)
            asked[i - start] = cell
            if cell >= 0:
                prefetch(cells, cell)
        for i in range(start, stop):
            out[i] = cells[asked[i - start]] - 1 if asked[i - start] >= 0 else -1


@kernel
def enter_pairs(pairs, cells, width, height, places, table, reject, bit, out, count, tally):
    """Enter pairs as rows, up to the first one beyond the matrix; write those that are new to this set of candidates.

    A row is written to `out` once: when it has neither `bit` yet, which it then gets, nor flags that `reject` holds
    for. Return how many pairs come before the end, or -1 if a number would not fit, the number of rows, and the number
    of rows in `out`.

        table   rows with room for all pairs, flags and the number of rows
        tally   the numbers of rows, to which an amount is added, the amount, the log, and how many rows are in it;
                nothing is added if there are no numbers, and nothing written down if there is no room in the log
    """
    rows, flags, n = table
    numbers, amount, log, logged = tally
    counts, logs, written = len(numbers) > 0, len(log) > 0, logged[0]
    asked = np.empty(AT_ONCE, np.int64)
    end, stop = 0, 0
    while end == stop and end < len(pairs):
        stop = min(end + AT_ONCE, len(pairs))
        start = end
        for i in range(start, stop):
            cell = cell_of(np.int64(pairs[i, 0]), np.int64(pairs[i, 1]), width, height, places)
            asked[i - start] = cell
            if cell >= 0:
                prefetch(cells, cell)
        for i in range(start, stop):
            row = np.int64(cells[asked[i - start]]) - 1 if asked[i - start] >= 0 else np.int64(-1)
            if row >= 0:
                prefetch(flags, row)
                if counts:
                    prefetch(numbers, row)
        while end < stop:
            cell = asked[end - start]
            if cell < 0:
                break
            row = np.int64(cells[cell]) - 1
            if row < 0:
                row = n
                rows[n, 0] = pairs[end, 0]
                rows[n, 1] = pairs[end, 1]
                flags[n] = 0
                n += 1
                cells[cell] = n
            if counts:
                if numbers[row] == LARGEST:
                    logged[0] = written
                    return np.int64(-1), n, count
                numbers[row] += amount
                if logs:
                    log[written] = row
                    written += 1
            f = flags[row]
            if not (f & bit) and not reject[f]:
                flags[row] = f | bit
                out[count] = row
                count += 1
            end += 1
    logged[0] = written
    return end, n, count
