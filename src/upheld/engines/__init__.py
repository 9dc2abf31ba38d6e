"""Engines by name. Each is imported when it is first asked for, so that its packages are needed only then."""

from __future__ import annotations

from upheld.algebra.meter import Limits, Meter
from upheld.algebra.reference import ReferenceEngine
from upheld.algebra.words import Engine
from upheld.errors import MissingDependency, Problem, UsageError, nearest, quote
from upheld.language.core import Core

ENGINES = ("memory", "reference")


def open_engine(name: str, core: Core, limits: Limits | None = None) -> Engine:
    """Return a new engine of that name for the facts of a program."""
    if name == "reference":
        return ReferenceEngine(Meter(limits))
    if name == "memory":
        try:
            from upheld.engines.memory.engine import MemoryEngine
        except ModuleNotFoundError as e:
            raise MissingDependency(
                Problem(
                    "missing-dependency",
                    f"the memory engine needs the package {quote(e.name)}",
                    hint="pip install numpy numba, or choose engine=`reference`, which needs nothing",
                )
            ) from None
        return MemoryEngine(core, Meter(limits))
    raise UsageError(
        Problem(
            "unknown-engine",
            f"unknown engine {quote(name)}",
            note=f"the engines are {', '.join(map(quote, ENGINES))}",
            hint=nearest(name, ENGINES),
        )
    )
