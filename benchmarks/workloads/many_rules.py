"""Programs with thousands of rules and hundreds of strata, and facts whose relations have the sizes of Zipf's law.

`ontology` has the rules of Claros-L and DBpedia-L, where the collected cases lie beside the repository; the other
programs are generated. Seed and scale are parameters.
"""

from __future__ import annotations

import gzip
import re

import numpy as np

from benchmarks.places import ROOT
from benchmarks.workloads.graphs import Facts, distinct

#: Where the rules of published ontologies lie, if they are there.
ONTOLOGIES = ROOT.parent / "shared" / "cases" / "ontologies"

#: The relation of owl:sameAs in each ontology: rules that replace equals by equals are left out.
SAME_AS = {"Claros_L": "RP5", "DBpedia_L": "RP307"}

_ATOM = re.compile(r"(\w+)\(([^()]*)\)")


# -- facts -------------------------------------------------------------------------------------------------------------


def arities(rules: str) -> dict[str, int]:
    """Return the arity of each relation of some rules, in the order in which they name them."""
    found: dict[str, int] = {}
    for name, terms in _ATOM.findall(rules):
        found.setdefault(name, terms.count(",") + 1)
    return found


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


# -- programs ----------------------------------------------------------------------------------------------------------


def ontology(name: str) -> str:
    """Return the rules of a published ontology over relations of things, without those that replace equals."""
    numbers: dict[str, str] = {}

    def term(text: str) -> str:
        return text.lower() if text[0].isupper() else numbers.setdefault(text, str(1_000_000_000 + len(numbers)))

    def atom(found: re.Match[str]) -> str:
        return f"{found[1].lower()}({', '.join(map(term, found[2].split(',')))})"

    lines = gzip.decompress((ONTOLOGIES / f"{name}.dlog.gz").read_bytes()).decode().splitlines()
    kept = [line for line in lines if "TE(" not in line and not _replaces(line, SAME_AS[name])]
    return "".join(f"{_ATOM.sub(atom, line)}.\n" for line in kept)


def _replaces(line: str, same_as: str) -> bool:
    """Return whether a rule replaces an equal by an equal in one relation."""
    head, *body = (name for name, _ in _ATOM.findall(line))
    return len(body) == 2 and body.count(same_as) >= 1 and sorted((head, same_as)) == sorted(body)


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
