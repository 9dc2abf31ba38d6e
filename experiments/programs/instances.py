"""The test instances of papers 1 to 3: rules and facts of each, by name, scale and seed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.data import sspe, zipf
from experiments.data.facts import Facts, Numbers, distinct
from experiments.data.graphs import trees
from experiments.data.uobm import uobm
from experiments.programs import profile, rulesets
from experiments.programs import uobm as uobm_rules
from experiments.published import printed

#: Rules of a generated program at most, by size; real rule sets keep all of theirs.
MOST_RULES = {"tiny": 60, "small": 300, "default": 1_500, "paper": 25_000}

#: Instances with rules and data of our own in the manner of UOBM.
UOBM = {"UOBM-L": uobm_rules.LOWER, "UOBM-U": uobm_rules.UPPER}


@dataclass(frozen=True)
class Instance:
    """Rules with facts. `published` says that the rules are a published rule set rather than generated."""

    rules: str
    facts: Facts
    published: bool = False


def instance(name: str, scale: int, size: str, programs: str | None, seed: int = 1) -> Instance:
    """Return a test instance with about `scale` explicit facts."""
    if name == "SSPE":
        return Instance(sspe.RULES, sspe.sspe(max(20, scale // 10), 10), published=True)
    if name in UOBM:
        interests = [sub for up in ("Sports", "Music") for sub in uobm_rules.SUBCLASSES[up].split()]
        subjects = [sub for up in ("Engineering", "Science", "FineArts") for sub in uobm_rules.SUBCLASSES[up].split()]
        return Instance(UOBM[name], uobm(scale, interests, subjects, zipf.arities(UOBM[name]), seed))
    if programs and (real := _published(name, Path(programs))):
        facts = zipf.zipf(zipf.arities(real), scale, max(10, scale * 2 // 5), seed)
        if name == "Claros-LE":
            facts |= related_places(scale, seed)
        return Instance(real, facts, published=True)
    rules, relations = profile.program(profile.scaled(profile_of(name), MOST_RULES[size]), seed)
    facts = profile.facts(relations, scale, max(10, scale * 2 // 5), seed)
    if name == "Claros-LE":
        rules += "related(x, y) :- related(y, x).\nrelated(x, z) :- related(x, y), related(y, z).\n"
        facts["related"] = cliques(scale, seed)
    return Instance(rules, facts)


def _published(name: str, folder: Path) -> str | None:
    match name:
        case "Claros-L" | "Claros-LE" | "DBpedia-L":
            return rulesets.dlog(folder, name.replace("-", "_"))
        case "Reactome-L":
            return rulesets.ontology(folder, "lower")
        case "Reactome-U":
            return rulesets.ontology(folder, "upper")
        case _:
            return None


def profile_of(name: str) -> list[tuple[int, int]]:
    """Return the recursive rules and all rules of each level of a published program."""
    rows = printed("p1-table2").rows
    levels = [values for (row, level), values in rows.items() if row == name and level != "all"]
    return [(int(values["recursive"] or 0), int(values["rules"] or 0)) for values in levels]


def related_places(scale: int, seed: int) -> Facts:
    """Return the facts of the relation of the published rules of Claros-LE that is symmetric and transitive."""
    return {rulesets.RELATED_PLACES: cliques(scale, seed)}


def cliques(scale: int, seed: int) -> Numbers:
    """Return forests whose closure has one large clique and several small ones, about a hundredth of the facts."""
    r = np.random.default_rng(seed)
    large = max(6, min(150, scale // 200))
    small = trees(max(1, large // 8), max(3, large // 8), r)["link"] + 1_000
    return distinct(np.concatenate([trees(1, large, r)["link"], small]))
