"""The kernel of rules that copy rows. Arrays are named as in `kernels`."""

from __future__ import annotations

from upheld.engines.memory.kernels.groups import key_of
from upheld.engines.memory.kernels.jit import kernel


@kernel
def copy_rows(rows, chosen, columns, keys, slots, first, following, sources, constants, origins, B):
    """Write the copies of chosen rows: for each the row it is made from, and its values; return how many.

    A row is copied as each of the rules says that has its key: `first` has for each key its first rule, and `following`
    for each rule the next one with the same key. A value is that of the column in `sources`, or where that is -1 the
    constant of the rule. There is room for all.
    """
    count = 0
    for i in range(len(chosen)):
        row = chosen[i]
        key = key_of(rows, row, columns, keys, slots)
        rule = first[key] if key >= 0 else -1
        while rule >= 0:
            origins[count] = row
            for c in range(len(sources)):
                B[c, count] = rows[row, sources[c]] if sources[c] >= 0 else constants[rule, c]
            count += 1
            rule = following[rule]
    return count
