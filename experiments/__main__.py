"""Measure the tables of the five papers beside the printed numbers: `python -m experiments`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from experiments import commands
from experiments.registry import Settings
from upheld import UpheldError
from upheld.cli.messages import show
from upheld.cli.outcome import BAD_INPUT, INTERRUPTED, SUCCESS

EXAMPLES = """\
examples:
  python -m experiments list
  python -m experiments run p5-table2 --size small
  python -m experiments run --all --size default
  python -m experiments show p5-table2
  python -m experiments report
"""

ACTIONS = ("list", "run", "show", "report")
SIZES = ("tiny", "small", "default", "paper")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    command = argparse.ArgumentParser(
        prog="python -m experiments",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument(
        "action",
        choices=ACTIONS,
        metavar="ACTION",
        help="list the experiments, run one, show its table beside the paper's, or report all as pages with figures",
    )
    command.add_argument("id", nargs="?", metavar="ID", help="the experiment to run or show, such as p1-table3")
    measuring = command.add_argument_group("measuring")
    measuring.add_argument(
        "--size",
        choices=SIZES,
        help="tiny takes seconds a table, small a minute, default an evening for all, paper has the papers' own sizes "
        "(default: small to run; else the size at which most of a table is measured)",
    )
    measuring.add_argument(
        "--all",
        action="store_true",
        help="run all experiments, the quick ones first; what is measured already is not measured again",
    )
    measuring.add_argument(
        "--engine",
        default="memory",
        choices=("memory", "spark"),
        help="engine of p1-table3 and p2-table1; on Spark they have fewer rows (default: memory)",
    )
    measuring.add_argument("--only", action="append", default=[], metavar="ROW", help="measure this row; repeatable")
    measuring.add_argument("--seeds", type=int, metavar="N", help="samples of each kind (default: by size)")
    measuring.add_argument(
        "--programs", metavar="DIR", help="folder with published rule sets, in place of generated programs"
    )
    measuring.add_argument(
        "--results",
        type=Path,
        default=Path("experiments/results"),
        metavar="DIR",
        help="folder of results; measured cells are not measured again (default: experiments/results)",
    )
    pages = command.add_argument_group("report")
    pages.add_argument(
        "--page",
        type=Path,
        default=Path("docs/findings.md"),
        metavar="FILE",
        help="page of findings to write (default: docs/findings.md)",
    )
    return command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code, as `upheld` has them."""
    try:
        execute(parser().parse_args(arguments))
        return SUCCESS
    except UpheldError as error:
        show(error)
        return BAD_INPUT
    except KeyboardInterrupt:
        show("interrupted: the cells that are measured are kept")
        return INTERRUPTED


def execute(options: argparse.Namespace) -> None:
    """Do what the options say, and print its result."""
    settings = Settings(options.size or "small", options.seeds, tuple(options.only), options.programs)
    if options.action == "list":
        print(commands.listed(options.results, options.size))
    elif options.action == "report":
        for file in commands.write_report(options.results, options.page, options.size):
            print(file)
    elif options.action == "run" and options.all:
        with progress_bar() as progress:
            folders = commands.run_all(settings, options.results, progress)
        for folder in folders:
            print(folder)
    elif options.action == "run":
        with progress_bar() as progress:
            folder = commands.run(options.id, settings, options.results, progress, options.engine)
        print(folder)
    else:
        print(commands.shown(options.id, options.results, options.size, options.engine))


@contextmanager
def progress_bar() -> Iterator[Callable[[int, int, str], None] | None]:
    """Give a function that shows the cells done and the time left, or None if standard error is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm  # type: ignore[import-untyped]

    with tqdm(unit="cell", file=sys.stderr, leave=False) as bar:

        def show(done: int, total: int, name: str) -> None:
            bar.total = total
            if bar.initial == 0 and bar.n == 0:
                bar.initial = bar.n = done  # cells of an earlier run say nothing of the time left
            bar.set_description_str(name, refresh=False)
            bar.update(done - bar.n)
            bar.refresh()

        yield show


if __name__ == "__main__":
    sys.exit(main())
