"""Print the facts that appear and vanish between two programs, by rule."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import upheld
from upheld.cli.limits import add_limits
from upheld.cli.loading import materialised
from upheld.cli.options import add_evaluation, add_files
from upheld.cli.outcome import NOTHING_HOLDS, SUCCESS

Row = tuple[int | float | str, ...]

EXAMPLES = """\
upheld diff old.dl new.dl -F facts
upheld diff old.dl new.dl -F facts --most 5
"""

#: The heading of a fact that no rule derives.
EXPLICIT = "explicit facts"


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("old", type=Path, metavar="OLD", help="the program before: a .dl or .dlog file, or a rule set")
    command.add_argument("new", type=Path, metavar="NEW", help="the program after")
    shown = command.add_argument_group("output")
    shown.add_argument(
        "--most",
        type=_facts,
        default=20,
        metavar="N",
        help="print at most N facts of each relation that appear, and N that vanish, 0 for all (default: 20)",
    )
    add_files(command)
    add_evaluation(command)
    add_limits(command)


def execute(options: argparse.Namespace) -> int:
    with materialised(options, program=options.old) as old, materialised(options, program=options.new) as new:
        vanished, appeared = list(_only_in(old, new)), list(_only_in(new, old))
        _print("-", old, vanished, options.most)
        _print("+", new, appeared, options.most)
    lost, came = (sum(len(rows) for _, rows in side) for side in (vanished, appeared))
    print(f"facts that appear: {came}, facts that vanish: {lost}")
    return NOTHING_HOLDS if vanished or appeared else SUCCESS


def _only_in(one: upheld.Materialisation, other: upheld.Materialisation) -> Iterator[tuple[str, list[Row]]]:
    """Yield the relations with facts that are in one materialisation and not in the other, with these facts."""
    for name in sorted(one.relations):
        there = other[name].to_set() if name in other.relations else set()
        rows = [row for row in one[name].to_rows() if row not in there]
        if rows:
            yield name, rows


def _print(sign: str, m: upheld.Materialisation, facts: list[tuple[str, list[Row]]], most: int) -> None:
    """Print facts below the rules that derive them."""
    by_rule: dict[str, list[str]] = {}
    for name, rows in facts:
        for row in rows[: most or None]:
            explanation = m.explain(name, row)
            step = explanation.proof.steps[0] if explanation.proof is not None else None
            rule = step.rule.whole if step is not None and step.rule is not None else None
            heading = EXPLICIT if rule is None else f"{rule.span}: {rule}" if rule.span else str(rule)
            by_rule.setdefault(heading, []).append(explanation.shortened)
    for heading, texts in by_rule.items():
        print(f"{sign} {heading}")
        for text in texts:
            print(f"{sign}   {text}")
    for name, rows in facts:
        if most and len(rows) > most:
            print(f"{sign} {len(rows) - most} more facts of {name}")


def _facts(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of facts: use for example 5, or 0 for all")
    return int(text)
