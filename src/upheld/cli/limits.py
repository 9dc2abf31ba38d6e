"""The options that limit a run."""

from __future__ import annotations

import argparse

import upheld
from upheld.base.memory import size_of


def add_limits(command: argparse.ArgumentParser) -> None:
    default = upheld.Limits()
    bounds = command.add_argument_group(
        "limits", "A run that exceeds a limit stops, names the busiest rule, and writes nothing."
    )
    bounds.add_argument("--max-facts", type=int, metavar="N", help="maximum number of facts (default: no limit)")
    bounds.add_argument(
        "--max-rounds",
        type=int,
        metavar="N",
        default=default.rounds,
        help="maximum number of rounds (default: 1000000)",
    )
    bounds.add_argument("--max-seconds", type=float, metavar="S", help="maximum time (default: no limit)")
    bounds.add_argument(
        "--max-memory", type=_bytes, metavar="SIZE", help="maximum memory, such as 500M or 8G (default: no limit)"
    )


def limits_of(options: argparse.Namespace) -> upheld.Limits:
    return upheld.Limits(options.max_facts, options.max_rounds, options.max_seconds, options.max_memory)


def _bytes(text: str) -> int:
    size = size_of(text)
    if size is None:
        raise argparse.ArgumentTypeError(f"`{text}` is not a size: use for example 500M or 8G")
    return size
