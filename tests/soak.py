"""Random streams of updates for as long as one likes: `make soak ARGS="--seconds 600 --algorithm ranked --seed 1"`.

Each seed is one program with many databases, each with a stream of its own: on the memory engine an update of many
takes hardly longer than that of one. What fails can be replayed alone: `make soak ARGS="--programs 1 --seed 123"`.
With `--streams`, the collected streams of updates are followed by every algorithm instead.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from itertools import count
from pathlib import Path

from tests.collected import test_update_streams
from tests.helpers.cases import CASES
from tests.helpers.streams.streams import NAMES, Difference, follow, random_stream
from upheld.engines import ENGINES
from upheld.maintain.registry import ALGORITHMS, algorithm_named


def main() -> int:
    options = arguments()
    return follow_streams(options) if options.streams else follow_programs(options)


def follow_programs(options: argparse.Namespace) -> int:
    """Go through random streams until the time is over or one differs from recomputation."""
    algorithms = options.algorithm or list(NAMES)
    engines = options.engine or list(ENGINES)
    print(f"{', '.join(algorithms)} on {' and '.join(engines)}, from seed {options.seed}")
    ends = time.monotonic() + options.seconds
    told = 0.0
    made = 0
    for seed in count(options.seed):
        if time.monotonic() > ends or seed - options.seed == options.programs:
            break
        try:
            made += follow(random_stream(seed, databases=options.databases), engines, algorithms)
        except Difference as difference:
            print(f"\nseed {seed} differs from recomputation: {difference}")
            traceback.print_exception(difference.__cause__)
            print(random_stream(seed, databases=options.databases).case)
            print(
                f'\nto replay: make soak ARGS="--programs 1 --seed {seed} --databases {options.databases} '
                f'--algorithm {difference.algorithm} --engine {difference.engine}"'
            )
            return 1
        if time.monotonic() - told > options.tell:
            told = time.monotonic()
            tell(seed, made)
    tell(seed, made)
    print()
    return 0


def follow_streams(options: argparse.Namespace) -> int:
    """Go through every collected stream by every algorithm, and compare the state after each update with its hash."""
    if CASES is None:
        print("the collected cases are not there: see CONTRIBUTING.md")
        return 1
    streams, followed, updates = test_update_streams.STREAMS, 0, 0
    algorithms = options.algorithm or list(ALGORITHMS)
    for name in streams:
        for algorithm in algorithms:
            began = time.process_time()
            with tempfile.TemporaryDirectory() as folder:
                try:
                    made = test_update_streams.follow(CASES / "update-streams", name, algorithm, Path(folder))
                except Exception:
                    traceback.print_exc()
                    print(f"{name} differs: {algorithm}")
                    return 1
            followed, updates = followed + 1, updates + made
            took = time.process_time() - began
            print(f"{followed} of {len(streams) * len(algorithms)}: {name} {algorithm}, {made} updates, {took:.1f} s")
            sys.stdout.flush()
    print(f"{updates} states of {len(streams)} streams by {len(algorithms)} algorithms are as expected")
    return 0


def tell(seed: int, made: int) -> None:
    """Keep one line that says how far it has come; in a file, where lines cannot be written over, add one."""
    line = f"seed {seed}, {made} updates of a database by each algorithm on each engine without a difference"
    print(f"\r{line}" if sys.stdout.isatty() else line, end="" if sys.stdout.isatty() else "\n", flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make soak", description="Maintain random programs beside recomputation.")
    parser.add_argument("--seconds", type=float, default=60, help="how long to go on (60)")
    parser.add_argument("--programs", type=int, help="how many programs to take at most")
    parser.add_argument("--seed", type=int, default=1, help="the first program; the next one has the next seed (1)")
    parser.add_argument("--databases", type=int, default=16, metavar="N", help="databases of a program (16)")
    parser.add_argument("--streams", action="store_true", help="follow the collected streams instead")
    parser.add_argument("--algorithm", action="append", metavar="NAME", help="one of them; may be repeated (all)")
    parser.add_argument("--engine", action="append", choices=ENGINES, help="one of them; may be repeated (all)")
    parser.add_argument("--tell", type=float, default=1, metavar="SECONDS", help="how often to tell how far it is (1)")
    options = parser.parse_args()
    for name in options.algorithm or ():
        algorithm_named(name)
    return options


if __name__ == "__main__":
    sys.exit(main())
