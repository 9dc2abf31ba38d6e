"""The instances of paper 3: rules over triples with `owl:sameAs`, and facts in which some things have several names."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import count as numbers_from
from pathlib import Path

import numpy as np

import upheld
from experiments.data.facts import Facts, Numbers
from experiments.data.zipf import ATOM, arities, zipf
from experiments.programs import cyc, rulesets
from experiments.programs.instances import Instance, instance, related_places

TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SAME_AS = "<http://www.w3.org/2002/07/owl#sameAs>"

#: The instance of papers 1 and 2 that has the rules of a row.
RULES_OF = {"UOBM-100-L": "UOBM-L", "UOBM-100-U": "UOBM-U", "UniProt-L": "UniProt-L"}
#: Names of the thing that has most of them: 306 in Claros and 3,930 in UOBM-100-U at the paper's size.
MOST_NAMES = {
    "Claros-L": {"tiny": 5, "small": 30, "default": 306, "paper": 306},
    "Claros-LE": {"tiny": 5, "small": 30, "default": 306, "paper": 306},
    "UOBM-100-U": {"tiny": 5, "small": 100, "default": 1_000, "paper": 3_930},
}
#: For each row, in how many facts there is one thing with several names, and how many names it has.
NAMES = {
    "UOBM-100-L": (100, 2),
    "Claros-L": (200, 2),
    "DBpedia-L": (500, 2),
    "OpenCyc-L": (300, 10),
    "UOBM-100-U": (200, 2),
    "Claros-LE": (200, 2),
    "UniProt-L": (500, 2),
}
#: Two things with one key are the same, where the rules themselves do not say when things are.
KEY = "same(x, y) :- key(x, k), key(y, k).\n"

Triple = tuple[str, str, str]


@dataclass(frozen=True)
class Aliased:
    """A program over triples with explicit facts."""

    program: upheld.Program
    triples: list[Triple]
    published: bool


def aliased(row: str, scale: int, size: str, programs: str | None, seed: int = 1) -> Aliased:
    """Return an instance of paper 3 with about `scale` explicit facts."""
    classes = names(row, scale, size, seed)
    same = "same"
    published = False
    real = rulesets.dlog(Path(programs), row.replace("-", "_")) if programs and row in rulesets.WITH_EQUALITY else None
    if real:
        same, published = rulesets.SAME_AS[row.replace("-", "_")].lower(), True
        facts = _without_accidents(real, same, scale, seed)
        if row == "Claros-LE":
            facts |= related_places(scale, seed)
        facts[same] = np.concatenate([np.stack([np.full(len(c) - 1, c[0]), c[1:]], 1) for c in classes])
        it = Instance(real, facts)
    elif row == "OpenCyc-L":
        it = Instance(KEY + cyc.rules(size), cyc.facts(scale, size, seed))
    else:
        it = instance(RULES_OF.get(row, row), scale, size, programs, seed)
        it = Instance(KEY + it.rules, dict(it.facts))
    if not real:
        # The keys are numbers above the numbers of things.
        keys = [np.stack([c, np.full(len(c), 10**8 + k)], 1) for k, c in enumerate(classes)]
        it.facts["key"] = np.concatenate(keys)
    return Aliased(upheld.parse(in_triples(it.rules, same), dialect="dlog"), triples(it.facts, same), published)


def names(row: str, scale: int, size: str, seed: int) -> list[Numbers]:
    """Return classes of names of one thing, drawn from the values that facts have; no name is in two of them."""
    values = np.random.default_rng([seed, 7]).permutation(max(10, scale * 2 // 5))
    every, few = NAMES[row]
    sizes = [MOST_NAMES[row][size]] if row in MOST_NAMES else []
    sizes += [few] * max(1, scale // every)
    return [part for part in np.split(values, np.cumsum(sizes))[: len(sizes)] if len(part) > 1]


def _without_accidents(rules: str, same: str, scale: int, seed: int) -> Facts:
    """Return facts of which no two say by accident that things are the same, as random ones would soon say of all.

    A relation that the rules of equality read, or that leads to one that they read, has no value twice in a column.
    """
    relations = arities(rules)
    reads: dict[str, set[str]] = defaultdict(set)
    for line in rules.splitlines():
        head, *body = (name for name, _ in ATOM.findall(line))
        reads[head].update(body)
    telling, todo = set[str](), [name for name in reads[same] if relations[name] == 2]
    while todo:
        name = todo.pop()
        if name not in telling:
            telling.add(name)
            todo += reads[name]
    values = max(10, scale * 2 // 5)
    facts = zipf(relations, scale, values, seed)
    facts.pop(same, None)
    left = np.random.default_rng([seed, 8]).permutation(values)
    begin = 0
    for name in sorted(telling & facts.keys()):
        end = min(begin + len(facts[name]), values)
        if relations[name] == 2:
            facts[name] = np.stack([left[begin:end], values + left[begin:end]], 1)
            begin = end
    return {name: rows for name, rows in facts.items() if len(rows)}


# -- triples -----------------------------------------------------------------------------------------------------------


def iri(name: object) -> str:
    return f"<http://e.example/{name}>"


def in_triples(rules: str, same: str) -> str:
    """Return rules over relations of one and two columns as rules over triples.

    >>> in_triples("c(x) :- p(x, _), same(x, 7).", "same").replace("http://e.example/", "")
    '[?x, <http://www.w3.org/1999/02/22-rdf-syntax-ns#type>, <c>] :- [?x, <p>, ?_1], \
[?x, <http://www.w3.org/2002/07/owl#sameAs>, <7>].'
    """
    fresh = numbers_from(1)

    def term(text: str) -> str:
        return f"?_{next(fresh)}" if text == "_" else iri(text) if text.isdigit() else f"?{text}"

    def atom(match: re.Match[str]) -> str:
        first, *second = map(term, match[2].replace(" ", "").split(","))
        return (
            f"[{first}, {_predicate(match[1], same)}, {second[0]}]" if second else f"[{first}, {TYPE}, {iri(match[1])}]"
        )

    return ATOM.sub(atom, rules)


def triples(facts: Facts, same: str) -> list[Triple]:
    """Return facts of one and two columns as triples."""
    every: list[Triple] = []
    for name, rows in facts.items():
        if rows.shape[1] == 1:
            every += ((iri(x), TYPE, iri(name)) for (x,) in rows.tolist())
        else:
            predicate = _predicate(name, same)
            every += ((iri(x), predicate, iri(y)) for x, y in rows.tolist())
    return every


def _predicate(name: str, same: str) -> str:
    return SAME_AS if name == same else iri(name)
