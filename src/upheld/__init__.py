"""Upheld keeps what your rules derive true while your data changes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from upheld.data.change import Change
from upheld.data.relation import Relation
from upheld.errors import ConstraintViolated, UpheldError, UpheldWarning
from upheld.explain import Explanation, Failure, Proof, ProofStep
from upheld.language.syntax.ast import Program
from upheld.language.types.records import Record
from upheld.materialisation.build import materialise, restore
from upheld.materialisation.materialisation import Materialisation
from upheld.materialisation.persistence.kept import Keeping
from upheld.materialisation.programs import parse
from upheld.materialisation.progress import Progress
from upheld.materialisation.reports.history import FactEvent, FactHistory
from upheld.materialisation.reports.memory import Memory
from upheld.materialisation.reports.profile import Profile
from upheld.materialisation.reports.program_change import ProgramChange
from upheld.materialisation.updates.stream import Arrivals
from upheld.materialisation.updates.transaction import Transaction
from upheld.materialisation.versions.snapshot import Snapshot
from upheld.runs.apply import apply, read_updates
from upheld.runs.check import Report, check
from upheld.runs.history import history
from upheld.runs.run import Run, load, run
from upheld.runtime.limits import Limits
from upheld.runtime.statistics import Statistics
from upheld.tables.reading import read_table, table_files
from upheld.updatefiles import Update

if TYPE_CHECKING:
    from upheld import rdf
    from upheld.engines.spark.sparkengine import SparkEngine
    from upheld.ingest.functors import functor
    from upheld.pipeline import Pipeline
    from upheld.spark.session import open_session as spark_session

#: `materialise`, in the other spelling.
materialize = materialise

__version__ = "0.1.0"

__all__ = [
    "Arrivals",
    "Change",
    "ConstraintViolated",
    "Explanation",
    "FactEvent",
    "FactHistory",
    "Failure",
    "Keeping",
    "Limits",
    "Materialisation",
    "Memory",
    "Pipeline",
    "Profile",
    "Program",
    "ProgramChange",
    "Progress",
    "Proof",
    "ProofStep",
    "Record",
    "Relation",
    "Report",
    "Run",
    "Snapshot",
    "SparkEngine",
    "Statistics",
    "Transaction",
    "Update",
    "UpheldError",
    "UpheldWarning",
    "apply",
    "check",
    "functor",
    "history",
    "load",
    "materialise",
    "materialize",
    "parse",
    "rdf",
    "read_table",
    "read_updates",
    "restore",
    "run",
    "spark_session",
    "table_files",
]


def __getattr__(name: str) -> object:
    """Import what most programs do not use when it is first asked for."""
    if name == "Pipeline":
        from upheld.pipeline import Pipeline

        return Pipeline
    if name == "functor":
        from upheld.ingest.functors import functor

        return functor
    if name == "rdf":
        return import_module("upheld.rdf")
    if name == "spark_session":
        from upheld.spark.session import open_session

        return open_session
    if name == "SparkEngine":
        from upheld.engines.spark.sparkengine import SparkEngine

        return SparkEngine
    hint = "; it is spelt 'Materialisation'" if name == "Materialization" else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    """Return the public names, also those that are imported when they are first used."""
    return sorted({*globals(), *__all__})
