"""The result of a pipeline run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from upheld.base.dataclass import dataclass
from upheld.pipeline.report import RunReport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class PipelineRun:
    """A finished run of a pipeline: its relations as DataFrames, and its report."""

    frames: Mapping[str, DataFrame]
    report: RunReport
    #: Holds what the DataFrames are made of.
    _held: object = field(repr=False)

    def __getitem__(self, relation: str) -> DataFrame:
        """Return the facts of a relation that went to some sink or is an output."""
        return self.frames[relation]
