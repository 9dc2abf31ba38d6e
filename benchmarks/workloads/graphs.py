"""The workloads: rules, and facts from fixed seeds, written as the files that every engine reads.

A workload is a folder with `program.dl`, a `.facts` file for each input relation, and fewer facts of the same kind in
`tiny`, for an engine to warm up on. Folders are made once and kept; their name says which version of this file made
them.

    python -m benchmarks.workloads.graphs FOLDER NAME...      # tells the folder of each
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv

from benchmarks.workloads import many_rules, rulesets
from benchmarks.workloads.control_flow import definitions, instructions
from benchmarks.workloads.relations import materials, star
from experiments.data.facts import Facts, distinct
from experiments.data.graphs import trees

#: Raise this when a generator changes, so that old files are not taken for new ones.
VERSION = 2


@dataclass(frozen=True)
class Workload:
    """Rules, and a function that makes their facts; `tiny` makes fewer that lead through the same rules and kernels."""

    rules: str
    facts: Callable[[np.random.Generator], Facts]
    tiny: Callable[[np.random.Generator], Facts]


# -- graphs ------------------------------------------------------------------------------------------------------------


def giant(nodes: int, r: np.random.Generator, degree: float = 2.0) -> Facts:
    """A random digraph with one giant component: about 64 in 100 pairs of nodes are joined by a path at degree 2."""
    return {"edge": distinct(r.integers(0, nodes, (int(nodes * degree), 2)))}


def components(count: int, r: np.random.Generator) -> Facts:
    """Random digraphs of 40 to 120 nodes and out-degree 1.5 that know nothing of each other, in random order."""
    sizes = r.integers(40, 121, count)
    first = np.concatenate([[0], np.cumsum(sizes)])
    of = np.repeat(np.arange(count), sizes * 3 // 2)
    ends = first[of][:, None] + (r.random((len(of), 2)) * sizes[of][:, None]).astype(np.int64)
    names = r.permutation(first[-1])
    return {"edge": r.permutation(distinct(names[ends]))}


def generations(count: int, width: int, r: np.random.Generator) -> Facts:
    """People in generations of one width; each has two parents in the generation before."""
    children = np.arange(width, count * width)
    parents = (children // width - 1) * width + r.integers(0, width, (2, len(children)))
    return {"parent": distinct(np.stack([np.tile(children, 2), parents.ravel()], 1))}


def three(rows: int, keys: int, ends: int, r: np.random.Generator) -> Facts:
    """Three relations to be joined in a row, over `keys` values in between and `ends` values outside."""
    return {
        "first": distinct(np.stack([r.integers(0, ends, rows), r.integers(0, keys, rows)], 1)),
        "second": distinct(r.integers(0, keys, (rows, 2))),
        "third": distinct(np.stack([r.integers(0, keys, rows), r.integers(0, ends, rows)], 1)),
    }


def power_law(nodes: int, edges: int, exponent: float, r: np.random.Generator) -> Facts:
    """A digraph without loops in which node k is an end of an edge in proportion to (k + 10) ** -exponent."""
    weights = (np.arange(nodes) + 10.0) ** -exponent
    weights /= weights.sum()
    names = r.permutation(nodes)
    found = np.empty((0, 2), np.int64)
    while len(found) < edges:
        drawn = r.choice(nodes, (edges, 2), p=weights)
        found = distinct(np.concatenate([found, drawn[drawn[:, 0] != drawn[:, 1]]]))
    return {"edge": names[found[:edges]]}


# -- universities ------------------------------------------------------------------------------------------------------


def campus(departments: int, r: np.random.Generator) -> Facts:
    """Universities of about 20 departments with people, courses and writings; about 4,750 facts a department."""
    made: dict[str, list[npt.NDArray[np.int64]]] = {}
    numbers = [0]

    def new(count: int, *classes: str) -> npt.NDArray[np.int64]:
        """Make so many things, spread over some classes."""
        things = np.arange(numbers[0], numbers[0] + count)
        numbers[0] += count
        chosen = r.integers(0, len(classes), count)
        for k, name in enumerate(classes):
            made.setdefault(name, []).append(things[chosen == k][:, None])
        return things

    def say(relation: str, left: npt.ArrayLike, right: npt.ArrayLike) -> None:
        made.setdefault(relation, []).append(np.stack(np.broadcast_arrays(left, right), 1).astype(np.int64))

    def some(of: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
        return r.choice(of, count)

    universities = new(max(2, departments // 20), "University")
    for number in range(departments):
        university = universities[number % len(universities)]
        if number < 4 * len(universities):
            say("partOf", new(1, "College"), university)
        department = new(1, "Department")
        say("partOf", department, university)
        groups = new(12, "Team")
        say("partOf", groups, department)
        say("carriesOut", groups, new(12, "Research"))
        professors = new(28, "FullProfessor", "AssociateProfessor", "AssistantProfessor", "Visitor")
        others = new(10, "Lecturer", "Postdoc")
        academics = np.concatenate([professors, others])
        say("worksFor", academics, department)
        say("worksFor", new(8, "Secretary", "Technician"), department)
        say("worksFor", academics, some(groups, len(academics)))
        say("heads", some(professors, 1), department)
        for degree in ("bachelorFrom", "masterFrom", "doctorateFrom"):
            say(degree, academics, some(universities, len(academics)))
        courses = new(60, "Course", "Course", "Seminar")
        say("lectures", some(academics, len(courses)), courses)
        bachelors, graduates = new(420, "Bachelor"), new(120, "Graduate", "Doctorand")
        say("enrolledAt", np.concatenate([bachelors, graduates]), department)
        say("bachelorFrom", graduates, some(universities, len(graduates)))
        say("attends", np.repeat(bachelors, 3), some(courses, 3 * len(bachelors)))
        say("attends", np.repeat(graduates, 2), some(courses, 2 * len(graduates)))
        say("advisedBy", graduates, some(professors, len(graduates)))
        say("advisedBy", bachelors[:80], some(professors, 80))
        say("assists", graduates[:30], some(courses, 30))
        say("worksFor", graduates[30:70], some(groups, 40))
        writings = new(480, "JournalPaper", "ConferencePaper", "ConferencePaper", "Report", "Textbook", "Program")
        say("wroteFirst", some(academics, len(writings)), writings)
        say("wrote", some(np.concatenate([academics, graduates]), 800), some(writings, 800))
    names = r.permutation(numbers[0])
    return {name: distinct(names[np.concatenate(rows)]) for name, rows in made.items()}


def drawn(relations: int, rows: int, r: np.random.Generator) -> Facts:
    """Pairs for the relations that the random rules derive by none, with sizes by Zipf's law."""
    return many_rules.zipf({f"r{k}": 2 for k in range(relations // 10)}, rows, rows // 4, int(r.integers(1 << 30)))


# -- by name -----------------------------------------------------------------------------------------------------------

CLOSURE, JOIN = rulesets.CLOSURE, rulesets.JOIN
_tiny_graph = partial(power_law, 10_000, 10_000, 0.5)
_tiny_star = partial(star, 5_000, 3_000, 0.3)
_tiny_three = partial(three, 10_000, 2_000, 400)

WORKLOADS = {
    "closure-100k": Workload(CLOSURE, partial(giant, 400), partial(giant, 120)),
    "closure-1m": Workload(CLOSURE, partial(giant, 1_300), partial(giant, 120)),
    "closure-10m": Workload(CLOSURE, partial(giant, 4_100), partial(giant, 120)),
    "components-1m": Workload(CLOSURE, partial(components, 480), partial(components, 100)),
    "components-10m": Workload(CLOSURE, partial(components, 4_800), partial(components, 100)),
    "same-generation-250k": Workload(
        rulesets.SAME_GENERATION, partial(generations, 10, 205), partial(generations, 5, 40)
    ),
    "same-generation-1m": Workload(
        rulesets.SAME_GENERATION, partial(generations, 10, 410), partial(generations, 5, 40)
    ),
    "join-3m": Workload(JOIN, partial(three, 50_000, 6_455, 1_190), _tiny_three),
    "join-12m": Workload(JOIN, partial(three, 100_000, 9_130, 2_390), _tiny_three),
    "triangles-50k": Workload(rulesets.TRIANGLES, partial(power_law, 12_500, 50_000, 0.775), _tiny_graph),
    "triangles-200k": Workload(rulesets.TRIANGLES, partial(power_law, 50_000, 200_000, 0.775), _tiny_graph),
    "four-cycles-50k": Workload(rulesets.FOUR_CYCLES, partial(power_law, 12_500, 50_000, 0.775), _tiny_graph),
    "four-cycles-200k": Workload(rulesets.FOUR_CYCLES, partial(power_law, 50_000, 200_000, 0.775), _tiny_graph),
    "cliques-10m": Workload(rulesets.CLIQUES, partial(trees, 10, 100), partial(trees, 3, 40)),
    "cliques-270m": Workload(rulesets.CLIQUES, partial(trees, 10, 300), partial(trees, 3, 40)),
    "star-450k": Workload(rulesets.STAR, partial(star, 50_000, 30_000, 0.3), _tiny_star),
    "star-1m": Workload(rulesets.STAR, partial(star, 100_000, 60_000, 0.3), _tiny_star),
    "wide-2m": Workload(rulesets.WIDE, partial(three, 100_000, 20_000, 50_000), _tiny_three),
    "wide-10m": Workload(rulesets.WIDE, partial(three, 200_000, 28_000, 100_000), _tiny_three),
    "dataflow-600k": Workload(rulesets.DATAFLOW, partial(definitions, 300, 40, 20), partial(definitions, 30, 40, 20)),
    "dataflow-6m": Workload(rulesets.DATAFLOW, partial(definitions, 3_000, 40, 20), partial(definitions, 30, 40, 20)),
    "labels-500k": Workload(rulesets.LABELS, partial(components, 200), partial(components, 100)),
    "labels-2m": Workload(rulesets.LABELS, partial(components, 1_000), partial(components, 100)),
    "unreachable-700k": Workload(
        rulesets.UNREACHABLE, partial(instructions, 2_000, 30, 8), partial(instructions, 300, 30, 8)
    ),
    "unreachable-4m": Workload(
        rulesets.UNREACHABLE, partial(instructions, 10_000, 30, 10), partial(instructions, 300, 30, 8)
    ),
    "hops-500k": Workload(rulesets.HOPS, partial(power_law, 5_000, 10_000, 0.3), partial(power_law, 500, 1_000, 0.3)),
    "hops-6m": Workload(rulesets.HOPS, partial(power_law, 20_000, 50_000, 0.3), partial(power_law, 500, 1_000, 0.3)),
    "materials-600k": Workload(rulesets.MATERIALS, partial(materials, 6_000), partial(materials, 600)),
    "materials-4m": Workload(rulesets.MATERIALS, partial(materials, 30_000), partial(materials, 600)),
    "many-rules-400": Workload(many_rules.drawn(400, 150, 1), partial(drawn, 150, 20_000), partial(drawn, 150, 2_000)),
    "many-rules-2000": Workload(
        many_rules.drawn(2_000, 500, 1), partial(drawn, 500, 100_000), partial(drawn, 500, 5_000)
    ),
    "campus-200k": Workload(rulesets.CAMPUS, partial(campus, 42), partial(campus, 42)),
    "campus-900k": Workload(rulesets.CAMPUS, partial(campus, 178), partial(campus, 42)),
}


def folder_of(cache: Path, name: str) -> Path:
    """Return where the files of a workload are or will be."""
    return cache / f"v{VERSION}" / name


def write(cache: Path, name: str) -> Path:
    """Return the folder of a workload, written if it is not there yet."""
    folder = folder_of(cache, name)
    if folder.is_dir():
        return folder
    workload = WORKLOADS[name]
    unfinished = folder.with_name(name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    facts = workload.facts(np.random.default_rng(3))
    write_folder(unfinished, workload.rules, facts)
    # A relation that the large facts have and the tiny ones lack would be missing from the program of the latter.
    tiny = workload.tiny(np.random.default_rng(3))
    write_folder(unfinished / "tiny", workload.rules, {r: tiny.get(r, a[:0]) for r, a in facts.items()})
    unfinished.rename(folder)
    return folder


def write_folder(folder: Path, rules: str, facts: Facts) -> None:
    """Write a program and its facts as files into a new folder."""
    folder.mkdir(parents=True)
    texts = [relation for relation, rows in facts.items() if rows.dtype.kind == "U"]
    (folder / "program.dl").write_text(rulesets.write_program(rules, facts, texts), encoding="utf-8")
    options = csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    for relation, rows in facts.items():
        table = pa.table({f"c{c}": rows[:, c] for c in range(rows.shape[1])})
        csv.write_csv(table, folder / f"{relation}.facts", options)


if __name__ == "__main__":
    for wanted in sys.argv[2:]:
        print(write(Path(sys.argv[1]), wanted))
