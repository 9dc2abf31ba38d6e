"""Materialise a program and print the answers to a query."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Collection, Sequence
from pathlib import Path

import upheld
from upheld.base.errors import Problem, UsageError
from upheld.cli.garbage import collect_at_the_end
from upheld.cli.limits import add_limits
from upheld.cli.loading import materialised
from upheld.cli.options import add_evaluation, add_files, add_program
from upheld.cli.outcome import NOTHING_HOLDS, SUCCESS

#: The formats of answers to SPARQL.
FORMATS = ("csv", "tsv", "json", "xml", "nt", "ttl")

#: Values of parameters by name, if there are any.
Values = dict[str, int | float | str] | None

EXAMPLES = """\
upheld query reach.dl -F facts 'path("a", x), !closed(x)'
upheld query reach.dl -F facts --sql 'select count(*) from path'
upheld query owl2rl -F data.ttl --sparql 'SELECT ?x (COUNT(*) AS ?n) { ?x a ?c } GROUP BY ?x'
upheld query owl2rl -F data.ttl --sparql 'CONSTRUCT { ?x a ?c } { ?x a ?c }' --to types.ttl
upheld query owl2rl -F data.ttl '[?x, a, <https://ex.org/Student>]' --json
upheld query reach.dl -F facts 'path(x, y)' --parameter x=a
upheld query reach.dl -F facts 'path(x, y), edge(y, x)' --explain
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_program(command)
    command.add_argument("query", metavar="QUERY", help="a rule body; the answers are the bindings of its variables")
    answers = command.add_argument_group("answers")
    language = answers.add_mutually_exclusive_group()
    language.add_argument("--sql", action="store_true", help="QUERY is SQL over the relations, which DuckDB evaluates")
    language.add_argument(
        "--sparql",
        action="store_true",
        help="QUERY is SPARQL over the triples; --json prints SPARQL's own JSON results",
    )
    answers.add_argument(
        "--parameter",
        action="append",
        default=[],
        type=_parameter,
        metavar="NAME=VALUE",
        help='value of a variable of the query, or of $NAME in SQL: a number, or text ("7" in quotes is text); '
        "for .dlog programs and --sparql a term in N-Triples syntax; may be repeated",
    )
    printed = answers.add_mutually_exclusive_group()
    printed.add_argument("--explain", action="store_true", help="print how the query is evaluated; not for --sparql")
    printed.add_argument("--count", action="store_true", help="print the number of answers")
    printed.add_argument("--json", action="store_true", help="print each answer as a JSON object on a line of its own")
    printed.add_argument(
        "--format",
        choices=FORMATS,
        metavar="NAME",
        help="for --sparql: csv, tsv, json or xml results, or nt or ttl for triples",
    )
    printed.add_argument("--to", metavar="FILE", help="for --sparql: write the triples of CONSTRUCT to an RDF file")
    answers.add_argument("--limit", type=_number, metavar="N", help="print at most N answers")
    add_files(command)
    add_evaluation(command)
    add_limits(command)


def execute(options: argparse.Namespace) -> int:
    if options.sql:
        collect_at_the_end()
    if not options.sparql and (alone := "--format" if options.format else "--to" if options.to else None):
        raise UsageError(Problem("bad-argument", f"`{alone}` needs `--sparql`", place=alone))
    if options.sparql and options.explain:
        message = "the plan of a SPARQL query cannot be printed"
        hint = "write it as a rule body, whose plan can"
        raise UsageError(Problem("bad-argument", message, place="--explain", hint=hint))
    parameters = _values(options)
    with materialised(options) as m:
        if options.explain:
            print(_plan(m, options, parameters))
            return SUCCESS
        if options.to is not None:
            return _write(m.sparql(options.query, parameters), options.to)
        if options.sparql and (format := "json" if options.json else options.format):
            return _sparql_results(str(m.sparql(options.query, parameters, format=format)), format)
        columns, rows = _answers(m, options, parameters)
    if options.limit is not None:
        rows = list(rows)[: options.limit]
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
            print(m.short("\t".join("" if value is None else str(value) for value in row)))
    return SUCCESS if len(rows) else NOTHING_HOLDS


def _write(answer: object, path: str) -> int:
    """Write the triples of an answer to a file."""
    if not isinstance(answer, upheld.Relation):
        hint = "write CONSTRUCT or DESCRIBE, or print the answers with `--format`"
        raise UsageError(Problem("bad-argument", "the query returns no triples to write", place="--to", hint=hint))
    upheld.rdf.write(path, answer)
    return SUCCESS if len(answer) else NOTHING_HOLDS


def _plan(m: upheld.Materialisation, options: argparse.Namespace, parameters: Values) -> str:
    """Return how Upheld, or DuckDB, evaluates the query."""
    if not options.sql:
        return m.plans(options.query, parameters)
    return "\n".join(m.sql(f"explain {options.query}", parameters).column("explain_value").to_pylist())


def _answers(
    m: upheld.Materialisation, options: argparse.Namespace, parameters: Values
) -> tuple[Sequence[str], Collection[tuple[object, ...]]]:
    """Return the names of the columns and the rows that answer the query."""
    if options.sql:
        table = m.sql(options.query, parameters)
        return table.column_names, [tuple(row.values()) for row in table.to_pylist()]
    answers = m.sparql(options.query, parameters) if options.sparql else m.query(options.query, parameters)
    if isinstance(answers, bool):
        return (), [()] if answers else []
    assert not isinstance(answers, str), "an answer as text that nobody asked for"
    return answers.columns, list(answers)


def _sparql_results(text: str, format: str) -> int:
    """Print an answer in a format of SPARQL or RDF."""
    print(text, end="" if text.endswith("\n") else "\n")
    if format != "json":
        return SUCCESS
    answer = json.loads(text)
    return SUCCESS if answer.get("boolean") or answer.get("results", {}).get("bindings") else NOTHING_HOLDS


def _values(options: argparse.Namespace) -> Values:
    """Return the parameters by name. In RDF quotes belong to a term; elsewhere they say that a value is text."""
    has_terms = options.sparql or (not options.sql and Path(options.program).suffix != ".dl")
    return {name: _value(text, has_terms) for name, text in options.parameter} or None


def _value(text: str, is_term: bool) -> int | float | str:
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if re.fullmatch(r"-?\d+\.\d+", text):
        return float(text)
    is_quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return text[1:-1] if is_quoted and not is_term else text


def _parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"`{text}` is not of the form NAME=VALUE")
    return name, value


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of answers")
    return int(text)
