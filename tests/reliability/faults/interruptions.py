"""R12: memory that runs out, Ctrl-C and SIGTERM, at random instants and at chosen lines of whatever a user may call.

Where an update raises, the facts are those of before it, and else those of after it, unless the signal was heard when
the update was over and its caller had not gone on yet. The next call is right, nothing but the interruption escapes.
Signals come while kernels are loaded from disk and compiled as well.
"""

from __future__ import annotations

import importlib
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from numba.core.caching import NullCache

import upheld
from tests.materialisation.test_atomic import DELETE, FACTS, INSERT, PROGRAM, LineFuse, heard_on_the_way_back
from tests.reliability.programme import Run, goal
from upheld.language.core import Fact
from upheld.materialisation.materialisation import Materialisation

ALGORITHMS = ("adaptive", "counting", "bf-c", "dred")
QUERY = "open(x, y), weight(y, n), z = n + 1"
CHANGE = {"delete": DELETE, "insert": INSERT}
#: Undoes the change, but for the facts that it deleted in vain.
BACK = {"delete": INSERT, "insert": {**DELETE, "edge": [row for row in DELETE["edge"] if row in FACTS["edge"]]}}

#: Kernels that are compiled in a second or less.
QUICK = ("flags.select", "flags.set_bits", "flags.clear_bits", "rows.gather", "rows.make_rows")
MODULES = (
    *(f"kernels.{name}" for name in ("hashing", "rows", "flags", "pairs", "counts", "indexes", "groups")),
    *(f"bytecode.{name}" for name in ("tables", "instances", "many_rules")),
    *(f"rounds.{name}" for name in ("interpreter", "levels.agenda", "levels.kernel", "classes.kernel")),
    "storage.dictionary",
)


class Stopped(Exception):
    """What a handler of SIGTERM may raise."""


ERRORS = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: Stopped}


class Signals:
    """Signals at some instants of a call. Those that are heard after it are counted, and raise nothing."""

    def __init__(self, r: Random, longest: float):
        self.number = r.choice(list(ERRORS))
        self.delay, self.gap = r.uniform(1e-5, longest), r.choice([2e-5, 1e-4, 1e-3])
        self.left, self.armed = r.randint(1, 3), True
        #: Whether what was heard last came where the call may have done its work.
        self.may_be_made = False

    def _alarm(self, number: int, frame: object) -> None:
        if self.armed and self.left:
            self.left -= 1
            signal.raise_signal(self.number)

    def _interrupt(self, number: int, frame: object) -> None:
        if self.armed:
            raise ERRORS[self.number]

    def during(self, act: Callable[[], object]) -> bool:
        """Return whether the call was interrupted."""
        before = {n: signal.getsignal(n) for n in (signal.SIGALRM, self.number)}
        signal.signal(signal.SIGALRM, self._alarm)
        signal.signal(self.number, self._interrupt)
        try:
            signal.setitimer(signal.ITIMER_REAL, self.delay, self.gap)
            act()
            self.armed = False
            return False
        except (KeyboardInterrupt, Stopped) as error:
            self.armed = False
            self.may_be_made = heard_on_the_way_back(error)
            return True
        finally:
            self.armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            for n, handler in before.items():
                signal.signal(n, handler)


class Lines:
    """An error at a line of a call."""

    may_be_made = False

    def __init__(self, r: Random, longest: int):
        self.error = r.choice([KeyboardInterrupt, MemoryError])
        self.fuse = LineFuse(r.randint(1, longest), error=self.error)

    def during(self, act: Callable[[], object]) -> bool:
        try:
            with self.fuse.armed():
                act()
        except (KeyboardInterrupt, MemoryError):
            return True
        return False


Interruption = Signals | Lines


class Subject:
    """A materialisation, and the facts that it has before and after the change."""

    def __init__(self, algorithm: str):
        self.m = self.materialise(algorithm)
        self.before = self.m.facts()
        self.m.update(**CHANGE)
        self.after = self.m.facts()
        self.m.update(**BACK)
        self.answers = self.m.query(QUERY).to_set()
        assert self.m.facts() == self.before and self.after != self.before and self.answers

    def materialise(self, algorithm: str) -> Materialisation:
        return upheld.materialise(PROGRAM, FACTS, algorithm=algorithm)

    def found(self) -> set[Fact]:
        return self.m.facts()


class Attack:
    """What is interrupted, one method for each thing that a user may call."""

    def __init__(self, run: Run):
        self.run, self.subjects = run, {name: Subject(name) for name in ALGORITHMS}
        self.interrupted = 0
        self.folder = tempfile.TemporaryDirectory(prefix="upheld-interruptions-")

    def subject(self, number: int) -> Subject:
        return self.subjects[ALGORITHMS[number % len(ALGORITHMS)]]

    def check(self, number: int, attack: Callable[[Subject, Random], None]) -> None:
        """Interrupt a call; the subject of a case that fails is made anew."""
        subject, r = self.subject(number), Random(f"{self.run.seed} {number}")
        try:
            attack(subject, r)
            assert subject.found() == subject.before
        except BaseException:
            name = ALGORITHMS[number % len(ALGORITHMS)]
            self.subjects[name] = Subject(name)
            raise

    def interrupt(self, interruption: Interruption, act: Callable[[], object]) -> bool:
        with dropped_in_callbacks():
            interrupted = interruption.during(act)
        self.interrupted += interrupted
        return interrupted

    def update(self, subject: Subject, r: Random, interruption: Interruption | None = None) -> None:
        m = subject.m
        interruption = interruption or (Signals(r, 0.02) if r.random() < 0.7 else Lines(r, 6000))
        raised = self.interrupt(interruption, lambda: m.update(INSERT, DELETE))
        if not (raised and interruption.may_be_made and subject.found() == subject.after):
            assert subject.found() == (subject.before if raised else subject.after), (raised, vars(interruption))
        m.update(**CHANGE)  # which does nothing, or all of it
        assert subject.found() == subject.after
        m.update(**BACK)

    def query(self, subject: Subject, r: Random) -> None:
        interruption = Signals(r, 0.005) if r.random() < 0.7 else Lines(r, 1500)
        self.interrupt(interruption, lambda: subject.m.query(QUERY))
        assert subject.m.query(QUERY).to_set() == subject.answers

    def materialise(self, subject: Subject, r: Random) -> None:
        made: list[Materialisation] = []
        interruption = Signals(r, 0.02) if r.random() < 0.7 else Lines(r, 6000)
        self.interrupt(interruption, lambda: made.append(subject.materialise(subject.m.algorithm)))
        made = made or [subject.materialise(subject.m.algorithm)]
        assert made[0].facts() == subject.before

    def save(self, subject: Subject, r: Random) -> None:
        m, folder = subject.m, Path(tempfile.mkdtemp(dir=self.folder.name))
        m.save(folder)
        m.update(**CHANGE)
        raised = self.interrupt(Signals(r, 0.03), lambda: m.save(folder))
        known = upheld.restore(PROGRAM, folder, algorithm=m.algorithm).facts()
        assert known in ((subject.before, subject.after) if raised else (subject.after,))
        if known == subject.before:
            m.save(folder)
            assert upheld.restore(PROGRAM, folder, algorithm=m.algorithm).facts() == subject.after
        m.update(**BACK)

    def stream(self, subject: Subject, r: Random) -> None:
        m, states = subject.m, [subject.before, subject.after]
        changes: list[upheld.Change] = []
        updates = [CHANGE, BACK] * 2

        def follow() -> None:
            for change in m.stream(updates):
                changes.append(change)

        raised = self.interrupt(Signals(r, 0.04), follow)
        # A signal may be heard when a change has been yielded and the list does not have it yet.
        possible = [states[(len(changes) + k) % 2] for k in range(1 + raised)]
        assert subject.found() in possible
        if subject.found() == subject.after:
            m.update(**BACK)

    def load(self, subject: Subject, r: Random) -> None:
        """Interrupt an update that finds some of its kernels on disk only."""
        for made in r.sample(dispatchers(), 4):
            made._reset_overloads()
        self.update(subject, r, Signals(r, 0.05))

    def compile(self, subject: Subject, r: Random) -> None:
        """Interrupt an update that compiles a kernel."""
        with uncached(r.choice(QUICK)):
            self.update(subject, r, Signals(r, 0.6))


@contextmanager
def dropped_in_callbacks() -> Iterator[None]:
    """Let Python drop an interruption in silence.

    It does so with one that is raised in a callback of a weak reference, or while a generator is closed. Within an
    update the signal is sent again; where a call has nothing to lose, as before it begins its work, it is not.
    """
    report = sys.unraisablehook

    def report_others(unraisable: sys.UnraisableHookArgs) -> None:
        if not isinstance(unraisable.exc_value, (KeyboardInterrupt, Stopped, MemoryError)):
            report(unraisable)

    sys.unraisablehook = report_others
    try:
        yield
    finally:
        sys.unraisablehook = report


def dispatchers() -> list[Any]:
    """Return every kernel of the memory engine."""
    modules = [importlib.import_module(f"upheld.engines.memory.{name}") for name in MODULES]
    found = {id(made): made for module in modules for made in vars(module).values() if hasattr(made, "py_func")}
    return list(found.values())


@contextmanager
def uncached(name: str) -> Iterator[None]:
    """Let a kernel be compiled anew, whatever is on disk."""
    module, _, kernel = name.partition(".")
    made: Any = getattr(importlib.import_module(f"upheld.engines.memory.kernels.{module}"), kernel)
    cache = made._cache
    made._reset_overloads()
    made._cache = NullCache()
    try:
        yield
    finally:
        made._cache = cache


#: What is interrupted, and how often of a hundred cases.
SHARES = {"update": 50, "query": 15, "materialise": 10, "save": 8, "stream": 8, "load": 8, "compile": 1}


@goal("R12", "interruptions and memory that runs out", sample=40, full=5_000)
def interruptions(run: Run) -> None:
    attack, r = Attack(run), run.random
    names = [name for name, share in SHARES.items() for _ in range(share)]
    r.shuffle(names)
    with attack.folder:
        for number in run.cases():
            name = names[number % len(names)]
            run.case(f"{name} {number}", lambda number=number, name=name: attack.check(number, getattr(attack, name)))  # type: ignore[misc]
    run.figures["raised"] = attack.interrupted
