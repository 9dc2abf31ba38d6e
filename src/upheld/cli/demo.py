"""Materialise a small generated graph, update it, and show what changed."""

from __future__ import annotations

import argparse
import random

import upheld

PROGRAM = """\
.decl edge(x:symbol, y:symbol)
.decl path(x:symbol, y:symbol)
.decl closed(x:symbol)
.decl detour(x:symbol, y:symbol)

path(x, y) :- edge(x, y), !closed(y).
path(x, z) :- path(x, y), edge(y, z), !closed(z).
detour(x, y) :- edge(x, y), !path(x, y).
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--seed", type=int, default=1, help="of the random graph (default: 1)")


def execute(options: argparse.Namespace) -> int:
    chance = random.Random(options.seed)
    towns = [f"t{i}" for i in range(12)]
    roads = sorted({(a, b) for a, b in (chance.sample(towns, 2) for _ in range(18))})
    print("The rules:\n")
    print("\n".join(f"    {line}" for line in PROGRAM.splitlines()))
    m = upheld.materialise(PROGRAM, {"edge": roads})
    print(f"\nFrom {len(roads)} roads between {len(towns)} towns follow {len(m['path'])} paths.\n")
    road, town = chance.choice(roads), chance.choice(towns)
    print(f"Close the town {town}, tear up the road {road[0]} -> {road[1]}, and build t0 -> t11:\n")
    change = m.update(insert={"closed": [town], "edge": [("t0", "t11")]}, delete={"edge": [road]})
    for sign, relations in (("+", change.inserted), ("-", change.deleted)):
        for relation in relations.values():
            for row in relation:
                print(f"    {sign} {relation.name}({', '.join(map(str, row))})")
    print(f"\nNow there are {len(m['path'])} paths; from t0 one can reach:")
    print("    " + ", ".join(str(y) for (y,) in m.query('path("t0", y)')))
    return 0
