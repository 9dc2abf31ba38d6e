"""The tables of RDF, from what `measure/rdf.py` measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

REASONERS = {
    "bound": "Upheld, the lower bound of the ontology",
    "owl2rl": "Upheld, `owl2rl` without eq-ref",
    "all": "Upheld, `owl2rl`",
    "reasonable": "reasonable",
    "owlrl": "owlrl",
}


def tables_of_rdf(results: Path, size: str) -> list[str]:
    """Return the lines of the tables of a size, none if it has not been measured."""
    path = results / f"{size}-rdf.json"
    if not path.exists():
        return []
    found = json.loads(path.read_text("utf-8"))
    lines = [f"### RDF, {size} sizes", "", f"Measured on {found['date']}, in CPU seconds.", ""]
    for count, rows in found["reasoners"].items():
        lines += [f"OWL 2 RL over {int(count):,} triples of universities:", "", *_reasoners(rows), ""]
    lines += [*_updates(found["updates"]), "", *_reading(found["reading"]), ""]
    return lines


def _reasoners(rows: dict[str, Any]) -> list[str]:
    lines = ["| reasoner | CPU s | of it loading | peak MB | triples in the words of the data | times `owl2rl` |"]
    lines += ["|---|---|---|---|---|---|"]
    ours = rows["owl2rl"]
    for name, row in rows.items():
        if "failed" in row:
            lines.append(f"| {REASONERS[name]} | {row['failed']} | | | | |")
            continue
        same = "the same" if row["digest"] == ours["digest"] else "others"
        cpu = row["total"]["cpu"]
        lines.append(
            f"| {REASONERS[name]} | {cpu:.2f} | {row['loading']['cpu']:.2f} | {row['peak'] / 1e6:,.0f} "
            f"| {row['entailed']:,}, {same} | {cpu / ours['total']['cpu']:.2f} |"
        )
    return lines


def _updates(found: dict[str, Any]) -> list[str]:
    lines = [
        f"Updates under `owl2rl` without eq-ref, of {found['triples']:,} triples; starting again takes "
        f"{found['again']:.2f}:",
        "",
        "| explicit triples | changed | delete | insert | starting again, times delete |",
        "|---|---|---|---|---|",
    ]
    for count, row in found["sizes"].items():
        lines.append(
            f"| {int(count):,} | {row['changed']:,} | {row['delete']:.4f} | {row['insert']:.4f} "
            f"| {found['again'] / row['delete']:,.0f} |"
        )
    return lines


def _reading(found: dict[str, Any]) -> list[str]:
    lines = [f"Reading {found['triples']:,} triples:", "", "| format | CPU s | triples a second |", "|---|---|---|"]
    for suffix, seconds in found["seconds"].items():
        lines.append(f"| `{suffix}` | {seconds:.2f} | {found['triples'] / seconds:,.0f} |")
    return lines
