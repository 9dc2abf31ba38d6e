"""Check a program and print its strata, rules and join plans."""

from __future__ import annotations

import argparse
import json

import upheld
from upheld.cli.messages import show
from upheld.cli.options import add_decompose, add_program, program_of

EXAMPLES = """\
upheld check reach.dl
upheld check reach.dl -F facts --plans
upheld check reach.dl --strict
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_program(command)
    report = command.add_argument_group("report")
    report.add_argument("--strict", action="store_true", help="treat warnings as errors: exit with code 2")
    report.add_argument("--json", action="store_true", help="print the report as JSON")
    report.add_argument(
        "--stratification",
        default="granular",
        choices=("granular", "levels", "coarsest"),
        help="a stratum for each group of mutually recursive atoms (default), groups that do not depend on each other "
        "together, or as few strata as negation allows",
    )
    report.add_argument(
        "--coarsest",
        action="store_const",
        dest="stratification",
        const="coarsest",
        help="short for --stratification coarsest",
    )
    report.add_argument(
        "--plans", action="store_true", help="show the join plans of each rule, for all facts and for new facts"
    )
    add_decompose(report)
    files = command.add_argument_group("facts")
    files.add_argument(
        "-F",
        "--facts",
        metavar="DIR",
        help="folder of facts files: warn about relations without facts and rules; with --plans, plan for their sizes",
    )
    files.add_argument(
        "--confined",
        action="store_true",
        help="for programs you do not trust: refuse .include outside the program's folder, .input outside -F",
    )


def execute(options: argparse.Namespace) -> int:
    facts = () if options.facts is not None else None  # the facts files of the program, and no others
    how = {"stratification": options.stratification, "confined": options.confined}
    report = upheld.check(program_of(options), facts=facts, strict=options.strict, **how)
    print(json.dumps(report.to_dict(), indent=2) if options.json else report.to_text())
    for warning in () if options.json else report.warnings:  # the JSON has them
        show(warning)
    if options.plans:
        how = {"decompose": options.decompose, "confined": options.confined, "on_violation": "report"}
        if options.facts is None:
            m = upheld.materialise(program_of(options), **how)
        else:
            m = upheld.load(program_of(options), options.facts, **how)
        print(m.plans())
    return 0
