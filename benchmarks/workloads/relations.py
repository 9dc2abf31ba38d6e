"""Facts of large joins, of bounded recursion and of a bill of materials."""

from __future__ import annotations

import numpy as np

from experiments.data.facts import Facts, distinct


def star(keys: int, rows: int, exponent: float, r: np.random.Generator) -> Facts:
    """Six relations whose first column is a key: key k is in proportion to (k + 10) ** -exponent, in all of them."""
    weights = (np.arange(keys) + 10.0) ** -exponent
    weights /= weights.sum()
    names = r.permutation(keys)

    def relation() -> np.ndarray:
        return distinct(np.stack([names[r.choice(keys, rows, p=weights)], r.integers(0, rows, rows)], 1))

    return {name: relation() for name in ("one", "two", "three", "four", "five", "six")}


def materials(count: int, r: np.random.Generator) -> Facts:
    """Assemblies on six levels with three parts each and names as people give them; most lowest parts have makers."""
    levels = 6
    width = count // levels
    kinds = np.array(["gear", "shaft", "housing", "bearing", "bracket", "valve", "spring", "panel"])
    names = np.array([f"{kinds[k % len(kinds)]}-{k:06d}/rev {k % 7}" for k in range(width * levels)])
    made = np.arange(width * (levels - 1)).repeat(3)
    below = (made // width + 1) * width + r.integers(0, width, len(made))
    part = distinct(np.stack([made, below], 1))
    lowest = np.arange(width * (levels - 1), width * levels)
    bought = lowest[r.random(width) < 0.9]
    makers = np.array([f"{kinds[k % len(kinds)].title()} Works No. {k}" for k in range(max(8, count // 200))])
    return {"part": names[part], "maker": np.stack([names[bought], makers[r.integers(0, len(makers), len(bought))]], 1)}
