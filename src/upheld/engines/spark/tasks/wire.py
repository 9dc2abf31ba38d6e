"""The exchange: the only way in which the tasks of the Spark engine meet.

All tasks run the same algorithm. Where one of them needs something of the others, all of them call `exchange` with the
name of the operator: each sends some parcels to each other task, and a note that all of them read. Notes make up
whatever steers an algorithm, so that all tasks take the same branch. A task that calls another operator than the others
is out of step: all of them stop.

A task that fails says so in its next exchange, whichever operator the others are at. So all tasks fail together, with
the error of the first of them, and are in step again when each has undone its part.

Members are the tasks and, if there is one, a driver: it takes part in every exchange and owns no facts. It reads what
the tasks list. Tasks may also go on by themselves for a while (`among_tasks`), until they meet the driver again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from upheld.base.errors import Problem, UpheldError, quote

#: One item of a message: a name that both understand, and arrays.
Parcel = tuple[Any, ...]
#: The parcels for each task.
Outbox = Sequence[list[Parcel]]


class Frame(NamedTuple):
    """The message of one task to another in an exchange."""

    operator: str
    parcels: list[Parcel]
    note: Any = None
    failure: BaseException | None = None
    #: The command of the driver that the task works on.
    step: int = 0


class Wire:
    """The way from a member to the others. A transport defines `swap`.

    `parts` is the number of tasks, which own the facts. A driver is the last member.
    """

    def __init__(self, me: int, parts: int, *, has_driver: bool = False):
        self.me, self.parts = me, parts
        self.members = parts + has_driver
        #: The members that read what all tasks list: the driver, or every task.
        self.readers = range(parts, parts + 1) if has_driver else range(parts)
        #: Called before each exchange: a driver sends the commands that lead to it.
        self.before_exchange: Callable[[], None] = lambda: None
        #: How many exchanges there have been.
        self.exchanges = 0
        #: The command of the driver that is being carried out, and the last one that a failure has ended.
        self.step = self.ended = 0
        #: Whether a member cannot be reached any more.
        self.is_broken = False
        #: The failure that all members know of, while it is on its way to whoever undoes the work.
        self._known: BaseException | None = None

    def swap(self, frames: Sequence[Frame]) -> list[Frame]:
        """Send a frame to each member, and return the frames that they sent to this one."""
        raise NotImplementedError

    def close(self) -> None:
        """End the wire: whoever waits for this member stops waiting."""
        raise NotImplementedError

    def wait(self, look: Callable[[], None]) -> None:
        """Wait, in the driver, until a task is at an exchange with it; call something meanwhile, now and then."""
        raise NotImplementedError

    @contextmanager
    def among_tasks(self) -> Iterator[None]:
        """A block, in all tasks, whose exchanges the driver takes no part in: a message less for each of them."""
        members, readers = self.members, self.readers
        self.members, self.readers = self.parts, range(self.parts)
        try:
            yield
        finally:
            self.members, self.readers = members, readers

    def knows(self, error: BaseException) -> bool:
        """Return whether a failure has been sent to all members, or has come from one of them."""
        return error is self._known

    def shared(self, error: BaseException) -> BaseException:
        """Return an error that need not go to the other members: they know of it, or the wire is broken."""
        self._known = error
        return error

    def read_by(self, parcels: list[Parcel]) -> Outbox:
        """Return an outbox with parcels for the members that read what tasks list."""
        return [parcels if q in self.readers else [] for q in range(self.members)]

    def fail(self, error: BaseException) -> None:
        """Tell the other members of a failure in this one, in their next exchange."""
        self.before_exchange()
        self.exchanges += 1
        self._known = error
        frames = self.swap([Frame("failure", [], None, error, self.step)] * self.members)
        self.ended = max(frame.step for frame in frames)

    def exchange(self, operator: str, outbox: Outbox | None = None, note: Any = None) -> tuple[Outbox, list[Any]]:
        """Send parcels to each task and a note to all; return the parcels from each task, and all notes."""
        self.before_exchange()
        self.exchanges += 1
        step = self.step
        frames = self.swap(
            [Frame(operator, outbox[q] if outbox else [], note, None, step) for q in range(self.members)]
        )
        failure = next((f.failure for f in frames if f.failure is not None), None)
        if failure is None and any(f.operator != operator or f.step != step for f in frames):
            failure = _out_of_step([f.operator for f in frames])
        if failure is not None:
            self._known, self.ended = again(failure), max(f.step for f in frames)
            raise self._known
        return [f.parcels for f in frames], [f.note for f in frames]

    @contextmanager
    def in_step(self) -> Iterator[None]:
        """A block that fails in all tasks if it fails in one of them."""
        try:
            yield
            self.exchange("end of a block")
        except BaseException as error:
            if not self.knows(error) and not self.is_broken:
                self.fail(error)
            raise


def again(error: BaseException) -> BaseException:
    """Return an error of another task, to be raised in this one."""
    return type(error)(error.problems) if isinstance(error, UpheldError) else error


def _out_of_step(operators: Sequence[str]) -> UpheldError:
    shown = ", ".join(f"task {q} at {quote(operator)}" for q, operator in enumerate(operators))
    return UpheldError(
        Problem(
            "out-of-step",
            f"the tasks of the Spark engine have taken different branches: {shown}",
            note="all tasks run the same operators in the same order",
            hint="this is a bug in Upheld; the update was undone, and the memory engine can make it",
        )
    )


def task_lost(reason: str) -> UpheldError:
    return UpheldError(
        Problem(
            "task-lost",
            "a task of the Spark engine has ended",
            note=f"the connection to it broke: {reason}",
            hint="its process was stopped or ran out of memory: look at the log of its executor, and start again",
        )
    )
