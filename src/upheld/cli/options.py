"""Arguments that commands share, so that they mean the same everywhere."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_program(command: argparse.ArgumentParser) -> None:
    command.add_argument("program", type=Path, help="a .dl or .dlog file, or the rule set rdfs or owl2rl")


def add_facts(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-F",
        "--facts",
        metavar="PATH",
        help="where the facts files are (default: .); for .dlog, an RDF file or a folder of them",
    )


def add_confined(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--confined",
        action="store_true",
        help="for programs from others: refuse files outside of the folders of the program (.include), of -F (.input) "
        "and of -D (.output)",
    )


def add_output(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-D",
        "--output",
        default=".",
        metavar="PATH",
        help="where outputs go, or - to print them (default: .); for .dlog, an RDF file for all triples",
    )


def add_engine(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--engine", default="memory", help="memory (default), spark, or reference, which is slow and plain"
    )


def add_decompose(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--decompose",
        default="auto",
        choices=("auto", "never", "always"),
        help="take cyclic rules apart: where that pays by what is known of the facts (default), never, or always",
    )


def add_equality(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--equality",
        default="off",
        choices=("off", "axioms", "rewrite"),
        help="what owl:sameAs means: nothing special (default), equality by rules, or equality by representatives; "
        "with `rewrite`, relations declared as `eqrel` are held by classes",
    )
