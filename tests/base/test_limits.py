"""Reading, unpacking and parsing count against the limits of a call, and limits are checked themselves."""

from __future__ import annotations

import gzip
import io
import os
import time

import pytest

import upheld
from tests.helpers.runs import run
from upheld.base.errors import FactsError, LimitReached, UsageError
from upheld.base.limits import memory_in_use, within
from upheld.facts.files import reading

COPY = ".decl q(x:symbol)\n.input q(filename={!r})\n.output q"
ENGINES = ("memory", "reference")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def updates_within(limits: upheld.Limits | None, name: str) -> None:
    with within(limits):
        for _ in upheld.read_updates(name, upheld.Project(".decl p(x:number)")):
            pass


def lines(count: int) -> bytes:
    return b"".join(b"name number %d\n" % i for i in range(count))


@pytest.mark.parametrize("engine", ENGINES)
def test_reading_facts_counts(engine):
    """A file that takes too long or too much is not read to its end, and the message names it."""
    with open("q.facts", "wb") as f:
        f.write(lines(400_000))
    program = COPY.format("q.facts").replace("'", '"')
    # A limit below what the process holds: how much it takes to read a file depends on what was freed before.
    for limits in (upheld.Limits(seconds=0), upheld.Limits(memory=memory_in_use() // 2)):
        with pytest.raises(LimitReached, match=r"while reading `q\.facts`"):
            run(program, ".", limits=limits, engine=engine)
    with pytest.raises(LimitReached, match=r"while reading `q\.facts`"):
        upheld.materialise(".decl q(x:symbol)", {"q": "q.facts"}, limits=upheld.Limits(seconds=0), engine=engine)


def test_the_seconds_of_reading_are_those_of_the_run(monkeypatch):
    """What reading has used up is not there for the rules."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with within(upheld.Limits(seconds=10)) as outer:
        now[0] = 9.0
        with within(outer.limits) as inner:
            assert inner is outer
        now[0] = 11.0
        assert outer.exceeded(outer.limits) == ("seconds", "10 seconds")
        with within(upheld.Limits(seconds=10)) as other:  # the limits of somebody else's call
            assert other.exceeded(other.limits) is None


@pytest.mark.parametrize("name", ["a.nt", "a.ttl", "a.dl", "a.csv", "a.updates"])
def test_every_reader_counts(name):
    """RDF files, programs, tables and update files are read under limits as well."""
    count = 30_000
    text = {
        "a.nt": "".join(f"<http://e/{i}> <http://e/p> <http://e/o> .\n" for i in range(count)),
        "a.ttl": "@prefix : <http://e/> .\n" + "".join(f":a{i} :p :o .\n" for i in range(count)),
        "a.dl": "".join(f"p({i}).\n" for i in range(count)),
        "a.csv": "c0\n" + "".join(f'"a{i}"\n' for i in range(count)),
        "a.updates": "".join(f"+p({i}).\n" for i in range(count)) + "commit.\n",
    }[name]
    with open(name, "w") as f:
        f.write(text)
    limits = upheld.Limits(seconds=0)
    call = {
        "a.nt": lambda: upheld.materialise(upheld.parse("", dialect="dlog"), name, limits=limits),
        "a.ttl": lambda: upheld.materialise(upheld.parse("", dialect="dlog"), name, limits=limits),
        "a.dl": lambda: upheld.materialise(name, limits=limits),
        "a.csv": lambda: upheld.materialise("q(x) :- p(x).", {"p": name}, limits=limits),
        "a.updates": lambda: updates_within(limits, name),
    }[name]
    with pytest.raises(LimitReached, match=f"while reading `{name}`"):
        call()


@pytest.mark.parametrize("name", ["/dev/zero", "pipe"])
def test_pipes_and_devices_are_no_facts_files(name):
    """What may never end, and never begin, is refused at once."""
    os.mkfifo("pipe")
    os.symlink("/dev/zero", "zero.nt")
    os.mkfifo("pipe.parquet")
    with pytest.raises(FactsError) as caught:
        run(COPY.format(name).replace("'", '"'), ".")
    assert caught.value.slugs == ("not-a-file",)
    with pytest.raises(FactsError, match="a device, which may never end"):
        upheld.rdf.read("zero.nt")
    with pytest.raises(FactsError, match="a pipe, which may never end"):
        upheld.materialise("q(x) :- p(x).", {"p": "pipe.parquet"})
    with pytest.raises(FactsError, match="a device, which may never end"):
        updates_within(None, "/dev/zero")


def test_bombs_of_gzip(monkeypatch):
    """What unpacks out of proportion is refused on the way; what is small, or compresses as facts do, is read."""
    monkeypatch.setattr(reading, "MOST_UNPACKED", 1 << 20)
    packed = gzip.compress(bytes(30 << 20))
    for name in ("q.facts", "a.nt", "u.updates"):
        with open(name, "wb") as f:
            f.write(packed)
    calls = (
        lambda: upheld.materialise("p(x) :- q(x).", {"q": "q.facts"}),
        lambda: upheld.rdf.read("a.nt"),
        lambda: updates_within(None, "u.updates"),
    )
    for call in calls:
        with pytest.raises(FactsError) as caught:
            call()
        assert caught.value.slugs == ("unpacks-too-large",)
    data = lines(200_000)
    assert reading.Unpacked(io.BufferedReader(io.BytesIO(gzip.compress(data))), "q").whole() == data
    members = gzip.compress(b"a\n") + gzip.compress(b"b\n")
    assert reading.Unpacked(io.BufferedReader(io.BytesIO(members), 24), "q").whole() == b"a\nb\n"


@pytest.mark.parametrize(
    "wrong",
    [
        {"facts": -5},
        {"facts": 2.5},
        {"facts": True},
        {"rounds": "a"},
        {"seconds": float("nan")},
        {"seconds": float("inf")},
        {"seconds": -1},
        {"seconds": "a"},
        {"memory": 1.5},
        {"memory": []},
    ],
)
def test_limits_are_checked(wrong):
    """A limit is a number from 0 on."""
    with pytest.raises(UsageError) as caught:
        upheld.Limits(**wrong)
    assert caught.value.slugs == ("bad-limit",)
    (name,) = wrong
    assert f"the limit on {name}" in str(caught.value)


def test_all_wrong_limits_are_shown_together():
    with pytest.raises(UsageError) as caught:
        upheld.Limits(facts=-1, seconds=float("nan"))
    assert caught.value.slugs == ("bad-limit", "bad-limit")


@pytest.mark.parametrize("limits", [{"facts": 3}, 5, "a"])
def test_limits_are_limits(limits):
    """A dictionary is no `Limits`, whichever call it is passed to."""
    calls = (
        lambda: upheld.materialise("p(1).", limits=limits),
        lambda: upheld.load("p(1).", limits=limits),
        lambda: upheld.Project("p(1).").load(limits=limits),
        lambda: upheld.restore("p(1).", "nowhere", limits=limits),
    )
    for call in calls:
        with pytest.raises(UsageError) as caught:
            call()
        assert caught.value.slugs == ("bad-argument",)


@pytest.mark.parametrize("engine", ENGINES)
def test_arithmetic_is_blamed_only_where_there_is_some(engine):
    """The note on recursion through arithmetic is for programs that have it."""
    path = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."
    edges = {"edge": [(i, i + 1) for i in range(30)]}
    for program, facts, grows in ((path, edges, False), ("n(0). n(x + 1) :- n(x).", {}, True)):
        with pytest.raises(LimitReached) as caught:
            upheld.materialise(program, facts, limits=upheld.Limits(facts=50), engine=engine)
        assert ("recursion through arithmetic" in str(caught.value)) == grows
        assert ("bound the rule" in str(caught.value)) == grows
