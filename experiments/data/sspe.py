"""Single-source path enumeration of paper 2: the lengths of the paths from node 0 in a random acyclic digraph."""

from __future__ import annotations

import numpy as np

from experiments.data.facts import Facts, distinct

RULES = """
path(y, z) :- edge(0, y, z).
path(y, z1 + z2) :- path(x, z1), edge(x, y, z2).
"""


def sspe(nodes: int, degree: int, seed: int = 3) -> Facts:
    """Return edges of length 1 from lower to higher nodes, `degree` for each node but for repetitions."""
    r = np.random.default_rng(seed)
    ends = np.sort(r.integers(0, nodes, (nodes * degree, 2)), axis=1)
    ends = distinct(ends[ends[:, 0] != ends[:, 1]])
    return {"edge": np.column_stack([ends, np.ones(len(ends), np.int64)])}
