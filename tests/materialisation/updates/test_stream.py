"""`Materialisation.stream`: where updates come from, when the next one is looked at, and which are made as one."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Iterator
from io import BufferedReader, BytesIO, TextIOWrapper
from pathlib import Path

import pytest

import upheld
from tests.cli.test_apply import RULES
from upheld.base.errors import FactsError, UsageError
from upheld.cli import main
from upheld.maintain.registry import MARKING

PATHS = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."
#: Each of them deletes what the one before has inserted.
UPDATES = [
    {"insert": {"edge": [(i, i + 1)]}} | ({"delete": {"edge": [(i - 1, i)]}} if i > 1 else {}) for i in range(1, 5)
]


def opened(algorithm: str = "bf-marking") -> upheld.Materialisation:
    return upheld.materialise(PATHS, {"edge": [(0, 1)]}, algorithm=algorithm)


def made(changes) -> list[tuple[tuple[int, ...], int]]:
    """The numbers of the updates of each change, and how many explicit facts were marked."""
    return [(change.updates, change.statistics.marks["explicit"]) for change in changes]


EACH_MARKED = [((1,), 1), ((2,), 1), ((3,), 1), ((4,), 0)]
NONE_MARKED = [((n,), 0) for n in range(1, 5)]


# -- where updates come from -------------------------------------------------------------------------------------------


def test_of_a_list_the_next_is_always_there():
    assert made(opened().stream(UPDATES)) == EACH_MARKED
    assert made(opened().stream(tuple(UPDATES))) == EACH_MARKED


def test_algorithms():
    """All but the marking ones make each update by itself. The algorithm stays, and may change on the way."""
    for algorithm in ("adaptive", "dred"):
        assert made(opened(algorithm).stream(UPDATES)) == NONE_MARKED
    m = opened("dred")
    changes = m.stream(UPDATES)
    first = next(changes)
    m.update(algorithm="bf-marking")
    assert made([first, *changes]) == [((1,), 0), *EACH_MARKED[1:]]
    m = opened("counting")
    assert made(m.stream(UPDATES, algorithm="dred-marking")) == EACH_MARKED
    assert m.algorithm == "dred-marking"
    with pytest.raises(UsageError, match="unknown algorithm `dread-marking`"):
        m.stream(UPDATES, algorithm="dread-marking")


def test_an_iterator_is_asked_when_its_turn_comes():
    """It may have to wait for the next update, or want to know what the last one has changed."""
    m = opened()

    def updates() -> Iterator[dict]:
        for n in range(3):
            assert len(m["edge"]) == n + 1
            yield {"insert": {"edge": [(n + 1, n + 2)]}}

    assert made(m.stream(updates())) == NONE_MARKED[:3]


def test_arrivals():
    """A thread reads what arrives; what has not arrived is not waited for."""
    waiting: queue.Queue[dict | None] = queue.Queue()
    arrivals = upheld.Arrivals(iter(waiting.get, None))
    m = opened()
    changes = m.stream(arrivals)
    assert not arrivals.ready()
    waiting.put(UPDATES[0])
    assert made([next(changes)]) == [((1,), 0)]
    for update in UPDATES[1:3]:
        waiting.put(update)
    while len(arrivals._waiting) < 2:
        pass
    assert arrivals.ready()
    assert made([next(changes)]) == [((2,), 1)]
    assert made([next(changes)]) == [((3,), 0)]
    waiting.put(None)
    assert list(changes) == []


def test_arrivals_pass_errors_on():
    """An error of what is read comes when its turn has come."""

    def updates() -> Iterator[dict]:
        yield UPDATES[0]
        raise OSError("the line is dead")

    changes = opened().stream(upheld.Arrivals(updates()))
    assert next(changes).updates == (1,)
    with pytest.raises(OSError, match="the line is dead"):
        next(changes)


def test_arrivals_wait_for_room():
    """No more are read than may wait, nor after it is closed."""
    read: list[int] = []
    enough = threading.Event()

    def updates() -> Iterator[int]:
        for n in range(100):
            read.append(n)
            if n == 3:
                enough.set()
            yield n

    arrivals = upheld.Arrivals(updates(), most=3)
    assert enough.wait(300)
    assert next(arrivals) == 0
    arrivals.close()
    assert list(arrivals) in ([1, 2], [1, 2, 3])
    assert len(read) <= 5


def test_async():
    """Those that an asynchronous iterable has at once are looked at; those it has to wait for are not."""

    async def updates(wait: float | None) -> AsyncIterator[dict]:
        for update in UPDATES:
            if wait is not None:
                await asyncio.sleep(wait)
            yield update

    async def follow(wait: float | None, **options) -> list:
        return made([change async for change in opened().stream(updates(wait), **options)])

    assert asyncio.run(follow(None)) == EACH_MARKED
    assert asyncio.run(follow(0.01)) == NONE_MARKED
    assert [numbers for numbers, _ in asyncio.run(follow(None, merge_waiting=3))] == [(1, 2, 3), (4,)]


def test_async_stopped():
    """A stream that is left leaves no task behind, and the state is that of the last change."""
    stopped = []

    async def updates() -> AsyncIterator[dict]:
        try:
            yield UPDATES[0]
            await asyncio.sleep(1000)
        finally:
            stopped.append(True)

    async def one() -> set:
        m = opened()
        changes = m.stream(updates())
        await anext(changes)
        await changes.aclose()
        await asyncio.sleep(0)
        return m["edge"].to_set()

    assert asyncio.run(one()) == {(0, 1), (1, 2)}
    assert stopped


def test_async_errors():
    async def updates() -> AsyncIterator[dict]:
        yield UPDATES[0]
        raise OSError("the line is dead")

    async def follow() -> None:
        changes = opened().stream(updates())
        assert (await anext(changes)).updates == (1,)
        with pytest.raises(OSError, match="the line is dead"):
            await anext(changes)

    asyncio.run(follow())


# -- what updates are --------------------------------------------------------------------------------------------------


def test_kinds_of_updates():
    """Dictionaries, and what `read_updates` reads; rows, frames and iterators in them."""
    m = opened()
    table = upheld.Relation("edge", ("c0", "c1"), ("number", "number"), [(1, 2)])
    updates = [{"insert": {"edge": iter([(1, 2)])}}, {"delete": {"edge": table}}, {"delete": None}, {}]
    assert [repr(change) for change in m.stream(updates)] == [
        "<Change +1 edge, +2 path>",
        "<Change -1 edge, -2 path>",
        "<Change nothing>",
        "<Change nothing>",
    ]
    assert m["path"].to_set() == {(0, 1)}


@pytest.mark.parametrize(
    "update, message",
    [
        ({"insert": {"edge": [(1,)]}}, "has 1 column"),
        ({"insert": {"edges": [(1, 2)]}}, "unknown relation `edges`"),
        ({"edge": [(1, 2)]}, "an update of the stream has `edge`"),
        (7, "an update of the stream is an `int`"),
    ],
)
def test_a_bad_update(update, message):
    """It is found when the one before is made, and said when its turn comes."""
    m = opened()
    changes = m.stream([UPDATES[0], update])
    assert repr(next(changes)) == "<Change +1 edge, +2 path>"
    with pytest.raises(upheld.UpheldError) as caught:
        next(changes)
    assert message.partition("has 1")[0] in str(caught.value)
    assert len(m["edge"]) == 2


# -- made as one -------------------------------------------------------------------------------------------------------


def test_merged():
    """The change is that of all of them; facts that come and go within are in none, and none are ignored."""
    m = opened()
    (first, second) = m.stream(UPDATES, merge_waiting=3)
    assert (first.updates, second.updates) == ((1, 2, 3), (4,))
    assert first.inserted["edge"].to_set() == {(3, 4)}
    assert first.statistics.marks["explicit"] == 1
    assert not any(map(len, first.ignored.values()))
    assert second.inserted["edge"].to_set() == {(4, 5)} and second.deleted["edge"].to_set() == {(3, 4)}


def test_merged_and_ignored():
    """What each of them need not have asked for, with those before it made."""
    m = opened()
    updates = [
        {"insert": {"edge": [(0, 1), (7, 8)]}},
        {"insert": {"edge": [(7, 8)]}, "delete": {"edge": [(5, 5)]}},
        {"delete": {"edge": [(7, 8)]}},
    ]
    one = [change.ignored["edge"].to_set() for change in opened().stream(updates)]
    (change,) = m.stream(updates, merge_waiting=10)
    assert change.ignored["edge"].to_set() == set.union(*one) == {(0, 1), (7, 8), (5, 5)}
    assert repr(change) == "<Change nothing>"


def test_merged_up_to_a_bad_one():
    m = opened()
    changes = m.stream([*UPDATES[:2], {"insert": {"edge": ["?"]}}, UPDATES[2]], merge_waiting=4)
    assert next(changes).updates == (1, 2)
    with pytest.raises(FactsError):
        next(changes)


def test_as_one_of_none():
    with pytest.raises(UsageError, match="`merge_waiting` must be a whole number of at least 1, got `0`"):
        opened().stream(UPDATES, merge_waiting=0)


# -- upheld apply ------------------------------------------------------------------------------------------------------

TEXT = '+edge("b", "c").\ncommit.\n-edge("b", "c").\n+edge("b", "d").\ncommit.\n-edge("b", "d").\ncommit.\n'


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("rules.dl").write_text(RULES)
    Path("edge.facts").write_text("a\tb\n")
    Path("updates").write_text(TEXT)
    return tmp_path


def applied(*options: str) -> str:
    assert main(["apply", "rules.dl", "--updates", "updates", "--changes", "changes", "--verify", *options]) == 0
    return Path("changes").read_text()


def test_apply_with_marking(folder, monkeypatch):
    """The same changes with and without, from a file and from a pipe."""
    plain = applied()
    for algorithm in MARKING:
        assert applied("--algorithm", algorithm) == plain
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BufferedReader(BytesIO(TEXT.encode()))))
        assert applied("--algorithm", algorithm, "--updates", "-") == plain


def test_marks_of_each_commit(folder):
    """A stream over a file of updates reports the facts that are marked after each commit."""
    with upheld.load("rules.dl", algorithm="dred-marking") as m:
        marks = [change.statistics.marks for change in m.stream(list(upheld.read_updates("updates", m)))]
    assert marks == [{"explicit": 1, "derived": 2}, {"explicit": 1, "derived": 2}, {}]


def test_apply_merged(folder):
    """Commits that were made as one have one change, which says so and is an update file still."""
    text = applied("--merge-waiting", "2")
    assert text.splitlines()[0] == "// commits 1 to 2 as one"
    assert text.count("commit.") == 2
    m = upheld.materialise(RULES)
    assert len(list(upheld.read_updates("changes", m))) == 2


@pytest.mark.parametrize("algorithm", ["adaptive", "bf-marking"])
def test_a_failing_commit(algorithm, folder, capsys):
    """It is named by its number and its place, and not the next one, which may have been looked at."""
    Path("rules.dl").write_text(".decl n(x:number)\n.decl m(x:number)\nm(10 / x) :- n(x).\n.output m\n")
    Path("updates").write_text("+n(1).\ncommit.\n+n(0).\ncommit.\n-n(0).\ncommit.\n")
    assert main(["apply", "rules.dl", "--updates", "updates", "--algorithm", algorithm]) == 2
    assert "updates:3: error: commit 2 could not be applied" in capsys.readouterr().err
