"""What follows from the facts of a run, wherever the rules were applied."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Derived:
    """The relations that somebody looks at, and for all of them the numbers of explicit facts and of facts."""

    frames: dict[str, DataFrame]
    sizes: dict[str, tuple[int, int]]
    rounds: int
    #: Holds what the frames are made of.
    held: object
