"""Programs with thousands of rules and hundreds of strata, and facts whose relations have the sizes of Zipf's law.

`ontology` has the rules of Claros-L and DBpedia-L, where the collected cases lie beside the repository; the other
programs are generated. Seed and scale are parameters.
"""

from __future__ import annotations

import numpy as np

from benchmarks.places import ROOT
from experiments.data.zipf import arities, zipf
from experiments.programs.rulesets import dlog

__all__ = ["ONTOLOGIES", "arities", "drawn", "groups", "ladder", "ontology", "zipf"]

#: Where the rules of published ontologies lie, if they are there.
ONTOLOGIES = ROOT.parent / "shared" / "cases" / "ontologies"


# -- programs ----------------------------------------------------------------------------------------------------------


def ontology(name: str) -> str:
    """Return the rules of a published ontology over relations of things, without those that replace equals."""
    rules = dlog(ONTOLOGIES.parent, name)
    assert rules is not None, f"{ONTOLOGIES} has no rules of {name}"
    return rules


def ladder(strata: int) -> str:
    """Return `strata` rules, each in a stratum on top of the one before."""
    return "".join(f"p{k + 1}(x) :- p{k}(x).\n" for k in range(strata))


def drawn(rules: int, relations: int, seed: int, negated: float = 0.3) -> str:
    """Return random rules over relations with two columns; a tenth of the relations are derived by none.

    A rule copies, swaps, joins or intersects earlier relations, a few beside the one that it derives, and some rules
    negate an earlier one. No rule makes a pair of two values that were not a pair before, so that nothing explodes.
    """
    r = np.random.default_rng(seed)
    bodies = ("r{0}(x, y)", "r{0}(y, x)", "r{0}(x, y), r{1}(x, y)", "r{0}(x, y), r{1}(y, _)", "r{h}(y, x), r{1}(x, _)")
    lines = []
    for _ in range(rules):
        head = int(r.integers(relations // 10, relations))
        earlier = r.integers(0, head, 3).tolist()
        body = bodies[r.choice(5, p=(0.3, 0.1, 0.25, 0.25, 0.1))].format(*earlier, h=head)
        beside = f", !r{earlier[2]}(x, y)" if r.random() < negated else ""
        lines.append(f"r{head}(x, y) :- {body}{beside}.\n")
    return "".join(lines)


def groups(count: int, size: int) -> str:
    """Return `count` independent groups of rules, each a chain of `size` strata."""
    return "".join(f"g{k}_{i + 1}(x, y) :- g{k}_{i}(x, y).\n" for k in range(count) for i in range(size))
