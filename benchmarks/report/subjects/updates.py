"""Tables of maintenance, and whether its goals are reached.

A measurement has for each algorithm and cell, and for deletion and insertion, the CPU seconds and rule instances of
update after update. Algorithms that are slow did fewer of the same updates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from benchmarks.report.goal import Goal

#: The measurements of workloads, by name, as `measure/updates.py` prints them.
Measured = dict[str, dict[str, Any]]

WHAT = {
    "sparse": "transitive closure of many small digraphs",
    "sparse, rest x 10": "the same digraphs with the same updates, among ten times as many",
    "giant-component": "transitive closure of a random digraph with one giant component",
    "same-generation": "people of the same generation, two parents each",
    "join": "a join of three relations, projected to its ends",
    "triangles": "directed triangles of a power-law graph",
    "four-cycles": "directed cycles of four edges in a power-law graph",
    "cliques": "symmetric and transitive closure of trees: to delete a link splits a clique",
    "same-as": "the same of classes that are connected many times over: to delete a link deletes nothing else",
    "campus": "90 rules of an ontology of universities",
    "example-1": "example 1 of Hu, Motik and Horrocks 2018, hard for backward evaluation",
    "example-1, n x 10": "the same with ten times as many facts",
    "sspe": "lengths of paths in an acyclic digraph, with arithmetic in a recursive rule",
    "chain": "a fact that holds already inserted near the middle of a chain, and deleted again",
    "claros-l": "1,313 rules of the Claros ontology in 250 strata, over relations with the sizes of Zipf's law",
    "dbpedia-l": "3,385 rules of the DBpedia ontology, the same way",
    "many-rules": "2,000 random rules with negation over 500 relations",
    "many-strata": "3,000 strata of one rule, each on top of the one before",
    "chain-29": "the chain of proposition 29 of Motik et al. 2019, with i = 5",
}

#: How much more than ten times as long ten times as many facts may take to count as linear.
LINEAR = 1.5


def typical(values: Sequence[float] | None) -> float | None:
    """Return the median of different updates, without the first, which meets plans anew, if there are more.

    Never the least: of different updates that is the easiest, which flatters an algorithm whose times vary.
    """
    return median(values[1:] or values) if values else None


def cell(found: dict[str, Any], algorithm: str, label: str, way: str) -> dict[str, Any]:
    """Return what an algorithm took for the updates of a cell; nothing if it did none."""
    told: dict[str, Any] = found["algorithms"].get(algorithm, {}).get("cells", {}).get(label, {}).get(way, {})
    return told


def rows_of(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the labels and directions of a measurement, in the order they were measured."""
    every = (
        (label, way)
        for run in found["algorithms"].values()
        for label, ways in run["cells"].items()
        for way, told in ways.items()
        if told
    )
    return list(dict.fromkeys(every))


def ratio(found: dict[str, Any], slow: str, quick: str, label: str, way: str) -> float | None:
    """Return how many times as long one algorithm took as another for the updates both did, at least if it gave up."""
    one, other = cell(found, slow, label, way), cell(found, quick, label, way)
    if not other.get("cpu"):
        return None
    if "failed" in one:
        return float("inf")
    if "longer than" in one:
        return float(one["longer than"] / (typical(other["cpu"]) or 1))
    if not one.get("cpu"):
        return None
    both = min(len(one["cpu"]), len(other["cpu"]))
    return (typical(one["cpu"][:both]) or 0) / (typical(other["cpu"][:both]) or 1)


def compared(found: dict[str, Any], one: str, other: str, label: str, way: str) -> str:
    """Return how many updates a ratio rests on."""
    both = min(len(cell(found, a, label, way).get("cpu", ())) for a in (one, other))
    return f"median of {both - 1} updates" if both > 2 else "**one update**" if both else "stopped"


# -- goals -------------------------------------------------------------------------------------------------------------


def goals_of_updates(updates: Measured, books: Measured) -> Iterator[Goal]:
    """Yield the goals of maintenance, as far as their workloads were measured."""
    yield from _small_updates(updates)
    yield from _counting(updates)
    yield from _linear(updates)
    yield from _giant(updates)
    yield from _chains(updates)
    yield from _adaptive(updates)
    yield from _ranks(books)


def _small_updates(updates: Measured) -> Iterator[Goal]:
    rest = updates.get("sparse, rest x 10")
    if rest is None:
        return
    for label, limit in (("1", 0.3e-3), ("1,000", 250e-3)):
        took = typical(cell(rest, "adaptive", label, "delete").get("cpu"))
        if took is not None:
            text = f"deleting {label} of the facts of a sparse closure of {rest['facts'] / 1e6:.1f} million: "
            yield Goal(f"{text}at most {limit * 1e3:g} ms", f"{took * 1e3:.2f} ms", took <= limit)
            alone = updates.get("sparse")
            before = typical(cell(alone, "adaptive", label, "delete").get("cpu")) if alone else None
            if before:
                text = f"deleting {label}: within 1.5 times when the rest is ten times larger"
                yield Goal(text, f"{took / before:.2f} times", took / before <= 1.5)


def _counting(updates: Measured) -> Iterator[Goal]:
    ratios = []
    for name, found in updates.items():
        for label, way in rows_of(found):
            times = ratio(found, "counting", "fbf", label, way) if "%" not in label else None
            if times is not None:
                ratios.append((times, f"`{name}`, {way} {label}"))
    if ratios:
        text = "counting takes at most 3 times as long as FBF for every small update"
        yield _every(text, ratios, 3)


def _every(text: str, ratios: list[tuple[float, str]], most: float) -> Goal:
    """Return the goal that no ratio is above a bound."""
    within = sum(times <= most for times, _ in ratios)
    worst = "; ".join(f"{times:.1f} ({where})" for times, where in sorted(ratios, reverse=True)[:3])
    return Goal(text, f"{within} of {len(ratios)} rows; at worst {worst}", within == len(ratios))


def _linear(updates: Measured) -> Iterator[Goal]:
    one, ten = updates.get("example-1"), updates.get("example-1, n x 10")
    if one is None or ten is None:
        return
    growth = []
    for algorithm in ten["algorithms"]:
        for (label, way), (label_ten, _) in zip(rows_of(one), rows_of(ten)):
            before = typical(cell(one, algorithm, label, way).get("cpu"))
            told = cell(ten, algorithm, label_ten, way)
            after = told.get("longer than") or typical(told.get("cpu"))
            if before and after:
                growth.append((after / before / 10, f"{algorithm}, {way}"))
    if growth:
        text = (
            f"example 1 of Hu et al.: 10 times as many facts take at most {10 * LINEAR:g} times as long, any algorithm"
        )
        worst = max(growth)
        yield Goal(text, f"{worst[0] * 10:.1f} times at most ({worst[1]})", worst[0] <= LINEAR)


def _giant(updates: Measured) -> Iterator[Goal]:
    found = updates.get("giant-component")
    for other, least in (("dred", 100), ("dred-c", 100), ("bf-c", 10)):
        for ours in ("ranked", "adaptive"):
            times = ratio(found, other, ours, "1 inside", "delete") if found else None
            if found and times is not None:
                size = f"{found['facts']:,} facts"
                text = f"an edge within a giant component deleted ({size}): {ours} at least {least} times"
                basis = compared(found, other, ours, "1 inside", "delete")
                # Edges differ too much for a few of them to decide.
                enough = len(cell(found, ours, "1 inside", "delete")["cpu"]) > 5 and basis != "**one update**"
                reached = times >= least if enough else None
                yield Goal(f"{text} as quick as {other}", f"{times:.1f} times, {basis}", reached)


def _chains(updates: Measured) -> Iterator[Goal]:
    found = updates.get("chain")
    if found:
        ways = [typical(cell(found, "adaptive", "1", way).get("cpu")) for way in ("insert", "delete")]
        if all(ways):
            both = sum(t for t in ways if t)
            text = f"a redundant fact inserted and deleted again in a chain of {found['given']:,}: under a millisecond"
            yield Goal(text, f"{both * 1e3:.2f} ms", both < 1e-3)
    found = updates.get("chain-29")
    times = ratio(found, "adaptive", "bf", "1", "delete") if found else None
    if times is not None:
        yield Goal("the chain of proposition 29: adaptive within 2 times of B/F", f"{times:.2f} times", times <= 2)


def _adaptive(updates: Measured) -> Iterator[Goal]:
    ratios = []
    for name, found in updates.items():
        for label, way in rows_of(found):
            others = [a for a in found["algorithms"] if a != "adaptive"]
            times = [r for a in others if (r := ratio(found, "adaptive", a, label, way)) is not None]
            if times:
                ratios.append((max(times), f"`{name}`, {way} {label}"))
    if ratios:
        yield _every(
            "adaptive takes at most 1.5 times as long as the best algorithm, rematerialisation included", ratios, 1.5
        )


def _ranks(books: Measured) -> Iterator[Goal]:
    if not books:
        return
    dearest = max((f["kinds"]["ranks"]["cpu"] / f["kinds"]["none"]["cpu"] - 1, name) for name, f in books.items())
    text = "rank, total and support cost at most 25 % of the time of materialisation"
    yield Goal(text, f"{dearest[0]:.0%} at most (`{dearest[1]}`)", dearest[0] <= 0.25)
    heaviest = max(f["kinds"]["ranks"]["used"] for f in books.values())
    yield Goal("rank, total and support take at most 12 bytes a fact", f"{heaviest:.1f} at most", heaviest <= 12)


# -- tables ------------------------------------------------------------------------------------------------------------


def tables_of_updates(updates: Measured, books: Measured, measured: dict[str, Any]) -> list[str]:
    """Return the lines of the tables of maintenance; `measured` has the date of each part, and the load."""
    if not updates:
        return []
    lines = ["### Updates: CPU milliseconds", ""]
    lines += [
        f"{_when(measured['updates'])} "
        "Of the different updates of a size the median, without the first; the quickest of a row is bold. "
        "An update that was stopped is "
        "shown as `> seconds`; larger ones of its kind were not tried. Slow algorithms did fewer of the same updates.",
        "",
    ]
    lines += _table(updates, "cpu", lambda seconds: f"{seconds * 1e3:,.2f}")
    lines += ["", "### Updates: rule instances considered", ""]
    lines += _table(updates, "instances", lambda count: f"{count:,.0f}")
    lines += ["", *(f"- `{name}`: {WHAT[name]}" for name in updates), ""]
    differ = [f"`{name}`: {'; '.join(found['differ'])}" for name, found in updates.items() if found["differ"]]
    if differ:
        lines += [f"**Other facts than the rest of the algorithms:** {'. '.join(differ)}.", ""]
    return [*lines, *_bookkeeping(books, measured["bookkeeping"])]


def _when(measured: dict[str, Any]) -> str:
    load = "; ".join(f"{x:.1f}" for x in measured["load"])
    return f"{measured['date']}, load average before and after: {load}."


def _table(updates: Measured, what: str, shown: Any) -> list[str]:
    algorithms = list(dict.fromkeys(a for found in updates.values() for a in found["algorithms"]))
    lines = [f"| workload | facts | update | {' | '.join(algorithms)} |", f"|---|--:|---|{'--:|' * len(algorithms)}"]
    for name, found in updates.items():
        first, facts = f"`{name}`", f"{found['facts']:,}"
        for label, way in rows_of(found):
            told = [cell(found, a, label, way) for a in algorithms]
            values = [typical(t.get(what)) for t in told]
            best = min((v for v in values if v is not None), default=None) if what == "cpu" else None
            cells = [_shown(t, v, shown, v is not None and v == best) for t, v in zip(told, values)]
            lines.append(f"| {first} | {facts} | {way} {label} | {' | '.join(cells)} |")
            first = facts = ""
    return lines


def _shown(told: dict[str, Any], value: float | None, shown: Any, best: bool) -> str:
    if "longer than" in told:
        return f"> {told['longer than']:.0f} s"
    if "failed" in told:
        return "**fails**"
    if value is None:
        return ""
    return f"**{shown(value)}**" if best else str(shown(value))


def _bookkeeping(books: Measured, measured: dict[str, Any]) -> list[str]:
    if not books:
        return []
    lines = ["### Bookkeeping, begun with the materialisation", ""]
    lines += [
        f"{_when(measured)} "
        "`cnr` is what B/F^c relies on, `cnr, cr` DRed^c, the trace counting, ranks ranked support and adaptive. "
        "Bytes are counted for rows in use; as every array of a table, columns have up to a quarter more in reserve.",
        "",
        "| workload | facts | bookkeeping | CPU s | none = 1 | bytes a fact | allocated |",
        "|---|--:|---|--:|--:|--:|--:|",
    ]
    for name, found in books.items():
        shown, facts = f"`{name}`", f"{found['kinds']['none']['facts']:,}"
        for kind, row in found["kinds"].items():
            times = row["cpu"] / found["kinds"]["none"]["cpu"]
            lines.append(
                f"| {shown} | {facts} | {kind} | {row['cpu']:.3f} | {times:.2f} | {row['used']:.1f} | "
                f"{row['allocated']:.1f} |"
            )
            shown = facts = ""
    return [*lines, ""]
