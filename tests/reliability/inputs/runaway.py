"""R11: rules that would never end, or take all memory, are stopped at their limits, and leave all as it was.

Each program has small facts to begin with, and a seed that an update inserts, from which its rules run away. In a
process of its own, under a cap on facts, rounds, seconds or memory, the update must be stopped with `LimitReached`, at
most two seconds past a cap on seconds, with the memory of the process grown by at most a fifth more than it may; the
facts are those from before, and the next update gives what materialising anew gives.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import upheld
from tests.helpers.cases import ROOT
from tests.reliability.programme import Run, goal
from upheld.base.errors import LimitReached
from upheld.base.limits import Limits, memory_in_use

MB = 1 << 20
#: Memory that an update may take: more for caps on something else, so that it is that one which is reached.
CAP, ROOM = 150 * MB, 500 * MB
#: Seconds that an update may go on past its cap, and the share of memory by which it may exceed its own.
LATE, MORE = 2.0, 0.2
#: Seconds after which the process of a case has hung.
HUNG = 90

Facts = dict[str, list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Program:
    """Rules, the facts to begin with, the seed from which they run away, and a harmless update."""

    rules: str
    seed: Facts
    facts: Facts = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)


def numbers(rule: str, seed: Any = 0, type: str = "number") -> Program:
    return Program(f".decl n(x:{type})\n{rule}", {"n": [(seed,)]})


def many(count: int) -> list[tuple[Any, ...]]:
    return [(i,) for i in range(count)]


def pairs(count: int, step: int = 1) -> list[tuple[Any, ...]]:
    return [(i, i + step) for i in range(count)]


NUMBER = ".decl a(x:number)\n.decl t(x:number, y:number)\n"
THREE = ".decl a(x:number)\n.decl t(x:number, y:number, z:number)\n"
TEXT = ".decl s(x:symbol)\n"
GRAPH = ".decl e(x:number, y:number)\n.decl p(x:number, y:number)\np(x, y) :- e(x, y).\n"
COMPLETE = [(i, j) for i in range(120) for j in range(120)]
TREE = [(i, i // 2) for i in range(2, 6000)]

PROGRAMS: dict[str, Program] = {
    "counting up": numbers("n(x + 1) :- n(x)."),
    "counting down": numbers("n(x - 3) :- n(x)."),
    "counting by ranges": numbers("n(y) :- n(x), y = range(x, x + 50)."),
    "counting of unsigned": numbers("n(x + 1u) :- n(x).", type="unsigned"),
    "counting of floats": numbers("n(x + 0.5) :- n(x).", 0.0, "float"),
    "floats that shrink": numbers("n(x / 1.0000001 + 1.0) :- n(x).", 1.0, "float"),
    "a congruential generator": numbers("n((x * 75 + 74) % 100000007) :- n(x).", 1),
    "squares that wrap": numbers("n((x * x + 1) % 1000003) :- n(x).\nn(x + 2) :- n(x), x < 1000000000.", 2),
    "three times and one": numbers("n(3 * x + 1) :- n(x).\nn(x + 7) :- n(x).", 1),
    "bits that move": numbers("n((x bshl 1) bxor (x + 1)) :- n(x).\nn(x + 5) :- n(x).", 1),
    "numbers through texts": numbers("n(to_number(to_string(x)) + 1) :- n(x)."),
    "numbers behind a guard": numbers("n(x + 1) :- n(x), x >= 0, x != -5."),
    "mutual invention": Program(
        ".decl n(x:number)\n.decl k(x:number)\nk(x + 1) :- n(x).\nn(x * 2) :- k(x).\nn(x + 1) :- k(x).", {"n": [(1,)]}
    ),
    "three that invent": Program(
        "".join(f".decl {r}(x:number)\n" for r in "nkl") + "k(x + 1) :- n(x).\nl(x + 1) :- k(x).\nn(x + 1) :- l(x).",
        {"n": [(1,)]},
    ),
    "a plane": Program(
        ".decl n(x:number, y:number)\nn(x + 1, y) :- n(x, y).\nn(x, y + 1) :- n(x, y).", {"n": [(0, 0)]}
    ),
    "a space": Program(
        ".decl n(x:number, y:number, z:number)\n"
        "n(x + 1, y, z) :- n(x, y, z).\nn(x, y + 1, z) :- n(x, y, z).\nn(x, y, z + 1) :- n(x, y, z).",
        {"n": [(0, 0, 0)]},
    ),
    "fibonacci": Program(
        ".decl n(i:number, a:number, b:number)\nn(i + 1, b, (a + b) % 1000007) :- n(i, a, b).", {"n": [(0, 0, 1)]}
    ),
    "texts that double": Program(TEXT + "s(cat(x, x)) :- s(x).", {"s": [("ab",)]}),
    "texts that double, many": Program(
        TEXT + "s(cat(x, x)) :- s(x).", {"s": [(f"text number {i}",) for i in range(200)]}
    ),
    "texts that grow": Program(TEXT + 's(cat(x, "0123456789")) :- s(x).', {"s": [("",)]}),
    "words over letters": Program(
        TEXT + ".decl l(x:symbol)\ns(cat(x, y)) :- s(x), l(y).", {"s": [("",)], "l": [(c,) for c in "abcdefgh"]}
    ),
    "words of words": Program(TEXT + "s(cat(x, y)) :- s(x), s(y).", {"s": [("a",), ("bc",)]}),
    "lengths of texts": Program(
        TEXT + ".decl n(x:number)\nn(strlen(x)) :- s(x).\ns(cat(to_string(x), to_string(x))) :- n(x).\n"
        's(cat(x, "z")) :- s(x).',
        {"s": [("a",)]},
    ),
    "a product of two": Program(NUMBER + "t(x, y) :- a(x), a(y).", {"a": many(6000)}),
    "a product of three": Program(THREE + "t(x, y, z) :- a(x), a(y), a(z).", {"a": many(400)}),
    "a product in vain": Program(NUMBER + "t(x, y) :- a(x), a(y), x + y < 0.", {"a": many(200_000)}),
    "a product of few values": Program(
        ".decl a(x:number)\n.decl t(x:number)\nt((x * y) % 7) :- a(x), a(y).", {"a": many(200_000)}
    ),
    "a product of texts": Program(
        TEXT + ".decl t(x:symbol)\nt(cat(x, y)) :- s(x), s(y).",
        {"s": [(f"a text of some length {i}",) for i in range(3000)]},
    ),
    "one key for all": Program(GRAPH + "p(x, z) :- e(x, y), e(z, y).", {"e": [(i, 1) for i in range(5000)]}),
    "closure of a path": Program(GRAPH + "p(x, z) :- p(x, y), e(y, z).", {"e": pairs(6000)}),
    "closure of a ring": Program(
        GRAPH + "p(x, z) :- p(x, y), p(y, z).", {"e": [(i, (i + 1) % 4000) for i in range(4000)]}
    ),
    "triangles of a complete graph": Program(
        GRAPH + ".decl t(x:number, y:number, z:number)\nt(x, y, z) :- e(x, y), e(y, z), e(z, x).",
        {"e": [(i, j) for i in range(350) for j in range(350)]},
    ),
    "squares of a complete graph": Program(
        GRAPH + ".decl t(x:number, y:number, z:number, w:number)\nt(x, y, z, w) :- e(x, y), e(y, z), e(z, w), e(w, x).",
        {"e": COMPLETE},
        options={"decompose": "always"},
    ),
    "the same generation": Program(
        ".decl e(x:number, y:number)\n.decl g(x:number, y:number)\n"
        "g(x, y) :- e(x, z), e(y, z).\ng(x, y) :- e(x, u), g(u, v), e(y, v).",
        {"e": TREE},
    ),
    "a long range": Program(
        ".decl a(x:number)\n.decl t(x:number)\nt(y) :- a(x), y = range(x, 100000000000).", {"a": [(1,)]}
    ),
    "ranges of ranges": Program(
        ".decl a(x:number)\n.decl t(x:number, y:number)\nt(y, z) :- a(x), y = range(x, 100000), z = range(y, 100000).",
        {"a": [(1,)]},
    ),
    "a regular expression": Program(
        TEXT + ".decl t(x:symbol)\n" + 't(x) :- s(x), s(y), match("(a|aa)+b?(a+)+", cat(x, y)).',
        {"s": [("a" * 40 + f"{i}c",) for i in range(1000)]},
    ),
    "an equivalence of a product": Program(
        ".decl a(x:number)\n.decl q(x:number, y:number) eqrel\nq(x, y) :- a(x), a(y).", {"a": many(4000)}
    ),
    "an equivalence that grows": Program(
        ".decl n(x:number)\n.decl q(x:number, y:number) eqrel\nn(x + 1) :- n(x).\nq(x, x + 1) :- n(x).", {"n": [(1,)]}
    ),
    "classes that grow": Program(
        ".decl n(x:number)\n.decl q(x:number, y:number) eqrel\nq(x, y) :- n(x), y = x + 1.\nn(y) :- q(_, y).",
        {"n": [(1,)]},
        options={"equality": "rewrite"},
    ),
    "a negation above": Program(
        ".decl n(x:number)\n.decl k(x:number)\n.decl b(x:number)\nn(x + 1) :- n(x).\nk(x) :- n(x), !b(x).",
        {"n": [(1,)]},
        {"b": [(5,)]},
    ),
}
assert len(PROGRAMS) >= 40

CAPS = ("facts", "rounds", "seconds", "memory")


def limits_of(cap: str, now: int) -> Limits:
    """Return limits of which `cap` is the one that should be reached; the others end what does not reach it."""
    if cap == "facts":
        return Limits(facts=30_000, rounds=None, seconds=10, memory=now + ROOM)
    if cap == "rounds":
        return Limits(rounds=150, seconds=5, memory=now + ROOM)
    if cap == "seconds":
        return Limits(rounds=None, seconds=0.4, memory=now + ROOM)
    return Limits(rounds=None, seconds=6, memory=now + CAP)


def attack(program: Program, cap: str, algorithm: str) -> dict[str, Any]:
    """Let rules run away in this process, and return how it was stopped."""
    m = upheld.materialise(program.rules, program.facts, algorithm=algorithm, **program.options)
    before = m.facts()
    m._engine.meter.limits = Limits(facts=100_000, rounds=160, seconds=10, memory=memory_in_use() + ROOM)
    with suppress(LimitReached):  # kernels are loaded before any clock starts
        m.update(insert=program.seed)
    _forget_peak()
    now = memory_in_use()
    limits = limits_of(cap, now)
    m._engine.meter.limits = limits
    began, stopped = time.process_time(), ""  # which no others on the machine lengthen
    try:
        m.update(insert=program.seed)
    except LimitReached as error:
        stopped = str(error).splitlines()[0]
    took = time.process_time() - began
    peak = _peak()
    m._engine.meter.limits = Limits()
    assert m.facts() == before, "an update that was stopped has changed facts"
    m.update(delete=program.facts)
    anew = upheld.materialise(program.rules, {}, algorithm=algorithm, **program.options)
    assert m.facts() == anew.facts(), "the next update is wrong"
    assert limits.memory is not None and limits.seconds is not None
    return {"stopped": stopped, "late": took - limits.seconds, "grown": peak - now, "allowed": limits.memory - now}


def _forget_peak() -> None:
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")


def _peak() -> int:
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith("VmHWM"))


def child() -> None:
    """Read the names of cases, and write what came of each, a line of JSON after the other."""
    for name in sys.stdin:
        program, cap, algorithm = name.rstrip("\n").split("/")
        try:
            answer = attack(PROGRAMS[program], cap, algorithm)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


class Child:
    """A process that makes cases one after the other, and is replaced when it ends or hangs."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def make(self, name: str) -> dict[str, Any]:
        if self._process is None:
            command = [sys.executable, "-c", "from tests.reliability.inputs.runaway import child; child()"]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT)
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(name + "\n")
        process.stdin.flush()
        watch = threading.Timer(HUNG, process.kill)
        watch.start()
        line = process.stdout.readline()
        watch.cancel()
        if not line:
            self.close()
            raise AssertionError(f"the process ended, or hung for {HUNG} seconds")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def cases() -> Iterator[str]:
    """Yield the names of all cases: those of the default algorithm first, each cap over all programs."""
    for algorithm in ("adaptive", "dred"):
        for cap in CAPS:
            for program in PROGRAMS:
                yield f"{program}/{cap}/{algorithm}"


@goal("R11", "runaway rules under caps on facts, rounds, seconds, MB", sample=2, full=len(PROGRAMS) * len(CAPS) * 2)
def runaway(run: Run) -> None:
    names = list(cases())
    if run.size < len(names):
        names = run.random.sample(names, run.size)
    child = Child()
    worst = {"late": 0.0, "grown": 0.0}

    def make(name: str) -> None:
        answer = child.make(name)
        assert "error" not in answer, answer["error"]
        assert answer["stopped"], "the update came to its end"
        assert answer["late"] <= LATE, f"stopped {answer['late']:.1f} s past its cap"
        share = answer["grown"] / answer["allowed"]
        assert share <= 1 + MORE, f"memory grew by {answer['grown'] >> 20} MB of {answer['allowed'] >> 20}"
        worst["late"] = max(worst["late"], answer["late"])
        worst["grown"] = max(worst["grown"], share)

    try:
        for name in names:
            if run.over:
                break
            run.case(name, lambda name=name: make(name))  # type: ignore[misc]
    finally:
        child.close()
    run.figures |= {"seconds_late": round(worst["late"], 2), "share_of_memory": round(worst["grown"], 2)}
