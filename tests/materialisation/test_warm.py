"""`warm` changes nothing, and after it a stream of small updates needs no kernel that is not compiled yet."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import upheld
from upheld.cli import main

RULES = """
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
node(x) :- edge(x, _).
stranger(x, y) :- node(x), node(y), !path(x, y).
"""

TYPED = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""

#: Prints the kernels that random updates after `warm` have compiled or loaded: none, it is hoped.
STREAM = """
import random
import sys
import upheld

def signatures():
    modules = [m for name, m in list(sys.modules.items()) if name.startswith("upheld.engines.")]
    kernels = {id(k): k for m in modules for k in vars(m).values() if hasattr(k, "nopython_signatures")}
    return {k.py_func.__qualname__: len(k.signatures) for k in kernels.values()}

random = random.Random(1)
edges = list({(random.randrange(20), random.randrange(20)) for _ in range(50)})
m = upheld.materialise(sys.argv[1], {"edge": edges})
m.warm()
before = signatures()
assert before, "no kernel is compiled"
for _ in range(60):
    edge = random.choice(edges)
    m.update(delete={"edge": [edge]}) if random.random() < 0.5 else m.update(insert={"edge": [edge]})
print(*(name for name, count in signatures().items() if count != before.get(name, 0)))
"""


def test_a_stream_after_it_compiles_nothing() -> None:
    line = [sys.executable, "-W", "ignore", "-c", STREAM, RULES]
    assert subprocess.run(line, capture_output=True, text=True, check=True).stdout.split() == []


@pytest.mark.parametrize("engine", ["memory", "reference"])
@pytest.mark.parametrize("facts", [[(1, 2), (2, 3), (3, 1)], []])
def test_nothing_changes(engine: str, facts: list[tuple[int, int]]) -> None:
    m = upheld.materialise(TYPED, {"edge": facts}, engine=engine)
    before = {name: m[name].to_set() for name in m.relations}
    m.warm()
    assert {name: m[name].to_set() for name in m.relations} == before
    assert m.version == 0
    m.update(insert={"edge": [(7, 8)]})
    assert (7, 8) in m["path"]


def test_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "reach.dl").write_text(".decl e(x: number)\n.input e\n.decl p(x: number)\np(x) :- e(x).\n.output p\n")
    (tmp_path / "e.facts").write_text("1\n2\n")
    assert main(["warm", str(tmp_path / "reach.dl"), "-F", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.facts", "reach.dl"]
