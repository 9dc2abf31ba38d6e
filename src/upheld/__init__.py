"""Upheld keeps what your rules derive true while your data changes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from upheld.base.errors import ConstraintViolated, UpheldError, UpheldWarning

if TYPE_CHECKING:
    from upheld import rdf
    from upheld.base.limits import Limits
    from upheld.base.statistics import Statistics
    from upheld.engines.spark.session import open_session as spark_session
    from upheld.engines.spark.sparkengine import SparkEngine
    from upheld.explain import Explanation, Failure, Proof, ProofStep
    from upheld.facts.change import Change
    from upheld.facts.ingest.functors import functor
    from upheld.facts.relation import Relation
    from upheld.facts.updatefiles import ChangeFile, Update
    from upheld.language.ast import Program
    from upheld.language.types.records import Record
    from upheld.materialisation.build import materialise, restore
    from upheld.materialisation.build import materialise as materialize
    from upheld.materialisation.materialisation import Materialisation
    from upheld.materialisation.persistence.kept import Keeping
    from upheld.materialisation.programs import parse
    from upheld.materialisation.progress import Progress
    from upheld.materialisation.project import Project, load, read_updates
    from upheld.materialisation.reports.check import Report, check
    from upheld.materialisation.reports.history import FactEvent, FactHistory
    from upheld.materialisation.reports.memory import Memory
    from upheld.materialisation.reports.profile import Profile
    from upheld.materialisation.reports.program_change import ProgramChange
    from upheld.materialisation.updates.stream import Arrivals
    from upheld.materialisation.updates.transaction import Transaction
    from upheld.materialisation.versions.snapshot import Snapshot
    from upheld.pipeline import Pipeline
    from upheld.store.kept.reading import read_table, table_files

__version__ = "0.1.0"

__all__ = [
    "Arrivals",
    "Change",
    "ChangeFile",
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
    "Project",
    "Proof",
    "ProofStep",
    "Record",
    "Relation",
    "Report",
    "Snapshot",
    "SparkEngine",
    "Statistics",
    "Transaction",
    "Update",
    "UpheldError",
    "UpheldWarning",
    "check",
    "functor",
    "load",
    "materialise",
    "materialize",
    "parse",
    "rdf",
    "read_table",
    "read_updates",
    "restore",
    "spark_session",
    "table_files",
]

#: The module of each name that is imported when it is first asked for. Most programs use few of them, and all
#: together load four hundred modules; a test compares this table with the imports for type checkers above.
_HOMES = {
    "Arrivals": "upheld.materialisation.updates.stream",
    "Change": "upheld.facts.change",
    "ChangeFile": "upheld.facts.updatefiles",
    "Explanation": "upheld.explain",
    "FactEvent": "upheld.materialisation.reports.history",
    "FactHistory": "upheld.materialisation.reports.history",
    "Failure": "upheld.explain",
    "Keeping": "upheld.materialisation.persistence.kept",
    "Limits": "upheld.base.limits",
    "Materialisation": "upheld.materialisation.materialisation",
    "Memory": "upheld.materialisation.reports.memory",
    "Pipeline": "upheld.pipeline",
    "Profile": "upheld.materialisation.reports.profile",
    "Program": "upheld.language.ast",
    "ProgramChange": "upheld.materialisation.reports.program_change",
    "Progress": "upheld.materialisation.progress",
    "Project": "upheld.materialisation.project",
    "Proof": "upheld.explain",
    "ProofStep": "upheld.explain",
    "Record": "upheld.language.types.records",
    "Relation": "upheld.facts.relation",
    "Report": "upheld.materialisation.reports.check",
    "Snapshot": "upheld.materialisation.versions.snapshot",
    "SparkEngine": "upheld.engines.spark.sparkengine",
    "Statistics": "upheld.base.statistics",
    "Transaction": "upheld.materialisation.updates.transaction",
    "Update": "upheld.facts.updatefiles",
    "check": "upheld.materialisation.reports.check",
    "functor": "upheld.facts.ingest.functors",
    "load": "upheld.materialisation.project",
    "materialise": "upheld.materialisation.build",
    "materialize": "upheld.materialisation.build",
    "parse": "upheld.materialisation.programs",
    "read_table": "upheld.store.kept.reading",
    "read_updates": "upheld.materialisation.project",
    "restore": "upheld.materialisation.build",
    "spark_session": "upheld.engines.spark.session",
    "table_files": "upheld.store.kept.reading",
}

#: The names that these have in their modules, where they have others. `materialize` is the other spelling.
_NAMES_AT_HOME = {"materialize": "materialise", "spark_session": "open_session"}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for."""
    if name == "rdf":
        return import_module("upheld.rdf")
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), _NAMES_AT_HOME.get(name, name))
        globals()[name] = value  # later uses find it there
        return value
    hint = "; it is spelt 'Materialisation'" if name == "Materialization" else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    """Return the public names, also those that are imported when they are first used."""
    return sorted({*globals(), *__all__})
