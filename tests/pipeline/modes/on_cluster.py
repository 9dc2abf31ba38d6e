"""Distributed pipelines on a cluster of two executors, in a process of its own: prints what a test looks at, as JSON.

    python -m tests.pipeline.modes.on_cluster FOLDER

The executors are processes with working folders of their own. They share `FOLDER/shared` with the driver, which works
in `FOLDER/driver`: a path relative to a working folder, or a file that the driver alone writes, would not be found.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

#: Two executors with two slots each: three partitions, and a slot for jobs that read and write.
MASTER = "local-cluster[2,2,2048]"

RULES = """
.decl edge(x:symbol, y:symbol)
.decl weight(x:symbol, n:number)
.decl path(x:symbol, y:symbol)
.decl heavy(x:symbol, n:number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), path(y, z).
heavy(y, n) :- path(x, y), weight(x, n), !edge(y, x).
.output path
.output heavy
"""


def sources(shared: Path, nodes: int) -> dict[str, Any]:
    """Write sources of several formats, one of them with lines that Spark's own readers take."""
    chain = [(f"<n:{i}>", f"<n:{i + 1}>") for i in range(nodes)]
    lines = [f"{x} <p:to> {y} .\n" for x, y in chain]
    odd = [f'<n:{nodes}> <p:to> "\\u00e9" .\n']
    (shared / "edges.nt").write_text("".join(lines + odd))
    (shared / "weights").mkdir()
    for k in range(3):
        rows = [f"<n:{i}>,{i}\n" for i in range(k, nodes, 3)]
        (shared / "weights" / f"{k}.csv").write_text("x,n\n" + "".join(rows))
    edges = {"path": str(shared / "edges.nt"), "columns": ["subject", "object"]}
    return {"edge": edges, "weight": str(shared / "weights")}


def in_memory(shared: Path, nodes: int) -> dict[str, list[list[Any]]]:
    """Return what follows from the same facts in the memory engine."""
    import upheld

    edges = [(f"<n:{i}>", f"<n:{i + 1}>") for i in range(nodes)] + [(f"<n:{nodes}>", '"é"')]
    m = upheld.materialise(RULES, {"edge": edges, "weight": [(f"<n:{i}>", i) for i in range(nodes)]})
    return {name: sorted(map(list, m[name])) for name in ("path", "heavy")}


def descriptions(spark: Any) -> list[str]:
    """Return the descriptions of jobs that the UI of a session has, by its REST interface."""
    context = spark.sparkContext
    address = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/jobs"
    with urllib.request.urlopen(address, timeout=60) as answer:
        return [job.get("description", "") for job in json.load(answer)]


def main(folder: Path) -> None:
    from tests.reliability.faults.spark_faults import session
    from upheld.engines.spark.tasks import job_progress

    shared = folder / "shared"
    for place in (shared, folder / "driver", folder / "temporary"):
        place.mkdir()
    os.chdir(folder / "driver")
    spark = session(MASTER, {"spark.ui.enabled": "true", "spark.ui.port": "0", "spark.ui.showConsoleProgress": "false"})
    tempfile.tempdir = str(folder / "temporary")
    import upheld

    def place_of(_: Any) -> list[tuple[int, str]]:
        time.sleep(1)
        return [(os.getpid(), os.getcwd())]

    places = spark.sparkContext.parallelize(range(4), 4).mapPartitions(place_of).collect()
    job_progress.EVERY = 0.0
    (folder / "closure.dl").write_text(RULES)
    given, nodes = sources(shared, 60), 60
    sinks = [{"path": str(shared / "out")}]
    run = upheld.Pipeline(folder / "closure.dl", given, sinks, mode="distributed").run(spark)
    found = {name: sorted(map(list, run[name].collect())) for name in ("path", "heavy")}
    written = {name: sorted(map(list, spark.read.parquet(str(shared / "out" / name)).collect())) for name in found}
    report, edges = run.report, [(f"n{i}", f"n{i + 1}") for i in range(nodes)]
    engine = upheld.SparkEngine(spark)
    with upheld.materialise(folder / "closure.dl", {"edge": edges}, engine=engine, progress=lambda now: None):
        end = time.monotonic() + 60  # Spark tells its UI of jobs in a thread of its own
        while ": stratum" not in str(shown := descriptions(spark)) and time.monotonic() < end:
            time.sleep(0.2)
    files = [path for path in shared.iterdir() if re.fullmatch(r"_out-[0-9a-f]{8}", path.name)]
    told = {
        "working folders": sorted({place for _, place in places}),
        "processes": len({process for process, _ in places}),
        "equal": found == written == in_memory(shared, nodes),
        "facts": report.relations,
        "sources": {source["relation"]: (source["rows"], source["by_arrow"]) for source in report.sources},
        "choices": [choice.plan for choice in report.choices],
        "folders": [sorted({file.name.split("-")[0] for file in path.iterdir()}) for path in files],
        "in the driver's folders": sorted(os.listdir(folder / "driver") + os.listdir(folder / "temporary")),
        "descriptions": shown,
    }
    print(json.dumps(told))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
