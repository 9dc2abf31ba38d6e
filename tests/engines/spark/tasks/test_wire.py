"""Tasks in step: exchanges, failures that all of them share, and tasks that are out of step."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from tests.engines.spark.helpers.tasks import Task
from tests.engines.spark.helpers.threads import in_threads
from upheld.algebra.sets import derive, derive_bag, settle
from upheld.base.errors import EvaluationError, LimitReached, Problem, UpheldError
from upheld.compiler.compile import compile_program
from upheld.engines.spark.tasks.wire import Wire
from upheld.language.syntax.files import read_text

CLOSURE = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


def core_of(text: str):
    return compile_program(read_text(text)).core


def test_parcels_and_notes():
    """Each task gets the parcels that the others have for it, and the notes of all."""

    def main(wire: Wire):
        outbox = [[(wire.me, to)] for to in range(wire.parts)]
        return wire.exchange("test", outbox, wire.me * 10)

    for me, (came, notes) in enumerate(in_threads(3, main)):
        assert came == [[(q, me)] for q in range(3)]
        assert notes == [0, 10, 20]


def test_tasks_out_of_step_stop():
    """A task that takes another branch than the others stops all of them, with the operators at which they are."""

    def main(wire: Wire) -> None:
        wire.exchange("settle" if wire.me == 1 else "derive")

    with pytest.raises(UpheldError) as caught:
        in_threads(3, main)
    assert caught.value.slugs == ("out-of-step",)
    assert "task 0 at `derive`, task 1 at `settle`" in str(caught.value)


def test_a_task_that_ends_early_is_out_of_step():
    with pytest.raises(UpheldError) as caught:
        in_threads(2, lambda wire: wire.exchange("settle") if wire.me else None)
    assert caught.value.slugs == ("out-of-step",)


def test_one_task_fails_and_all_undo():
    """What fails in one task fails in all; each undoes its part, and they go on in step."""
    core = core_of(CLOSURE)

    def main(wire: Wire):
        engine = Task(wire).open(core)
        I, E = engine.named("I"), engine.load("edge", [(i, i + 1) for i in range(9)])

        def fail_in_one() -> None:
            nonlocal I
            with engine.transaction():
                I |= settle(E)
                if wire.me == 1:
                    raise EvaluationError(Problem("undefined-result", "only here"))
                settle(derive(core.rules, I, I))

        with pytest.raises(EvaluationError):
            fail_in_one()
        before = I.count()
        with engine.transaction():
            I |= E
            while delta := settle(derive(core.rules, I, I) - I):
                I |= delta
        return before, I.count("path")

    assert in_threads(3, main) == [(0, 45)] * 3


def test_a_limit_that_one_task_reaches_stops_all():
    """No task may look at its own clock and stop alone."""
    core = core_of(CLOSURE)

    def main(wire: Wire) -> int:
        engine = Task(wire).open(core)
        I = engine.named("I")

        def look(rule) -> None:
            if wire.me == 1:
                raise LimitReached(Problem("limit-reached", "time is up in one task"))

        engine.meter.look = look

        def reach_limit() -> None:
            nonlocal I
            with engine.transaction():
                I |= engine.load("edge", [(i, i + 1) for i in range(40)])
                settle(derive(core.rules, I, I, via=I))

        with pytest.raises(LimitReached):
            reach_limit()
        return I.count()

    assert in_threads(2, main) == [0, 0]


def test_texts_have_one_code_in_all_tasks():
    """Texts that come in one task, or that rules make in several, mean the same everywhere."""
    core = core_of(
        """
        .decl name(x: symbol, n: number)
        .decl made(y: symbol, n: number)
        .decl twice(z: symbol)
        made(cat(x, "-", to_string(n % 2)), n) :- name(x, n).
        twice(cat(y, y)) :- made(y, n), made(y, m), n < m.
        """
    )

    def main(wire: Wire):
        engine = Task(wire).open(core)
        I = engine.named("I")
        I |= engine.load("name", [(f"text {wire.me % 2}", n) for n in range(wire.me, 12, wire.parts)])
        while delta := settle(derive(core.rules, I, I) - I):
            I |= delta
        texts = engine.context.codec.pool
        return sorted(I.rows("twice")), [str(t) for t in texts.take(np.arange(len(texts)))]

    results = in_threads(3, main)
    assert results[0][0] == sorted((f"text {i}-{j}" * 2,) for i in (0, 1) for j in (0, 1))
    assert all(result == results[0] for result in results)


def test_exchanges_of_a_round():
    """A round of linear closure takes two exchanges: heads go home, and what is new goes to its copies."""
    core = core_of(CLOSURE)

    def main(wire: Wire) -> int:
        engine = Task(wire).open(core)
        I = engine.named("I")
        I |= engine.load("edge", [(i, i + 1) for i in range(30)])
        I |= (delta := settle(derive(core.rules, I, I, via=I)))
        before = wire.exchanges
        for _ in range(10):
            I |= (delta := settle(derive(core.rules, I, I, via=delta) - I))
        return wire.exchanges - before

    assert in_threads(2, main) == [20, 20]


def test_a_derivation_leaves_nothing_behind():
    """An expression that nobody needs any more is gone: the memory engine lists those that somebody holds.

    A listing before a set changes takes as long as the set is large.
    """
    core = core_of(CLOSURE)

    def main(wire: Wire) -> None:
        engine = Task(wire).open(core)
        I, D = engine.named("I"), engine.named("D")
        I |= (E := settle(engine.load("edge", [(i, i + 1) for i in range(30)])))
        for use in (settled, lambda *sets: engine.numbers("n").gain(bag(*sets))):
            P = I - D
            left = weakref.ref(P.local)
            use(P, I, E)
            del P
            assert left() is None

    def settled(P, I, E):
        return settle(derive(core.rules, P, I, via=E))

    def bag(P, I, E):
        return derive_bag(core.rules, P, I, via=E)

    gc.disable()
    try:
        in_threads(2, main)
    finally:
        gc.enable()


def test_atoms_of_constants_alone():
    """The facts of an atom that rules name with the same constants are all with the owner of one of these."""
    core = core_of(
        """
        .decl t(s: symbol, p: symbol, o: symbol)
        .decl h()
        h() :- t(_, "T", "same").
        t(x, "a", y) :- t(x, "R", x), t("same", "R", y), h().
        """
    )

    def main(wire: Wire):
        engine = Task(wire).open(core)
        P, H = engine.named("P"), engine.named("H")
        P |= engine.load("t", [("R", "T", "same"), ("q", "R", "q"), ("same", "R", "z")])
        H |= engine.load("h", [()])
        heads = derive(core.rules, P, P, heads=H)
        return list(heads.rows("h")), sorted(derive(core.rules, P | H, P, via=H).rows("t"))

    for parts in (2, 3):
        assert in_threads(parts, main) == [([()], [("q", "a", "z")])] * parts
