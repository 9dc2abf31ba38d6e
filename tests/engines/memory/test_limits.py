"""Limits and Ctrl-C stop a run on every engine, wherever it is, name the rule, and keep nothing of it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import numba
import numpy as np
import pytest

from upheld.base.errors import LimitReached
from upheld.base.limits import Limits, memory_in_use, within
from upheld.engines import ENGINES
from upheld.engines.memory.kernels import jit, machine_code
from upheld.engines.memory.storage.dictionary import TextPool
from upheld.engines.memory.storage.table import Table
from upheld.materialisation.build import materialise

COUNTING = """
.decl up(x:number)
.decl other(x:number)
other(x) :- up(x), x < 3.
up(x + 1) :- up(x).
"""

MANY = [(i,) for i in range(100_000)]
FEW = [(i,) for i in range(5_000)]
PAIRS = [(i, 1) for i in range(100_000)]

#: Joins that would go on for hours: each pair an instance, no pair one, rows of one key in vain, and a generator.
LONG = {
    "pairs": (
        ".decl a(x:number)\n.decl b(x:number)\n.decl t(x:number)\nt(z) :- a(x), b(y), z = (x + y) % 7.",
        {"a": MANY, "b": MANY},
    ),
    "pairs in vain": (
        ".decl a(x:number)\n.decl b(x:number)\n.decl t(x:number)\nt(x) :- a(x), b(y), x + y < 0.",
        {"a": MANY, "b": MANY},
    ),
    "rows in vain": (
        ".decl s(x:number, y:number)\n.decl e(x:number, y:number, z:number)\n.decl t(x:number)\n"
        "t(k) :- s(k, x), e(x, y, y).",
        {"s": PAIRS, "e": [(1, i, i + 1) for i in range(100_000)]},
    ),
    "a generator": (".decl a(x:number)\n.decl t(x:number)\nt(y) :- a(x), y = range(x, 10000000000).", {"a": [(1,)]}),
}

#: A join of few enough facts for any engine to load in no time, with far more pairs than it may derive.
PRODUCT = """
.decl a(x:number)
.decl t(x:number, y:number)
t(x, y) :- a(x), a(y).
"""


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    """Kernels are compiled, or read from the cache, before any clock starts."""
    for program, facts in LONG.values():
        few = {name: [(row[0] % 3, *row[1:]) for row in rows[:9]] for name, rows in facts.items()}
        materialise(program.replace("10000000000", "9"), few, engine="memory")
    materialise(LONG["rows in vain"][0], {"s": PAIRS[:9], "e": [(1, i, i + 1) for i in range(9000)]}, engine="memory")
    materialise(PRODUCT, {"a": FEW[:300]}, engine="memory")


def stopped(program, facts, engine, limits) -> str:
    """Materialise, which must reach a limit, and return what is said."""
    with pytest.raises(LimitReached) as caught:
        materialise(program, facts, engine=engine, limits=limits)
    assert caught.value.slugs == ("limit-reached",)
    return str(caught.value)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "limits, said",
    [
        (Limits(facts=50), "limit of 50 facts"),
        (Limits(rounds=50), "limit of 50 rounds"),
        (Limits(seconds=0.05, rounds=None), "limit of 0.05 seconds"),
        (Limits(memory=1), "limit of 1 bytes of memory"),
    ],
    ids=["facts", "rounds", "seconds", "memory"],
)
def test_limits_stop_a_run(engine, limits, said):
    """Recursion that never ends is stopped, and its rule named."""
    message = stopped(COUNTING, {"up": [(0,)]}, engine, limits)
    assert said in message and "`up(" in message and "<program>:5:1" in message


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("limits", [Limits(facts=50), Limits(rounds=50), Limits(seconds=0.05, rounds=None)])
def test_an_update_that_hits_a_limit_changes_nothing(engine, limits):
    """Facts and explicit facts are what they were, and the next update works."""
    m = materialise(
        COUNTING.replace("up(x).", "up(x), !stop().") + ".decl stop()\nstop().", engine=engine, limits=limits
    )
    m.update(insert={"other": [(7,)]})
    facts, explicit = m.facts(), {name: m.explicit(name).to_set() for name in m.relations}
    for _ in range(2):
        with pytest.raises(LimitReached):
            m.update(insert={"up": [(0,)], "other": [(9,)]}, delete={"stop": [()], "other": [(7,)]})
        assert m.facts() == facts
        assert {name: m.explicit(name).to_set() for name in m.relations} == explicit
    change = m.update(insert={"up": [(0,)]}, delete={"other": [(7,)]})
    assert change.inserted["up"].to_set() == {(0,)}
    assert m.explicit("other").to_set() == set()


@pytest.mark.parametrize("engine", ENGINES)
def test_facts_of_an_unfinished_round(engine):
    """A limit on facts stops a round that would derive 25 million long before it ends."""
    started = time.process_time()
    message = stopped(PRODUCT, {"a": FEW}, engine, Limits(facts=20_000))
    assert "20000 facts while applying `t(x, y)" in message
    assert time.process_time() - started < 5


def test_memory_of_an_unfinished_round():
    """A limit on memory stops a round long before it holds the 800 MB of all it would derive."""
    before = memory_in_use()
    message = stopped(PRODUCT, {"a": FEW}, "memory", Limits(memory=before + 50_000_000))
    assert "bytes of memory while applying `t(x, y)" in message
    assert memory_in_use() - before < 200_000_000


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", LONG)
def test_seconds_inside_a_long_join(engine, case):
    """A join of ten thousand million pairs is stopped within seconds of its limit, whatever it finds."""
    program, facts = LONG[case]
    if engine == "reference":  # a fiftieth of the facts, or their loading would take the time
        facts = {name: rows[:2000] for name, rows in facts.items()}
    limit = 1.0  # below it others on the machine may use it up before the join begins
    m = materialise(program, {}, engine=engine, limits=Limits(seconds=limit))
    if engine == "memory":  # once before the clock starts: facts as many as these take kernels of their own
        with pytest.raises(LimitReached):
            m.update(insert=facts)
    started = time.process_time()  # what others do on the machine at the time takes no more of this
    with pytest.raises(LimitReached) as caught:
        m.update(insert=facts)
    assert time.process_time() - started < limit + 5
    rule = program.splitlines()[-1].partition(" :-")[0]
    assert f"while applying `{rule}" in str(caught.value)
    assert m.facts() == set()


def test_the_rule_that_takes_the_time_is_named():
    """A join that finds nothing is named, though another rule has found much."""
    program = LONG["rows in vain"][0] + "\n.decl u(x:number)\nu(x) :- s(x, _)."
    message = stopped(program, LONG["rows in vain"][1], "memory", Limits(seconds=1))
    assert "while applying `t(k) :- s(k, x), e(x, y, y).`" in message


# -- Ctrl-C -----------------------------------------------------------------------------------------------------------


#: Says when it is inside a join. Whoever started the tests may have ignored Ctrl-C, as shells do for background work.
COMMAND = """
import signal, sys
from upheld.algebra.meter import Meter
from upheld.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
look = Meter.look
def look_and_say(meter, rule=None):
    if rule is not None:
        print("joining", flush=True)
        Meter.look = look
    look(meter, rule)
Meter.look = look_and_say
sys.exit(main())
"""


@pytest.mark.parametrize("case", LONG)
def test_interrupted_run(case, tmp_path):
    """Ctrl-C ends `upheld run` inside a join of hours, with exit code 130 and nothing written."""
    program, facts = LONG[case]
    directives = "".join(f"\n.input {name}" for name in facts) + "\n.output t"
    (tmp_path / "program.dl").write_text(program + directives)
    for name, rows in facts.items():
        (tmp_path / f"{name}.facts").write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
    output = tmp_path / "output"
    output.mkdir()
    options = ["run", "--engine", "memory", "-F", tmp_path, "-D", output, tmp_path / "program.dl"]
    running = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with running:
        assert running.stdout.readline() == "joining\n"
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=300)
    assert running.returncode == 130
    assert (out, err) == ("", "interrupted: no outputs were written\n")
    assert list(output.iterdir()) == []


def test_interrupted_update():
    """After Ctrl-C within an update, the materialisation is what it was, and can be updated."""
    program = LONG["rows in vain"][0]
    m = materialise(program, {"s": PAIRS[:1000]}, engine="memory")
    facts = m.facts()
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    # Again after a while: an interruption that hits a callback of the garbage collector is lost.
    signal.setitimer(signal.ITIMER_REAL, 1.0, 5.0)
    try:
        with pytest.raises(KeyboardInterrupt):
            m.update(insert={"s": PAIRS, "e": LONG["rows in vain"][1]["e"]})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    assert m.facts() == facts
    assert m.explicit("e").to_set() == set()
    change = m.update(insert={"e": [(1, 5, 5)]})
    assert change.inserted["t"].to_set() == {(i,) for i in range(1000)}


# -- memory before it is taken ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "grow, most",
    [
        (lambda: Table("t", ("number", "number")).make_room(1 << 22), 4 << 22),
        (lambda: TextPool()._make_room(1 << 22, 10), 8 << 22),
    ],
)
def test_memory_is_asked_for_before_it_is_taken(grow, most):
    """A table or a dictionary that would grow beyond the limit does not."""
    with within(Limits(memory=memory_in_use() + most // 2)), pytest.raises(LimitReached, match="while loading facts"):
        grow()


def test_texts_that_double_stop_in_time():
    """A text is not made if there is no room for it: the limit is exceeded by a fifth at most."""
    program = ".decl s(x:symbol)\ns(cat(x, x)) :- s(x)."
    m = materialise(program, {}, limits=Limits(rounds=5))
    with pytest.raises(LimitReached):  # which loads the kernels
        m.update(insert={"s": ["a"]})
    allowed, before = 100_000_000, memory_in_use()
    m._engine.meter.limits = Limits(memory=before + allowed)
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")
    with pytest.raises(LimitReached, match="bytes of memory while applying"):
        m.update(insert={"s": ["abcdefgh"]})
    with open("/proc/self/status") as f:
        peak = next(int(line.split()[1]) << 10 for line in f if line.startswith("VmHWM"))
    assert peak - before < 1.2 * allowed


def test_compiling_takes_no_seconds(tmp_path, monkeypatch):
    """The first run on a machine finds an empty cache, and stops at its limit no sooner than later runs."""
    now = [0.0]
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(machine_code._Announcer, "on_start", lambda *_: now.append(now.pop() + 60.0))

    @jit.kernel
    def doubled(numbers):
        return 2 * numbers.sum()

    outermost, limits = Limits(seconds=5), Limits(seconds=3)
    with within(outermost) as outer, within(limits) as budget:
        assert doubled(np.arange(4)) == 12
        assert now[0] >= 60  # it was compiled
        assert budget.exceeded(limits) is None and outer.exceeded(outermost) is None
        now[0] += 4
        assert budget.exceeded(limits) == ("seconds", "3 seconds") and outer.exceeded(outermost) is None
        now[0] += 2
        assert outer.exceeded(outermost) == ("seconds", "5 seconds")
