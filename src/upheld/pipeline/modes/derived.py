"""The derived facts of a run, in any mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame


class Frames(Mapping[str, DataFrame]):
    """Relations as DataFrames, each of which is made when it is first asked for."""

    def __init__(self, names: Sequence[str], make: Callable[[str], DataFrame]) -> None:
        self._names, self._make = names, make
        self._made: dict[str, DataFrame] = {}

    def __getitem__(self, name: str) -> DataFrame:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True)
class Derived:
    """The relations that somebody looks at, and for all of them the numbers of explicit facts and of facts."""

    frames: Mapping[str, DataFrame]
    sizes: dict[str, tuple[int, int]]
    rounds: int
    #: Holds what the frames are made of.
    held: object
    #: Makes a folder of Parquet with a relation by tasks, given its name, or returns False if they cannot.
    write: Callable[[str, str], bool] | None = None
