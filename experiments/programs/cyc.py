"""A program in the manner of OpenCyc: a deep hierarchy of classes, and rules that never fire.

OpenCyc itself is not published any more. Paper 3 names two traits that decide its times: facts have many classes (its
materialisation has 60 times as many facts as there are explicit ones), and some 200 rules derive types from relations
that have no facts.
"""

from __future__ import annotations

import numpy as np

from experiments.data.facts import Facts, distinct

#: Classes of the hierarchy, and idle rules.
SIZES = {"tiny": (40, 10), "small": (300, 50), "default": (2_000, 200), "paper": (20_000, 200)}
#: A class is below one of the last classes before it, so that the hierarchy is deep: a class has tens of others above.
NEAR = 8
RELATIONS = 20


def rules(size: str) -> str:
    """Return the rules: subclasses, domains of relations, their hierarchy, and the idle ones."""
    classes, idle = SIZES[size]
    r = np.random.default_rng(5)
    lines = [f"c{k - int(r.integers(1, min(k, NEAR) + 1))}(x) :- c{k}(x).\n" for k in range(1, classes)]
    lines += [f"c{int(r.integers(classes))}(x) :- r{k}(x, y).\n" for k in range(RELATIONS)]
    lines += [f"r{k // 2}(x, y) :- r{k}(x, y).\n" for k in range(2, RELATIONS)]
    lines += [f"c{int(r.integers(classes))}(y) :- idle{k}(x, y).\n" for k in range(idle)]
    return "".join(lines)


def facts(scale: int, size: str, seed: int) -> Facts:
    """Return about `scale` facts: a class of each thing, and relations between things."""
    classes = SIZES[size][0]
    r = np.random.default_rng(seed)
    values = max(10, scale * 2 // 5)
    of_class = r.integers(classes // 2, classes, scale // 2)
    things = r.integers(0, values, scale // 2)
    of_classes: Facts = {
        f"c{k}": distinct(things[of_class == k][:, None]) for k in range(classes // 2, classes) if (of_class == k).any()
    }
    each = max(1, scale // 2 // RELATIONS)
    return of_classes | {f"r{k}": distinct(r.integers(0, values, (each, 2))) for k in range(RELATIONS)}
