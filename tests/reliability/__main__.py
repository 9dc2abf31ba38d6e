"""`make reliability`: run the programme, or the goals that ARGS names, and print a line of JSON for each.

make reliability                                  # a tenth of each goal's full size
make reliability ARGS="R7 R8 --full"              # two goals at the size of the published figures
make reliability ARGS="R1 --cases 5000 --seed 3"
make reliability ARGS="--full --seconds 600"      # at most ten minutes for each goal
make reliability ARGS="R7 --seed 3 --only 'flip bit 17'"
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.reliability.programme import Run, goals, run


def main() -> int:
    options = arguments()
    failed = False
    for goal in goals().values():
        if options.goals and goal.id not in options.goals:
            continue
        size = options.cases or (goal.full if options.full else goal.sample if options.sample else goal.full // 10)
        result = run(goal, max(1, size), options.seed, options.only, options.seconds, Progress())
        failed |= result.failed > 0
        print(result.line(), flush=True)
        if options.append:
            with Path(options.append).open("a") as file:
                file.write(result.line() + "\n")
        if "interrupted" in result.figures:
            return 130
    return int(failed)


class Progress:
    """Writes each failure to standard error when it happens, and a line about every ten seconds."""

    def __init__(self) -> None:
        self.told = time.perf_counter()
        self.failures = 0

    def __call__(self, run: Run) -> None:
        for failure in run.failures[self.failures :]:
            self.failures += 1
            said = failure.get("traceback", failure["error"])
            print(f"{run.goal.id} {failure['case']}: {said}", file=sys.stderr, flush=True)
        now = time.perf_counter()
        if now - self.told > 10:
            self.told = now
            failed = f", {run.failed} failed" if run.failed else ""
            print(f"{run.goal.id}: {run.made:,} of {run.size:,} cases{failed}", file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    known = goals()
    parser = argparse.ArgumentParser(prog="make reliability", description="Attack Upheld; print a line for each goal.")
    parser.add_argument("goals", nargs="*", choices=[*known, []], metavar="GOAL", help=f"of {' '.join(known)} (all)")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--full", action="store_true", help="make as many cases as the published figures have")
    size.add_argument("--sample", action="store_true", help="make as few cases as `make test` does")
    size.add_argument("--cases", type=int, help="make this many cases")
    parser.add_argument("--seconds", type=float, help="begin no further case of a goal after this time")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random choices (0)")
    parser.add_argument("--only", metavar="CASE", help="run the one case of this name")
    parser.add_argument("--append", metavar="FILE", help="also append the lines to a file")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
