"""A program with its facts, materialised, and with its outputs and its state."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import upheld
from upheld.base.errors import check_folder
from upheld.base.limits import within
from upheld.cli.limits import limits_of
from upheld.cli.options import program_of
from upheld.cli.outcome import check_state, check_violations
from upheld.cli.progress import Watcher


def materialised(
    options: argparse.Namespace, algorithm: str = "rematerialise", program: Path | None = None
) -> upheld.Materialisation:
    """Return the materialisation that the options describe, by default of their program.

    The default algorithm is for one question: it keeps nothing for updates.
    """
    return upheld.load(program or program_of(options), options.facts, algorithm=algorithm, **_asked(options))


def restored(options: argparse.Namespace) -> upheld.Materialisation:
    """Return the materialisation that the state of the options has."""
    return upheld.restore(program_of(options), options.state, **_asked(options))


def _asked(options: argparse.Namespace) -> dict[str, Any]:
    """Return how a materialisation that answers questions is evaluated; progress is shown on a terminal."""
    return {
        "engine": options.engine,
        "equality": options.equality,
        "limits": limits_of(options),
        "confined": options.confined,
        "progress": sys.stderr.isatty(),
        "on_violation": "report",  # a question about violations has an answer
    }


def project_of(options: argparse.Namespace, limits: upheld.Limits) -> upheld.Project:
    """Return the project that the options describe, once they are known to make sense together."""
    check_violations(options)
    check_state(options)
    with within(limits):
        project = upheld.Project(
            program_of(options), options.facts, options.output, state=options.state, confined=options.confined
        )
    if options.profile is not None:
        check_folder(Path(options.profile).parent)
    return project


def loaded(
    project: upheld.Project,
    options: argparse.Namespace,
    algorithm: str,
    limits: upheld.Limits,
    progress: Watcher | bool | None,
) -> upheld.Materialisation:
    """Return the materialisation of a project, evaluated as the options say."""
    names = ("engine", "decompose", "equality", "threads", "on_violation", "edited")
    chosen = {name: getattr(options, name) for name in names}
    return project.load(algorithm=algorithm, limits=limits, progress=progress, **chosen)
