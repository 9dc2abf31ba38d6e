"""Answer a query over what follows from a program and its facts: print the bindings of its variables."""

from __future__ import annotations

import argparse
import json

import upheld
from upheld.cli.limits import add_limits, limits_of
from upheld.cli.options import add_confined, add_engine, add_equality, add_facts, add_program
from upheld.cli.outcome import NOTHING_HOLDS, SUCCESS
from upheld.cli.progress import progress_line


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_program(command)
    command.add_argument("query", help="a rule body, such as '[?x, a, :Student], [?x, :takes, ?c]' or 'path(\"a\", x)'")
    add_facts(command)
    how = command.add_mutually_exclusive_group()
    how.add_argument("--count", action="store_true", help="print the number of answers only")
    how.add_argument("--json", action="store_true", help="print each answer as a JSON object on a line")
    add_engine(command)
    add_equality(command)
    add_confined(command)
    add_limits(command)


def execute(options: argparse.Namespace) -> int:
    with progress_line() as progress:
        m = upheld.load(
            options.program,
            options.facts,
            engine=options.engine,
            equality=options.equality,
            algorithm="rematerialise",  # nothing will be updated
            limits=limits_of(options),
            confined=options.confined,
            progress=progress,
        )
        answers = m.query(options.query)
    if options.count:
        print(len(answers))
    elif options.json:
        for row in answers:
            print(json.dumps(dict(zip(answers.columns, row)), ensure_ascii=False))
    elif not answers.columns:
        print("true" if len(answers) else "false")
    else:
        print("\t".join(answers.columns))
        for row in answers:
            print("\t".join(map(str, row)))
    return SUCCESS if len(answers) else NOTHING_HOLDS
