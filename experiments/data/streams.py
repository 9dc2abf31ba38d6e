"""Streams of updates for paper 5: random graphs whose edges change, and ways around the positions of a GPS track."""

from __future__ import annotations

import csv
import gzip
import math
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any

Update = dict[str, dict[str, list[Any]]]
#: First facts, and the updates.
Stream = tuple[list[Any], list[Update]]

KINDS = ("undone", "half undone", "random")


def edges(
    nodes: int, size: int, seed: int, *, kind: str = "undone", first: int = 100, updates: int = 50, graphs: int = 1
) -> Stream:
    """Return the edges of graphs side by side, and updates that delete and insert `size` edges each.

    A stream is `undone` if each update deletes what the one before has inserted (the paper's counts of marks imply that
    of its stream for P_seq), `half undone` if it deletes half of that and other facts, and `random` if it deletes any
    facts. The first of the `updates` inserts the first edges.
    """
    r = Random(seed)

    def edge() -> tuple[int, int]:
        graph = r.randrange(graphs) * nodes
        return graph + r.randrange(nodes), graph + r.randrange(nodes)

    there: set[tuple[int, int]] = set()
    while len(there) < graphs * first:
        there.add(edge())
    begin, pool = sorted(there), sorted(there)
    last: list[tuple[int, int]] = []
    r.shuffle(pool)
    stream: list[Update] = []
    for _ in range(updates - 1):
        if kind == "undone":
            gone = last or [pool.pop() for _ in range(size)]
        else:
            again = last[: len(last) // 2] if kind.startswith("half") else []
            pool += last[len(again) :]
            gone = again
            for _ in range(size - len(again)):
                place = r.randrange(len(pool))
                pool[place], pool[-1] = pool[-1], pool[place]
                gone.append(pool.pop())
        last = []
        while len(last) < size:
            new = edge()
            if new not in there:  # nor among those that go, so each update has its net effect
                there.add(new)
                last.append(new)
        there.difference_update(gone)
        stream.append({"delete": {"edge": gone}, "insert": {"edge": last}})
    return begin, stream


def recorded_track(file: Path) -> Stream:
    """Return the ways around the first position of a recorded track, and how they change from each to the next."""
    steps: dict[int, Update] = defaultdict(lambda: {"insert": {"nextInWay": []}, "delete": {"nextInWay": []}})
    with gzip.open(file, "rt", encoding="utf-8", newline="") as f:
        for step, sign, _, *row in csv.reader(f, delimiter="\t", quoting=csv.QUOTE_NONE):
            steps[int(step)]["insert" if sign == "+" else "delete"]["nextInWay"].append(tuple(row))
    return steps[0]["insert"]["nextInWay"], [steps[i] for i in range(1, max(steps) + 1)]


#: Updates of the three tracks of paper 5.
TRACKS = {"track 0": 55, "track 1": 83, "track 2": 114}


def generated_track(
    updates: int, seed: int, *, blocks: int = 30, spacing: float = 16.0, radius: float = 50.0
) -> Stream:
    """Return a drive over a grid of streets as a stream: the pieces of ways within a radius of each position.

    Every street is a way; its nodes are `spacing` metres apart, and streets cross at every fourth node. The driver goes
    about 25 metres between positions and turns at random.
    """
    r = Random(seed)
    points = blocks * 4
    pieces: dict[tuple[str, str, str], tuple[float, float]] = {}
    for way in range(blocks):
        for k in range(points - 1):
            across, along = way * 4 * spacing, (k + 0.5) * spacing
            pieces[_node(way * 4, k), _node(way * 4, k + 1), f"north {way}"] = (across, along)
            pieces[_node(k, way * 4), _node(k + 1, way * 4), f"east {way}"] = (along, across)
    middle = blocks // 2 * 4 * spacing
    x, y, direction = middle, middle, (1, 0)
    around: set[tuple[str, str, str]] = set()
    stream: list[Update] = []
    begin: list[Any] = []
    for step in range(updates):
        now = {piece for piece, (px, py) in pieces.items() if math.hypot(px - x, py - y) <= radius}
        gone, new = sorted(around - now), sorted(now - around)
        if step == 0:
            begin = new
        else:
            stream.append({"delete": {"nextInWay": gone}, "insert": {"nextInWay": new}})
        around = now
        if r.random() < 0.3:
            direction = r.choice([(1, 0), (-1, 0), (0, 1), (0, -1)])
        x += direction[0] * r.uniform(15, 35)
        y += direction[1] * r.uniform(15, 35)
    return begin, stream


def _node(x: int, y: int) -> str:
    return f"n{x}-{y}"
