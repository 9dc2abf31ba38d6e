"""An update that fails, for whatever reason and wherever it is, leaves everything as it was, and can be made later."""

from __future__ import annotations

import gc
import importlib
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from types import FrameType

import numpy as np
import pytest
from hypothesis import settings

from tests.engines.memory.kernels.kernel_rows import MODULE_OF, PARTS
from tests.engines.memory.storage.test_table import assert_whole
from tests.helpers.sizes import exhaustive
from tests.helpers.streams.streams import counter
from upheld.base import interruptions
from upheld.base.errors import EvaluationError, FactsError, LimitReached
from upheld.base.interruptions import interrupted_once, uninterrupted
from upheld.base.limits import Limits
from upheld.engines import ENGINES
from upheld.engines.memory.bags.counting import numbered
from upheld.engines.memory.kernels import counts as count_kernels
from upheld.engines.memory.kernels import flags as flag_kernels
from upheld.engines.memory.rounds import interpreter
from upheld.engines.memory.rounds.classes import kernel as classes_kernel
from upheld.engines.memory.rounds.levels import kernel as levels_kernel
from upheld.engines.memory.rounds.strata import kernel as strata_kernel
from upheld.engines.memory.rounds.strata import small_strata
from upheld.engines.memory.storage.arrays import BITS
from upheld.engines.reference.counters import PlainNumbers, PlainRanks, PlainTrace
from upheld.engines.reference.engine import ReferenceEngine
from upheld.engines.reference.sets import Facts
from upheld.maintain.registry import ALGORITHMS
from upheld.materialisation.build import materialise
from upheld.materialisation.materialisation import Materialisation

PROGRAM = """
.decl edge(x:symbol, y:symbol)
.decl path(x:symbol, y:symbol)
.decl blocked(x:symbol)
.decl open(x:symbol, y:symbol)
.decl weight(x:symbol, n:number)
.decl part(x:symbol, n:number)
.decl up(x:number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), path(y, z).
open(x, y) :- path(x, y), !blocked(x).
open(x, y) :- open(y, x), weight(x, _).
part(x, 100 / n) :- weight(x, n), open(x, _).
up(x + 1) :- up(x), x != 5.
"""
FACTS = {
    "edge": [(a, b) for a, b in zip("abcdefgh", "bcdefgha")] + [("a", "d"), ("c", "g")],
    "path": [("h", "b"), ("z", "z")],
    "blocked": [("b",), ("z",)],
    "weight": [("a", 4), ("d", 7)],
    "up": [(4,)],
}
DELETE = {"edge": [("c", "d"), ("h", "a"), ("q", "q")], "path": [("z", "z")], "blocked": [("b",)]}
INSERT = {"edge": [("b", "new"), ("new", "h")], "blocked": [("d",)], "path": [("new", "newer")], "weight": [("c", 3)]}

#: A chain of facts that all lean on the first, which has another derivation from above its rank: a search finds it.
CHAIN = """
.decl start(x:number)
.decl edge(x:number, y:number)
.decl reach(x:number)
reach(x) :- start(x).
reach(y) :- reach(x), edge(x, y).
"""
CHAIN_FACTS = {"start": [(0,), (30,)], "edge": [(i, i + 1) for i in range(20)] + [(30, 31), (31, 0)]}


#: How many moments to fail at are tried.
POINTS = max(2, settings().max_examples // 12)


@pytest.fixture(scope="module", autouse=True)
def _little_garbage():
    """What other tests have left need not be looked through each time that something must be gone."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


class Subject:
    """A materialisation that is to be updated, and what is known of it."""

    def __init__(self, engine: str, algorithm: str, case: str = "mixed"):
        self.case = case
        program, facts = (CHAIN, CHAIN_FACTS) if case == "chain" else (PROGRAM, FACTS)
        self.program = program
        self.m = materialise(program, facts, engine=engine, algorithm=algorithm)
        if case == "mixed":  # the chain is found by a search once: then it has other ranks
            for _ in range(2):  # so that the tables hold rows of no set, and indexes are there
                self.update()
                self.back()

    def update(self, **options: str) -> None:
        if self.case == "chain":
            self.m.update(delete={"start": [(0,)]}, insert={"edge": [(20, 21)]}, **options)
        else:
            self.m.update(delete=DELETE, insert=INSERT, **options)

    def back(self) -> None:
        if self.case == "chain":
            self.m.update(insert={"start": [(0,)]}, delete={"edge": [(20, 21)]})
        else:
            self.m.update(delete=INSERT, insert=DELETE)
            self.m.update(delete={"edge": [("q", "q")]})

    def assert_recomputed(self) -> None:
        """Facts and books are those of a materialisation made anew, as far as these do not depend on history."""
        m = self.m
        explicit = {name: m.explicit(name).to_set() for name in m.relations}
        assert m.facts() == materialise(self.program, explicit, engine="reference").facts()
        anew = books(materialise(self.program, explicit, engine=m._engine.name, algorithm=m.algorithm))
        mine = books(m)
        assert {name: mine[name] for name in ("E", "I", "cnr", "cr", "trace", "derivations")} == {
            name: anew[name] for name in ("E", "I", "cnr", "cr", "trace", "derivations")
        }
        totals = [{fact: total for fact, (_, total, _) in b["ranks"].items()} for b in (mine, anew)]
        assert totals[0] == totals[1]
        for fact, (_, _, support) in mine["ranks"].items():
            assert support > 0, fact


def books(m: Materialisation) -> dict[str, object]:
    """Everything that a materialisation knows."""
    state, engine = m._state, m._engine

    def numbers(kept) -> object:
        return dict(kept.items()) if kept is not None else None

    known: dict[str, object] = {
        name: {(p, row) for p in m._core.predicates for row in getattr(state, name).rows(p)} for name in ("E", "I")
    }
    known |= {"cnr": numbers(counter(m, "cnr")), "cr": numbers(counter(m, "cr")), "algorithm": m.algorithm}
    trace, ranks = counter(m, "trace"), counter(m, "ranks")
    known["trace"] = {f: (counts, level) for f, counts, level in trace.items()} if trace else None
    known["ranks"] = numbers(ranks) or {}
    known["derivations"] = [ranks.derivations(s) for s in m._strata] if ranks else None
    known["ends"] = (ranks.top, ranks.bottom, ranks.below) if ranks else None
    if engine.name == "reference":
        known["levels"] = (dict(trace.old), dict(trace.new)) if trace else None
    else:
        known["levels"] = [dict(numbered(engine.context, c)) for c in (trace._old, trace._new)] if trace else None
        engine.context.columns.sweep()  # those of an update before that has started again
        known["columns"] = {name for table in engine.tables.values() for name in table.columns}
    return known


def assert_nothing_left(m: Materialisation) -> None:
    """Nothing of a failed update is left in the engine but rows of no set, and every table is whole."""
    gc.collect()
    engine = m._engine
    if engine.name == "reference":
        return
    engine.context.columns.sweep()
    assert engine.context.bits.free.bit_count() == BITS - 2
    assert not engine.context.pending.tallies
    assert not engine.context.journal.is_open
    for table in engine.tables.values():
        assert not (table.flags[: table.n] & np.uint16(engine.context.bits.free)).any(), table.name
        assert_whole(table)


def assert_as_before(m: Materialisation, before: dict[str, object], where: object) -> None:
    assert_nothing_left(m)
    after = books(m)
    for name, known in before.items():
        assert after[name] == known, (name, where)


both = pytest.mark.parametrize("engine", ENGINES)
#: Every algorithm on the memory engine; on the reference engine, which users do not maintain with, the default one.
every_algorithm = pytest.mark.parametrize(
    "engine, algorithm",
    [
        pytest.param(engine, name, marks=[exhaustive] if engine == "reference" and name != "adaptive" else [])
        for engine in ENGINES
        for name in ALGORITHMS
    ],
)


# -- reasons of the user ----------------------------------------------------------------------------------------------

REASONS: dict[str, tuple[type[Exception], Limits, dict[str, list], dict[str, list]]] = {
    "facts": (LimitReached, Limits(facts=70), DELETE, INSERT),
    "rounds": (LimitReached, Limits(rounds=12), DELETE, INSERT),
    "rounds without end": (LimitReached, Limits(rounds=300), DELETE, INSERT | {"up": [(7,)]}),
    "seconds": (LimitReached, Limits(seconds=0.4, rounds=None), DELETE, INSERT | {"up": [(7,)]}),
    "memory": (LimitReached, Limits(memory=1), DELETE, INSERT | {"up": [(7,)]}),
    "a bad row": (FactsError, Limits(), DELETE, INSERT | {"weight": [("a", "many")]}),
    "a bad row to delete": (FactsError, Limits(), DELETE | {"edge": [("a",)]}, INSERT),
    "no such relation": (FactsError, Limits(), DELETE, INSERT | {"nothing": [(1,)]}),
    "no result": (EvaluationError, Limits(), DELETE, INSERT | {"weight": [("e", 0)]}),
}


@every_algorithm
def test_reasons_of_the_user(engine, algorithm):
    """Limits, rows that do not fit and expressions without a result: all is as before, and the next update works."""
    subject = Subject(engine, algorithm)
    m = subject.m
    before, limits = books(m), m._engine.meter.limits
    kept = []
    for name, (error, failing, delete, insert) in REASONS.items():
        m._engine.meter.limits = failing
        for _ in range(2):
            with pytest.raises(error) as caught:
                m.update(delete=delete, insert=insert)
            kept.append(caught)  # with it all that its frames hold, such as a search with a column of its own
            assert_as_before(m, {name: known for name, known in before.items() if name != "columns"}, name)
    kept.clear()
    del caught
    assert_as_before(m, before, "all")
    m._engine.meter.limits = limits
    subject.update()
    subject.assert_recomputed()


@both
def test_a_failed_update_chooses_no_algorithm(engine):
    """The algorithm of an update that fails is not the one from now on, though books were begun for it."""
    subject = Subject(engine, "dred")
    m = subject.m
    for algorithm in ("counting", "adaptive", "bf-c"):
        facts, explicit = m.facts(), {name: m.explicit(name).to_set() for name in m.relations}
        with pytest.raises(EvaluationError):
            m.update(insert={"weight": [("e", 0)]}, algorithm=algorithm)
        assert m.algorithm == "dred"
        assert m.facts() == facts
        assert {name: m.explicit(name).to_set() for name in m.relations} == explicit
        assert_nothing_left(m)
    subject.update()
    subject.assert_recomputed()


# -- exceptions anywhere ----------------------------------------------------------------------------------------------


class Fuse:
    """Raises when it has been called so many times."""

    def __init__(self, calls: int, error: type[BaseException], *, after: bool):
        self.left, self.error, self.after = calls, error, after

    @property
    def blown(self) -> bool:
        return self.left <= 0

    def wrap(self, function: Callable) -> Callable:
        def call(*arguments, **options):
            self.left -= 1
            if self.left == 0 and not self.after:
                raise self.error
            result = function(*arguments, **options)
            if self.left == 0 and self.after:
                raise self.error
            return result

        return call


KERNELS = [(module, name) for name, module in MODULE_OF.items() if name not in PARTS]
KERNELS += [(interpreter, "lose_rounds"), (interpreter, "gain_rounds"), (strata_kernel, "maintain_strata")]
KERNELS += [(levels_kernel, "follow_rounds"), (classes_kernel, "overdelete_rounds"), (classes_kernel, "insert_rounds")]
#: What changes something on the reference engine.
PLAIN = [
    (Facts, "__ior__"),
    (Facts, "__isub__"),
    (PlainNumbers, "_add"),
    (PlainRanks, "_add"),
    (PlainRanks, "put_on_top"),
    (PlainRanks, "put_below"),
    (PlainRanks, "gain_support"),
    (PlainRanks, "lose_support"),
    (PlainRanks, "forget"),
    (PlainTrace, "_add"),
    (PlainTrace, "place"),
    (PlainTrace, "settle_levels"),
    (ReferenceEngine, "settle"),
]


@contextmanager
def fused(engine: str, fuse: Fuse) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for place, name in KERNELS if engine == "memory" else PLAIN:
            patch.setattr(place, name, fuse.wrap(getattr(place, name)))
        yield


def fail_everywhere(make: Callable[[], Subject], error: type[BaseException], *, after: bool) -> None:
    """Let an update fail at its calls, one after the other: at some of them, or with `soak` at each."""
    subject = make()
    m = subject.m
    calls = calls_of(make())
    assert calls > 10
    before = books(m)
    for k in sorted(Random(calls).sample(range(1, calls + 1), min(calls, POINTS))):
        fuse = Fuse(k, error, after=after)
        failed = False
        with fused(m._engine.name, fuse):
            try:
                subject.update()
            except error:
                failed = True
        assert failed == fuse.blown, "a failure that went unnoticed"
        if failed:
            assert_as_before(m, before, (k, error, after))
        else:  # what is put off is done in an order that differs, so now and then it takes a call less
            subject = make()
            m, before = subject.m, books(subject.m)
    subject.update()
    subject.assert_recomputed()


def calls_of(subject: Subject) -> int:
    counter = Fuse(10**9, AssertionError, after=False)
    with fused(subject.m._engine.name, counter):
        subject.update()
    return 10**9 - counter.left


@every_algorithm
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_failing_at_every_call(engine, algorithm, after):
    """Memory that runs out before, or Ctrl-C after, each single call that changes something."""
    error = KeyboardInterrupt if after else MemoryError
    fail_everywhere(lambda: Subject(engine, algorithm), error, after=after)


@both
@pytest.mark.parametrize("case", ["search", "start again", "start again with all"])
def test_failing_at_every_call_of_a_safeguard(engine, case, monkeypatch):
    """Likewise where the default algorithm takes back what it did and searches, or starts again."""
    modules = [importlib.import_module(f"upheld.maintain.{name}") for name in ("adaptive", "cost_model")]
    constants = {
        "search": {"MANY_LOST": 8},
        "start again": {"SMALL": 0, "LOSING": 1000},
        "start again with all": {"SMALL": 0, "FEW_FACTS": 0, "RENEWING": 0, "LOSING": 1000},
    }
    for name, value in constants[case].items():
        for module in modules:
            if hasattr(module, name):
                monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(small_strata, "MOST_SEEDS", -1)  # strata that a kernel maintains have no safeguards

    def make() -> Subject:
        return Subject(engine, "adaptive", "chain" if case == "search" else "mixed")

    subject = make()
    subject.update()
    said = " ".join(subject.m._engine.meter.statistics.choices)
    assert {"search": "found proofs of 1", "start again": "stratum 2: started again"}.get(
        case, "all strata: started again"
    ) in said
    for after in (False, True):
        fail_everywhere(make, KeyboardInterrupt, after=after)


@pytest.mark.parametrize("algorithm", ["ranked", "counting", "dred-c"])
def test_failing_while_a_failure_is_undone(algorithm, monkeypatch):
    """Where the undoing fails as well, once, it is gone on with where it stopped: nothing is undone twice."""
    subject = Subject("memory", algorithm)
    m = subject.m
    before = books(m)
    changing = {
        "take_back": count_kernels, "add_by_round": count_kernels, "set_bits": flag_kernels, "clear_bits": flag_kernels,
    }  # fmt: skip
    for k in range(1, 40):
        undoing = Fuse(k, MemoryError, after=k % 2 == 0)
        whole = {name: getattr(module, name) for name, module in changing.items()}

        def fail(*arguments, undoing: Fuse = undoing, whole=whole):
            for name, module in changing.items():
                monkeypatch.setattr(module, name, undoing.wrap(whole[name]))
            raise MemoryError

        with monkeypatch.context() as patch:
            patch.setattr(m, "_update", lambda *given, go=m._update: (go(*given), fail()))
            with pytest.raises(MemoryError):
                subject.update()
        for name, module in changing.items():
            monkeypatch.setattr(module, name, whole[name])
        if not undoing.blown:
            break
        assert_as_before(m, before, k)
    assert k > 3
    subject.update()
    subject.assert_recomputed()


# -- Ctrl-C between any two lines -------------------------------------------------------------------------------------


class LineFuse:
    """Raises at the n-th line of the package, or of some of its files, that is reached, as Ctrl-C may."""

    def __init__(self, lines: int, files: tuple[str, ...] = (), error: type[BaseException] = KeyboardInterrupt):
        self.left, self.where, self.files, self.error = lines, "", files, error

    def __call__(self, frame, event, argument):
        name = frame.f_code.co_filename
        if "/upheld/" not in name or name.endswith(("/interruptions.py", "/turns.py")):  # no signal comes between these
            return None
        if self.files and not name.endswith(self.files):
            return self
        if event == "line" and not self._deferred():
            self.left -= 1
            if self.left <= 0 and not self.where:
                self.where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                raise self.error
        return self

    def _deferred(self) -> bool:
        block = getattr(signal.getsignal(signal.SIGINT), "__self__", None)
        return type(block) is uninterrupted or (type(block) is interrupted_once and block._late)

    @contextmanager
    def armed(self) -> Iterator[None]:
        sys.settrace(self)
        try:
            yield
        finally:
            sys.settrace(None)


@every_algorithm
def test_interrupted_at_any_line(engine, algorithm):
    """At lines chosen at random."""
    subject = Subject(engine, algorithm)
    m = subject.m
    counter = LineFuse(10**9)
    with counter.armed():
        subject.update()
    lines = 10**9 - counter.left
    changed = books(m)
    subject.back()
    before, r, outcomes = books(m), Random(algorithm), []
    for _ in range(POINTS):
        fuse = LineFuse(r.randint(1, lines))
        try:
            with fuse.armed():
                subject.update()
        except KeyboardInterrupt:
            outcomes.append(False)
        else:  # when the last step has been taken, it is too late to interrupt
            assert not fuse.where, "an interruption that was lost"
            outcomes.append(True)
            assert books(m)["I"] == changed["I"]
            subject.assert_recomputed()
            subject.back()
            before = books(m)
        assert_as_before(m, before, fuse.where)
    assert outcomes.count(True) <= 2


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_failing_at_every_line_that_keeps_texts(error):
    """Texts and rows are entered whole or not at all: a text of two lines comes back right once it is entered again."""
    program, text = CHAIN.replace("number", "symbol"), "one line\nand another"
    files = ("/dictionary.py", "/codec.py", "/table.py")
    reached: set[str] = set()
    for k in range(1, 400):
        m = materialise(program, {"edge": [("a", "b")], "start": ["a"]})
        fuse = LineFuse(k, files, error)
        try:
            with fuse.armed():
                m.update(insert={"edge": [("b", text)]})
        except error:
            reached.add(fuse.where)
            assert m["reach"].to_set() == {("a",), ("b",)}, fuse.where
        else:
            break
        m.update(insert={"edge": [("b", text), ("b", "c")]})
        assert m["reach"].to_set() == {("a",), ("b",), ("c",), (text,)}, fuse.where
    assert len(reached) > 40


# -- real signals -----------------------------------------------------------------------------------------------------


#: Where a signal is heard when an update has been made and its caller has not gone on yet: see
#: `test_a_signal_at_every_instruction_after_the_last_step`.
ON_THE_WAY_BACK = {
    "uninterrupted._restore",
    "interrupted_once._restore",
    "uninterrupted.__exit__",
    "Materialisation.update",
    "Materialisation._update_to",
}


def heard_on_the_way_back(error: BaseException) -> bool:
    """Return whether a signal was heard where an update may have been made: nowhere in the block that makes it."""
    names = names_of(error)
    return not names or names[-1] in ON_THE_WAY_BACK  # none: the call has returned


def names_of(error: BaseException) -> list[str]:
    """Return the functions of Upheld that an exception came through, the innermost last."""
    return [frame.f_code.co_qualname for frame, _ in traceback.walk_tb(error.__traceback__) if is_ours(frame)]


def is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals["__name__"]).startswith("upheld.")


class Interruptions:
    """Ctrl-C after some time, and again a few times soon after."""

    def __init__(self, delay: float, gap: float, count: int):
        self.delay, self.gap, self.left, self.armed = delay, gap, count, True
        self.may_be_made = False
        #: The functions of Upheld that an interruption came through, for the message of a failure.
        self.heard: list[str] = []

    def _interrupt(self, number, frame) -> None:
        if self.armed and self.left:
            self.left -= 1
            raise KeyboardInterrupt

    def during(self, act: Callable[[], None]) -> bool:
        """Return whether the act was interrupted."""
        before = signal.signal(signal.SIGALRM, self._interrupt)
        try:
            signal.setitimer(signal.ITIMER_REAL, self.delay, self.gap)
            act()
            self.armed = False
            return False
        except KeyboardInterrupt as error:
            self.armed = False
            self.heard = names_of(error)
            self.may_be_made = heard_on_the_way_back(error)
            return True
        finally:
            self.armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


@both
@pytest.mark.parametrize("algorithm", ["adaptive", "counting", "bf-c", "dred"])
def test_interrupted_by_signals(engine, algorithm):
    """At random moments, up to five times in a row: where it raises all is as it was, else as it was to be.

    A signal that is heard when the update is over may be raised before the caller has its change.
    """
    subject = Subject(engine, algorithm)
    m, r = subject.m, Random(11)
    states, seconds = [books(m)], 1.0
    for _ in range(5):  # the first update takes longer than others, and so does any on a busy machine
        subject.update()
        seconds = min(seconds, m._engine.meter.statistics.seconds)
        states[1:] = [books(m)]
        subject.back()
    interrupted = 0
    for attempt in range(3 * POINTS):
        before = books(m)
        came = Interruptions(r.uniform(1e-5, 1.2 * seconds), r.choice([2e-5, 1e-4, 1e-3]), r.randint(1, 5))
        failed = came.during(subject.update)
        interrupted += failed
        assert_nothing_left(m)
        if failed and not (came.may_be_made and books(m)["E"] == states[1]["E"]):
            ignoring_columns = {name: known for name, known in before.items() if name != "columns"}
            assert_as_before(m, ignoring_columns, (attempt, came.heard))
        else:
            subject.assert_recomputed()
            assert books(m)["I"] == states[1]["I"]
            subject.back()
    assert interrupted > POINTS
    assert books(m)["I"] == states[0]["I"]


class InstructionFuse:
    """Sends a signal at the n-th instruction of the package after the step from which on an update cannot be undone."""

    def __init__(self, instructions: int):
        self.left, self.where = instructions, ""

    def __call__(self, frame, event, argument):
        if not is_ours(frame):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and not self.where:
            self.left -= 1
            if self.left == 0:
                self.where = f"{frame.f_code.co_qualname}:{frame.f_lineno}"
                signal.raise_signal(signal.SIGALRM)
        return self

    def light(self) -> None:
        """Begin to count, in all functions that are being executed."""
        frame = sys._getframe(1)
        while frame is not None:
            if self(frame, "call", None):
                frame.f_trace = self
            frame = frame.f_back
        sys.settrace(self)


def test_a_signal_at_every_instruction_after_the_last_step(monkeypatch):
    """The update is made, and no signal is lost: it is sent again, or heard on the way back to the caller."""
    m, fuse = materialise("q(x) :- p(x).", {"p": [0]}), InstructionFuse(0)
    too_late = interrupted_once.too_late

    def interrupt(number, frame) -> None:
        raise KeyboardInterrupt

    def light(self) -> None:
        too_late(self)
        fuse.light()

    again: list[int] = []
    monkeypatch.setattr(interrupted_once, "too_late", light)
    monkeypatch.setattr(interruptions, "_send_soon", lambda _, number: again.append(number))
    handler = signal.signal(signal.SIGALRM, interrupt)
    heard = reached = 0
    try:
        while reached == len(again) + heard:
            reached += 1
            fuse, raised = InstructionFuse(reached), None
            try:
                m.update(insert={"p": [reached]})
            except KeyboardInterrupt as error:
                raised = error
            finally:
                sys.settrace(None)
            assert (reached,) in m["q"], fuse.where
            assert raised is None or names_of(raised)[-1] in ON_THE_WAY_BACK, fuse.where
            heard += raised is not None
        assert not fuse.where, "a signal that was lost"
    finally:
        signal.signal(signal.SIGALRM, handler)
    assert len(again) > 100 and heard > 5


def test_failing_in_another_thread():
    """Where no signal is ever handled, an update that fails is undone all the same."""
    subject = Subject("memory", "adaptive")
    before, raised = books(subject.m), []

    def act() -> None:
        with fused("memory", Fuse(40, MemoryError, after=True)):
            try:
                subject.update()
            except MemoryError as error:
                raised.append(error)

    thread = threading.Thread(target=act)
    thread.start()
    thread.join()
    assert len(raised) == 1
    raised.clear()
    assert_as_before(subject.m, before, "thread")
    subject.update()
    subject.assert_recomputed()
