"""Procedures of algorithms, which tasks carry out by themselves while the driver waits.

A procedure is a function of `maintain/` and its arguments, in which each task has its own objects. Tasks exchange with
each other alone, so an operator costs no command, and the driver has no part in it. When the procedure has ended, in
whatever way, all members meet. The driver then takes over what all tasks agree on and later commands depend on: bounds
and counts of sets, ends and sums of ranks, texts, the work for its meter; and objects of its own stand for those in the
result.
"""

from __future__ import annotations

import io
import pickle
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from upheld.algebra.meter import Meter
from upheld.algebra.work import Work, WorkDone
from upheld.base.statistics import Statistics, current_phase, summed
from upheld.engines.spark.context import Context
from upheld.engines.spark.counters.numbers import PartitionedNumbers, PartitionedRanks
from upheld.engines.spark.counters.trace import PartitionedTrace
from upheld.engines.spark.sets.sets import NamedSet, PartitionedSet
from upheld.engines.spark.tasks.wire import Wire
from upheld.language.core import Rule

#: Seconds after which a task looks again whether the driver wants it to stop.
_LOOK_EVERY = 0.02

#: The name of the exchange in which all members meet after a procedure.
END = "end of a procedure"

#: The knowledge that all members have of an object; None if its numbers are at home alone.
Agreed = Any


class Stopped(Exception):
    """The driver has asked the tasks to stop."""


class Report(NamedTuple):
    """The end of a procedure, as the first task reports it to the driver."""

    failure: BaseException | None
    #: The pickled result, in which numbers stand for objects.
    result: bytes
    #: The kinds of the new objects in it, and the knowledge that all tasks have of each.
    new: list[tuple[str, Agreed]]
    #: The knowledge that all tasks have of the arguments, by their numbers.
    arguments: list[tuple[int, Agreed]]
    texts: list[str]
    statistics: Statistics
    work: list[tuple[str, int | None, Work]]
    exchanges: int


class Objects(Protocol):
    """The objects of a task that carries out a procedure, which the driver knows by their numbers."""

    wire: Wire
    engine: Any
    #: Whether the driver has sent something more: it wants the task to stop, or is gone.
    is_called: Callable[[], bool]
    #: The objects that the command has named, and the number of the first new object of its result.
    named: dict[int, Any]
    first: int

    def number_of(self, thing: Any) -> int | None:
        """Return the number of an object, if it has one."""


def carry_out(task: Objects, function: Callable[..., Any], arguments: Sequence[Any], phase: str) -> list[Any]:
    """Call a function in step with the other tasks, report to the driver, and return the new objects of the result."""
    wire, context = task.wire, task.engine.context
    context.compute_all()  # with the driver, which has put off the same
    known, exchanges = task.engine.texts(), wire.exchanges
    failure, result = None, None
    with _counting(task.engine.meter) as counted:
        try:
            with wire.among_tasks(), _listening(task), _in_phase(phase), wire.in_step():
                result = function(*arguments)
                context.compute_all()
        except BaseException as error:
            if wire.is_broken:
                raise
            failure = error
    pickler = _ResultPickler(task)
    pickler.dump(None if failure else result)
    report = None
    if wire.me == 0:
        statistics, work = counted
        report = Report(
            failure,
            pickler.buffer.getvalue(),
            [(_kind(thing), _agreed(thing)) for thing in pickler.new],
            [(number, _agreed(thing)) for number, thing in task.named.items() if _has_kind(thing)],
            context.codec.texts_from(known),
            statistics,
            [(phase, None if rule is None else task.number_of(rule), done) for (phase, rule), done in work],
            wire.exchanges - exchanges,
        )
    wire.exchange(END, None, report)
    return pickler.new


@contextmanager
def _counting(meter: Meter) -> Iterator[tuple[Statistics, list[tuple[tuple[str, Rule | None], Work]]]]:
    """Count the work of a block by itself; limits go on to count all work of the run."""
    before, outer = summed([meter.statistics]), meter.done
    counted, work = Statistics(), list[tuple[tuple[str, Rule | None], Work]]()
    meter.done = WorkDone()
    try:
        yield counted, work
    finally:
        now = meter.statistics
        counted.instances, counted.marks = (
            Counter({key: n - old[key] for key, n in new.items() if n != old[key]})
            for new, old in ((now.instances, before.instances), (now.marks, before.marks))
        )
        counted.rounds, counted.facts = now.rounds - before.rounds, now.facts - before.facts
        counted.choices = now.choices[len(before.choices) :]
        work += meter.done.by_rule().items()
        meter.done = outer


@contextmanager
def _listening(task: Objects) -> Iterator[None]:
    """Stop in an exchange of the block if the driver calls, whose own commands wait for the end of the block."""
    wire, looked, is_stopped = task.wire, time.monotonic(), False
    before = wire.before_exchange

    def look() -> None:
        nonlocal looked, is_stopped
        now = time.monotonic()
        if now - looked > _LOOK_EVERY and not is_stopped:
            looked = now
            if task.is_called():
                is_stopped = True
                raise Stopped

    wire.before_exchange = look
    try:
        yield
    finally:
        wire.before_exchange = before


@contextmanager
def _in_phase(phase: str) -> Iterator[None]:
    token = current_phase.set(phase)
    try:
        yield
    finally:
        current_phase.reset(token)


# -- objects -----------------------------------------------------------------------------------------------------------

#: How the driver makes an object that stands for one of the tasks.
_KINDS: dict[type, Callable[[Context, Agreed], Any]] = {
    PartitionedSet: lambda context, agreed: PartitionedSet(context, context.local.nothing, frozenset(), whole=True),
    NamedSet: lambda context, agreed: NamedSet(context, agreed.name),
    PartitionedRanks: lambda context, agreed: PartitionedRanks(context),
    PartitionedNumbers: lambda context, agreed: PartitionedNumbers(context, "numbers"),
    PartitionedTrace: lambda context, agreed: PartitionedTrace(context),
}
_BY_NAME = {kind.__name__: new for kind, new in _KINDS.items()}


def _has_kind(thing: Any) -> bool:
    return type(thing) in _KINDS


def _kind(thing: Any) -> str:
    assert _has_kind(thing), f"a procedure returns a {type(thing).__name__}, for which nothing stands in the driver"
    return type(thing).__name__


def _agreed(thing: Any) -> Agreed:
    return thing.agreed() if isinstance(thing, PartitionedSet | PartitionedRanks) else None


def stand_in(context: Context, kind: str, agreed: Agreed) -> Any:
    """Return an object of the driver that stands for a new object of all tasks."""
    thing = _BY_NAME[kind](context, agreed)
    take_over(thing, agreed, failed=False)
    return thing


def take_over(thing: Any, agreed: Agreed, *, failed: bool) -> None:
    """Let an object of the driver know what tasks agree on, after a procedure that may have failed.

    Numbers of facts are then put back when whoever began the procedure undoes it.
    """
    if isinstance(thing, PartitionedSet) or (isinstance(thing, PartitionedRanks) and not failed):
        thing.take_over(agreed)


class _ResultPickler(pickle.Pickler):
    """Pickles a result, with the numbers of objects in their places. `new` has the objects that were not arguments."""

    def __init__(self, task: Objects):
        self.buffer = io.BytesIO()
        super().__init__(self.buffer, protocol=5)
        self._first = task.first
        self.new: list[Any] = []
        #: The driver holds the arguments. Objects may have further numbers, which it has given up.
        self._numbers = {id(thing): number for number, thing in task.named.items()}

    def persistent_id(self, thing: Any) -> int | None:
        if not _has_kind(thing):
            return None
        number = self._numbers.get(id(thing))
        if number is None:
            number = self._numbers[id(thing)] = self._first + len(self.new)
            self.new.append(thing)
        return number


class _ResultUnpickler(pickle.Unpickler):
    def __init__(self, pickled: bytes, objects: Mapping[int, Any]):
        super().__init__(io.BytesIO(pickled))
        self.persistent_load = objects.__getitem__  # type: ignore[method-assign]


def result_of(report: Report, objects: Mapping[int, Any]) -> Any:
    """Return the result of a procedure, with the driver's objects by their numbers."""
    return _ResultUnpickler(report.result, objects).load()


def tell_meter(meter: Meter, statistics: Statistics, work: Iterable[tuple[str, Rule | None, Work]]) -> None:
    """Add the work of a procedure to what a meter has counted."""
    mine = meter.statistics
    mine.instances.update(statistics.instances)
    mine.marks.update(statistics.marks)
    mine.rounds += statistics.rounds
    mine.facts += statistics.facts
    mine.choices += statistics.choices
    for phase, rule, done in work:
        meter.done.of(phase, rule).add(done)
