"""Streams of updates as they arrive. Algorithms that look ahead get the next one if it is there; none waits for it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

from upheld.base.errors import Problem, UpheldError, UsageError, bad_argument, described_type, is_whole, quote, require
from upheld.facts.change import mixed_sources
from upheld.facts.ingest.by_relation import FACTS, are_facts
from upheld.materialisation.updates.sources import SOURCE, is_source

#: An update as a stream brings it, as it waits to be made, and what comes of it.
U = TypeVar("U")
L = TypeVar("L")
C = TypeVar("C")

#: Updates that `Arrivals` keeps waiting at most, if it is not told.
MOST_WAITING = 1024


class Arriving(Protocol):
    """An iterator of updates that knows whether the next one has arrived."""

    def __next__(self) -> object: ...

    def ready(self) -> bool: ...


class Arrivals(Generic[U]):
    """An iterator of updates that reads them in a thread of its own, and knows which have arrived.

    The iterable is used in that thread only. An error of the iteration is raised after all updates before it.

    Args:
        updates: Iterable of updates, as for `Materialisation.stream`.
        most: Maximum number of waiting updates; reading pauses when it is reached.

    >>> import upheld
    >>> m = upheld.materialise("path(x, y) :- edge(x, y).", {"edge": [(8, 9)]})
    >>> updates = ({"insert": {"edge": [(i, i + 1)]}} for i in range(3))
    >>> [len(change.inserted["path"]) for change in m.stream(upheld.Arrivals(updates))]
    [1, 1, 1]
    """

    def __init__(self, updates: Iterable[U], *, most: int = MOST_WAITING):
        require(isinstance(updates, Iterable), "updates", "an iterable of updates", updates)
        require(is_whole(most, 1), "most", "a whole number of at least 1", most)
        self._updates, self._most = updates, most
        self._waiting: deque[U] = deque()
        self._changed = threading.Condition()
        self._error: BaseException | None = None
        self._ended = self._closed = False
        threading.Thread(target=self._read, name="upheld-arrivals", daemon=True).start()

    def _read(self) -> None:
        try:
            for update in self._updates:
                with self._changed:
                    self._changed.wait_for(lambda: len(self._waiting) < self._most or self._closed)
                    if self._closed:
                        break
                    self._waiting.append(update)
                    self._changed.notify_all()
        except BaseException as error:  # raised in the thread of whoever takes the updates
            self._error = error
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> U:
        """Return the next update, and wait for it if need be."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ended)
            if self._waiting:
                update = self._waiting.popleft()
                self._changed.notify_all()
                return update
            error, self._error = self._error, None
        raise error if error is not None else StopIteration

    def ready(self) -> bool:
        """Return whether an update has arrived."""
        return bool(self._waiting)

    def close(self) -> None:
        """Read no more updates than the one that is being read."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class Present(Generic[U]):
    """Updates that are there when they are asked for: in a list, or in a file."""

    def __init__(self, updates: Iterable[U]):
        self._updates = iter(updates)
        self._next: list[U] = []
        self._ended = False
        #: The error that ended the updates, for the caller that takes the next one. It is dropped then: its traceback
        #: holds the whole stream.
        self._error: Exception | None = None

    def __iter__(self) -> Self:
        return self

    def ready(self) -> bool:
        if not self._next and not self._ended:
            try:
                self._next.append(next(self._updates))
            except StopIteration:
                self._ended = True
            except Exception as error:
                self._ended, self._error = True, error
        return bool(self._next)

    def __next__(self) -> U:
        if self.ready():
            return self._next.pop()
        error, self._error = self._error, None
        try:
            raise error if error is not None else StopIteration
        finally:
            del error


class Unforeseen:
    """Updates of an iterator, which may have to be waited for."""

    def __init__(self, updates: Iterator[object]):
        self._updates = updates

    def ready(self) -> bool:
        return False

    def __next__(self) -> object:
        return next(self._updates)


def arriving(updates: Iterable[object]) -> Arriving:
    """Return updates as what knows whether the next one is there."""
    if hasattr(updates, "ready"):
        return updates  # type: ignore[return-value]
    if isinstance(updates, Iterator):
        return Unforeseen(updates)
    return Present(updates)


# -- making them -------------------------------------------------------------------------------------------------------


@dataclass
class Arrived(Generic[L]):
    """An update that waits to be made, or what is wrong with it: that is said when its turn comes."""

    number: int
    given: L | None = None
    error: UpheldError | None = None


class Queue(Generic[L, C]):
    """The updates of a stream that have arrived, and how they are made.

    `load` takes the facts of an update, or the source that it retracts. `make` gets a list of one update, or of several
    to make as one, their numbers, and the next updates that have been taken: as many again if the algorithm
    `looks_ahead` by now. An update that is `alone` is not merged with others.
    """

    def __init__(
        self,
        load: Callable[[Sides], L],
        make: Callable[[list[L], tuple[int, ...], Sequence[L]], C],
        looks_ahead: Callable[[], bool],
        merge_waiting: int,
        alone: Callable[[L], bool] = lambda update: False,
    ):
        if not is_whole(merge_waiting, 1):
            message = f"`merge_waiting` must be a whole number of at least 1, got {quote(merge_waiting)}"
            raise UsageError(Problem("bad-merge-waiting", message, hint="1 applies each update by itself"))
        self._load, self._make, self._together, self._alone = load, make, merge_waiting, alone
        self._looks_ahead = looks_ahead
        self._waiting: deque[Arrived[L]] = deque()
        self._taken = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @property
    def wants_more(self) -> bool:
        """Whether it would be of use to know of another update."""
        return len(self._waiting) < (2 * self._together if self._looks_ahead() else self._together)

    def take(self, update: object) -> None:
        """Let an update wait for its turn."""
        self._taken += 1
        arrived: Arrived[L] = Arrived(self._taken)
        try:
            arrived.given = self._load(facts_of_update(update))
        except UpheldError as error:
            arrived.error = error
        self._waiting.append(arrived)

    def make_next(self) -> C:
        """Make the first of the waiting updates, merged with those behind it that may be merged."""
        if self._waiting[0].error is not None:
            raise self._waiting.popleft().error  # type: ignore[misc]
        chosen = self._good(self._together)
        apart = next((i for i, update in enumerate(chosen) if self._alone(update)), len(chosen))
        chosen = chosen[: max(apart, 1)]
        numbers = tuple(self._waiting.popleft().number for _ in chosen)
        return self._make(chosen, numbers, self._good(self._together))

    def _good(self, most: int) -> list[L]:
        """Return at most `most` of the waiting updates, up to the first with an error."""
        good: list[L] = []
        for arrived in self._waiting:
            if arrived.given is None or len(good) == most:
                break
            good.append(arrived.given)
        return good


def follow(queue: Queue[L, C], updates: Iterable[object]) -> Iterator[C]:
    """Make updates as they come, and yield what comes of each."""
    source = arriving(updates)
    while True:
        if not queue:
            try:
                update = next(source)  # type: ignore[call-overload]
            except StopIteration:
                return
            queue.take(update)
        while queue.wants_more and source.ready():
            queue.take(next(source))  # type: ignore[call-overload]
        yield queue.make_next()


async def follow_async(queue: Queue[L, C], updates: AsyncIterable[object]) -> AsyncIterator[C]:
    """Make updates as they come, in the thread of the event loop, and yield what comes of each."""
    import asyncio

    source = aiter(updates)
    coming: asyncio.Future[object] | None = None
    try:
        while True:
            while not queue or queue.wants_more:
                coming = coming or asyncio.ensure_future(anext(source))
                if queue:
                    await asyncio.sleep(0)  # whatever can go on without waiting does so now
                    if not coming.done() or coming.exception() is not None:
                        break
                try:
                    update = await coming
                except StopAsyncIteration:
                    return
                coming = None
                queue.take(update)
            yield queue.make_next()
    finally:
        if coming is not None:
            coming.cancel()


def updates_text(numbers: Sequence[int]) -> str:
    """Return the updates of a stream that are made as one, for a message.

    >>> updates_text((3,)), updates_text((3, 4, 5))
    ('update 3 of the stream', 'the merge of updates 3 to 5 of the stream')
    """
    if len(numbers) == 1:
        return f"update {numbers[0]} of the stream"
    return f"the merge of updates {numbers[0]} to {numbers[-1]} of the stream"


class Sides(NamedTuple):
    """The facts that an update deletes, inserts, and replaces whole relations by, and their source.

    An update that retracts a source has no facts.
    """

    delete: Mapping[str, object]
    insert: Mapping[str, object]
    replace: Mapping[str, object]
    source: str | None = None
    retract: str | None = None


def facts_of_update(update: object) -> Sides:
    """Return the facts of an update of a stream, or the source that it retracts."""
    if isinstance(update, Mapping):
        if other := next((name for name in update if name not in Sides._fields), None):
            only = "an update has only `insert`, `delete`, `replace`, `source` and `retract`"
            raise UsageError(Problem("unsupported-update", f"an update of the stream has {quote(other)}, but {only}"))
        delete, insert, replace = (update.get(side) or {} for side in ("delete", "insert", "replace"))
        sides = Sides(delete, insert, replace, update.get("source"), update.get("retract"))
    else:
        try:
            delete, insert = update.delete or {}, update.insert or {}  # type: ignore[attr-defined]
        except AttributeError:
            message = f"an update of the stream is {described_type(update)}"
            note = "an update is an `upheld.Update`, or a dictionary with the facts to `insert`, `delete` and `replace`"
            raise UsageError(Problem("unsupported-update", message, note=note)) from None
        replace, source, retract = (getattr(update, name, None) for name in ("replace", "source", "retract"))
        sides = Sides(delete, insert, replace or {}, source, retract)
    for name, value in zip(Sides._fields, sides):
        accepts, meaning = (is_source, SOURCE) if name in ("source", "retract") else (are_facts, FACTS)
        if value is not None and not accepts(value):
            raise bad_argument(f"`{name}` of an update", meaning, value)
    if sides.retract is not None and any(sides[:-1]):
        message = f"an update of the stream retracts {quote(sides.retract)}, and has facts or a source as well"
        raise UsageError(mixed_sources(message))
    return sides
