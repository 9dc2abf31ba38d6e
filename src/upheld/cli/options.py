"""Options shared by several commands, in the groups that `--help` shows."""

from __future__ import annotations

import argparse
import traceback
from pathlib import Path
from types import ModuleType

import upheld
from upheld.base.errors import Problem, UpheldError, UsageError, quote
from upheld.cli.garbage import collect_at_the_end


def add_program(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "program", type=Path, metavar="PROGRAM", help="a .dl or .dlog file, or a rule set: rdfs, owl2rl"
    )
    parts = command.add_argument_group("parts of the program")
    parts.add_argument(
        "-I",
        "--include",
        action="append",
        default=[],
        metavar="DIR",
        help="folder in which files of .include are looked for, after that of the program; may be repeated",
    )
    parts.add_argument(
        "--functors",
        action="append",
        default=[],
        metavar="FILE",
        help="Python file whose functions, decorated with @upheld.functor, are the program's functors; may be repeated",
    )


def program_of(options: argparse.Namespace) -> Path | upheld.Program:
    """Return the program that the options name: read, if there are folders in which to look for its parts.

    The first call executes the files with its functors.
    """
    functors, include = options.functors, options.include
    options.functors, options.include = [], []
    for path in functors:
        execute_file(path)
    if include:
        options.program = upheld.parse(options.program, include=include, confined=options.confined)
    return options.program


def execute_file(path: str) -> None:
    """Execute a Python file, which registers functors."""
    module = ModuleType(Path(path).stem)
    module.__file__ = path
    collect_at_the_end()
    try:
        exec(compile(Path(path).read_bytes(), path, "exec"), vars(module))  # importing would leave bytecode beside it
    except UpheldError:
        raise
    except FileNotFoundError as error:
        problem = Problem("missing-file", f"there is no file {quote(error.filename or path)}", place=path)
        raise UsageError(problem) from None
    except Exception as error:
        within = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
        line = getattr(error, "lineno", None) or (within[-1] if within else 1)
        message = f"the file with functors raised {type(error).__name__}: {str(error)[:200]}"
        raise UsageError(Problem("bad-functors", message, place=f"{path}:{line}")) from error


def add_files(command: argparse.ArgumentParser, *, outputs: bool = False) -> None:
    files = command.add_argument_group("facts and outputs" if outputs else "facts")
    files.add_argument(
        "-F",
        "--facts",
        metavar="PATH",
        help="folder of facts files; for .dlog programs, an RDF file or a folder of them (default: .)",
    )
    if outputs:
        files.add_argument(
            "-D",
            "--output",
            default=".",
            metavar="PATH",
            help="folder for outputs, or - for standard output; for .dlog programs, an RDF file for all triples "
            "(default: .)",
        )
        files.add_argument(
            "--fail-on-violation",
            action="store_true",
            help="exit with code 1 if the relation `violation` has facts or a constraint is violated; outputs are "
            "written anyway",
        )
        files.add_argument(
            "--on-violation",
            choices=("refuse", "report"),
            metavar="HOW",
            help="refuse facts and commits that violate a constraint, or report the violations as warnings (default: "
            "refuse for .constraint, report for `violation` of .dlog programs)",
        )
    reaches = ".include outside the program's folder, .input outside -F" + (", .output outside -D" if outputs else "")
    files.add_argument("--confined", action="store_true", help=f"for programs you do not trust: refuse {reaches}")


def add_state(command: argparse.ArgumentParser) -> None:
    saved = command.add_argument_group("saved state")
    saved.add_argument(
        "--state",
        metavar="DIR",
        help="start from the state saved in DIR, if there is one, instead of facts files, and save the result there",
    )
    saved.add_argument(
        "--edited",
        action="store_true",
        help="for --state: accept a program edited since the state was saved, and print the difference",
    )
    saved.add_argument(
        "--feed",
        action="store_true",
        help="for --state: keep what each update changes from now on, for `upheld explain --when --state DIR`",
    )


def add_profile(command: argparse.ArgumentParser) -> None:
    profile = command.add_argument_group("profile")
    profile.add_argument(
        "--profile",
        metavar="FILE",
        help="write a page of HTML with plots of where time went: by rule, stratum, phase and update",
    )


def add_evaluation(command: argparse.ArgumentParser, *, decompose: bool = False, threads: bool = False) -> None:
    evaluation = command.add_argument_group("evaluation")
    evaluation.add_argument(
        "--engine", default="memory", help="memory, spark, or reference, which is slow and simple (default: memory)"
    )
    if threads:
        evaluation.add_argument(
            "--threads",
            type=int,
            metavar="N",
            help="threads of the memory engine for large pieces of work (default: as many as there are cores)",
        )
    if decompose:
        add_decompose(evaluation)
    evaluation.add_argument(
        "--equality",
        default="off",
        choices=("off", "axioms", "rewrite"),
        metavar="HOW",
        help="treat owl:sameAs as an ordinary relation (off), as equality by rules (axioms), or as equality by "
        "representatives (rewrite), which also stores `eqrel` relations as classes (default: off)",
    )


def add_decompose(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--decompose",
        default="auto",
        choices=("auto", "never", "always", "all"),
        metavar="WHEN",
        help="decompose cyclic rules: auto (when estimated to pay off), never, always; all decomposes acyclic rules as "
        "well (default: auto)",
    )
