"""Update a small random graph, and show the change and its cost."""

from __future__ import annotations

import argparse
import textwrap
from typing import TYPE_CHECKING

import upheld

if TYPE_CHECKING:
    from random import Random

PROGRAM = """\
.decl road(x:symbol, y:symbol)
.decl closed(x:symbol)
.decl path(x:symbol, y:symbol)
.decl blocked(x:symbol, y:symbol)

path(x, y) :- road(x, y), !closed(y).
path(x, z) :- path(x, y), road(y, z), !closed(z).
blocked(x, y) :- road(x, y), !path(x, y).
"""


EXAMPLES = """\
upheld demo
upheld demo --seed 7
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    graph = command.add_argument_group("graph")
    graph.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the random graph (default: 1)")


def execute(options: argparse.Namespace) -> int:
    from random import Random

    chance = Random(options.seed)
    towns = [f"t{i}" for i in range(10)]
    pairs = [(a, b) for a in towns for b in towns if a != b]
    roads = chance.sample(pairs, 13)
    print("The rules:\n")
    print(textwrap.indent(PROGRAM, "    "))
    m = upheld.materialise(PROGRAM, {"road": roads})
    print(f"From {len(roads)} random roads between {len(towns)} towns, {len(m['path'])} paths follow.\n")
    town, torn, built = chance.choice(towns), chance.choice(roads), chance.choice(sorted(set(pairs) - set(roads)))
    print(f"Close {town}, tear up the road from {torn[0]} to {torn[1]}, build one from {built[0]} to {built[1]}.")
    print("This is what changed (+ now holds, - no longer holds):\n")
    change = m.update(insert={"closed": [town], "road": [built]}, delete={"road": [torn]})
    for sign, relations in (("+", change.inserted), ("-", change.deleted)):
        for relation in relations.values():
            for row in relation:
                print(f"    {sign} {relation.name}({', '.join(map(str, row))})")
    reached = [str(y) for (y,) in m.query(f'path("{built[0]}", y)')]
    print(f"\nNow there are {len(m['path'])} paths. From {built[0]} they lead to: {', '.join(reached) or 'nowhere'}.\n")
    show_cost(chance)
    return 0


def show_cost(chance: Random) -> None:
    """Show what an update of a larger graph looks at, beside what it takes to derive everything anew."""
    towns = [f"t{i}" for i in range(200)]
    roads = sorted({(a, b) for a in towns for b in chance.sample(towns, 2) if a != b})
    m = upheld.materialise(PROGRAM, {"road": roads})
    print(f"The same rules with {len(roads)} roads between {len(towns)} towns: {len(m['path'])} paths follow.")
    torn = chance.choice(roads)
    change = m.update(delete={"road": [torn]})
    anew = upheld.materialise(PROGRAM, {"road": m.explicit("road")}, algorithm="rematerialise")
    instances = change.statistics.instances
    print(f"Tear up the road from {torn[0]} to {torn[1]}, and {len(change.deleted['path'])} of them are gone.")
    print(f"The {m.algorithm} algorithm considered {instances.total()} rule instances to find out:", end=" ")
    print(", ".join(f"{considered} in {phase}" for phase, considered in instances.items()), end=".\n")
    for choice in change.statistics.choices:
        print(f"Decision: {choice}.")
    print(f"To derive everything anew takes {anew.statistics.instances.total()}.")
