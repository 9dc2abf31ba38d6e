"""The progress of long runs: told to a function, shown on a terminal, and nowhere else."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest

import upheld
from upheld.algebra.meter import Meter
from upheld.engines import ENGINES

COUNTING = """\
.decl n, last(x:number)
n(0).
n(x + 1) :- n(x), x < {last}.
last(x) :- n(x), !n(x + 1).
.printsize last
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_a_function_is_told(engine, monkeypatch):
    """Rounds and facts grow, strata follow one another, and the last word is not after the end."""
    monkeypatch.setattr(Meter, "_TELL_EVERY", 0.0)
    told: list[upheld.Progress] = []
    m = upheld.materialise(COUNTING.format(last=50), engine=engine, progress=told.append)
    assert len(told) > 10
    assert [p.rounds for p in told] == sorted(p.rounds for p in told)
    assert [p.stratum for p in told] == sorted(p.stratum for p in told)
    assert len({p.strata for p in told}) == 1
    assert 50 <= told[-1].facts <= 2 * len(m["n"]) + 2


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("negated, layers", [("", 1), (", NOT [?x, :T, :c]", 2)])
def test_a_function_is_told_where_equal_constants_are_rewritten(engine, negated, layers, monkeypatch):
    """Rules that no stratum has, as their constants are others, are told by their layer."""
    monkeypatch.setattr(Meter, "_TELL_EVERY", 0.0)
    rules = f"PREFIX : <a:> [:b, :S, ?x] :- [?x, :R, ?y]{negated}. [?x, owl:sameAs, ?y] :- [?x, :E, ?y]."
    facts = {"triple": [("<a:x>", "<a:R>", "<a:y>"), ("<a:a>", "<a:E>", "<a:b>")]}
    told: list[upheld.Progress] = []
    m = upheld.materialise(
        upheld.parse(rules, dialect="dlog"), facts, engine=engine, equality="rewrite", progress=told.append
    )
    assert ("<a:a>", "<a:S>", "<a:x>") in m["triple"]
    assert {p.stratum for p in told} == set(range(1, layers + 1))
    assert {p.strata for p in told} == {layers}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_function_is_told_of_queries(engine, monkeypatch):
    """A long query is made above the last stratum of the program."""
    monkeypatch.setattr(Meter, "_TELL_EVERY", 0.0)
    told: list[upheld.Progress] = []
    m = upheld.materialise(COUNTING.format(last=150), engine=engine, progress=told.append)
    told.clear()
    assert len(m.query("n(x), n(y), x < y")) == 150 * 151 // 2
    assert (told[-1].stratum, told[-1].strata) == (3, 3)


def test_a_line_on_a_terminal(tmp_path):
    """A run of more than a moment shows stratum, round and facts on a terminal, and wipes the line out."""
    (tmp_path / "count.dl").write_text(COUNTING.format(last=4_000))
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    command = [sys.executable, "-m", "upheld", "run", "-D", str(tmp_path), str(tmp_path / "count.dl")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:
                break
            if not part:
                break
            shown += part
        printed = process.stdout.read() if process.stdout else b""
    os.close(ours)
    assert process.returncode == 0
    assert printed == b"last\t1\n"
    assert b"stratum " in shown and b" facts" in shown and b"round " in shown


def test_nothing_in_a_pipe(tmp_path):
    (tmp_path / "count.dl").write_text(COUNTING.format(last=2_000))
    command = [sys.executable, "-m", "upheld", "run", "-D", str(tmp_path), str(tmp_path / "count.dl")]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stdout == b"last\t1\n"
    assert done.stderr == b""
