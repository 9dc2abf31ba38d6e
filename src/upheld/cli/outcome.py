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


def finish(
    options: argparse.Namespace,
    project: upheld.Project,
    m: upheld.Materialisation,
    to: TextIO,
    *,
    updated: bool = False,
    changes: bool = False,
) -> int:
    """Save the state, write the outputs, show warnings, print what is to be printed, and return the exit code.

    `updated` is whether there were updates, and `changes` whether their changes were written.
    """
    version = project.save(m, feed=options.feed)
    printed, warnings = project.write(m)
    options.done = True
    if options.profile is not None:
        m.profile().save(options.profile)
    facts = len(m[VIOLATION]) if options.fail_on_violation and VIOLATION in m.relations else 0
    for warning in (*project.lint(updated=updated), *warnings):
        if not (changes and warning.slug == "no-output"):
            show(warning)
    if facts and not any(warning.slug == VIOLATION for warning in warnings):
        hold = "1 fact of `violation` holds" if facts == 1 else f"{facts} facts of `violation` hold"
        show(Problem("violation", hold, severity="warning"))
    if m.program_change is not None:
        show(m.program_change)
    if version is not None:
        show(f"state: version {version} in {options.state}")
    print(printed, end="", file=to)
    return NOTHING_HOLDS if facts or (options.fail_on_violation and m.violations()) else SUCCESS
