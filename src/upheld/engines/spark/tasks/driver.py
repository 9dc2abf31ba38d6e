"""The engine that a driver holds: each operator is a command that all members carry out in step.

Algorithms, queries and explanations run in the driver, as they do with every engine. A driver's object stands for the
objects of one number in all members, its own included.
"""

from __future__ import annotations

import io
import pickle
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Self

from upheld.algebra.engine import Attempt
from upheld.algebra.equality import Equivalence
from upheld.algebra.meter import Meter
from upheld.algebra.reached import Reached
from upheld.algebra.sets import FactSet
from upheld.data.columns import Columns, Row
from upheld.data.stored import StoredFacts
from upheld.engines.memory.equality.code_sets import CodeSet
from upheld.engines.memory.sets.expressions import Settled
from upheld.engines.spark.counters.bags import PartitionedBag, PartitionedInstances
from upheld.engines.spark.counters.numbers import PartitionedRanks
from upheld.engines.spark.engine import PartitionedEngine
from upheld.engines.spark.joins.derivation import Derivation
from upheld.engines.spark.sets.sets import NamedSet, PartitionedSet
from upheld.engines.spark.tasks.commands import MEMBER, Command, Member, NewEngine, is_held, mapped
from upheld.engines.spark.tasks.functors import Taught, functors_of
from upheld.engines.spark.tasks.tasks import Tasks, ThreadTasks
from upheld.engines.spark.tasks.wire import Wire, task_lost
from upheld.errors import Problem, UpheldError
from upheld.language.core import Atom, Classing, Core, Rule
from upheld.language.strata import Stratification, Stratum
from upheld.language.syntax.ast import Constant, Variable
from upheld.runtime.interruptions import uninterrupted
from upheld.runtime.limits import Limits
from upheld.runtime.statistics import Statistics
from upheld.source import Source

#: Commands that are sent together at most: tasks begin with the first of them when the last one is sent.
_MOST_TOGETHER = 32

#: How many rules, tuples of rules and stratifications tasks keep: the driver sends each of them once.
_MOST_KEPT = 1 << 14


class Held:
    """An object that all members have under one number."""

    __slots__ = ("__weakref__", "driver", "local", "number")

    def __init__(self, driver: Driver, local: Any, number: int):
        self.driver, self.local, self.number = driver, local, number

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.local, name)
        if callable(attribute):
            return lambda *arguments, **named: self.driver.call(self, name, *arguments, **named)
        return self.driver.call(None, "get", name, self) if is_held(attribute) else attribute

    def __del__(self) -> None:
        self.driver.dropped.append(self.number)


#: Facts of a set that the driver reads at once, of all predicates, when it is asked for one of them.
_FEW = 1 << 12


class HeldSet(Held):
    """A set of facts."""

    __slots__ = ("_read",)

    def __init__(self, driver: Driver, local: Any, number: int):
        super().__init__(driver, local, number)
        #: The rows of a small set by predicate, once somebody has asked for some.
        self._read: dict[str, Columns] | None = None

    @property
    def engine(self) -> DrivenEngine:
        return self.driver.engine

    def __or__(self, other: FactSet) -> Any:
        return self.driver.call(self, "__or__", other)

    def __and__(self, other: FactSet) -> Any:
        return self.driver.call(self, "__and__", other)

    def __sub__(self, other: FactSet) -> Any:
        return self.driver.call(self, "__sub__", other)

    def __ior__(self, other: FactSet) -> Self:
        self.driver.call(self, "__ior__", other)
        return self

    def __isub__(self, other: FactSet) -> Self:
        self.driver.call(self, "__isub__", other)
        return self

    def __bool__(self) -> bool:
        return bool(self.driver.call(self, "__bool__"))

    def predicates(self) -> Any:
        """The predicates that facts of the set may have, which the driver knows by itself."""
        return self.local.predicates()

    def rows(self, predicate: str) -> Columns:
        """The facts of one predicate. A small set that does not change is read once, as the change of an update is."""
        mine = self.local
        is_fixed = type(mine) is PartitionedSet and isinstance(mine.local, Settled)
        if not is_fixed or not mine.counts or predicate not in mine.counts or mine.counts.total() > _FEW:
            rows: Columns = self.driver.call(self, "rows", predicate)
            return rows
        if self._read is None:
            self._read = self.driver.call(self, "rows_of_all")
        return self._read[predicate]

    def has(self, predicate: str, row: Sequence[object]) -> bool:
        """Whether a row is in the set. The driver knows its codes, if it can be: only codes go to the tasks."""
        codes = self.local.codes_of(predicate, row)
        return codes is not None and bool(self.driver.call(self, "has_codes", predicate, codes))


class HeldBag(Held):
    """Facts with multiplicities."""

    __slots__ = ()

    def __iadd__(self, other: Any) -> Self:
        self.driver.call(self, "__iadd__", other)
        return self

    def __isub__(self, other: Any) -> Self:
        self.driver.call(self, "__isub__", other)
        return self


class HeldInstances(Held):
    """Rule instances."""

    __slots__ = ()

    def __len__(self) -> int:
        return int(self.driver.call(self, "__len__"))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.driver.call(self, "__iter__"))

    def __or__(self, other: Any) -> Any:
        return self.driver.call(self, "__or__", other)


class HeldConstants(Held):
    """A set of constants, which all members have."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(self.local)

    def __or__(self, other: Any) -> Any:
        return self.driver.call(self, "__or__", other)

    def __sub__(self, other: Any) -> Any:
        return self.driver.call(self, "__sub__", other)


class HeldRanks(Held):
    """Ranks. Which strata an update reaches is found by the driver, whose algorithm goes through them.

    Tasks maintain closed strata by themselves, all of them in one command.
    """

    __slots__ = ()

    def through(self, reached: Reached, E_minus: FactSet, E_plus: FactSet, *sets: FactSet) -> Iterator[Stratum]:
        changed = _local((E_minus, E_plus))
        if not self.local.are_closed(reached.strata, *changed):
            return iter(reached)
        is_done = self.driver.call(self, "maintain_closed", reached.strata, E_minus, E_plus, *sets)
        return iter(() if is_done else reached)

    def small_update(self, *update: object) -> None:
        """Return None: tasks make updates by the operators."""


_KINDS = {
    PartitionedRanks: HeldRanks,
    PartitionedSet: HeldSet,
    NamedSet: HeldSet,
    Derivation: HeldSet,
    PartitionedBag: HeldBag,
    PartitionedInstances: HeldInstances,
    CodeSet: HeldConstants,
}


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
        self._last = MEMBER
        self._kept = _Kept(self)
        #: How many blocks are open in all members.
        self.depth = 0
        #: Why nothing can be done any more, if so.
        self._over: Problem | None = None
        self.call(None, "open")

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
            member, first = self._member, self._last + 1
            try:
                local = (member if target is None else target.local), method, _local(mine), _local(named)
                result, objects = member.call(*local)
            except BaseException as error:
                if member.wire.is_broken and isinstance(error, UpheldError):
                    self._over = error.problems[0]
                elif not member.wire.knows(error):
                    self.tell(None, "meet")  # the others may have no other exchange to learn of it in
                    member.wire.fail(error)
                raise
            self._last += len(objects)
            held = iter([_KINDS.get(type(o), Held)(self, o, first + i) for i, o in enumerate(objects)])
            return mapped(result, lambda thing: next(held) if is_held(thing) else thing) if objects else result

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


def _local(thing: Any) -> Any:
    """Return arguments with the driver's own objects in the place of those that all members have."""
    return mapped(thing, lambda one: one.local if isinstance(one, Held) else one)


class _Kept:
    """Objects that were sent to tasks and are kept there, by the identity of the driver's: the last used of them."""

    def __init__(self, driver: Driver):
        self._driver = weakref.proxy(driver)
        self._numbers: OrderedDict[int, tuple[Any, int]] = OrderedDict()
        #: Functors that the tasks know.
        self._taught: set[str] = set()

    def know(self, rules: Sequence[Rule], first: int) -> None:
        """Note that tasks have rules, with their functors, under numbers from `first` on."""
        self._numbers.update((id(rule), (rule, number)) for number, rule in enumerate(rules, first))
        self._taught |= functors_of(rules)

    def pickled(self, thing: Any, sent: list[tuple[int, bytes]]) -> bytes:
        """Return the pickle of something, in which numbers stand for objects. New objects go to `sent`."""
        buffer = io.BytesIO()
        _Pickler(buffer, thing, lambda one: self._number(one, sent)).dump(thing)
        return buffer.getvalue()

    def _number(self, thing: Any, sent: list[tuple[int, bytes]]) -> int:
        known = self._numbers.get(id(thing))
        if known is None:
            if isinstance(thing, Rule) and (new := functors_of([thing]) - self._taught):
                sent.append((self._driver.number(), pickle.dumps(Taught(new))))
                self._taught |= new
            pickled = self.pickled(thing, sent)
            known = self._numbers[id(thing)] = thing, self._driver.number()
            sent.append((known[1], pickled))
            if len(self._numbers) > _MOST_KEPT:
                self._driver.dropped.append(self._numbers.popitem(last=False)[1][1])
        self._numbers.move_to_end(id(thing))
        return known[1]


#: Types of which no object is kept: nearly all that is pickled.
_PLAIN = frozenset((int, str, float, bool, bytes, type(None), dict, list, Atom, Variable, Constant))

#: Types of which all objects are kept. A source is part of every rule in it, and as long as all of them.
_KEPT = (Rule, Stratification, Source)


class _Pickler(pickle.Pickler):
    """Pickles one thing, with numbers for those in it that tasks keep."""

    def __init__(self, buffer: io.BytesIO, whole: Any, number: Callable[[Any], int]):
        super().__init__(buffer, protocol=5)
        self._whole, self._number = whole, number

    def persistent_id(self, thing: Any) -> int | None:
        if type(thing) in _PLAIN or thing is self._whole:
            return None
        if isinstance(thing, Held):
            return thing.number
        rules = isinstance(thing, tuple) and thing and isinstance(thing[0], Rule)
        apart = isinstance(thing, Stratum) and not _is_listed(thing)
        return self._number(thing) if rules or apart or isinstance(thing, _KEPT) else None

    def reducer_override(self, thing: Any) -> Any:
        """A stratum is that of a stratification by its number."""
        if isinstance(thing, Stratum) and thing.stratification is not self._whole and _is_listed(thing):
            return _stratum, (thing.stratification, thing.index)
        return NotImplemented


def _is_listed(stratum: Stratum) -> bool:
    """Return whether a stratum is one of its stratification."""
    return any(listed is stratum for listed in stratum.stratification.strata[stratum.index - 1 : stratum.index])


def _stratum(strata: Stratification, index: int) -> Stratum:
    return strata.strata[index - 1]


# -- engines --------------------------------------------------------------------------------------------------------


class DrivenMeter(Meter):
    """The meter of a driver. Tasks look at their own clock and memory during its runs."""

    driver: Driver

    @contextmanager
    def run(self) -> Iterator[Statistics]:
        with super().run() as statistics, self.driver.block("run"):
            yield statistics


class DrivenEngine:
    """An engine whose facts are in the partitions of several tasks."""

    name = "spark"

    def __init__(self, core: Core, tasks: Tasks, limits: Limits | None = None):
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
        self.driver.call(None, "ask", "expect", sizes)

    def load(self, predicate: str, rows: Iterable[Row]) -> Any:
        if isinstance(rows, StoredFacts):
            return self.driver.call(None, "ask", "load_files", predicate, [file.path for file in rows.files])
        return self.load_all({predicate: rows})

    def load_all(self, facts: Mapping[str, Iterable[Row]]) -> Any:
        """The facts that the driver has; tasks have none of them."""
        empty: dict[str, list[Row]] = {predicate: [] for predicate in facts}
        return self.driver.call_each(None, "ask", ("load_all", facts), ("load_all", empty))

    def load_with_numbers(self, predicate: str, rows: Iterable[Row], books: Sequence[Any]) -> Any:
        assert isinstance(rows, Columns), "numbers come by column"
        none = rows[:0]
        none.keep_own_texts()
        mine, theirs = (("load_with_numbers", predicate, some, books) for some in (rows, none))
        return self.driver.call_each(None, "ask", mine, theirs)

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


def in_threads(core: Core, parts: int, limits: Limits | None = None) -> DrivenEngine:
    """Return an engine whose tasks are threads of this process."""
    return DrivenEngine(core, ThreadTasks(parts, partial(task_engine, core, limits)), limits)


def taught_engine(core: Core, limits: Limits | None) -> NewEngine:
    """Return what makes the engine of a task in another process, which may not know the functors of the program."""
    # In this order: the functors are learned before the rules that name them are unpickled.
    return partial(_engine_after, Taught(functors_of(core.rules)), core, limits)


def _engine_after(_: object, core: Core, limits: Limits | None, wire: Wire) -> PartitionedEngine:
    return task_engine(core, limits, wire)


def task_engine(core: Core, limits: Limits | None, wire: Wire) -> PartitionedEngine:
    """Return the engine of a task."""
    return PartitionedEngine(core, wire, Meter(limits))
