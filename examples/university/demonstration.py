"""The whole story on Spark, with a made-up university: `python -m examples.university.demonstration`, or `make demo`.

Facts are generated and written as CSV, read, encoded and materialised; ten updates come in as files and are applied one
by one; a derived table is queried with Spark SQL; and what each step took stands beside deriving everything again.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from examples.university.generator import PROGRAM, university
from upheld.engines.spark.session import spark_session
from upheld.materialisation.build import materialise
from upheld.pipeline import Pipeline
from upheld.pipeline.streaming.stream import PipelineStream

#: Updates, and the students who change courses in each.
UPDATES, STUDENTS = 10, 20

QUERY = """\
select s.unit as department, count(*) as unprepared
from studies s join unprepared u on u.person = s.person
group by s.unit order by unprepared desc, department limit 5"""

_Rows = list[tuple[str, ...]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Tell the story."""
    parser = argparse.ArgumentParser(prog="examples.university.demonstration", description=__doc__)
    parser.add_argument("--scale", type=int, default=1, help="the number of universities, of 70,000 facts each")
    parser.add_argument("--seed", type=int, default=1, help="other facts and updates for another number")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="a new folder for all files, which stays")
    options = parser.parse_args(arguments)
    folder = options.keep or Path(tempfile.mkdtemp(prefix="upheld-demo-"))
    folder.mkdir(exist_ok=True)
    try:
        tell(folder, options.scale, options.seed)
    finally:
        if options.keep is None:
            shutil.rmtree(folder)


def tell(folder: Path, scale: int, seed: int) -> None:
    """Go through all steps in a folder."""
    with _step("Starting Spark, in this process and a Java beside it"):
        spark = spark_session()
    with _step(f"Generating {scale} made-up {'university' if scale == 1 else 'universities'} on Spark, as CSV"):
        generate(spark, folder, scale, seed)
    print("\nThe rules, some of them recursive, some with negation:\n")
    print("".join(f"    {line}\n" for line in PROGRAM.splitlines() if ":-" in line))

    start = time.perf_counter()
    stream = pipeline(folder).stream(spark)
    stream.wait()
    first = time.perf_counter() - start
    assert stream.report.run is not None, "a folder that was not new"
    print(f"Reading, encoding, materialising and writing the first version, in {first:.1f} s:\n")
    print("".join(f"    {line}\n" for line in stream.report.run.to_text().splitlines()))

    write_updates(folder, seed)
    print(
        f"{UPDATES} updates come in as files: in each, {STUDENTS} students change a course, and a head of department.\n"
    )
    stream = pipeline(folder).stream(spark)
    stream.wait()
    for version in stream.report.versions:
        print(f"    version {version.number}: +{version.inserted} -{version.deleted} facts in {version.seconds:.3f} s")
    print("\nWhat the last of them changed, from the feed of changes, which is Parquet:\n")
    show_changes(spark, folder, stream.version)

    print("A derived table, which is Parquet too, queried with Spark SQL:\n")
    print("".join(f"    {line}\n" for line in QUERY.splitlines()))
    for relation in ("studies", "unprepared"):
        spark.read.parquet(str(folder / "out" / relation)).createOrReplaceTempView(relation)
    for row in spark.sql(QUERY).collect():
        print(f"    {row['department']:<14} {row['unprepared']:5}")
    compare(stream, first)


def generate(spark: SparkSession, folder: Path, scale: int, seed: int) -> None:
    """Write the facts of universities as CSV, a folder for each relation, and make a place for updates."""
    for name, frame in university(spark, scale, seed).items():
        frame.coalesce(1).write.csv(str((folder / "facts" / name).absolute()), header=True)
    (folder / "updates").mkdir()


def pipeline(folder: Path) -> Pipeline:
    """Return the pipeline from the CSV files and updates in a folder to the relations and changes beside them."""
    sources = {path.name: str(path) for path in sorted((folder / "facts").iterdir())}
    sinks = [
        {"path": str(folder / "out"), "relations": ["studies", "unprepared"], "files": 1},
        {"format": "changes", "path": str(folder / "feed"), "files": 1},
    ]
    return Pipeline(PROGRAM, sources, sinks, stream=str(folder / "updates"), state=str(folder / "state"))


def write_updates(folder: Path, seed: int) -> None:
    """Put update files into their folder, each a second after the one before."""
    chance = random.Random(seed)
    enrolled, leads = _read(folder, "enrolled"), sorted(_read(folder, "leads"))
    courses = sorted({course for _, course in enrolled})
    now = int(time.time()) - UPDATES
    for number in range(UPDATES):
        rows: list[tuple[str, ...]] = [("operation", "relation", "first", "second")]
        for person, course in chance.sample(enrolled, STUDENTS):
            rows += [("-", "enrolled", person, course), ("+", "enrolled", person, chance.choice(courses))]
        leader, unit = leads.pop(chance.randrange(len(leads)))
        rows += [("-", "leads", leader, unit), ("+", "leads", f"new_{leader}", unit)]
        beside, path = folder / "updates" / ".making", folder / "updates" / f"{number + 1:02d}.csv"
        with beside.open("w", newline="") as file:
            csv.writer(file).writerows(rows)
        os.utime(beside, (now + number,) * 2)
        beside.rename(path)


def _read(folder: Path, relation: str) -> _Rows:
    (path,) = (folder / "facts" / relation).glob("*.csv")
    with path.open(newline="") as file:
        return [tuple(row) for row in csv.reader(file)][1:]


def show_changes(spark: SparkSession, folder: Path, version: int) -> None:
    """Print some of what a version of the feed tells."""
    for path in sorted((folder / "feed").glob(f"*/version={version}")):
        change = spark.read.parquet(str(path))
        counts = {row["operation"]: row["count"] for row in change.groupBy("operation").count().collect()}
        example = change.orderBy(*change.columns).first()
        assert example is not None, "a version of a feed that tells nothing"
        sign, *values = example
        sizes = f"+{counts.get('+', 0)} -{counts.get('-', 0)}"
        print(f"    {path.parent.name:<12} {sizes:<10} such as {sign}{path.parent.name}({', '.join(values)})")
    print()


def compare(stream: PipelineStream, first: float) -> None:
    """Derive everything again from the explicit facts of the last version, and compare."""
    m = stream.materialisation
    explicit = {name: m.explicit(name) for name in m.relations}
    explicit = {name: facts for name, facts in explicit.items() if len(facts)}
    start = time.perf_counter()
    again = materialise(PROGRAM, explicit)
    anew = time.perf_counter() - start
    assert all(again[name] == m[name] for name in m.relations), "maintained facts are not those derived anew"
    facts = sum(len(m[name]) for name in m.relations)
    maintaining, whole = (
        sorted(times)[len(times) // 2]
        for times in zip(*((version.maintaining, version.seconds) for version in stream.report.versions))
    )
    print(f"\nDeriving everything again gives the same {facts:,} facts.\n")
    print(f"    an update in memory                       {maintaining:8.3f} s  (the median of {UPDATES})")
    print(f"    deriving everything again in memory       {anew:8.3f} s  {anew / maintaining:7.1f} times as long\n")
    print(f"    an update with its state and its feed     {whole:8.3f} s  (the median of {UPDATES})")
    # Of the first run, some seconds went into warming up Java; another one would be quicker.
    print(f"    the whole pipeline, as it ran first       {first:8.3f} s  {first / whole:7.1f} times as long")


@contextmanager
def _step(what: str) -> Iterator[None]:
    print(f"{what} ...", end=" ", flush=True)
    start = time.perf_counter()
    yield
    print(f"{time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
