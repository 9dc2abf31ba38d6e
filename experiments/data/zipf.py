"""Facts over many relations whose sizes follow Zipf's law."""

from __future__ import annotations

import re

import numpy as np

from experiments.data.facts import Facts, distinct

ATOM = re.compile(r"(\w+)\(([^()]*)\)")


def arities(rules: str) -> dict[str, int]:
    """Return the arity of each relation of some rules, in the order in which they name them."""
    arity_of: dict[str, int] = {}
    for name, terms in ATOM.findall(rules):
        arity_of.setdefault(name, terms.count(",") + 1)
    return arity_of


def zipf(relations: dict[str, int], scale: int, values: int, seed: int, exponent: float = 1.0) -> Facts:
    """Return about `scale` facts over `values` values: the k-th largest relation has 1 / k ** exponent of the largest.

    Which relation is the k-th is drawn. Each has a fact at least, and repeated ones count once.
    """
    r = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, len(relations) + 1) ** exponent
    sizes = np.maximum(1, (scale * weights / weights.sum()).astype(np.int64))
    names = list(relations)
    return {
        names[k]: distinct(r.integers(0, values, (int(size), relations[names[k]])))
        for k, size in zip(r.permutation(len(names)).tolist(), sizes, strict=True)
    }
