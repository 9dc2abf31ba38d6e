"""The result of a run on the command line: warnings, printed text, and exit code."""

from __future__ import annotations

import argparse
from typing import TextIO

import upheld
from upheld.base.errors import Problem, UsageError
from upheld.cli.messages import show
from upheld.cli.options import program_of

#: Exit codes: all is well; nothing holds, or a violation does; bad input; stopped from the keyboard (128 + SIGINT).
SUCCESS, NOTHING_HOLDS, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

#: The relation whose facts are violations.
VIOLATION = "violation"


def check_state(options: argparse.Namespace) -> None:
    """Refuse options of a saved state without one."""
    for option, is_given in (("--edited", options.edited), ("--feed", options.feed)):
        if is_given and options.state is None:
            hint = "name the folder of the saved state with `--state DIR`"
            raise UsageError(Problem("bad-argument", f"`{option}` needs `--state`", place=option, hint=hint))


def check_violations(options: argparse.Namespace) -> None:
    """Refuse `--fail-on-violation` for a program that can have no violations, before the work."""
    if not options.fail_on_violation:
        return
    core = upheld.check(program_of(options)).core
    if VIOLATION not in core.predicates and not core.constraints:
        message = "the program has no relation `violation` and no constraint, so no run of it would fail"
        note = "`--fail-on-violation` looks for facts of `violation`, which `owl2rl` and `upheld owl` have rules for"
        hint = "leave the option out, or state what must not hold as a `.constraint`"
        raise UsageError(Problem("no-violations", message, place="--fail-on-violation", note=note, hint=hint))


def finish(options: argparse.Namespace, done: upheld.Run, to: TextIO) -> int:
    """Show the warnings of a run, print what it prints, and return its exit code."""
    m = done.materialisation
    facts = len(m[VIOLATION]) if options.fail_on_violation and VIOLATION in m.relations else 0
    for warning in done.warnings:
        show(warning)
    if facts and not any(warning.slug == VIOLATION for warning in done.warnings):
        hold = "1 fact of `violation` holds" if facts == 1 else f"{facts} facts of `violation` hold"
        show(Problem("violation", hold, severity="warning"))
    if done.materialisation.program_change is not None:
        show(done.materialisation.program_change)
    if done.version is not None:
        show(f"state: version {done.version} in {options.state}")
    print(done.printed, end="", file=to)
    return NOTHING_HOLDS if facts or (options.fail_on_violation and m.violations()) else SUCCESS
