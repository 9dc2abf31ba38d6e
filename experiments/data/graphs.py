"""Random graphs: forests whose symmetric and transitive closure is a clique each, and people in groups."""

from __future__ import annotations

import numpy as np

from experiments.data.facts import Facts, Numbers, distinct


def trees(count: int, size: int, r: np.random.Generator) -> Facts:
    """Random trees, whose symmetric and transitive closure is a clique each."""
    child = np.arange(1, size)
    rows = [np.stack([child, (r.random(size - 1) * child).astype(np.int64)], 1) + size * k for k in range(count)]
    names = r.permutation(count * size)
    return {"link": r.permutation(names[np.concatenate(rows)])}


def groups(count: int, size: int, degree: int, r: np.random.Generator) -> Facts:
    """People in groups of a size; each relation leads from each of them to `degree` others of the group."""
    n = count * size
    people = np.arange(n)

    def within() -> Numbers:
        start = np.repeat(people, degree)
        return distinct(np.stack([start, start // size * size + r.integers(0, size, len(start))], 1))

    facts = {name: within() for name in ("knows", "likes", "cites", "trusts")}
    facts["lives"] = np.stack([people, n + r.integers(0, max(n // 20, 1), n)], 1)
    facts["works"] = np.stack([people, 2 * n + r.integers(0, max(n // 10, 1), n)], 1)
    facts["near"] = distinct(np.stack([r.integers(0, n, n), 3 * n + r.integers(0, 10, n)], 1))
    facts["akin"] = within()
    return facts
