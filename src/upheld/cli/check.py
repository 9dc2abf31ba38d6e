"""Check a program and show its relations, strata and rules."""

from __future__ import annotations

import argparse
import json

import upheld
from upheld.cli.messages import show
from upheld.cli.options import add_confined, add_decompose, add_program


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_program(command)
    command.add_argument("--json", action="store_true", help="print the report as JSON")
    command.add_argument(
        "--coarsest", action="store_true", help="show the coarsest stratification instead of the most granular one"
    )
    command.add_argument(
        "--plans", action="store_true", help="show the join plans of each rule: from all facts, and from new ones"
    )
    command.add_argument(
        "-F",
        "--facts",
        metavar="DIR",
        help="facts files: warn of relations without facts and rules; with --plans, materialise them to know sizes",
    )
    add_confined(command)
    add_decompose(command)


def execute(options: argparse.Namespace) -> int:
    facts = () if options.facts is not None else None  # those that the program reads, and no others
    report = upheld.check(options.program, granular=not options.coarsest, facts=facts, confined=options.confined)
    print(json.dumps(report.to_dict(), indent=2) if options.json else report.to_text())
    for warning in () if options.json else report.warnings:  # the JSON has them
        show(warning)
    if options.plans:
        how = {"decompose": options.decompose, "confined": options.confined}
        given = options.facts is not None
        m = upheld.load(options.program, options.facts, **how) if given else upheld.materialise(options.program, **how)
        print(m.plans())
    return 0
