"""One materialisation in many threads: each finds what some update has left, and every update is made."""

from __future__ import annotations

import copy
import os
import pickle
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest

import upheld
from upheld.engines import ENGINES

PATHS = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."
CHAIN = [(i, i + 1) for i in range(12)]
SOON = 60


@pytest.fixture(params=ENGINES)
def engine(request) -> str:
    return request.param


class Threads:
    """Threads that call functions over and over until the block ends; whatever they raise is raised then."""

    def __init__(self, *reads: Callable[[], object]):
        self._stop = threading.Event()
        self._errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._run, args=(read,), daemon=True) for read in reads]
        self.calls = 0

    def _run(self, read: Callable[[], object]) -> None:
        try:
            while not self._stop.is_set():
                read()
                self.calls += 1
        except BaseException as error:
            self._errors.append(error)

    def __enter__(self) -> Threads:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(SOON)
            assert not thread.is_alive(), "a thread waits for ever"
        if self._errors:
            raise self._errors[0]


def closure(edges: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return the pairs that edges connect: what the rules above derive, by other means."""
    after: dict[int, set[int]] = {}
    for x, y in edges:
        after.setdefault(x, set()).add(y)
    found = set()
    for x in after:
        pending = [*after[x]]
        while pending:
            y = pending.pop()
            if (x, y) not in found:
                found.add((x, y))
                pending += after.get(y, ())
    return found


def test_polling_while_another_thread_updates():
    """The dashboard that asks for the number of facts loses none of them."""
    r = random.Random(1)
    edges = sorted({(r.randrange(60), r.randrange(60)) for _ in range(120)})
    m = upheld.materialise(PATHS, {"edge": edges})
    before = m["path"].to_set()
    with Threads(lambda: len(m["path"]), lambda: (1, 2) in m["path"]):
        for _ in range(15):
            gone = r.sample(edges, 3)
            m.update(delete={"edge": gone})
            m.update(insert={"edge": gone})
    assert m["path"].to_set() == before == closure(set(edges))


def test_queries_and_explanations_at_the_same_time(engine):
    m = upheld.materialise(PATHS, {"edge": CHAIN}, engine=engine)
    forth, back = m["path"].to_set(), {(y, x) for y, x in m["path"] if x > 3}

    def explain() -> None:
        assert len(m.explain("path", (0, 5)).proof) == 10
        assert not m.explain("path(5, 0)").holds

    def ask() -> None:
        assert m.query("path(x, y)").to_set() == forth

    def ask_other() -> None:
        assert m.query("path(y, x), x > 3").to_set() == back

    with Threads(explain, explain, ask, ask_other) as threads:
        while threads.calls < 60 and not threads._errors:
            time.sleep(0.01)


READS: dict[str, Callable[[upheld.Materialisation], set]] = {
    "relation": lambda m: m["path"].to_set(),
    "facts": lambda m: {row for name, row in m.facts() if name == "path"},
    "query": lambda m: m.query("path(x, y)").to_set(),
    "iteration": lambda m: set(iter(m["path"])),
}


@pytest.mark.parametrize("read", READS)
def test_reads_give_some_version_and_never_an_older_one(engine, read):
    m = upheld.materialise(PATHS, {"edge": CHAIN}, engine=engine)
    versions = [closure(set(CHAIN[: n + 1])) for n in reversed(range(12))]
    order = {frozenset(version): number for number, version in enumerate(versions)}

    def reader() -> Callable[[], None]:
        last = [0]

        def look() -> None:
            number = order[frozenset(READS[read](m))]  # a mixture of two versions is none of them
            assert number >= last[0]
            last[0] = number

        return look

    with Threads(reader(), reader()):
        for edge in reversed(CHAIN[1:]):
            m.update(delete={"edge": [edge]})


def test_updates_of_several_threads(engine):
    """All of them are made, one after the other, and each change is that of its update alone."""
    m = upheld.materialise(PATHS, {"edge": CHAIN}, engine=engine)
    changes: list[upheld.Change] = []

    def updater(base: int) -> Callable[[], None]:
        def run() -> None:
            for n in range(10):
                changes.append(m.update(insert={"edge": [(base, base + n + 1)]}, delete={"edge": [(base, base + n)]}))

        return run

    threads = [threading.Thread(target=updater(base)) for base in (100, 200, 300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    edges = {*CHAIN, (100, 110), (200, 210), (300, 310)}
    assert m["edge"].to_set() == edges and m["path"].to_set() == closure(edges)
    assert len(changes) == 30 and all(len(change.asserted["edge"]) == 1 for change in changes)


def test_streams_of_several_threads():
    """Each stream takes a turn for each update; what waits to be made is not lost to what others do meanwhile."""
    m = upheld.materialise(PATHS, {"edge": CHAIN}, algorithm="bf-marking")
    made: list[tuple[int, ...]] = []

    def stream(base: int) -> None:
        updates = [
            {"insert": {"edge": [(base, base + n)]}, "delete": {"edge": [(base, base + n - 1)]}} for n in range(1, 9)
        ]
        for change in m.stream(updates):
            made.append(change.updates)
            assert len(m.query(f"edge({base}, y)")) == 1

    threads = [threading.Thread(target=stream, args=(base,)) for base in (100, 200)]
    for thread in threads:
        thread.start()
    with Threads(lambda: m.explain("path", (0, 3)), lambda: m["path"].to_set()):
        for thread in threads:
            thread.join(SOON)
    edges = {*CHAIN, (100, 108), (200, 208)}
    assert len(made) == 16 and m["path"].to_set() == closure(edges)


@pytest.mark.parametrize("algorithm", ["adaptive", "bf-marking", "dred-marking"])
def test_whatever_is_done_within_a_stream(engine, algorithm):
    """Queries, explanations, updates and updates that fail leave alone the update that was looked at."""
    m = upheld.materialise(PATHS, {"edge": CHAIN}, engine=engine, algorithm=algorithm)
    updates = [{"insert": {"edge": [(50 + n, 51 + n)]}, "delete": {"edge": [(49 + n, 50 + n)]}} for n in range(6)]
    edges = set(CHAIN)
    for n, change in enumerate(m.stream(updates)):
        edges = edges - {(49 + n, 50 + n)} | {(50 + n, 51 + n), (90, 91 + n)}
        assert change.asserted["edge"].to_set() == {(50 + n, 51 + n)}
        assert m.query("path(50, y)").to_set() == ({(51,)} if n == 0 else set())
        assert m.explain("path", (0, 3)).holds
        with pytest.raises(upheld.UpheldError, match="ill-typed-value"):
            m.update(insert={"edge": [("a", "b")]})
        m.update(insert={"edge": [(90, 91 + n)]})
        assert m["path"].to_set() == closure(edges)


def test_what_is_read_for_an_update_may_come_from_the_materialisation(engine):
    """Facts are read before the update has its turn."""
    m = upheld.materialise(PATHS, {"edge": CHAIN}, engine=engine)

    def rows() -> Iterator[tuple[int, int]]:
        yield from ((y, x) for x, y in m["path"] if x == 0)

    m.update(insert={"edge": rows()})
    assert (12, 0) in m["edge"]


def test_progress_cannot_use_the_materialisation(engine, monkeypatch):
    """It would have to wait for itself; the update that called it changes nothing."""
    monkeypatch.setattr("upheld.algebra.meter.Meter._TELL_EVERY", -1.0)
    m: list[upheld.Materialisation] = []

    def progress(_: object) -> None:
        for found in m:
            found["path"].to_set()

    m.append(upheld.materialise(PATHS, {"edge": CHAIN}, engine=engine, progress=progress))
    with pytest.raises(upheld.UpheldError, match="materialisation-in-use"):
        m[0].update(delete={"edge": CHAIN[:1]})
    assert m[0]["path"].to_set() == closure(set(CHAIN))


def test_ctrl_c_while_an_update_waits(engine, request):
    """Nothing has changed, and nobody waits for the update that was given up."""
    # A Spark session of this process handles Ctrl-C in its own way.
    other = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, other))
    m = upheld.materialise(PATHS, {"edge": CHAIN}, engine=engine)
    begun, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with m._turns.work():
            begun.set()
            go_on.wait(SOON)

    def interrupt() -> None:
        while m._turns.last is end:
            time.sleep(0.001)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    holder = threading.Thread(target=hold)
    holder.start()
    assert begun.wait(SOON)
    end = m._turns.last
    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        m.update(insert={"edge": [(50, 51)]})
    go_on.set()
    holder.join(SOON)
    assert (50, 51) not in m["edge"]
    with Threads(lambda: m.update(insert={"edge": [(50, 51)]})) as threads:
        while not threads.calls:
            time.sleep(0.001)
    assert m["path"].to_set() == closure({*CHAIN, (50, 51)})


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_while_another_thread_updates():
    """The child has one of the versions, and can go on from it."""
    m = upheld.materialise(PATHS, {"edge": CHAIN})
    sizes = {len(closure(set(CHAIN))), len(closure({*CHAIN, (12, 13)}))}

    def update() -> None:
        m.update(insert={"edge": [(12, 13)]})
        m.update(delete={"edge": [(12, 13)]})

    with Threads(update, lambda: m.query("path(x, y)")):
        for _ in range(5):
            child = os.fork()
            if not child:
                good = len(m["path"]) in sizes
                m.update(delete={"edge": CHAIN})
                os._exit(0 if good and len(m["path"]) <= 1 else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_what_can_be_sent_to_another_process(engine):
    """Relations and changes can; a materialisation cannot, and says what to do."""
    m = upheld.materialise(PATHS, {"edge": CHAIN}, engine=engine)
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(upheld.UpheldError, match="not-copied"):
            attempt(m)
    assert pickle.loads(pickle.dumps(m["path"])) == m["path"] == copy.deepcopy(m["path"])
    change = m.update(delete={"edge": CHAIN[3:]})
    sent = pickle.loads(pickle.dumps(change))
    assert sent.deleted["path"] == change.deleted["path"] and repr(sent) == repr(change)
    assert m.query("path(0, x)") == pickle.loads(pickle.dumps(m.query("path(0, x)")))
