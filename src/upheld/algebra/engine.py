"""An engine: the operators on sets, the counters and classes that it creates, transactions and storage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from upheld.algebra.aggregates import Aggregate
from upheld.algebra.counters import Numbered, Numbers, Ranks, Trace
from upheld.algebra.equality import Classes, Equivalence
from upheld.algebra.sets import FactSet, SetEngine
from upheld.compiler.equality.equality import Equality
from upheld.language.core import Aggregation, Classing, Rule
from upheld.language.values import Value

R = TypeVar("R")


class Attempt(Protocol):
    """A part of a transaction that can be undone."""

    def undo(self) -> None:
        """Restore sets, counters, ranks and traces as they were when the attempt began."""


class Freed(NamedTuple):
    """Memory that was freed: rows of facts in no relation, texts that no fact has, and bytes."""

    rows: int
    texts: int
    bytes: int


class TableSize(NamedTuple):
    """Bytes that a predicate takes: its rows, indexes, bookkeeping, and the distinct texts in it.

    `entries` counts the rows, also rows in no set that wait to be freed. A text that several predicates have is one
    text, and is counted for each of them.
    """

    entries: int = 0
    rows: int = 0
    indexes: int = 0
    texts: int = 0
    bookkeeping: int = 0

    def __add__(self, other: object) -> TableSize:
        """Return the size of two tables together."""
        assert isinstance(other, TableSize), "a size that is added to something else"
        return TableSize(*(mine + theirs for mine, theirs in zip(self, other)))


class MemoryUse(NamedTuple):
    """The sizes of all predicates, and the bytes of all texts together."""

    tables: dict[str, TableSize]
    texts: int


class Engine(SetEngine, Protocol):
    """An implementation of the algebra for the facts of one program."""

    # -- state beside sets ---------------------------------------------------------------------------------------------

    def numbers(self, name: str) -> Numbers:
        """A new counter for each fact, all zero. The name is for messages."""

    def ranks(self) -> Ranks:
        """New ranks, totals and supports: no fact has any."""

    def trace(self) -> Trace:
        """A new trace: no fact has a number or a level."""

    def classes(self, equality: Equality) -> Classes:
        """New classes for equalities of a form, all singletons."""

    def equivalence(self, classing: Classing) -> Equivalence:
        """The classes of an equivalence of the program. Law: each call returns the same object."""

    def aggregate(self, aggregation: Aggregation) -> Aggregate:
        """The values of an aggregate of the program."""

    # -- transactions --------------------------------------------------------------------------------------------------

    def transaction(self) -> AbstractContextManager[None]:
        """A block that is atomic.

        Law: if it fails, named sets created before it, counters, ranks, traces and classes are as they were before it.
        """

    def attempt(self) -> AbstractContextManager[Attempt]:
        """A block within a transaction that can be undone before it ends."""

    def complete(self) -> None:
        """Do what was deferred of the changes made so far in a transaction, so that `abandon` leaves them as they are.

        Law: it changes no set and no number that somebody could read.
        """

    # -- storage -------------------------------------------------------------------------------------------------------

    def rows_with_numbers(
        self, facts: FactSet, predicate: str, books: Sequence[Numbered]
    ) -> Iterable[tuple[Value, ...]]:
        """The argument tuples of the facts of one predicate in a set, each followed by its numbers in the counters."""

    def load_with_numbers(
        self, predicate: str, rows: Iterable[tuple[Value, ...]], books: Sequence[Numbered]
    ) -> FactSet:
        """The facts of one predicate with these argument tuples; the counters take the numbers that follow them.

        Law: it undoes `rows_with_numbers`.
        """

    def abandon(self, keep: Sequence[FactSet]) -> None:
        """Drop every set but these, and all deferred work: the run that needed them has failed."""

    def reclaim(self, keep: Sequence[FactSet]) -> None:
        """Free some of the memory of facts that are in none of these sets, if it is time.

        Sets that somebody holds stay as they are. Call it outside of a transaction.
        """

    def compact(self, keep: Sequence[FactSet]) -> Freed:
        """Free all memory of facts that are in none of these sets, which `reclaim` frees step by step."""

    def memory(self) -> MemoryUse:
        """The memory that the facts of all predicates take. It reads all rows that have texts."""

    def plans(self, rule: Rule) -> Iterator[str]:
        """Yield lines that show how the engine would match a rule now."""

    def warm(self) -> None:
        """Compile now what the engine compiles once there is enough to do, as far as it depends on no rules."""

    def close(self) -> None:
        """End whatever the engine has outside of this process. It can do nothing more then."""


@runtime_checkable
class Remote(Protocol):
    """The further methods of an engine whose facts are in other processes, and may be lost with these."""

    def expect(self, sizes: Mapping[str, int]) -> None:
        """Choose where the facts of relations go, given how many explicit facts will be loaded of each."""

    def carry_out(self, function: Callable[..., R], *arguments: Any) -> R:
        """Call a function with sets of this engine where the facts are; it and its arguments can be pickled.

        Law: a call in this process has the same result and the same statistics.
        """

    def texts(self) -> int:
        """Return how many texts have codes."""

    def write(
        self, facts: FactSet, predicate: str, columns: Sequence[str], folder: str, books: Sequence[Numbered] = ()
    ) -> list[tuple[str, int]]:
        """Write the facts of one predicate to Parquet files in a folder, without passing them on to this process.

        Each fact is followed by its numbers in the counters. The files outlive a loss of power. Return their paths,
        with the rows of each.
        """

    def sees(self, folder: str) -> bool:
        """Return whether the other processes see a folder of this one under the same path."""

    def show(self, seconds: float, progress: str) -> None:
        """Show the progress of a run of some seconds where the other processes are watched."""

    def is_lost(self) -> bool:
        """Return whether facts were lost: the engine can do nothing more, and nobody has closed it."""

    def lose(self, reason: str) -> None:
        """Give the facts up: they are not what they should be."""


def carry_out(engine: Engine, function: Callable[..., R], *arguments: Any) -> R:
    """Call a function with sets of an engine: where the facts are, if they are in other processes."""
    return engine.carry_out(function, *arguments) if isinstance(engine, Remote) else function(*arguments)
