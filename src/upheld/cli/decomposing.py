"""The option that says which rules are decomposed, shared by the commands that derive."""

from __future__ import annotations

import argparse


def add_decompose(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--decompose",
        default="auto",
        choices=("auto", "never", "always"),
        help="take cyclic rules apart: where that pays by what is known of the facts (default), never, or always",
    )
