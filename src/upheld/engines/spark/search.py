"""Backward chaining on DataFrames: all candidates for a fact at once, since a job costs more than a few of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from upheld.algebra.sets import FactSet
from upheld.engines.spark.bags import SparkInstances
from upheld.engines.spark.sets import Named, SparkSet, own_set
from upheld.language.core import Rule

if TYPE_CHECKING:
    from upheld.engines.spark.engine import DataFrameEngine


class SparkSearch:
    """Backward chaining: the instances of a fact are returned when it is asked for first."""

    def __init__(self, engine: DataFrameEngine, rules: Sequence[Rule]):
        self.engine, self.rules = engine, rules
        self._asked = Named(engine)

    def more(self, H: FactSet, P: FactSet, N: FactSet) -> SparkInstances:
        new = self.unfinished(H)
        new.parts()
        found = self.engine.supports(self.rules, new, P, N)
        found.rows()
        self._asked |= new
        return found

    def unfinished(self, H: FactSet) -> SparkSet:
        return own_set(H) - self._asked
