"""The engine that a driver holds: each operator is a command that all members carry out in step.

Queries and explanations run in the driver, as they do with every engine. So do algorithms where somebody watches their
progress, or where a program has classes, which the driver has as well; otherwise tasks carry them out by themselves.
"""

from __future__ import annotations

import pickle
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from upheld.algebra.engine import Attempt
from upheld.algebra.equality import Equivalence
from upheld.algebra.meter import Meter
from upheld.base.errors import Problem, UpheldError
from upheld.base.interruptions import uninterrupted
from upheld.base.limits import Limits
from upheld.base.statistics import Statistics, current_phase
from upheld.compiler.growth import growing_rules
from upheld.compiler.strata import stratify
from upheld.engines.spark.engine import PartitionedEngine
from upheld.engines.spark.tasks.commands import ENGINE, MEMBER, Command, Member, NewEngine, is_held, mapped
from upheld.engines.spark.tasks.functors import Taught, functors_of
from upheld.engines.spark.tasks.held import EngineOfAll, Held, held_as, local
from upheld.engines.spark.tasks.job_progress import Show
from upheld.engines.spark.tasks.kept import Kept
from upheld.engines.spark.tasks.procedures import END, Report, result_of, stand_in, take_over, tell_meter
from upheld.engines.spark.tasks.tasks import Tasks
from upheld.engines.spark.tasks.wire import Wire, again, task_lost
from upheld.facts.columns import Columns, Row
from upheld.facts.stored import SharedRows, StoredFacts
from upheld.language.core import Classing, Core, Rule

R = TypeVar("R")

#: Commands that are sent together at most: tasks begin with the first of them when the last one is sent.
_MOST_TOGETHER = 32

#: A message at which tasks that carry out a procedure stop. To all others it says nothing.
_NO_COMMANDS = pickle.dumps([])

#: Facts times tasks up to which the driver sends facts to all tasks that need them. More are forwarded by their homes,
#: which do it at the same time.
_MOST_COPIED = 1 << 22


class _Outgoing:
    """Commands on their way to tasks, sent together: a message costs as much as several small commands.

    All of them are sent before the driver takes part in an exchange, for which tasks need them.
    """

    def __init__(self, tasks: Tasks):
        self._tasks = tasks
        self._commands: list[tuple[Any, ...]] = []
        tasks.wire.before_exchange = self.flush

    def add(self, command: Command) -> None:
        self._commands.append(tuple(command))
        if len(self._commands) == _MOST_TOGETHER:
            self.flush()

    def flush(self) -> None:
        """Send the commands that wait."""
        if self._commands:
            commands, self._commands = self._commands, []
            self._tasks.send(pickle.dumps(commands))


class Driver:
    """Sends commands to tasks, and carries them out as a member that owns no facts."""

    #: The engine that algorithms hold, which holds the driver.
    engine: DrivenEngine

    def __init__(self, tasks: Tasks, new_engine: NewEngine):
        self._tasks, self._member = tasks, Member(tasks.wire, new_engine)
        #: Numbers of objects that nobody holds any more. Any thread may append to it.
        self.dropped: deque[int] = deque()
        self._step = 0
        self._outgoing = _Outgoing(tasks)
        #: The last number that was given to an object.
        self._last = ENGINE
        #: The objects that somebody holds, by their numbers.
        self._held: WeakValueDictionary[int, Held] = WeakValueDictionary()
        proxy = weakref.proxy(self)
        self._kept = Kept(lambda: proxy.number(), self.dropped)
        #: How many blocks are open in all members.
        self.depth = 0
        #: Why nothing can be done any more, if so.
        self._over: Problem | None = None
        self.call(None, "open")

    @property
    def parts(self) -> int:
        """The number of tasks."""
        return self._tasks.wire.parts

    @property
    def exchanges(self) -> int:
        """How many exchanges tasks have had, with the driver or among themselves."""
        return self._tasks.wire.exchanges

    @property
    def commands(self) -> int:
        """How many commands there have been."""
        return self._step

    @property
    def own_engine(self) -> PartitionedEngine:
        """The engine of the driver's member, which owns no facts."""
        engine: PartitionedEngine = self._member.engine
        return engine

    def call(self, target: Held | None, method: str, *arguments: Any, **named: Any) -> Any:
        """Let all members call a method of an object, or of the member itself, and return the result."""
        return self.call_each(target, method, arguments, arguments, named)

    def call_each(
        self,
        target: Held | None,
        method: str,
        mine: tuple[Any, ...],
        theirs: tuple[Any, ...],
        named: Mapping[str, Any] | None = None,
    ) -> Any:
        """Let all members call a method, the driver with arguments of its own.

        Signals wait until it is done: a member that left an exchange would leave the others waiting in it.
        """
        named = named or {}
        with uninterrupted():
            self.tell(target, method, *theirs, **named)
            member = self._member
            with self._failing_together():
                own = member if target is None else target.local
                result, objects = member.call(own, method, local(mine), local(named))
            held = iter(self._new(objects))
            return mapped(result, lambda thing: next(held) if is_held(thing) else thing) if objects else result

    @contextmanager
    def _failing_together(self) -> Iterator[None]:
        """A block in which a failure of the driver becomes one of all members."""
        wire = self._member.wire
        try:
            yield
        except BaseException as error:
            if wire.is_broken and isinstance(error, UpheldError):
                self._over = error.problems[0]
            elif not wire.knows(error):
                self.tell(None, "meet")  # the others may have no other exchange to learn of it in
                wire.fail(error)
            raise

    def _new(self, objects: Sequence[Any]) -> list[Held]:
        """Return what stands for new objects of all members, of which these are the driver's own."""
        first = self._last + 1
        self._last += len(objects)
        held = [held_as(self, own, number) for number, own in enumerate(objects, first)]
        self._held.update((one.number, one) for one in held)
        return held

    def carry_out(self, function: Callable[..., Any], arguments: tuple[Any, ...], meter: Meter) -> Any:
        """Let tasks call a function by themselves, and return its result. Its work goes to a meter.

        If a signal raises something meanwhile, tasks stop at their next exchange.
        """
        with uninterrupted() as signals:
            raised: list[BaseException] = []

            def look() -> None:
                if not raised:
                    try:
                        signals.hear()
                    except BaseException as error:
                        raised.append(error)
                        self._tasks.send(_NO_COMMANDS)

            self.tell(None, "carry_out", function, arguments, current_phase.get())
            wire, context = self._member.wire, self._member.engine.context
            with self._failing_together():
                context.compute_all()
                self._outgoing.flush()
                wire.wait(look)
                _, (report, *_) = wire.exchange(END)
            self._take_over(report, meter)
            if raised:
                raise raised[0]
            if report.failure is not None:
                raise again(report.failure)
            new = self._new([stand_in(context, kind, agreed) for kind, agreed in report.new])
            result = result_of(report, self._held)
            del new  # the result holds them
            return result

    def _take_over(self, report: Report, meter: Meter) -> None:
        """Take over what all tasks agree on after a procedure."""
        for number, agreed in report.arguments:
            take_over(self._held[number].local, agreed, failed=report.failure is not None)
        context = self._member.engine.context
        if report.texts:
            context.codec.add(report.texts)
        work = ((phase, None if k is None else self._kept.thing(k), done) for phase, k, done in report.work)
        tell_meter(meter, report.statistics, work)
        self._member.wire.exchanges += report.exchanges

    def tell(self, target: Held | None, method: str, *arguments: Any, **named: Any) -> None:
        """Give a command to all tasks. It is sent with those before it, at the latest before the next exchange."""
        if self._over is not None:
            raise UpheldError(self._over)
        sent: list[tuple[int, bytes]] = []
        pickled = self._kept.pickled((arguments, named), sent)
        dropped = [self.dropped.popleft() for _ in range(len(self.dropped))]
        self._step += 1
        self._member.wire.step = self._step
        number = MEMBER if target is None else target.number
        command = Command(self._step, dropped, sent, number, method, pickled, self._last + 1)
        self._outgoing.add(command)

    def know_rules(self, rules: Sequence[Rule]) -> None:
        """Let all members name the rules of the program by numbers, which they have in its order."""
        first = self._last + 1
        self._last += len(rules)
        self._kept.know(rules, first)
        self.call(None, "know_rules", first)

    def number(self) -> int:
        """Return a number that no object has."""
        self._last += 1
        return self._last

    @contextmanager
    def block(self, method: str) -> Iterator[Any]:
        """A block of the engine in all members, such as a transaction."""
        depth = self.depth
        try:
            self.depth += 1
            entered = self.call(None, f"enter_{method}")
            yield entered
            self.depth = depth
            self.call(None, "leave", depth, True)
            if not depth:
                self._outgoing.flush()  # tasks work while nobody waits for them
        except BaseException:
            self.depth = depth
            if self._over is None:
                self.call(None, "leave", depth, False)  # if some are in it: it may have failed when it was left
            else:
                self._member.leave(depth, False)
            raise

    def is_lost(self) -> bool:
        """Return whether a task has ended by itself."""
        return self._over is not _CLOSED and (self._over is not None or self._tasks.have_ended())

    def lose(self, reason: str) -> None:
        """End all tasks because of what they have."""
        self._over = task_lost(reason).problems[0]
        self._tasks.abandon()

    @property
    def is_open(self) -> bool:
        """Whether tasks follow the driver: it is not closed, and none was lost."""
        return self._over is None and not self._tasks.have_ended()

    def close(self) -> None:
        """End all tasks, and wait until they have ended."""
        self._over = _CLOSED
        self._tasks.close()


_CLOSED = Problem(
    "materialisation-closed",
    "the materialisation is closed",
    note="its facts were in tasks, which have ended",
    hint="read what you need before `close()` and before the end of the `with` block, or save a state and restore it",
)


# -- engines --------------------------------------------------------------------------------------------------------


class DrivenMeter(Meter):
    """The meter of a driver. Tasks look at their own clock and memory during its runs."""

    driver: Driver

    @contextmanager
    def run(self) -> Iterator[Statistics]:
        with super().run() as statistics, self.driver.block("run"):
            yield statistics


class DrivenEngine(EngineOfAll):
    """An engine whose facts are in the partitions of several tasks."""

    name = "spark"

    def __init__(self, core: Core, tasks: Tasks, limits: Limits | None = None, show: Show | None = None):
        self._show = show
        meter = self.meter = DrivenMeter(limits)
        self._end = weakref.finalize(self, tasks.abandon)
        self.driver = Driver(tasks, lambda wire: PartitionedEngine(core, wire, meter))
        self.driver.engine = weakref.proxy(self)
        self.driver.know_rules(core.rules)
        meter.driver = weakref.proxy(self.driver)  # whose member has an engine with the meter
        self._equivalences: dict[Classing, Equivalence] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not callable(getattr(PartitionedEngine, name, None)):
            raise AttributeError(f"an engine has no method {name!r}", name=name, obj=self)
        return lambda *arguments, **named: self.driver.call(None, "ask", name, *arguments, **named)

    @property
    def nothing(self) -> Any:
        return self.driver.call(None, "get", "nothing")

    def expect(self, sizes: Mapping[str, int]) -> None:
        # They follow from the plans of all rules, which are made once here instead of once in each task.
        self.driver.call(None, "ask", "use_views", self.driver.own_engine.views_for(sizes))

    def load(self, predicate: str, rows: Iterable[Row]) -> Any:
        if isinstance(rows, SharedRows):
            return self.load_with_numbers(predicate, rows, ())
        return self.load_all({predicate: rows})

    def load_all(self, facts: Mapping[str, Iterable[Row]]) -> Any:
        """The facts that the driver has; tasks have none of them. It sends the copies of few facts as well.

        Tasks read the facts that are in files.
        """
        stored = {predicate: rows for predicate, rows in facts.items() if isinstance(rows, StoredFacts)}
        if stored:
            loaded = self.load_all({predicate: rows for predicate, rows in facts.items() if predicate not in stored})
            for predicate, rows in stored.items():
                paths = [file.path for file in rows.files]
                loaded = loaded | self.driver.call(None, "ask", "load_files", predicate, paths)
            return loaded
        listed = {predicate: rows if isinstance(rows, Sized) else list(rows) for predicate, rows in facts.items()}
        empty: dict[str, list[Row]] = {predicate: [] for predicate in facts}
        few = sum(len(rows) for rows in listed.values()) * self.driver.parts <= _MOST_COPIED
        return self.driver.call_each(None, "ask", ("load_all", listed), ("load_all", empty), {"with_copies": few})

    def load_with_numbers(self, predicate: str, rows: Iterable[Row], books: Sequence[Any]) -> Any:
        """The facts that the driver has, or that tasks read from files if all of them see the folder."""
        if isinstance(rows, SharedRows):
            if self.driver.call(None, "ask", "sees", rows.folder):
                return self.driver.call(None, "ask", "load_part", predicate, rows, books)
            rows = rows.part(0, 1) or ()
        assert isinstance(rows, Columns), "numbers come by column"
        none = rows[:0]
        none.keep_own_texts()
        mine, theirs = (("load_with_numbers", predicate, some, books) for some in (rows, none))
        return self.driver.call_each(None, "ask", mine, theirs)

    def carry_out(self, function: Callable[..., R], *arguments: Any) -> R:
        """Call a function with sets of this engine: in the tasks, unless the driver must know how far it has come."""
        knows_facts = bool(self.driver.own_engine.context.views.known)
        if self.meter.watcher is not None or knows_facts:
            return function(*arguments)
        result: R = self.driver.carry_out(function, arguments, self.meter)
        return result

    def equivalence(self, classing: Classing) -> Equivalence:
        if classing not in self._equivalences:
            self._equivalences[classing] = self.driver.call(None, "ask", "equivalence", classing)
        return self._equivalences[classing]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self.driver.block("transaction"):
            yield

    @contextmanager
    def attempt(self) -> Iterator[Attempt]:
        with self.driver.block("attempt") as attempt:
            yield attempt

    def show(self, seconds: float, progress: str) -> None:
        if self._show is not None:
            self._show(seconds, progress)

    def is_lost(self) -> bool:
        return self.driver.is_lost()

    def lose(self, reason: str) -> None:
        self.driver.lose(reason)

    @property
    def is_open(self) -> bool:
        """Whether the tasks still follow the driver."""
        return self.driver.is_open

    def close(self) -> None:
        self._end.detach()
        self.driver.close()


def taught_engine(core: Core, limits: Limits | None) -> NewEngine:
    """Return what makes the engine of a task in another process, which may not know the functors of the program."""
    # In this order: the functors are learned before the rules that name them are unpickled.
    return partial(_engine_after, Taught(functors_of(core.rules)), core, limits)


def _engine_after(_: object, core: Core, limits: Limits | None, wire: Wire) -> PartitionedEngine:
    return task_engine(core, limits, wire)


def task_engine(core: Core, limits: Limits | None, wire: Wire) -> PartitionedEngine:
    """Return the engine of a task."""
    meter = Meter(limits)
    meter.may_grow = lambda: any(growing_rules(stratify(core)))
    return PartitionedEngine(core, wire, meter)
