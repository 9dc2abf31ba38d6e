"""The command line: one module per command, on the public API only."""

from __future__ import annotations

import argparse
import traceback
from collections.abc import Sequence

import upheld
from upheld import UpheldError
from upheld.cli import apply, check, demo, explain, owl, pipeline, query, run
from upheld.cli.messages import show, warnings_shown
from upheld.cli.outcome import BAD_INPUT, INTERRUPTED
from upheld.cli.standardoutput import standard_output
from upheld.errors import WRITTEN

COMMANDS = (run, apply, query, check, explain, owl, pipeline, demo)


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
        command.set_defaults(execute=module.execute, done=None)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: one of those in `outcome`."""
    options = parser().parse_args(arguments)
    try:
        with standard_output(), warnings_shown():
            code: int = options.execute(options)
        return code
    except UpheldError as e:
        if options.debug:
            traceback.print_exc()
        else:
            show(e)
        return BAD_INPUT
    except KeyboardInterrupt as interrupt:
        written = options.done is not None or WRITTEN in getattr(interrupt, "__notes__", ())
        show(f"interrupted: {WRITTEN if written else 'no outputs were written'}")
        return INTERRUPTED
