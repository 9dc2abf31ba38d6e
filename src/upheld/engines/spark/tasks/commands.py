"""Commands of a driver, which all members carry out in step.

The driver runs the algorithms. Whatever it asks of its engine is a command: an operator, the object that it is applied
to, and its arguments. Every member has the same objects under the same numbers: a task with its part of the facts, the
driver with none. The driver sends a command to all tasks, carries it out itself, and takes part in its exchanges. So it
knows whatever all members agree on, and no task answers it. Commands before the next exchange go in one message. A
procedure of an algorithm is one command, which tasks carry out without the driver (`procedures`).

A member that fails in a command says so in the next exchange of the others, which may be at a later command. All of
them then fail, and go on with the next command of the driver.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from upheld.base.errors import UpheldError
from upheld.engines.spark.tasks.procedures import carry_out
from upheld.engines.spark.tasks.wire import Wire

#: Makes the engine of a member. It goes to the process of a task by pickling.
NewEngine = Callable[[Wire], Any]

#: The modules that define the objects of engines.
_ENGINES = __name__.split("spark")[0]

#: The number of the member itself, whose methods the driver calls where no object has them.
MEMBER = 0

#: The number of its engine.
ENGINE = 1


class Command(NamedTuple):
    """One command of a driver, which tasks read."""

    #: Counts the commands.
    step: int
    #: Numbers of objects that the driver does not hold any more.
    dropped: list[int]
    #: Objects that it has not sent before, such as rules: their numbers, and their pickles.
    sent: list[tuple[int, bytes]]
    target: int
    method: str
    #: The pickled arguments: those by position, and those by name.
    arguments: bytes
    #: The number of the first object of the result; others follow it.
    first: int


class _Abandoned(Exception):
    """Ends a block that the driver has left with an error."""


class Member:
    """A task or the driver: its engine, and the objects that the driver knows by their numbers."""

    def __init__(self, wire: Wire, new_engine: NewEngine, is_called: Callable[[], bool] = lambda: False):
        self.wire, self._new_engine = wire, new_engine
        #: Whether the driver has sent another message.
        self.is_called = is_called
        self.engine: Any = None
        self.objects: dict[int, Any] = {}
        self._numbers: dict[int, int] = {}
        self._hold(MEMBER, self)
        #: The objects that a command has named, and the number of the first new object of its result.
        self.named: dict[int, Any] = {}
        self.first = 0
        self._blocks: list[AbstractContextManager[Any]] = []

    def follow(self, message: bytes) -> None:
        """Carry out the commands of a message, in a task."""
        for command in pickle.loads(message):
            if not self.wire.is_broken:
                self._carry_out(Command(*command))

    def _carry_out(self, command: Command) -> None:
        for number in command.dropped:
            self._drop(number)
        for number, pickled in command.sent:
            self._hold(number, self._unpickled(pickled))
        if command.step <= self.wire.ended:
            return  # a failure has ended it before it began here
        self.wire.step = command.step
        self.named, self.first = {}, command.first
        try:
            target, (arguments, named) = self.objects[command.target], self._unpickled(command.arguments)
            _, objects = self.call(target, command.method, arguments, named)
            for number, thing in enumerate(objects, command.first):
                self._hold(number, thing)
        except BaseException as error:
            if not self.wire.knows(error):
                self._share(error)

    def _share(self, error: BaseException) -> None:
        """Let the other members know of a failure, unless the driver leaves meanwhile: then there is no one to know."""
        try:
            self.wire.fail(error)
        except UpheldError:
            if not self.wire.is_broken:
                raise

    def _hold(self, number: int, thing: Any) -> None:
        self.objects[number], self._numbers[id(thing)] = thing, number

    def _drop(self, number: int) -> None:
        if number in self.objects:
            thing = self.objects.pop(number)
            if self._numbers.get(id(thing)) == number:
                del self._numbers[id(thing)]

    def number_of(self, thing: Any) -> int | None:
        """Return the number of an object, if it has one."""
        return self._numbers.get(id(thing))

    def _unpickled(self, pickled: bytes) -> Any:
        unpickler = pickle.Unpickler(io.BytesIO(pickled))
        unpickler.persistent_load = self._object  # type: ignore[method-assign]
        return unpickler.load()

    def _object(self, number: int) -> Any:
        thing = self.named[number] = self.objects[number]
        return thing

    def call(
        self, target: Any, method: str, arguments: Sequence[Any], named: Mapping[str, Any]
    ) -> tuple[Any, list[Any]]:
        """Call a method; return its result, and the objects in it that have numbers, in order.

        An operator that lists facts as an iterator may exchange as it goes on: all members do that here.
        """
        result = getattr(target, method)(*arguments, **named)
        if isinstance(result, Iterator):
            result = list(result)
        objects: list[Any] = []
        if result is not target:
            mapped(result, lambda thing: objects.append(thing) if is_held(thing) else None)
        return result, objects

    # -- what the driver asks of a member ------------------------------------------------------------------------------

    def open(self) -> None:
        """Make the engine."""
        self.engine = self._new_engine(self.wire)
        self._hold(ENGINE, self.engine)

    def know_rules(self, first: int) -> None:
        """Give the rules of the program numbers from `first` on: every member has them, and none is sent."""
        for number, rule in enumerate(self.engine.rules, first):
            self._hold(number, rule)

    def ask(self, method: str, *arguments: Any, **named: Any) -> Any:
        """Call a method of the engine."""
        return getattr(self.engine, method)(*arguments, **named)

    def get(self, attribute: str, thing: Any = None) -> Any:
        """Return an object that another one has, or the engine."""
        return getattr(self.engine if thing is None else thing, attribute)

    def carry_out(self, function: Callable[..., Any], arguments: Sequence[Any], phase: str) -> list[Any]:
        """Carry out a procedure with the other tasks, in a task."""
        return carry_out(self, function, arguments, phase)

    def meet(self) -> None:
        """Meet the other members, of which the driver has failed."""
        self.wire.exchange("meet")

    def enter_transaction(self) -> None:
        """Enter a transaction of the engine."""
        self._enter(self.engine.transaction())

    def enter_attempt(self) -> Any:
        """Enter an attempt within a transaction, and return it."""
        return self._enter(self.engine.attempt())

    def enter_run(self) -> None:
        """Enter a run: limits count from here. The driver's meter has begun it."""
        self._enter(self.engine.meter.run() if self.wire.me < self.wire.parts else nullcontext())

    def _enter(self, block: AbstractContextManager[Any]) -> Any:
        entered = block.__enter__()
        self._blocks.append(block)
        return entered

    def leave(self, depth: int, succeeded: bool) -> None:
        """Leave blocks until `depth` of them are open.

        A member that ends leaves all of them: otherwise they would undo their work whenever the garbage is collected,
        in the middle of what the process does next.
        """
        while len(self._blocks) > depth:
            block = self._blocks.pop()
            if succeeded:
                block.__exit__(None, None, None)
                continue
            error = self.wire.shared(_Abandoned())
            try:
                block.__exit__(_Abandoned, error, None)
            except _Abandoned:
                continue


#: Types of values without others in them: asking whether each is a mapping takes as long as all else.
_PLAIN = frozenset((int, str, float, bool, bytes, type(None)))


def is_held(thing: Any) -> bool:
    """Return whether something is an object of an engine, which members hold under a number.

    All else is the same in all members, or is read by the driver alone.
    """
    return type(thing).__module__.startswith(_ENGINES)


def mapped(thing: Any, function: Callable[[Any], Any]) -> Any:
    """Return a value with a function applied to all values that tuples, lists and mappings in it have."""
    if type(thing) in _PLAIN:
        return function(thing)
    if isinstance(thing, tuple | list):
        things = [mapped(one, function) for one in thing]
        return type(thing)(*things) if hasattr(thing, "_fields") else type(thing)(things)
    if isinstance(thing, Mapping):
        return {key: mapped(one, function) for key, one in thing.items()}
    return function(thing)
