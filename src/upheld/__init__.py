"""Upheld keeps what your rules derive true while your data changes."""

from upheld.algebra.meter import Limits, Statistics
from upheld.applying import apply, read_updates
from upheld.checking import Report, check
from upheld.errors import UpheldError
from upheld.language.ast import Program
from upheld.materialisation import Change, Materialisation, Progress, materialise, parse
from upheld.relation import Relation
from upheld.running import Run, load, run
from upheld.updatefiles import Update

__version__ = "0.1.0"

__all__ = [
    "Change",
    "Limits",
    "Materialisation",
    "Program",
    "Progress",
    "Relation",
    "Report",
    "Run",
    "Statistics",
    "Update",
    "UpheldError",
    "apply",
    "check",
    "load",
    "materialise",
    "parse",
    "read_updates",
    "run",
]
