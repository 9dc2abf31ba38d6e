"""Upheld keeps what your rules derive true while your data changes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from upheld.base.errors import ConstraintViolated as ConstraintViolated
from upheld.base.errors import UpheldError as UpheldError
from upheld.base.errors import UpheldWarning as UpheldWarning

if TYPE_CHECKING:
    from upheld import rdf as rdf
    from upheld.base.limits import Limits as Limits
    from upheld.base.statistics import Statistics as Statistics
    from upheld.engines.spark.session import spark_session as spark_session
    from upheld.engines.spark.sparkengine import SparkEngine as SparkEngine
    from upheld.explain import Explanation as Explanation
    from upheld.explain import Failure as Failure
    from upheld.explain import Proof as Proof
    from upheld.explain import ProofStep as ProofStep
    from upheld.facts.change import Change as Change
    from upheld.facts.ingest.functors import functor as functor
    from upheld.facts.relation import Relation as Relation
    from upheld.facts.updatefiles import ChangeFile as ChangeFile
    from upheld.facts.updatefiles import Update as Update
    from upheld.language.ast import Program as Program
    from upheld.language.types.records import Record as Record
    from upheld.materialisation.build import materialise as materialise
    from upheld.materialisation.build import materialize as materialize
    from upheld.materialisation.build import restore as restore
    from upheld.materialisation.materialisation import Materialisation as Materialisation
    from upheld.materialisation.persistence.kept import Keeping as Keeping
    from upheld.materialisation.programs import parse as parse
    from upheld.materialisation.progress import Progress as Progress
    from upheld.materialisation.project import Project as Project
    from upheld.materialisation.project import load as load
    from upheld.materialisation.project import read_updates as read_updates
    from upheld.materialisation.reports.check import Report as Report
    from upheld.materialisation.reports.check import check as check
    from upheld.materialisation.reports.history import FactEvent as FactEvent
    from upheld.materialisation.reports.history import FactHistory as FactHistory
    from upheld.materialisation.reports.memory import Memory as Memory
    from upheld.materialisation.reports.profile import Profile as Profile
    from upheld.materialisation.reports.program_change import ProgramChange as ProgramChange
    from upheld.materialisation.updates.stream import Arrivals as Arrivals
    from upheld.materialisation.updates.transaction import Transaction as Transaction
    from upheld.materialisation.versions.snapshot import Snapshot as Snapshot
    from upheld.pipeline import Pipeline as Pipeline
    from upheld.store.kept.reading import read_table as read_table
    from upheld.store.kept.reading import table_files as table_files

__version__ = "0.1.0"

#: The names of each module that are imported when they are first asked for. Most programs use few of them, and all
#: together load four hundred modules; a test compares this table with the imports for type checkers above.
_NAMES = {
    "upheld.base.limits": "Limits",
    "upheld.base.statistics": "Statistics",
    "upheld.engines.spark.session": "spark_session",
    "upheld.engines.spark.sparkengine": "SparkEngine",
    "upheld.explain": "Explanation Failure Proof ProofStep",
    "upheld.facts.change": "Change",
    "upheld.facts.ingest.functors": "functor",
    "upheld.facts.relation": "Relation",
    "upheld.facts.updatefiles": "ChangeFile Update",
    "upheld.language.ast": "Program",
    "upheld.language.types.records": "Record",
    "upheld.materialisation.build": "materialise materialize restore",
    "upheld.materialisation.materialisation": "Materialisation",
    "upheld.materialisation.persistence.kept": "Keeping",
    "upheld.materialisation.programs": "parse",
    "upheld.materialisation.progress": "Progress",
    "upheld.materialisation.project": "Project load read_updates",
    "upheld.materialisation.reports.check": "Report check",
    "upheld.materialisation.reports.history": "FactEvent FactHistory",
    "upheld.materialisation.reports.memory": "Memory",
    "upheld.materialisation.reports.profile": "Profile",
    "upheld.materialisation.reports.program_change": "ProgramChange",
    "upheld.materialisation.updates.stream": "Arrivals",
    "upheld.materialisation.updates.transaction": "Transaction",
    "upheld.materialisation.versions.snapshot": "Snapshot",
    "upheld.pipeline": "Pipeline",
    "upheld.store.kept.reading": "read_table table_files",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

if not TYPE_CHECKING:  # type checkers go by the imports, and cannot read this
    __all__ = sorted(("ConstraintViolated", "UpheldError", "UpheldWarning", "rdf", *_HOMES))


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for."""
    if name == "rdf":
        return import_module("upheld.rdf")
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value  # later uses find it there
        return value
    hint = "; it is spelt 'Materialisation'" if name == "Materialization" else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    """Return the public names, also those that are imported when they are first used."""
    return sorted({*globals(), *_HOMES, "rdf"})
