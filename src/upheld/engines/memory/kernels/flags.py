"""The kernels that read and write the flags of rows. `hashing` names the arrays."""

from __future__ import annotations

from upheld.engines.memory.kernels.jit import kernel


@kernel
def select(candidates, flags, truth, out):
    """Write the candidate rows that belong to a set; return how many. There is room for all of them."""
    found = 0
    for row in candidates:  # without a branch: no row waits for the flags of the one before
        out[found] = row
        found += truth[flags[row]]
    return found


@kernel
def mark(candidates, flags, reject, bit, out):
    """Give candidate rows a bit, except those that have it or flags that `reject` holds for; write them, and how many.

    There is room for all of them.
    """
    found = 0
    for row in candidates:
        f = flags[row]
        if not (f & bit) and not reject[f]:
            flags[row] = f | bit
            out[found] = row
            found += 1
    return found


@kernel
def scan(flags, n, truth, out):
    """Write all rows of a table that belong to a set; return how many."""
    found = 0
    for row in range(n):
        if truth[flags[row]]:
            out[found] = row
            found += 1
    return found


@kernel
def set_bits(flags, candidates, bits):
    for row in candidates:
        flags[row] |= bits


@kernel
def clear_bits(flags, candidates, keep):
    for row in candidates:
        flags[row] &= keep
