"""Random programs on Spark, 20,000 updates of a database or as many as one likes: `make soak-spark`.

`ARGS="--updates 1000 --algorithm ranked"` chooses.

Each seed is one program with many databases. What fails is replayed by `--seed` and `--programs 1`.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from itertools import count
from math import inf

import upheld
from tests.engines.spark.test_maintenance import follow
from tests.helpers.streams.merging import random_cyclic_merged, random_merged
from upheld.maintain.registry import ALGORITHMS

#: The databases of a program.
CASES = 100

#: Numbers of partitions, one after the other.
PARTITIONS = (1, 2, 3)

#: Each program with a seed that this divides has cyclic rules, all of them decomposed.
CYCLIC = 5


def main() -> int:
    options = arguments()
    spark = upheld.spark_session(cores=max(PARTITIONS) + 1)
    ends, made = time.monotonic() + options.seconds, 0
    for seed in count(options.seed):
        if seed - options.seed == options.programs:
            break
        engine = upheld.SparkEngine(spark, partitions=PARTITIONS[seed % len(PARTITIONS)])
        kind, decompose = (random_cyclic_merged, "always") if seed % CYCLIC == 0 else (random_merged, "never")
        for algorithm in options.algorithm or ALGORITHMS:
            if time.monotonic() > ends or made >= options.updates:
                return 0
            try:
                made += CASES * follow(kind(seed, CASES, 2), engine, algorithm, decompose)
            except Exception:
                traceback.print_exc()
                print(f'seed {seed} fails: make soak-spark ARGS="--programs 1 --seed {seed} --algorithm {algorithm}"')
                return 1
            print(f"seed {seed}, {algorithm}: {made} updates of a database without a difference", flush=True)
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make soak-spark", description="Maintain random programs on Spark.")
    parser.add_argument("--updates", type=int, default=20_000, help="how many updates of a database to make (20,000)")
    parser.add_argument("--seconds", type=float, default=inf, help="how long to go on at most")
    parser.add_argument("--programs", type=int, help="how many programs to take at most")
    parser.add_argument("--seed", type=int, default=1, help="the first program; the next one has the next seed (1)")
    parser.add_argument("--algorithm", action="append", choices=ALGORITHMS, help="one of them; may be repeated (all)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
