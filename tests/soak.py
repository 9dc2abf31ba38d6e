"""Random streams of updates for as long as one likes: `make soak ARGS="--seconds 600 --algorithm ranked --seed 1"`.

Each seed is one stream, so what fails can be replayed alone: `make soak ARGS="--streams 1 --seed 123"`.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from itertools import count

from tests.maintain.streams import NAMES, Difference, follow, random_stream
from upheld.engines import ENGINES
from upheld.maintain.algorithms import algorithm_named


def main() -> int:
    options = arguments()
    algorithms = options.algorithm or list(NAMES)
    engines = options.engine or list(ENGINES)
    print(f"{', '.join(algorithms)} on {' and '.join(engines)}, from seed {options.seed}")
    ends = time.monotonic() + options.seconds
    told = 0.0
    made = 0
    for seed in count(options.seed):
        if time.monotonic() > ends or seed - options.seed == options.streams:
            break
        try:
            made += follow(random_stream(seed), engines, algorithms)
        except Difference as difference:
            print(f"\nseed {seed} differs from recomputation: {difference}")
            traceback.print_exception(difference.__cause__)
            print(random_stream(seed).case)
            print(
                f'\nto replay: make soak ARGS="--streams 1 --seed {seed} '
                f'--algorithm {difference.algorithm} --engine {difference.engine}"'
            )
            return 1
        if time.monotonic() - told > options.tell:
            told = time.monotonic()
            tell(seed, made)
    tell(seed, made)
    print()
    return 0


def tell(seed: int, made: int) -> None:
    """Keep one line that says how far it has come; in a file, where lines cannot be written over, add one."""
    line = f"seed {seed}, {made} updates by each algorithm on each engine without a difference"
    print(f"\r{line}" if sys.stdout.isatty() else line, end="" if sys.stdout.isatty() else "\n", flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make soak", description="Maintain random programs beside recomputation.")
    parser.add_argument("--seconds", type=float, default=60, help="how long to go on (60)")
    parser.add_argument("--streams", type=int, help="how many streams to follow at most")
    parser.add_argument("--seed", type=int, default=1, help="the first stream; the next one has the next seed (1)")
    parser.add_argument("--algorithm", action="append", metavar="NAME", help="one of them; may be repeated (all)")
    parser.add_argument("--engine", action="append", choices=ENGINES, help="one of them; may be repeated (all)")
    parser.add_argument("--tell", type=float, default=1, metavar="SECONDS", help="how often to tell how far it is (1)")
    options = parser.parse_args()
    for name in options.algorithm or ():
        algorithm_named(name)
    return options


if __name__ == "__main__":
    sys.exit(main())
