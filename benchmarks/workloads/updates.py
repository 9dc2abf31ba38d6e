"""Workloads of maintenance: rules, explicit facts, and many different updates of each size.

Every update of a workload is undone by the next one: what was deleted is inserted again, or the other way round.
Updates of one size share no facts as long as there are enough, because maintenance may leave more behind than facts:
ranked support, for one, ranks facts anew that came back, so that the same update would be easier the second time.

`small` and `large` are the sizes of `run.py`. Facts and samples come from fixed seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from benchmarks.workloads import many_rules, rulesets
from benchmarks.workloads.graphs import campus, components, generations, giant, power_law, three
from experiments.data import sspe as single_source
from experiments.data.facts import Facts, distinct, numbered
from experiments.data.graphs import trees

#: An update as `update` takes it: rows by relation.
Batch = dict[str, npt.NDArray[np.int64]]


@dataclass(frozen=True)
class Cell:
    """Updates of one kind and size; of as many as there is time for, the median is told."""

    label: str
    batches: list[Batch]
    #: So many are done however long they take: where updates differ much, a few say little.
    least: int = 2


@dataclass(frozen=True)
class Maintained:
    """A workload: `first` is what is done with each batch before it is undone, to delete or to insert."""

    rules: str
    facts: Facts
    cells: list[Cell]
    first: str = "delete"


# -- samples -----------------------------------------------------------------------------------------------------------


def uniform(facts: Facts, r: np.random.Generator) -> Iterator[int]:
    """Yield numbers of facts in random order, over and over."""
    order = r.permutation(sum(map(len, facts.values()))).tolist()
    while True:
        yield from order


def walk(facts: Facts, r: np.random.Generator) -> Iterator[int]:
    """Yield numbers of facts along random walks from first to last values; dead ends, and now and then, begin anew."""
    ends = np.concatenate([rows[:, [0, -1]] for rows in facts.values()])
    order = np.argsort(ends[:, 0], kind="stable")
    values, begin = np.unique(ends[order, 0], return_index=True)
    place = {value: k for k, value in enumerate(values.tolist())}
    bounds, of, last = [*begin.tolist(), len(order)], order.tolist(), ends[:, 1].tolist()
    at: int | None = None
    while True:
        for anew, draw in r.random((4096, 2)).tolist():
            low, high = (0, len(of)) if at is None or anew < 0.02 else (bounds[at], bounds[at + 1])
            number = of[low + int(draw * (high - low))]
            yield number
            at = place.get(last[number])


def batches(facts: Facts, source: Iterator[int], size: int, count: int) -> list[Batch]:
    """Return so many updates of a size, each of facts that a sample yields one after another."""
    made = []
    for _ in range(count):
        chosen: dict[int, None] = {}
        for _, number in zip(range(50 * size), source):  # a walk may come back to the same facts for ever
            chosen[number] = None
            if len(chosen) == size:
                break
        made.append(numbered(facts, np.array(list(chosen), np.int64)))
    return made


def cells(facts: Facts, sizes: str, walks: str = "", seed: int = 5) -> list[Cell]:
    """Return samples of sizes such as `1 1000 10%`, uniform ones and random walks."""
    made, all_facts = [], sum(map(len, facts.values()))
    for kind, sample, wanted in (("", uniform, sizes), ("walk ", walk, walks)):
        source = sample(facts, np.random.default_rng(seed))
        for text in wanted.split():
            size = max(1, all_facts * int(text[:-1]) // 100) if text.endswith("%") else int(text)
            shown = f"{text[:-1]} %" if text.endswith("%") else f"{size:,}"
            count = 31 if size <= 10 else 11 if size <= 100 else 5 if size <= 1_000 else 3
            made.append(Cell(kind + shown, batches(facts, source, size, count), least=10 if size == 1 else 2))
    return made


def sampled(rules: str, facts: Facts, sizes: str, walks: str = "") -> Maintained:
    return Maintained(rules, facts, cells(facts, sizes, walks))


ALL_SIZES = "1 10 100 1000 1% 10% 25% 50%"
MOST_SIZES = "1 10 100 1000 10% 50%"
WALKS = "10 1000 10%"

# -- workloads of the memory engine ------------------------------------------------------------------------------------


def sparse(count: int, sizes: str, walks: str, rest: int = 0) -> Maintained:
    """Small digraphs; updates change all of them except the `rest`."""
    touched = components(count, np.random.default_rng(3))
    made = cells(touched, sizes, walks)
    if rest:
        more = components(rest, np.random.default_rng(4))["edge"] + touched["edge"].max() + 1
        touched = {"edge": np.concatenate([touched["edge"], more])}
    return Maintained(rulesets.CLOSURE, touched, made)


def component(edges: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return which edges have both ends in the largest strongly connected component, if that has most of the nodes."""
    nodes = int(edges.max()) + 1

    def reached(start: int, source: int, target: int) -> npt.NDArray[np.bool_]:
        found = np.zeros(nodes, np.bool_)
        found[start] = True
        while (new := edges[found[edges[:, source]] & ~found[edges[:, target]], target]).size:
            found[new] = True
        return found

    candidates = (reached(k, 0, 1) & reached(k, 1, 0) for k in edges[:20, 0].tolist())
    largest = max(candidates, key=np.count_nonzero)
    return largest[edges[:, 0]] & largest[edges[:, 1]]


def giant_component(nodes: int, sizes: str) -> Maintained:
    """A random digraph. To delete an edge within its giant component deletes little else; others lead in or out."""
    facts = giant(nodes, np.random.default_rng(3))
    within = {"edge": facts["edge"][component(facts["edge"])]}
    inside = batches(within, uniform(within, np.random.default_rng(6)), 1, 31)
    return Maintained(rulesets.CLOSURE, facts, [Cell("1 inside", inside, least=10), *cells(facts, sizes)])


def drawn(rules: str, facts: Callable[[np.random.Generator], Facts], sizes: str, walks: str = "") -> Maintained:
    return sampled(rules, facts(np.random.default_rng(3)), sizes, walks)


# -- the papers' hard ones ---------------------------------------------------------------------------------------------


def classes(count: int, size: int, degree: int, r: np.random.Generator) -> Facts:
    """Links within classes that are connected several times over, so that to delete a link deletes nothing else."""
    ends = r.integers(0, size, (count, size * degree, 2)) + size * np.arange(count)[:, None, None]
    rows = ends.reshape(-1, 2)
    return {"link": distinct(rows[rows[:, 0] != rows[:, 1]])}


def example_1(n: int) -> Maintained:
    """Example 1 of Hu, Motik and Horrocks 2018: every `r(a_i, c_i)` is deleted, all `r(a_i, b)` stay."""
    a, c = np.arange(1, n + 1), np.arange(n + 1, 2 * n + 1)
    stay, go = np.stack([a, np.zeros_like(a)], 1), np.stack([a, c], 1)
    return Maintained(
        "s(y, z) :- r(x, y), r(x, z).", {"r": np.concatenate([stay, go])}, [Cell(f"{n:,}", [{"r": go}] * 3)]
    )


def sspe(nodes: int, degree: int, sizes: str) -> Maintained:
    """Single-source path enumeration: lengths of the paths from node 0 in a random acyclic digraph."""
    return sampled(single_source.RULES, single_source.sspe(nodes, degree), sizes)


CHAIN = "b(y) :- t(x, y), b(x)."


def chain(n: int, count: int = 40) -> Maintained:
    """Facts that hold already are inserted near the middle of a chain, and deleted again."""
    nodes = np.arange(n)
    facts = {"t": np.stack([nodes[:-1], nodes[1:]], 1), "b": np.array([[0]])}
    middle = n // 2 + np.arange(count) * (n // 4 // count)
    return Maintained(CHAIN, facts, [Cell("1", [{"b": np.array([[i]])} for i in middle.tolist()])], first="insert")


def chain_29(n: int, i: int = 5, count: int = 30) -> Maintained:
    """Proposition 29 of Motik et al. 2019: in each of some chains, `b` of node i is explicit, and deleted."""
    first = np.arange(count)[:, None] * n
    starts = (first + np.arange(n - 1)).reshape(-1)
    given = (first + i - 1).reshape(-1)
    facts = {"t": np.stack([starts, starts + 1], 1), "b": np.concatenate([first.reshape(-1), given])[:, None]}
    return Maintained(CHAIN, facts, [Cell("1", [{"b": np.array([[k]])} for k in given.tolist()])])


# -- many rules --------------------------------------------------------------------------------------------------------


def ontology(name: str, scale: int, sizes: str, seed: int = 1) -> Maintained:
    """The rules of an ontology, and about `scale` facts over fewer than half as many values."""
    rules = many_rules.ontology(name)
    return sampled(rules, many_rules.zipf(many_rules.arities(rules), scale, scale * 2 // 5, seed), sizes)


def random_rules(rules: int, relations: int, scale: int, values: int, sizes: str, seed: int = 1) -> Maintained:
    """Random rules, and facts of the relations that none derives."""
    given = {f"r{k}": 2 for k in range(relations // 10)}
    return sampled(many_rules.drawn(rules, relations, seed), many_rules.zipf(given, scale, values, seed), sizes)


def ladder(strata: int, facts: int, sizes: str) -> Maintained:
    """Every update goes through all strata."""
    return sampled(many_rules.ladder(strata), {"p0": np.arange(facts)[:, None]}, sizes)


#: Ontologies that are there, by size and name: they lie beside the repository.
ONTOLOGIES: dict[str, dict[str, Callable[[], Maintained]]] = {
    "small": {"claros-l": partial(ontology, "Claros_L", 5_000, "1 100")},
    "large": {
        "claros-l": partial(ontology, "Claros_L", 50_000, "1 100 1000"),
        "dbpedia-l": partial(ontology, "DBpedia_L", 50_000, "1 60"),
    },
}

#: By size and name; functions, because facts are made only when wanted.
WORKLOADS: dict[str, dict[str, Callable[[], Maintained]]] = {
    "small": {
        "sparse": partial(sparse, 24, "1 10 1000 50%", "100"),
        "sparse, rest x 10": partial(sparse, 24, "1 1000", "", rest=216),
        "giant-component": partial(giant_component, 300, "1 10 50%"),
        "same-generation": partial(drawn, rulesets.SAME_GENERATION, partial(generations, 6, 60), "1 10 50%"),
        "join": partial(drawn, rulesets.JOIN, partial(three, 5_000, 1_500, 400), "1 100 50%"),
        "triangles": partial(drawn, rulesets.TRIANGLES, partial(power_law, 5_000, 20_000, 0.7), "1 100 50%"),
        "four-cycles": partial(drawn, rulesets.FOUR_CYCLES, partial(power_law, 5_000, 10_000, 0.7), "1 100 10%"),
        "cliques": partial(drawn, rulesets.CLIQUES, partial(trees, 10, 30), "1 10 50%"),
        "same-as": partial(drawn, rulesets.CLIQUES, partial(classes, 10, 30, 3), "1 10 50%"),
        "campus": partial(drawn, rulesets.CAMPUS, partial(campus, 5), "1 100 50%", "10"),
        "example-1": partial(example_1, 1_000),
        "example-1, n x 10": partial(example_1, 10_000),
        "sspe": partial(sspe, 500, 10, "1 10 25%"),
        "chain": partial(chain, 500),
        "chain-29": partial(chain_29, 200, count=12),
        "many-rules": partial(random_rules, 400, 150, 500, 100, "1"),
        "many-strata": partial(ladder, 300, 10, "1"),
        **(ONTOLOGIES["small"] if many_rules.ONTOLOGIES.is_dir() else {}),
    },
    "large": {
        "sparse": partial(sparse, 480, ALL_SIZES, WALKS),
        "sparse, rest x 10": partial(sparse, 480, "1 1000", "", rest=4_320),
        "giant-component": partial(giant_component, 1_300, "1 10 100 10% 50%"),
        "same-generation": partial(drawn, rulesets.SAME_GENERATION, partial(generations, 10, 410), MOST_SIZES, "100"),
        "join": partial(drawn, rulesets.JOIN, partial(three, 50_000, 6_455, 1_190), MOST_SIZES),
        "triangles": partial(drawn, rulesets.TRIANGLES, partial(power_law, 50_000, 200_000, 0.775), MOST_SIZES),
        "four-cycles": partial(
            drawn, rulesets.FOUR_CYCLES, partial(power_law, 12_500, 50_000, 0.775), "1 10 100 1000 10%"
        ),
        "cliques": partial(drawn, rulesets.CLIQUES, partial(trees, 10, 100), "1 10 100 10% 50%"),
        "same-as": partial(drawn, rulesets.CLIQUES, partial(classes, 10, 100, 3), "1 10 100 10% 50%"),
        "campus": partial(drawn, rulesets.CAMPUS, partial(campus, 178), ALL_SIZES, WALKS),
        "example-1": partial(example_1, 10_000),
        "example-1, n x 10": partial(example_1, 100_000),
        "sspe": partial(sspe, 10_000, 10, "1 10 100 1000 2% 25%"),
        "chain": partial(chain, 100_000),
        "chain-29": partial(chain_29, 3_000),
        "many-rules": partial(random_rules, 2_000, 500, 2_700, 300, "1"),
        "many-strata": partial(ladder, 3_000, 10, "1"),
        **(ONTOLOGIES["large"] if many_rules.ONTOLOGIES.is_dir() else {}),
    },
}

#: Workloads whose materialisation is timed with each kind of bookkeeping, and facts without updates.
BOOKKEEPING: dict[str, dict[str, Callable[[], tuple[str, Facts]]]] = {
    "small": {
        "sparse": lambda: (rulesets.CLOSURE, components(480, np.random.default_rng(3))),
        "giant-component": lambda: (rulesets.CLOSURE, giant(1_300, np.random.default_rng(3))),
        "cliques": lambda: (rulesets.CLIQUES, trees(10, 100, np.random.default_rng(3))),
        "campus": lambda: (rulesets.CAMPUS, campus(42, np.random.default_rng(3))),
    },
    "large": {
        "sparse": lambda: (rulesets.CLOSURE, components(4_800, np.random.default_rng(3))),
        "giant-component": lambda: (rulesets.CLOSURE, giant(4_100, np.random.default_rng(3))),
        "same-generation": lambda: (rulesets.SAME_GENERATION, generations(10, 410, np.random.default_rng(3))),
        "join": lambda: (rulesets.JOIN, three(100_000, 9_130, 2_390, np.random.default_rng(3))),
        "cliques": lambda: (rulesets.CLIQUES, trees(10, 300, np.random.default_rng(3))),
        "campus": lambda: (rulesets.CAMPUS, campus(178, np.random.default_rng(3))),
    },
}
