"""R2: facts, counters and changes on Spark are those of recomputation, in many databases at once.

A case is one update of one database. A column for the database lets one update of Spark serve a thousand of them.
"""

from __future__ import annotations

from functools import partial
from random import Random

from tests.reliability.programme import Run, goal
from upheld.maintain.registry import ALGORITHMS

#: Databases of a program, and updates of each.
DATABASES, UPDATES = 1_000, 2


@goal("R2", "maintenance on Spark equals recomputation", sample=0, full=20_000)
def spark(run: Run) -> None:
    def follow(seed: int, databases: int) -> int:
        import upheld
        from tests.engines.spark.test_maintenance import follow
        from tests.helpers.streams.merging import random_cyclic_merged, random_merged
        from upheld.engines.spark.session import spark_session

        r = Random(seed)
        engine = upheld.SparkEngine(spark_session(memory="1g", cores=4), partitions=r.choice((1, 2, 3)))
        algorithm = r.choice(list(ALGORITHMS))
        if r.random() < 0.15:
            made = follow(random_cyclic_merged(seed, databases, UPDATES), engine, algorithm, decompose="always")
        else:
            made = follow(random_merged(seed, databases, UPDATES), engine, algorithm)
        return made * databases

    databases = min(DATABASES, max(1, run.size // (4 * UPDATES)))
    for number in run.cases():
        seed = run.seed * 1_000_000 + number
        run.case(f"program {seed}", partial(follow, seed, databases), count=None)
    run.figures |= {"databases of a program": databases}
