"""Materialisations whose facts are in several tasks: all that users do with one."""

from __future__ import annotations

import gc
import signal
from random import Random
from typing import Any

import pytest

import upheld
from tests.engines.spark.helpers.tasks import Driven
from tests.helpers.sizes import exhaustive, usually
from tests.helpers.streams import eqrel_streams, streams
from tests.helpers.streams.eqrel_streams import random_eqrel_case
from tests.helpers.streams.equality_streams import check_stream, random_equality_case
from tests.helpers.streams.streams import NAMES, random_aggregate_stream, random_stream
from upheld.engines.spark.tasks.commands import Member

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
    """Changes, answers of queries, proofs and statistics are those of the reference engine."""
    assert used(Driven(3), algorithm) == used("reference", algorithm)


def test_why_not():
    def asked(engine: Any) -> str:
        m = upheld.materialise(PROGRAM, FACTS, engine=engine)
        return str(m.explain('path("b", "d")'))

    assert asked(Driven(2)) == asked("reference")


def test_saved_and_restored(tmp_path):
    """A state that two tasks saved opens in three, and in memory, with its bookkeeping, and is maintained there."""

    saved = upheld.materialise(PROGRAM, FACTS, engine=Driven(2), algorithm="ranked")
    saved.update(insert=INSERTED, delete=DELETED)
    saved.save(tmp_path)

    def restored(engine: Any) -> dict[str, list[tuple]]:
        m = upheld.restore(PROGRAM, tmp_path, engine=engine, algorithm="ranked")
        assert "took over" in str(m.statistics.choices)
        m.update(delete={"edge": [("e", "f")]}, insert=DELETED)
        return {name: sorted(m[name]) for name in m.relations}

    m = upheld.materialise(PROGRAM, FACTS)
    m.update(insert={"edge": [("c", "e")], "weight": INSERTED["weight"]})
    expected = {name: sorted(m[name]) for name in m.relations}
    for engine in ("memory", "reference", Driven(1), Driven(2), Driven(3)):
        assert restored(engine) == expected


def test_plans():
    """A plan shows the legs of each rule, and where bindings go."""
    shown = upheld.materialise(PROGRAM, FACTS, engine=Driven(2)).plans()
    assert "from new path(x, y):" in shown
    assert "leg 1, " in shown


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_streams(parts):
    """Each update by another algorithm, with bookkeeping converted in between: changes and state are recomputed."""
    r = Random(parts)
    for _ in range(usually(1, 20)):
        stream = random_stream(r.randrange(10_000), updates=usually(5, 12))
        streams.follow(stream, [Driven(parts)], NAMES, converting=Random(r.random()))


@pytest.mark.parametrize("algorithm", ["adaptive", "bf"])
def test_equality_by_rewriting(algorithm):
    """What users see of classes of equal constants is what recomputation under the axioms says."""
    for seed in range(usually(2, 40)):
        assert all(True for _ in check_stream(random_equality_case(seed), Driven(2 + seed % 2), algorithm))


@pytest.mark.parametrize("algorithm", ["adaptive", "counting"])
def test_equivalences_by_classes(algorithm):
    """What users see of equivalences is what recomputation by rules says."""
    for seed in range(usually(2, 40)):
        case = random_eqrel_case(seed)
        m = eqrel_streams.opened(case, Driven(2 + seed % 2), algorithm)
        assert all(True for _ in eqrel_streams.check_stream(case, m))


@pytest.mark.parametrize("parts", [pytest.param(1, marks=exhaustive), 2, 3])
def test_aggregates(parts):
    """Values of groups, and of all facts together, are those of recomputation after each update."""
    for seed in range(parts, parts + usually(1, 40)):
        names = usually([NAMES[seed]], NAMES[seed % 5 :: 5])
        assert streams.follow(random_aggregate_stream(seed), [Driven(parts)], names)


def test_aggregates_of_queries():
    """A query may aggregate what no rule does: facts go to their groups when it is asked."""
    for query in ("n = count : { path(_, _) }", "edge(x, _), n = count : { path(y, x) }, edge(x, _)"):
        asked = [upheld.materialise(PROGRAM, FACTS, engine=e).query(query).to_set() for e in ("memory", Driven(3))]
        assert asked[0] == asked[1] != set()


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

    facts = {"q": [(5,)] if "/" not in rule else [], "r": [(1 << 62, 5)]}
    m = upheld.materialise(program, facts, engine=Driven(3))
    before = m.facts()
    with pytest.raises(upheld.UpheldError) as caught:
        m.update(insert={"q": [(1 << 62,)]})
    assert caught.value.slugs == ("undefined-result",)
    assert m.facts() == before


@pytest.mark.parametrize("step", [2, 9, "carry_out"])
def test_interrupted(step):
    """Ctrl-C takes effect between two commands, or in a procedure: the update is undone in all tasks.

    The next one is made.
    """
    m = upheld.materialise(PROGRAM, FACTS, engine=Driven(2))
    before, driver = m.facts(), m._engine.driver
    tell, steps, came = driver.tell, 0, False

    def tell_and_interrupt(*command: Any, **named: Any) -> None:
        nonlocal steps, came
        steps += 1
        tell(*command, **named)
        if step in (steps, command[1]) and not came:
            came = True
            signal.raise_signal(signal.SIGINT)

    driver.tell = tell_and_interrupt
    with pytest.raises(KeyboardInterrupt):
        m.update(insert=INSERTED, delete=DELETED)
    assert m.facts() == before
    assert len(m.update(insert=INSERTED).inserted["edge"]) == 2


def test_tasks_hold_what_the_driver_holds():
    """Objects that nobody holds in the driver are dropped in all tasks, and tasks end with the materialisation."""
    m = upheld.materialise(PROGRAM, FACTS, engine=Driven(2))
    tasks, held = m._engine.driver._tasks, []
    members = [x for x in gc.get_objects() if type(x) is Member and x.wire._threads is tasks.wire._threads]
    for _ in range(3):
        m.update(insert=INSERTED, delete=DELETED)
        m.update(delete=INSERTED, insert=DELETED)
        m.query(QUERIES[0])
        gc.collect()
        m._engine.driver.call(None, "meet")  # with what was dropped before it
        rules = len(m._engine.driver._kept._numbers)
        held.append([len(member.objects) - rules for member in members if member.wire is not tasks.wire])
    assert held[1] == held[2]
    assert len(held[0]) == 2
    threads = tasks._threads
    del m, tasks, members
    gc.collect()
    for thread in threads:
        thread.join(timeout=300)
        assert not thread.is_alive()


def test_closed():
    """A closed materialisation says so; relations that were read before stay as they are, and tasks have ended."""
    with upheld.materialise(PROGRAM, FACTS, engine=Driven(2)) as m:
        read, threads = m["path"], m._engine.driver._tasks._threads
        assert ("a", "b") in read.to_set()
    assert not any(thread.is_alive() for thread in threads)
    assert ("a", "c") in read
    for use in (
        lambda: m["path"].to_set(),
        lambda: m.update(insert=INSERTED),
        lambda: m.query(QUERIES[0]),
        lambda: len(m["edge"]),
    ):
        with pytest.raises(upheld.UpheldError) as caught:
            use()
        assert caught.value.slugs == ("materialisation-closed",)
    m.close()
