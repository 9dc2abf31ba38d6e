"""Materialise a program and print the answers to a query."""

from __future__ import annotations

import argparse
import json

from upheld.cli.limits import add_limits
from upheld.cli.loading import materialised
from upheld.cli.options import add_evaluation, add_files, add_program
from upheld.cli.outcome import NOTHING_HOLDS, SUCCESS

EXAMPLES = """\
upheld query reach.dl -F facts 'path("a", x), !closed(x)'
upheld query owl2rl -F data.ttl '[?x, a, <https://ex.org/Student>]' --json
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_program(command)
    command.add_argument("query", metavar="QUERY", help="a rule body; the answers are the bindings of its variables")
    printed = command.add_argument_group("answers").add_mutually_exclusive_group()
    printed.add_argument("--count", action="store_true", help="print the number of answers")
    printed.add_argument("--json", action="store_true", help="print each answer as a JSON object on a line of its own")
    add_files(command)
    add_evaluation(command)
    add_limits(command)


def execute(options: argparse.Namespace) -> int:
    with materialised(options) as m:
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
