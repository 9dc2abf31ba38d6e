"""Materialise a program and print the answers to a query."""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Sequence

from upheld.cli.limits import add_limits
from upheld.cli.loading import materialised
from upheld.cli.options import add_evaluation, add_files, add_program
from upheld.cli.outcome import NOTHING_HOLDS, SUCCESS

EXAMPLES = """\
upheld query reach.dl -F facts 'path("a", x), !closed(x)'
upheld query reach.dl -F facts --sql 'select count(*) from path'
upheld query owl2rl -F data.ttl '[?x, a, <https://ex.org/Student>]' --json
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_program(command)
    command.add_argument("query", metavar="QUERY", help="a rule body; the answers are the bindings of its variables")
    answers = command.add_argument_group("answers")
    answers.add_argument("--sql", action="store_true", help="QUERY is SQL over the relations, which DuckDB evaluates")
    printed = answers.add_mutually_exclusive_group()
    printed.add_argument("--count", action="store_true", help="print the number of answers")
    printed.add_argument("--json", action="store_true", help="print each answer as a JSON object on a line of its own")
    add_files(command)
    add_evaluation(command)
    add_limits(command)


def execute(options: argparse.Namespace) -> int:
    columns, rows = _answers(options)
    if options.count:
        print(len(rows))
    elif options.json:
        for row in rows:
            print(json.dumps(dict(zip(columns, row)), ensure_ascii=False, default=str))
    elif not columns:
        print("true" if len(rows) else "false")
    else:
        print("\t".join(columns))
        for row in rows:
            print("\t".join(map(str, row)))
    return SUCCESS if len(rows) else NOTHING_HOLDS


def _answers(options: argparse.Namespace) -> tuple[Sequence[str], Collection[tuple[object, ...]]]:
    """Return the names of the columns and the rows that answer the query."""
    with materialised(options) as m:
        if options.sql:
            table = m.sql(options.query)
            return table.column_names, [tuple(row.values()) for row in table.to_pylist()]
        answers = m.query(options.query)
        return answers.columns, answers.to_rows()
