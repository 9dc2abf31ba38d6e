"""The command line: one module per command, on the public API only."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence

import upheld
from upheld import UpheldError
from upheld.cli import apply, check, demo, explain, owl, pipeline, query, run
from upheld.cli.messages import show, warnings_shown

COMMANDS = (run, apply, query, check, explain, owl, pipeline, demo)

#: Exit codes: bad input, and a run stopped from the keyboard (128 + SIGINT).
BAD_INPUT, INTERRUPTED = 2, 130


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    top = argparse.ArgumentParser(prog="upheld", description=upheld.__doc__)
    top.add_argument("--version", action="version", version=f"upheld {upheld.__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for module in COMMANDS:
        name = module.__name__.rpartition(".")[2]
        summary = (module.__doc__ or "").strip().splitlines()[0]
        command = commands.add_parser(name, help=summary, description=module.__doc__)
        command.add_argument("--debug", action="store_true", help="show a traceback with errors")
        module.add_arguments(command)
        command.set_defaults(execute=module.execute)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 2 for bad input, 130 when interrupted."""
    options = parser().parse_args(arguments)
    try:
        with warnings_shown():
            code: int = options.execute(options)
        sys.stdout.flush()
        return code
    except UpheldError as e:
        if options.debug:
            traceback.print_exc()
        else:
            show(e)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("interrupted: no outputs were written", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone; let the interpreter not complain of it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
