"""Materialisations whose engine is one of several tasks: all that users do with one, in step in all of them."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

import upheld
from tests.engines.partitioned.tasks import Task
from tests.helpers import eqrel_streams, streams
from tests.helpers.eqrel_streams import random_eqrel_case
from tests.helpers.equality_streams import check_stream, random_equality_case
from tests.helpers.sizes import usually
from tests.helpers.streams import NAMES, random_stream
from upheld.engines.partitioned.wire import Wire, in_threads

PROGRAM = """
.decl edge(x: symbol, y: symbol)
.decl weight(x: symbol, n: number)
.decl path(x: symbol, y: symbol)
.decl lone(x: symbol)
.decl total(x: symbol, n: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
lone(x) :- edge(x, _), !path(x, x).
total(cat(x, y), n + m) :- edge(x, y), weight(x, n), weight(y, m).
"""

FACTS: dict[str, list[tuple]] = {
    "edge": [("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("a", "ä")],
    "weight": [("a", 1), ("b", 2), ("c", 3 << 40), ("d", -4)],
}
INSERTED = {"edge": [("c", "e"), ("e", "f")], "weight": [("e", 7)]}
DELETED = {"edge": [("c", "a")]}

#: Queries that look facts up by columns that no rule does.
QUERIES = ('path("b", y), !edge("b", y)', "path(x, y), weight(x, n), weight(y, m), n < m", "total(x, n), weight(_, n)")


def used(engine: Any, algorithm: str) -> list[Any]:
    """Return what users get of a materialisation."""
    m = upheld.materialise(PROGRAM, FACTS, engine=engine, algorithm=algorithm)
    change = m.update(insert=INSERTED, delete=DELETED)
    told = [{name: sorted(rows) for name, rows in part.items()} for part in (change.inserted, change.deleted)]
    answers = [sorted(m.query(query)) for query in QUERIES]
    proof = str(m.explain('path("a", "f")'))
    instances, rounds = dict(m.statistics.instances), m.statistics.rounds
    m.update(delete=INSERTED, insert=DELETED)
    return [told, answers, proof, instances, rounds, {name: sorted(m[name]) for name in m.relations}]


@pytest.mark.parametrize("algorithm", ["adaptive", "dred"])
def test_used_as_any_other(algorithm):
    """Changes, answers of queries, proofs and statistics are those of the reference engine, in every task."""
    expected = used("reference", algorithm)
    for result in in_threads(3, lambda wire: used(Task(wire), algorithm)):
        assert result == expected


def test_why_not():
    def asked(engine: Any) -> str:
        m = upheld.materialise(PROGRAM, FACTS, engine=engine)
        return str(m.explain('path("b", "d")'))

    assert in_threads(2, lambda wire: asked(Task(wire))) == [asked("reference")] * 2


def test_saved_and_restored(tmp_path):
    """A state that two tasks saved opens in three, and in memory, with its bookkeeping, and is maintained there."""

    def save(wire: Wire) -> Path:
        m = upheld.materialise(PROGRAM, FACTS, engine=Task(wire), algorithm="ranked")
        m.update(insert=INSERTED, delete=DELETED)
        m.save(folder := tmp_path / f"state of task {wire.me}")
        return folder

    def restored(folder: Path, engine: Any) -> dict[str, list[tuple]]:
        m = upheld.restore(PROGRAM, folder, engine=engine, algorithm="ranked")
        m.update(delete={"edge": [("e", "f")]}, insert=DELETED)
        return {name: sorted(m[name]) for name in m.relations}

    folders = in_threads(2, save)
    m = upheld.materialise(PROGRAM, FACTS)
    m.update(insert={"edge": [("c", "e")], "weight": INSERTED["weight"]})
    expected = {name: sorted(m[name]) for name in m.relations}
    assert [restored(folder, "memory") for folder in folders] == [expected] * 2
    assert in_threads(3, lambda wire: restored(folders[1], Task(wire))) == [expected] * 3


def test_plans():
    """A plan shows the legs of each rule, and where bindings go."""
    shown = in_threads(2, lambda wire: upheld.materialise(PROGRAM, FACTS, engine=Task(wire)).plans())
    assert "from new path(x, y):" in shown[0]
    assert shown[0] == shown[1]


@pytest.mark.parametrize("parts", [2, 3])
def test_streams(parts):
    """Each update by another algorithm, with bookkeeping converted in between: changes and state are recomputed."""
    r = Random(parts)
    for _ in range(usually(1, 20)):
        stream, state = random_stream(r.randrange(10_000), updates=usually(5, 12)), Random(r.random())

        plain = replace(stream, constants={})

        def main(wire: Wire, plain=plain, state=state) -> int:
            return streams.follow(plain, [Task(wire)], NAMES, converting=deepcopy(state))

        with stream.constants_in_place():  # for all threads
            assert len(set(in_threads(parts, main))) == 1


@pytest.mark.parametrize("algorithm", ["adaptive", "bf"])
def test_equality_by_rewriting(algorithm):
    """What users see of classes of equal constants is what recomputation under the axioms says, in every task."""
    for seed in range(usually(2, 40)):
        case = random_equality_case(seed)

        def main(wire: Wire, case=case) -> int:
            return sum(1 for _ in check_stream(case, Task(wire), algorithm))

        assert len(set(in_threads(2 + seed % 2, main))) == 1


@pytest.mark.parametrize("algorithm", ["adaptive", "counting"])
def test_equivalences_by_classes(algorithm):
    """What users see of equivalences is what recomputation by rules says, in every task."""
    for seed in range(usually(2, 40)):
        case = random_eqrel_case(seed)

        def main(wire: Wire, case=case) -> int:
            m = eqrel_streams.opened(case, Task(wire), algorithm)
            return sum(1 for _ in eqrel_streams.check_stream(case, m))

        assert len(set(in_threads(2 + seed % 2, main))) == 1


@pytest.mark.parametrize(
    "rule",
    [
        "p(x) :- q(x), y = x + x.",
        "p(x) :- q(x), y = x + x, z = 1 / (x - x).",
        "p(x) :- q(x), y = x + x, r(x, z), q(z), !p(z).",
    ],
)
def test_a_built_in_without_a_result(rule):
    """An update fails in all tasks if the rest of a body holds, also where that has further built-ins without one."""
    program = f".decl q(x: number)\n.decl r(x: number, y: number)\n.decl p(x: number)\n{rule.replace('!p', '!s')}"
    program += "\n.decl s(x: number)"

    def main(wire: Wire) -> list[tuple]:
        m = upheld.materialise(
            program, {"q": [(5,)] if "/" not in rule else [], "r": [(1 << 62, 5)]}, engine=Task(wire)
        )
        with pytest.raises(upheld.UpheldError) as caught:
            m.update(insert={"q": [(1 << 62,)]})
        assert caught.value.slugs == ("undefined-result",)
        return sorted(m["q"])

    assert len({tuple(result) for result in in_threads(3, main)}) == 1
