"""The Exp benchmark of paper 4: trees of arithmetic operations, with a value of each leaf in each scenario."""

from __future__ import annotations

import numpy as np

from experiments.data.facts import Facts

#: An expression has an observation for each of its values; observations of leaves are explicit.
RULES = "".join(
    f"""
value(o, n) :- {name}(e, l, r), of(o, e), at(o, s), of(p, l), at(p, s), value(p, u), of(q, r), at(q, s), value(q, v),
               n = (u {operator} v) % 1000003.
"""
    for name, operator in (("plus", "+"), ("minus", "-"), ("times", "*"))
)


def expressions(count: int, values: int, depth: int, r: np.random.Generator) -> Facts:
    """Random trees of operations; each expression in them has as many values as there are scenarios."""
    operations: dict[str, list[tuple[int, int, int]]] = {"plus": [], "minus": [], "times": []}
    leaves: list[int] = []
    number = 0

    def grow(levels: int) -> int:
        nonlocal number
        me = number
        number += 1
        if levels == 0 or (levels < depth and r.random() < 0.2):
            leaves.append(me)
        else:
            operations[str(r.choice(list(operations)))].append((me, grow(levels - 1), grow(levels - 1)))
        return me

    for _ in range(count):
        grow(depth)
    e, s = np.divmod(np.arange(number * values), values)
    o = 10_000_000 + r.permutation(number * values)
    is_leaf = np.isin(e, leaves)
    return {name: np.array(rows, np.int64).reshape(-1, 3) for name, rows in operations.items()} | {
        "of": np.stack([o, e], 1),
        "at": np.stack([o, 1_000_000 + s], 1),
        "value": np.stack([o[is_leaf], r.integers(0, 10, int(is_leaf.sum()))], 1),
    }
