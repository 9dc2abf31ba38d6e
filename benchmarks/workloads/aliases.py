"""Universities with equality, in the manner of UOBM: people under several names, and properties that tell.

An email address belongs to one person (inverse functional), and everybody has one home town (functional): so aliases
of people, and of towns, come to be equal. Every tenth student is known under a second name, with an address in common
and courses of its own; towns have several names, and some people give two of them.

python -m benchmarks.workloads.aliases FILE TRIPLES
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.workloads.campus_rdf import ONTOLOGY, TYPE, V, link, triples

RULES = (
    ONTOLOGY
    + """
:email a owl:InverseFunctionalProperty ; rdfs:domain :Person .
:homeTown a owl:FunctionalProperty ; rdfs:domain :Person ; rdfs:range :Town .
:Town rdfs:subClassOf :Place .
"""
)

#: Every so manyth student has an alias, and every so manyth gives two names of a town.
ALIAS, TWO_TOWNS = 10, 50
#: How many students live in one town, in the middle, and under how many names it goes.
LIVE_IN_TOWN, NAMES = 40, 3


def aliased(seed: int = 1) -> Iterator[str]:
    """Yield lines of N-Triples without an end."""
    chance = random.Random(seed)
    students = 0
    for line in triples(seed):
        yield line
        subject, predicate, value = line.split(" ", 2)
        if predicate == TYPE and "Student" in value:
            students += 1
            town = chance.randint(0, students // LIVE_IN_TOWN)
            name = chance.randrange(NAMES)
            yield _link(subject, "email", f"mailto:s{students}")
            yield _link(subject, "homeTown", _town(town, name))
            if students % ALIAS == 0:
                yield f"<{subject[1:-1]}/alias> <{V}email> <mailto:s{students}> .\n"
                yield f"<{subject[1:-1]}/alias> <{V}takes> <{subject[1:-1]}/course> .\n"
            if students % TWO_TOWNS == 0:
                yield _link(subject, "homeTown", _town(town, (name + 1) % NAMES))


def _town(number: int, name: int) -> str:
    return f"http://towns.example/{number}-{name}"


def _link(subject: str, name: str, value: str) -> str:
    return link(subject[1:-1], name, value)


def make(file: Path, count: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as out:
        out.writelines(line for line, _ in zip(aliased(), range(count)))


if __name__ == "__main__":
    make(Path(sys.argv[1]), int(sys.argv[2]))
