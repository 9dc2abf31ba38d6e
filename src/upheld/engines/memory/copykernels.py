"""The kernel of rules that copy rows. Names of arrays are those of `kernels`."""

from __future__ import annotations

from upheld.engines.memory.indexkernels import hash_columns
from upheld.engines.memory.jit import kernel
from upheld.engines.memory.kernels import place, shift_of


@kernel
def copy_rows(rows, chosen, columns, keys, slots, first, following, sources, constants, origins, B):
    """Write the copies of chosen rows: for each the row it is made from, and its values; return how many.

    A row is copied as each of the rules says that has its key: `slots` is a hash table of the numbers of keys, `first`
    has for each key its first rule, and `following` for each rule the next one with the same key. A value is that of
    the column in `sources`, or where that is -1 the constant of the rule. There is room for all.
    """
    mask, shift = len(slots) - 1, shift_of(len(slots))
    found = 0
    for i in range(len(chosen)):
        row = chosen[i]
        at = place(hash_columns(rows, row, columns), shift)
        key = slots[at]
        while key >= 0:
            same = True
            for k in range(len(columns)):
                same = same and rows[row, columns[k]] == keys[key, k]
            if same:
                break
            at = (at + 1) & mask
            key = slots[at]
        rule = first[key] if key >= 0 else -1
        while rule >= 0:
            origins[found] = row
            for c in range(len(sources)):
                B[c, found] = rows[row, sources[c]] if sources[c] >= 0 else constants[rule, c]
            found += 1
            rule = following[rule]
    return found
