"""Every place where an engine might decide by what one task has: all tasks take the same branch there.

The facts of most tests are all at home in one task of three, so that whatever is decided by local rows differs between
them. Tests elsewhere close some places:

    codes of texts                      tasks/test_wire.py: test_texts_have_one_code_in_all_tasks
    limits of time and memory           tasks/test_wire.py: test_a_limit_that_one_task_reaches_stops_all
    a task that fails, or has no memory tasks/test_wire.py, test_engine.py: test_facts_that_find_no_memory
    built-ins without a result          test_materialisation.py: test_a_built_in_without_a_result
    signals                             test_materialisation.py: test_interrupted
    processes with hash seeds of theirs tasks/test_tasks.py: test_a_materialisation
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.engines.spark.helpers.tasks import Task, assert_followed, follow, here
from tests.engines.spark.helpers.threads import in_threads
from tests.helpers.programs.strategies import Case, Update
from tests.helpers.streams.streams import NAMES, Stream
from upheld.algebra.sets import Within, derive, settle
from upheld.compiler.compile import compile_program
from upheld.compiler.strata import stratify
from upheld.engines.spark.owners import Owners
from upheld.engines.spark.tasks.wire import Wire
from upheld.language.ast import Variable
from upheld.language.core import Atom
from upheld.language.syntax.files import read_text
from upheld.language.values import normalise_float

PARTS = 3
CLOSURE = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
.decl far(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
far(x, y) :- path(x, y), !edge(x, y).
"""


def owned(count: int, task: int = 0) -> list[int]:
    """Return numbers that one task owns."""
    numbers = np.arange(100 * count, dtype=np.int64)
    return numbers[Owners(0, PARTS).of(numbers) == task][:count].tolist()


NODES = owned(8)
EDGES = list(pairwise(NODES))


def core_of(text: str = CLOSURE) -> Any:
    return compile_program(read_text(text)).core


def in_all(main: Callable[[Any, Wire], Any], text: str = CLOSURE) -> Any:
    """Return what a function returns in all tasks, each of which has an engine and a program of its own."""

    def task(wire: Wire) -> Any:
        found = main(Task(wire).open(core_of(text)), wire)
        return found, wire.exchanges

    results = in_threads(PARTS, task)
    assert all(result == results[0] for result in results), "tasks that have decided differently"
    return results[0][0]


@pytest.mark.parametrize("algorithm", NAMES)
def test_facts_that_are_all_in_one_task(algorithm):
    """Rounds, budgets, searches, restarts, ranks, sums, keys of rounds and exchanges are the same in all tasks.

    Every second run makes each update, undoes it and makes it again, with the copies that it made.
    """
    first, middle, last = EDGES[0], EDGES[4], EDGES[-1]
    back = (NODES[-1], NODES[0])
    updates = [
        Update({"edge": [middle]}, {"edge": [back]}),
        Update({"edge": [first, back]}, {"edge": [middle, (NODES[2], NODES[0])]}),
        Update({"edge": [last, *EDGES[1:4]]}, {"edge": [first]}),
    ]
    for constants, twice in (({}, False), ({"MANY_TURNS": 0, "SEARCH_FOR": 100, "SMALL": 0, "FEW_FACTS": 0}, True)):
        stream = Stream(Case(CLOSURE, {"edge": EDGES}, updates), "granular", constants)
        states = stream.recomputed()
        assert assert_followed(follow(stream, algorithm, PARTS, states, twice=twice), states) == len(updates)


def test_truth_and_counts_of_sets():
    """Sums over all tasks: a task without rows of a set does not take it for empty."""

    def main(engine: Any, wire: Wire) -> Any:
        E = settle(engine.load("edge", EDGES if wire.me == 0 else []))
        nothing = settle(E - E)
        x, y = (Variable(name, None) for name in "xy")
        counts = bool(E), bool(nothing), E.count(), E.at_most("edge"), E.predicates(), nothing.predicates()
        return *counts, *E.profiles([Atom("edge", (x, y))])

    *counts, profile = in_all(main)
    assert counts == [True, False, 7, 7, {"edge"}, set()]
    assert profile[0] == 7


def test_plans_do_not_depend_on_sizes():
    """Legs of bodies are the same where a relation has all its rows and where it has none."""

    def main(engine: Any, wire: Wire) -> list[str]:
        I = engine.named("I")
        I |= settle(engine.load("edge", EDGES))
        I |= settle(derive(core.rules, I, I))
        return [line for rule in engine._core.rules for line in engine.plans(rule)]

    core = core_of()
    assert any(line.startswith("  leg 1") for line in in_all(main))


def test_who_holds_a_derivation_does_not_matter():
    """A cycle or a traceback that holds a set in one task computes nothing more there, and nothing earlier."""

    def main(engine: Any, wire: Wire) -> int:
        rules = engine._core.rules
        I, kept = engine.named("I"), []
        I |= settle(engine.load("edge", EDGES))
        for _ in range(3):
            derived = derive(rules, I, I)
            if wire.me == 1:
                kept.append((derived, kept))
            else:
                gc.collect()
            new = settle(derived - I)
            del derived
            I |= new
        return I.count()

    assert in_all(main) > len(EDGES)


def test_sets_have_other_bits_in_each_task():
    """A task that has made more sets than the others gives its sets other bits, and means the same by a message."""

    def main(engine: Any, wire: Wire) -> set[Any]:
        more = [engine.context.local.named(f"only here {i}") for i in range(3 * wire.me)]
        I = engine.named("I")
        I |= settle(engine.load("edge", EDGES))
        while delta := settle(derive(engine._core.rules[:2], I, I) - I):
            I |= delta
        assert len(more) == 3 * wire.me
        return set(I.rows("path"))

    assert len(in_all(main)) == 28


def test_values_that_are_equal_and_not_alike():
    """NaN that is another object in each task, 0.0 and -0.0 as facts have it: one code, one home, one fact."""

    def main(engine: Any, wire: Wire) -> Any:
        zero = normalise_float(-0.0 if wire.me % 2 else 0.0)
        E = settle(engine.load("f", [(float("nan"),), (zero,)]))
        return E.count()

    assert in_all(main, ".decl f(x: float)\n.decl g(x: float)\ng(x) :- f(x).") == 2


def test_names_have_the_same_home_in_every_process():
    """The home of a fact without columns does not depend on the hash of a text, which each process seeds anew."""
    assert [Owners(0, 5).of_name(name) for name in ("holds", "some", "é")] == [4, 0, 1]


def test_classes_of_an_equivalence():
    """Classes whose members come in different tasks have the same members and names in all of them."""
    text = """
    .decl same(x: number, y: number) eqrel
    .decl link(x: number, y: number)
    .decl seen(x: number, y: number)
    same(x, y) :- link(x, y).
    seen(x, y) :- same(x, y).
    """
    numbers = [owned(2, task) for task in range(PARTS)]
    links = [(numbers[0][0], numbers[1][0]), (numbers[1][0], numbers[2][0]), (numbers[2][1], numbers[0][1])]
    updates = [Update({"link": [links[1]]}, {"link": [(links[1][1], links[2][0])]})]
    stream = Stream(Case(text, {"link": links}, updates), "granular", {})
    states = stream.recomputed()
    assert_followed(follow(stream, "ranked", PARTS, states), states)


def test_each_task_names_rules_by_number():
    """Rules of a program that each task has compiled by itself are other objects, and mean the same in a message."""

    def main(engine: Any, wire: Wire) -> int:
        strata = stratify(engine._core)
        I = engine.named("I")
        I |= settle(engine.load("edge", EDGES))
        found = [engine.instances(s.rules, Within(I, I)) for s in strata if s.rules]
        assert len(here(I)) in (0, len(EDGES))
        return sum(len(list(instances)) for instances in found)

    assert in_all(main) == len(EDGES)
