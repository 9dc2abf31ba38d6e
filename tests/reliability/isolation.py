"""R10: threads that read, update and are interrupted. Each finds what some update has left, and never an older state.

The main thread updates, with Ctrl-C in every other batch. Before each update it writes down what will hold after it, by
plain Python; each update also moves the one fact of `tick`. A read is right if it is that of a version that was written
down, no older than any that its thread has seen, or that had been made when it began.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import upheld
from tests.reliability.programme import Run, goal

READERS = 8
NODES = 9
BATCH = 50_000
#: Seconds between updates: an update takes as long as many reads.
PAUSE = 0.002
SOON = 120

CLOSURE = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z). tick(0)."
CLASSES = """
.decl edge(x:number, y:number)
.decl path(x:number, y:number) eqrel
.decl tick(n:number)
path(x, y) :- edge(x, y).
tick(0).
"""

Edges = frozenset[tuple[int, int]]


@dataclass(frozen=True)
class Expected:
    """What holds in a version."""

    edges: Edges
    paths: Edges


@dataclass
class World:
    """A materialisation, what its versions hold, and how many of these have been made."""

    m: upheld.Materialisation
    closed: Callable[[Edges], Edges]
    versions: list[Expected] = field(default_factory=list)
    made: int = 0

    def expect(self, edges: Edges) -> None:
        self.versions.append(Expected(edges, self.closed(edges)))


def transitive(edges: Edges) -> Edges:
    """Return the pairs that edges connect."""
    after: dict[int, list[int]] = {}
    for x, y in edges:
        after.setdefault(x, []).append(y)
    found = set()
    for x in after:
        pending = list(after[x])
        while pending:
            y = pending.pop()
            if (x, y) not in found:
                found.add((x, y))
                pending += after.get(y, ())
    return frozenset(found)


def equivalent(edges: Edges) -> Edges:
    """Return the pairs of the least equivalence that has the edges."""
    both = edges | {(y, x) for x, y in edges}
    return transitive(both) | {(x, x) for pair in edges for x in pair}


def opened(batch: int) -> World:
    start: Edges = frozenset((i, i + 1) for i in range(NODES - 1))
    rules, equality, closed = (CLASSES, "rewrite", equivalent) if batch % 3 == 2 else (CLOSURE, "off", transitive)
    world = World(upheld.materialise(rules, {"edge": start}, equality=equality), closed)
    world.expect(start)
    return world


# -- reading -----------------------------------------------------------------------------------------------------------


class Reader:
    """Reads in each way in turn, and checks what it finds against the versions."""

    def __init__(self, world: World, r: random.Random):
        self.world, self.r = world, r
        self.seen = 0

    def read(self) -> int:
        """Look in one of the ways, and return how many reads that were."""
        chance = self.r.random()
        for share, look in ((0.7, self.relation), (0.8, self.poll), (0.9, self.snapshot), (0.95, self.query)):
            if chance < share:
                return look()
        return self.explain() if chance < 0.99 else self.facts()

    def check(self, began: int, right: Callable[[int, Expected], bool]) -> Expected:
        """Return what holds in the version that was read: the first that fits, and that it can be no older than."""
        versions = self.world.versions
        for number in range(max(self.seen, began), len(versions)):
            if right(number, versions[number]):
                self.seen = number
                return versions[number]
        raise AssertionError(f"a read of none of the versions {max(self.seen, began)} to {len(versions) - 1}")

    def rows(self, count: int) -> list[tuple[int, int]]:
        return [(self.r.randrange(NODES), self.r.randrange(NODES)) for _ in range(count)]

    def poll(self) -> int:
        """Ask anew each time, as a dashboard does."""
        for row in self.rows(4):
            began, size = self.world.made, len(self.world.m["path"])
            self.check(began, lambda _, expected, size=size: len(expected.paths) == size)  # type: ignore[misc]
            began, found = self.world.made, row in self.world.m["path"]
            self.check(began, lambda _, expected, row=row, found=found: (row in expected.paths) == found)  # type: ignore[misc]
        return 8

    def relation(self) -> int:
        """Look at one relation in many ways, while others update: all of them see the same rows."""
        began, relation = self.world.made, self.world.m["path"]
        asked = {row: row in relation for row in self.rows(4)}
        sizes = {len(relation)}
        found = frozenset(relation)
        later = {row: row in relation for row in self.rows(12)}
        sizes |= {len(relation), len(relation.to_rows()), len(relation.to_set())}
        expected = self.check(began, lambda _, expected: expected.paths == found)
        assert sizes == {len(expected.paths)}, "sizes of several versions"
        wrong = [row for row, there in (*asked.items(), *later.items()) if (row in expected.paths) != there]
        assert not wrong, f"rows of another version: {wrong}"
        return len(asked) + len(later) + 5

    def query(self) -> int:
        began, found = self.world.made, self.world.m.query("tick(n), path(x, y)").to_set()
        numbers = {n for n, _, _ in found}
        paths = frozenset((x, y) for _, x, y in found)
        self.check(began, lambda n, expected: paths == expected.paths and numbers <= {n})
        return 1

    def explain(self) -> int:
        (row,) = self.rows(1)
        began, found = self.world.made, self.world.m.explain("path", row).holds
        self.check(began, lambda _, expected: (row in expected.paths) == found)
        return 1

    def facts(self) -> int:
        began, found = self.world.made, self.world.m.facts()
        self.check(began, lambda n, expected: found == every(n, expected))
        return 1

    def snapshot(self) -> int:
        began, snapshot = self.world.made, self.world.m.snapshot()
        time.sleep(0)  # so that others go on
        found = snapshot.facts()
        expected = self.check(began, lambda n, expected: found == every(n, expected) and snapshot.version == n)
        assert snapshot.explicit("edge").to_set() == expected.edges, "explicit facts of another version"
        assert len(snapshot["path"]) == len(expected.paths), "a size of another version"
        rows = self.rows(8)
        assert [row in snapshot["path"] for row in rows] == [row in expected.paths for row in rows]
        if self.r.random() < 0.05:
            assert frozenset(snapshot.query("path(x, y)")) == expected.paths, "answers of another version"
        return 11


def every(number: int, expected: Expected) -> set[tuple[str, tuple[int, ...]]]:
    """Return all facts of a version."""
    edges, paths = expected.edges, expected.paths
    return {*(("edge", row) for row in edges), *(("path", row) for row in paths), ("tick", (number,))}


# -- updating ----------------------------------------------------------------------------------------------------------


@contextmanager
def interruptions(r: random.Random) -> Iterator[list[bool]]:
    """Have Ctrl-C pressed about every two milliseconds while the list that is given is not empty."""
    armed: list[bool] = []
    over = threading.Event()

    def heard(*_: object) -> None:
        if armed:
            raise KeyboardInterrupt

    def press() -> None:
        while not over.is_set():
            time.sleep(r.random() * 0.004)
            if armed:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    before = signal.signal(signal.SIGINT, heard)
    thread = threading.Thread(target=press, daemon=True)
    thread.start()
    try:
        yield armed
    finally:
        armed.clear()
        over.set()
        thread.join(SOON)
        signal.signal(signal.SIGINT, before)


def update(world: World, r: random.Random, armed: list[bool] | None) -> bool:
    """Make a random update, and return whether it was interrupted: then it is made, or it is not."""
    number, edges = len(world.versions), world.versions[-1].edges
    pairs = [(r.randrange(NODES), r.randrange(NODES)) for _ in range(4)]
    insert, delete = frozenset(pairs[:2]), frozenset([*pairs[2:], *r.sample(sorted(edges), min(2, len(edges)))])
    world.expect((edges - delete) | insert)
    try:
        if armed is not None:
            armed.append(True)
        world.m.update(insert={"edge": insert, "tick": [number]}, delete={"edge": delete, "tick": [number - 1]})
        interrupted = False
    except KeyboardInterrupt:
        interrupted = True
    finally:
        if armed is not None:
            armed.clear()
    if world.m.version == number:
        world.made = number
    else:
        assert interrupted, "an update that was neither made nor interrupted"
        world.versions.pop()
    return interrupted


def read_while_updating(run: Run, batch: int, reads: int) -> None:
    """Have readers make so many reads while the main thread updates."""
    r = random.Random(f"{run.goal.id} {run.seed} {batch}")
    world = opened(batch)
    errors: list[BaseException] = []

    def reader(seed: int) -> None:
        mine = Reader(world, random.Random(seed))
        try:
            made = 0
            while made < reads // READERS and not errors:
                made += mine.read()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=reader, args=(r.randrange(2**32),), daemon=True) for _ in range(READERS)]
    interrupted = 0
    with interruptions(r) as pressed:
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + SOON + reads / 50
        while any(thread.is_alive() for thread in threads) and not errors:
            assert time.monotonic() < deadline, "threads that wait for ever"
            interrupted += update(world, r, pressed if batch % 2 else None)
            time.sleep(PAUSE)
    for thread in threads:
        thread.join(SOON)
    if errors:
        raise errors[0]
    last = world.versions[-1]
    assert world.m.facts() == every(len(world.versions) - 1, last), "facts that differ from those computed apart"
    run.figures["updates"] = int(str(run.figures.get("updates", 0))) + len(world.versions) - 1
    run.figures["interruptions"] = int(str(run.figures.get("interruptions", 0))) + interrupted


def update_in_several_threads(run: Run, updates: int) -> None:
    """Have threads update at once, each edges of its own: all updates are made, and what follows is what should."""
    m = upheld.materialise(CLOSURE, {"edge": [(0, 1)]})
    m.update(delete={"edge": [(0, 1)]})
    seeds, errors = [run.random.randrange(2**32) + n for n in range(4)], list[BaseException]()
    mine: list[set[tuple[int, int]]] = [set() for _ in seeds]

    def updater(n: int) -> None:
        r = random.Random(seeds[n])
        try:
            for _ in range(updates):
                edge = (10 * n + r.randrange(5), 10 * r.randrange(len(seeds)) + r.randrange(5))
                gone = r.sample(sorted(mine[n]), min(1, len(mine[n])))
                change = m.update(insert={"edge": [edge]}, delete={"edge": gone})
                assert change.asserted["edge"].to_set() <= {edge} and change.retracted["edge"].to_set() <= {*gone}
                mine[n] = mine[n] - {*gone} | {edge}
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=updater, args=(n,), daemon=True) for n in range(len(seeds))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON + updates)
        assert not thread.is_alive(), "a thread waits for ever"
    if errors:
        raise errors[0]
    assert m.version == updates * len(seeds) + 1
    assert m["edge"].to_set() == frozenset().union(*mine)
    assert m["path"].to_set() == transitive(frozenset(m["edge"]))


@goal("R10", "reads beside updates", sample=2_000, full=1_000_000)
def isolation(run: Run) -> None:
    reads = min(BATCH, max(1_000, run.size // 4))
    for batch in run.cases():
        run.case(f"batch {batch}", lambda batch=batch: read_while_updating(run, batch, reads), count=reads)
    updates = max(10, min(500, run.size // 1000))
    run.case("several updaters", lambda: update_in_several_threads(run, updates))
