"""The command line, on the public API only: the parser of all commands and the exit codes."""

from __future__ import annotations

import argparse
import textwrap
import traceback
from collections.abc import Sequence

import upheld
from upheld import UpheldError
from upheld.base.errors import WRITTEN
from upheld.cli.commands import apply, check, demo, diff, explain, owl, pipeline, query, run, warm
from upheld.cli.garbage import leave_modules
from upheld.cli.messages import show, standard_output, warnings_shown
from upheld.cli.outcome import BAD_INPUT, INTERRUPTED

EPILOG = """\
`upheld COMMAND --help` lists the options of a command. Exit codes: 0 success, 1 nothing holds, or a
violation does, 2 error, 130 interrupted.

examples:
  upheld demo
  upheld run reach.dl -F facts -D out
"""

COMMANDS = (run, apply, query, check, diff, explain, owl, pipeline, warm, demo)


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    top = argparse.ArgumentParser(
        prog="upheld",
        usage="upheld [options] COMMAND ...",
        description=upheld.__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    commands = top.add_subparsers(required=True, metavar="COMMAND", title="commands", prog="upheld")
    general = top.add_argument_group("options")
    general.add_argument(
        "--version", action="version", version=f"upheld {upheld.__version__}", help="print the version"
    )
    general.add_argument("-h", "--help", action="help", help="print this help")
    for module in COMMANDS:
        name = module.__name__.rpartition(".")[2]
        summary = (module.__doc__ or "").strip().splitlines()[0]
        command = commands.add_parser(
            name,
            help=summary.rstrip("."),
            description=module.__doc__,
            epilog=f"examples:\n{textwrap.indent(module.EXAMPLES, '  ')}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            add_help=False,
        )
        module.add_arguments(command)
        general = command.add_argument_group("general")
        general.add_argument("--debug", action="store_true", help="print a traceback with errors")
        general.add_argument("-h", "--help", action="help", help="print this help")
        command._positionals.title = "arguments"
        command.usage = _usage(command)
        command.set_defaults(execute=module.execute, done=None)
    return top


def _usage(command: argparse.ArgumentParser) -> str:
    """Return `upheld NAME`, its required options and its arguments; the groups below list all options."""
    required, arguments = [], []
    for action in command._actions:
        if not action.option_strings:
            arguments.append(f"{action.metavar}{' ...' if action.nargs == '+' else ''}")
        elif action.required:
            required.append(f"{action.option_strings[0]} {action.metavar}")
    return " ".join([command.prog, *required, "[options]", *arguments])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: one of those in `outcome`."""
    if arguments is None:  # the process is for this command alone
        leave_modules()
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
