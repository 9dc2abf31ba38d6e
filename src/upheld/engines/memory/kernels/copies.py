"""The kernel of rules that copy rows. Arrays are named as in `kernels`."""

from __future__ import annotations

from upheld.engines.memory.kernels.jit import kernel


@kernel
def copy_rows(rows, chosen, first, following, sources, constants, origins, B):
    """Write the copies of chosen rows: for each the row it is made from, and its values; return how many.

    A row is copied as each of its rules says: `first` has for each chosen row its first rule, or -1, and `following`
    for each rule the next one. A value is that of the column in `sources`, or where that is -1 the constant of the
    rule. There is room for all.
    """
    count = 0
    for i in range(len(chosen)):
        row, rule = chosen[i], first[i]
        while rule >= 0:
            origins[count] = row
            for c in range(len(sources)):
                B[c, count] = rows[row, sources[c]] if sources[c] >= 0 else constants[rule, c]
            count += 1
            rule = following[rule]
    return count
