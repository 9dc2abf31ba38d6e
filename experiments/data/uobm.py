"""Universities with friends, home towns, interests and subjects, in the vocabulary of `programs.uobm`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from experiments.data.facts import Facts, Numbers, count, distinct
from experiments.data.lubm import lubm
from experiments.measuring.sampling import sample

#: Facts of a department of LUBM that rules read, roughly.
DEPARTMENT = 4_000
#: The share of facts taken from LUBM, and the number of people per home town, whose closure is a clique.
CAMPUS, TOWN = 0.7, 12
PEOPLE = ("FullProfessor", "AssociateProfessor", "Lecturer", "UndergraduateStudent", "GraduateStudent")
#: The first numbers of interests and subjects, above the numbers of people and things.
INTERESTS = 1_500_000_000


def uobm(scale: int, interests: Iterable[str], subjects: Iterable[str], read: Iterable[str], seed: int = 1) -> Facts:
    """Return about `scale` facts of the relations that rules read.

    Interests and subjects are classes: each has a few members, which people like or study.
    """
    known = set(read)
    r = np.random.default_rng(seed)
    campus = lubm(1, seed, departments=1 + int(scale * CAMPUS) // DEPARTMENT)
    campus = {name: rows for name, rows in campus.items() if name in known}
    people = np.concatenate([campus[name][:, 0] for name in PEOPLE])
    facts = sample(campus, min(count(campus), int(scale * CAMPUS)), seed)
    number = INTERESTS
    members: dict[str, Numbers] = {}
    for names, group in ((interests, "interest"), (subjects, "subject")):
        every = []
        for name in names:
            facts[name] = np.arange(number, number + 3)[:, None]
            every.append(facts[name][:, 0])
            number += 3
        members[group] = np.concatenate(every)

    def pairs(part: float, others: Numbers) -> Numbers:
        size = max(1, int(scale * part))
        return distinct(np.stack([r.choice(people, size), r.choice(others, size)], 1))

    facts["isFriendOf"] = pairs(0.06, people)
    facts["like"] = pairs(0.06, members["interest"])
    facts["love"] = pairs(0.03, members["interest"])
    facts["isCrazyAbout"] = pairs(0.03, members["interest"])
    facts["hasMajor"] = pairs(0.05, members["subject"])
    neighbours = r.permutation(people)[: max(TOWN, int(scale * 0.06))]
    # Everybody names one earlier neighbour of the same town, so that a town is a tree.
    places = np.arange(len(neighbours))
    earlier = places - 1 - (r.random(len(places)) * np.maximum(places % TOWN, 1)).astype(np.int64)
    named = places % TOWN > 0
    facts["hasSameHomeTownWith"] = np.stack([neighbours[named], neighbours[earlier[named]]], 1)
    return facts
