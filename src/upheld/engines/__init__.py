"""Engines by name. Each is imported when it is first asked for, so that its packages are needed only then."""

from __future__ import annotations

import os
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Protocol

from upheld.algebra.engine import Engine
from upheld.algebra.meter import Meter
from upheld.base.errors import MissingDependency, Problem, UsageError, is_whole, nearest, quote, require
from upheld.base.limits import Limits
from upheld.base.threads import ONE_THREAD, Threads, cores
from upheld.facts.files.reading import Reader, rows_in
from upheld.facts.files.writing import Writer, facts_text
from upheld.language.core import Core

#: The engines that work in this process alone.
ENGINES = ("memory", "reference")
NAMES = (*ENGINES, "spark")

#: The variable of the environment with the number of threads, where a call does not say.
THREADS = "UPHELD_THREADS"


class EngineChoice(Protocol):
    """An engine with its options, such as `upheld.SparkEngine(...)`."""

    @property
    def name(self) -> str: ...

    def open(self, core: Core, limits: Limits | None = None) -> Engine:
        """Return a new engine for the facts of a program."""


def open_engine(
    name: str | EngineChoice, core: Core, limits: Limits | None = None, threads: Threads = ONE_THREAD
) -> Engine:
    """Return a new engine of that name, or as it was chosen, for the facts of a program."""
    name = chosen_engine(name)
    if not isinstance(name, str):
        return name.open(core, limits)
    if name == "reference":
        from upheld.engines.reference.engine import ReferenceEngine

        return ReferenceEngine(Meter(limits))
    assert name == "memory", "the name of an engine that was not checked"
    engine: Engine = _memory("engine").MemoryEngine(core, Meter(limits), threads=threads)
    return engine


def check_engine(engine: str | EngineChoice) -> None:
    """Refuse what is neither the name of an engine nor one with its options."""
    if not (engine in NAMES if isinstance(engine, str) else hasattr(engine, "open")):
        note = f"the engines are {', '.join(map(quote, NAMES))}; an `upheld.SparkEngine` is one as well"
        hint = nearest(engine, NAMES)
        raise UsageError(Problem("unknown-engine", f"unknown engine {quote(engine)}", note=note, hint=hint))


def chosen_threads(name: str | EngineChoice, threads: int | None) -> Threads:
    """Return the threads that an engine uses, and whoever reads and writes files for it.

    For the memory engine these are as many as the caller says, by default as `UPHELD_THREADS` says, or as many as there
    are cores. Other engines get one.
    """
    check_engine(name)
    require(threads is None or is_whole(threads, 1), "threads", "a whole number of at least 1, or None", threads)
    if name == "memory":
        return Threads(threads or _threads_of_environment() or cores())
    if threads is not None:
        raise _without_threads(name if isinstance(name, str) else name.name)
    return ONE_THREAD


def _threads_of_environment() -> int | None:
    """Return the number of threads that the environment sets, if it does."""
    text = os.environ.get(THREADS, "").strip()
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or not int(text):
        message, note = f"`{THREADS}` is {quote(text)}", "it is a whole number of at least 1"
        raise UsageError(Problem("bad-threads", message, note=note, hint=f"set `{THREADS}=1`, or leave it out"))
    return int(text)


def _without_threads(engine: str) -> UsageError:
    note = "`threads` is for the memory engine; the one on Spark has the cores of its session, the reference engine one"
    message = f"the engine {quote(engine)} does not take a number of threads"
    return UsageError(Problem("threads-of-another-engine", message, note=note, hint="leave `threads` out"))


def chosen_engine(name: str | EngineChoice) -> str | EngineChoice:
    """Return an engine as it was chosen; that on Spark with its options, if only its name is given."""
    if name == "spark":
        choice: EngineChoice = import_module("upheld.engines.spark.sparkengine").SparkEngine()
        return choice
    return name


def facts_reader(name: str | EngineChoice, threads: Threads = ONE_THREAD) -> Reader:
    """Return what reads facts files for an engine. All give the same rows and raise the same errors."""
    by_columns = (name if isinstance(name, str) else name.name) != "reference"
    return partial(_memory("files.reader").columns_in, threads=threads) if by_columns else rows_in


def facts_writer(name: str | EngineChoice, threads: Threads = ONE_THREAD) -> Writer:
    """Return what makes the text of facts files for an engine. All make the same text."""
    return partial(_memory("files.writer").columns_text, threads=threads) if name == "memory" else facts_text


def _memory(module: str) -> ModuleType:
    """Return a module of the memory engine."""
    try:
        return import_module(f"upheld.engines.memory.{module}")
    except ModuleNotFoundError as e:
        if e.name is None or e.name.startswith("upheld"):
            raise  # a mistake of ours, which no package mends
        raise MissingDependency(
            Problem(
                "missing-dependency",
                f"the memory engine needs the package {quote(e.name)}",
                hint="pip install numpy numba, or choose engine=`reference`, which needs nothing",
            )
        ) from None
