"""Rules with aggregates, the same as SQL, and facts for them from fixed seeds, as tab-separated files.

groups   facts in random groups, a hundred in each: their number, sum and least value
parts    a bill of materials: what each assembly contains, by recursion, and what all of that weighs
stream   the edges of a random graph that come and go: degrees, and the greatest one
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv

from benchmarks.places import CACHE

Rows = npt.NDArray[np.int64]

GROUPS = """
.decl fact(id:number, group:number, value:number)
.decl summary(group:number, n:number, total:number, least:number)
summary(g, n, s, m) :- fact(_, g, _), n = count : { fact(_, g, _) }, s = sum v : { fact(_, g, v) },
    m = min v : { fact(_, g, v) }.
"""
GROUPS_SQL = ("CREATE TABLE summary AS SELECT c1, count(*), sum(c2), min(c2) FROM fact GROUP BY c1",)

PARTS = """
.decl part(assembly:number, part:number)
.decl weighs(part:number, grams:number)
.decl within(assembly:number, part:number)
.decl heavy(assembly:number, parts:number, grams:number)
within(a, p) :- part(a, p).
within(a, p) :- within(a, b), part(b, p).
heavy(a, n, s) :- part(a, _), n = count : { within(a, _) }, s = sum g : { within(a, p), weighs(p, g) }.
"""
PARTS_SQL = (
    "CREATE TABLE within AS WITH RECURSIVE c(c0, c1) AS (FROM part UNION "
    "SELECT c.c0, part.c1 FROM c, part WHERE c.c1 = part.c0) FROM c",
    "CREATE TABLE heavy AS SELECT c.c0, count(*), coalesce(sum(w.c1), 0) "
    "FROM within c LEFT JOIN weighs w ON c.c1 = w.c0 GROUP BY c.c0",
)

STREAM = """
.decl edge(x:number, y:number)
.decl degree(x:number, n:number)
.decl greatest(n:number)
degree(x, n) :- edge(x, _), n = count : { edge(x, _) }.
greatest(n) :- n = max d : { degree(_, d) }.
"""
STREAM_SQL = (
    "CREATE TABLE degree AS SELECT c0, count(*) AS c1 FROM edge GROUP BY c0",
    "CREATE TABLE greatest AS SELECT max(c1) FROM degree",
)

#: The rules of each workload, and the statements of SQL that have the same results.
RULES = {"groups": GROUPS, "parts": PARTS, "stream": STREAM}
STATEMENTS = {"groups": GROUPS_SQL, "parts": PARTS_SQL, "stream": STREAM_SQL}


def grouped(count: int) -> dict[str, Rows]:
    chance = np.random.default_rng(1)
    groups, values = chance.integers(0, count // 100, count), chance.integers(-1_000_000, 1_000_000, count)
    return {"fact": np.column_stack([np.arange(count), groups, values])}


def bill(count: int) -> dict[str, Rows]:
    """Assemblies on five levels, each of four parts of the level below, which some share; the lowest have weights."""
    chance, levels = np.random.default_rng(2), 5
    width = count // levels
    made = np.arange(width * (levels - 1))
    below = (made // width + 1).repeat(4) * width + chance.integers(0, width, 4 * len(made))
    part = np.column_stack([made.repeat(4), below])
    lowest = np.arange(width * (levels - 1), width * levels)
    return {"part": np.unique(part, axis=0), "weighs": np.column_stack([lowest, chance.integers(1, 1000, width)])}


def edges(count: int) -> dict[str, Rows]:
    chance = np.random.default_rng(3)
    nodes = count // 4
    from_hubs, to = chance.zipf(1.5, 2 * count) % nodes, chance.integers(0, nodes, 2 * count)
    different = np.unique(np.column_stack([from_hubs, to]), axis=0)
    return {"edge": chance.permutation(different)[:count]}


MAKERS = {"groups": grouped, "parts": bill, "stream": edges}


def folder_of(name: str, count: int) -> Path:
    """Return the folder with the facts of a workload, written if it is not there yet."""
    folder = CACHE / "aggregates" / f"{name}-{count}"
    if not folder.is_dir():
        unfinished = folder.with_name(f"{folder.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        options = csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
        for relation, rows in MAKERS[name](count).items():
            table = pa.table({f"c{c}": rows[:, c] for c in range(rows.shape[1])})
            csv.write_csv(table, unfinished / f"{relation}.facts", options)
        unfinished.rename(folder)
    return folder
