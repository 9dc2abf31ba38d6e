"""The driver's objects: each stands for the objects that all members have under one number, its own included."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, Self

from upheld.algebra.reached import Reached
from upheld.algebra.sets import FactSet
from upheld.compiler.strata import Stratum
from upheld.engines.memory.equality.code_sets import CodeSet
from upheld.engines.memory.sets.expressions import Settled
from upheld.engines.spark.counters.bags import PartitionedBag, PartitionedInstances
from upheld.engines.spark.counters.numbers import PartitionedRanks
from upheld.engines.spark.joins.derivation import Derivation
from upheld.engines.spark.sets.sets import NamedSet, PartitionedSet
from upheld.engines.spark.tasks.commands import ENGINE, is_held, mapped
from upheld.facts.columns import Columns


class Calls(Protocol):
    """A driver, which lets all members call methods."""

    #: The engine that algorithms hold.
    engine: Any
    #: Numbers of objects that nobody holds any more.
    dropped: deque[int]

    def call(self, target: Held | None, method: str, *arguments: Any, **named: Any) -> Any: ...


class EngineOfAll:
    """An engine in the driver that represents the engines of all members."""

    number = ENGINE


class Held:
    """An object that all members have under one number."""

    __slots__ = ("__weakref__", "driver", "local", "number")

    def __init__(self, driver: Calls, local: Any, number: int):
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

    def __init__(self, driver: Calls, local: Any, number: int):
        super().__init__(driver, local, number)
        #: The rows of a small set by predicate, once somebody has asked for some.
        self._read: dict[str, Columns] | None = None

    @property
    def engine(self) -> Any:
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

    def count(self, predicate: str | None = None) -> int:
        """The number of facts, which the driver knows by itself once somebody has asked for it."""
        known = self.local.counts is not None
        return int(self.local.count(predicate) if known else self.driver.call(self, "count", predicate))

    def at_most(self, predicate: str) -> int:
        return self.count(predicate)

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
        changed = local((E_minus, E_plus))
        if not self.local.are_closed(reached.strata, *changed):
            return iter(reached)
        is_done = self.driver.call(self, "maintain_closed", reached.strata, E_minus, E_plus, *sets)
        return iter(() if is_done else reached)

    def small_update(self, *update: object) -> None:
        """Return None: tasks make updates by the operators."""


_KINDS: dict[type, type[Held]] = {
    PartitionedRanks: HeldRanks,
    PartitionedSet: HeldSet,
    NamedSet: HeldSet,
    Derivation: HeldSet,
    PartitionedBag: HeldBag,
    PartitionedInstances: HeldInstances,
    CodeSet: HeldConstants,
}


def held_as(driver: Calls, own: Any, number: int) -> Held:
    """Return the object that stands for one under a number, of which this is the driver's own."""
    return _KINDS.get(type(own), Held)(driver, own, number)


def local(thing: Any) -> Any:
    """Return arguments with the driver's own objects in the place of those that all members have."""
    return mapped(thing, lambda one: one.local if isinstance(one, Held) else one)
