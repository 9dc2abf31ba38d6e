"""The page of findings: questions, claims with verdicts, tables and figures, as Markdown and as HTML."""

from __future__ import annotations

import html
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from experiments.catalogue import experiments
from experiments.measuring.measure import folder_of, load
from experiments.papers import paper1
from experiments.registry import SIZES, Settings
from experiments.report import plots
from experiments.report.claims import CONFIRMED, CONTRADICTED, OPEN, Judged, judged
from experiments.report.questions import ALGORITHMS, CLAIMS, MISSING, PAPERS, QUESTIONS, Question
from experiments.report.tables import Table


@dataclass(frozen=True)
class Heading:
    level: int
    text: str


@dataclass(frozen=True)
class Picture:
    file: Path
    text: str


#: Parts of the page: text in Markdown without block structure, lists of texts, rows of a table, headings, pictures.
Block = str | list[str] | list[list[str]] | Heading | Picture


#: Explicit facts of an instance of papers 1 to 3 at each size.
FACTS = {size: numbers[0] for size, numbers in paper1.SIZES.items()}

#: The size at which each experiment is shown.
Chosen = dict[str, Settings]


def sizes(results: Path, size: str | None = None) -> Chosen:
    """Return the size of each experiment: the given one, or the one with most rows measured, then the larger."""
    chosen: Chosen = {}
    for each in experiments().values():
        candidates = [Settings(name) for name in ((size,) if size else SIZES[1:])]
        measured = {s.size: len(load(folder_of(results, s, each.measured_by)).rows()) for s in candidates}
        chosen[each.id] = max(
            candidates, key=lambda s: (measured[s.size], bool(measured[s.size]) * SIZES.index(s.size))
        )
    return chosen


def write_findings(chosen: Chosen, results: Path, page: Path) -> list[Path]:
    """Write the page as Markdown, and beside the results as HTML; return both files."""
    blocks = list(_blocks(chosen, results))
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(_markdown(blocks, page), encoding="utf-8")
    beside = results / "findings.html"
    beside.parent.mkdir(parents=True, exist_ok=True)
    beside.write_text(_html(blocks), encoding="utf-8")
    return [page, beside]


def tables_of(chosen: Chosen, results: Path) -> dict[str, Table]:
    """Return the tables of all experiments, with our numbers where they are measured."""
    return {
        each.id: each.table(load(folder_of(results, chosen[each.id], each.measured_by)))
        for each in experiments().values()
    }


def _blocks(chosen: Chosen, results: Path) -> Iterator[Block]:
    tables = tables_of(chosen, results)
    verdicts = judged(CLAIMS, tables)
    counts = Counter(each.verdict for each in verdicts)
    yield Heading(1, "Findings")
    yield (
        "Rules derive facts from facts. When the data changes, the derived facts must follow, and the question is how: "
        "work out what the change touches, or start again. Five papers propose algorithms for this and measure them. "
        "Upheld has these algorithms, so it can measure them side by side, on one engine. This page lists what each "
        "paper found, what we find, and whether the two agree."
    )
    yield (
        f"Of {len(verdicts)} claims, {counts[CONFIRMED]} are **confirmed**, {counts[CONTRADICTED]} **contradicted** "
        f"and {counts[OPEN]} **open** (not measured yet). The [tables](#tables-and-figures) below have every number "
        "beside the printed one, and [How it was measured](#how-it-was-measured) says on which data and machine."
    )
    yield ALGORITHMS
    if scale := _scale(chosen, results):
        yield scale
    yield Heading(2, "In short")
    yield [f"**{question}** {_short(question, about, verdicts, tables)}" for question, about in QUESTIONS.items()]
    agreement = results / "agreement.svg"
    if plots.agreement(tables, agreement):
        yield Picture(agreement, "How far our ranking of the algorithms agrees with the paper's, table by table")
    for question, about in QUESTIONS.items():
        yield Heading(2, question)
        yield about.about
        mine = [each for each in verdicts if each.claim.question == question]
        if not mine:
            continue
        yield [
            ["paper", "what the paper found", "what we find", "verdict", "likely reason"],
            *([f"[{e.claim.paper}]", e.claim.finding, e.ours, f"**{e.verdict}**", e.why] for e in mine),
        ]
    yield Heading(2, "How it was measured")
    yield from _method(chosen, results)
    yield Heading(2, "Missing programs and data")
    yield list(MISSING)
    yield Heading(2, "Tables and figures")
    for experiment in experiments().values():
        folder = folder_of(results, chosen[experiment.id], experiment.id)
        if not load(folder_of(results, chosen[experiment.id], experiment.measured_by)):
            continue
        yield Heading(3, f"{experiment.id}: {experiment.title}")
        if (figure := folder / "figure.svg").exists():
            yield Picture(figure, experiment.title)
        yield tables[experiment.id].cells()
        yield [f"Size `{chosen[experiment.id].size}`.", *tables[experiment.id].notes]
    yield Heading(2, "The papers")
    yield [f"[{number}] {paper}" for number, paper in PAPERS.items()]


def _scale(chosen: Chosen, results: Path) -> str:
    """Return how large the data is on which most tables were measured, and what that means for verdicts."""
    measured = [s.size for id, s in chosen.items() if load(folder_of(results, s, id))]
    if not measured:
        return ""
    size, tables = Counter(measured).most_common(1)[0]
    facts = f"{FACTS[size]:,}"
    return (
        f"Mind the scale: {tables} of {len(measured)} measured tables are at size `{size}`, on {facts} facts or "
        "fewer where the papers have millions. An effect that needs much data can be missing here. So *contradicted* "
        "says that we do not see it at this size, and the reason given is our guess."
    )


def _rows(chosen: Chosen, results: Path) -> str:
    """Return how many rows of each experiment are measured, and at which size."""
    parts = []
    for experiment in experiments().values():
        settings = chosen[experiment.id]
        if every := {cell.row for cell in experiment.cells(settings)}:
            rows = load(folder_of(results, settings, experiment.id)).rows()
            parts.append(f"{experiment.id} {len(rows)} of {len(every)} (`{settings.size}`)")
    return ", ".join(parts)


def _short(question: str, about: Question, verdicts: list[Judged], tables: dict[str, Table]) -> str:
    """Return the measured answer to a question, and how the claims under it came out."""
    counts = Counter(each.verdict for each in verdicts if each.claim.question == question)
    parts = [f"{counts[v]} {v}" for v in (CONFIRMED, CONTRADICTED, OPEN) if counts[v]]
    answer = about.answer(tables) or "Not measured yet."
    return f"{answer} ({', '.join(parts)})" if parts else answer


def _method(chosen: Chosen, results: Path) -> Iterator[Block]:
    files = {folder_of(results, s, id) / "machine.json" for id, s in chosen.items()}
    machines = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(files) if file.exists()]
    yield (
        "Times are CPU seconds of a process that measures one row, after kernels were compiled, so other work on the "
        "machine disturbs them little. Derivations are the rule instances that an algorithm considers; they do not "
        "depend on the machine. The papers' engine is a C++ program on data a hundred to ten thousand times larger, so "
        "seconds differ and only comparisons within a row mean something. Our own algorithms, `ranked` and `adaptive`, "
        "are further columns."
    )
    yield (
        "Each verdict is computed from the measured numbers by a test in `experiments/report/questions.py`, on "
        "the rows that are measured. The reasons beside the verdicts are our reading of the numbers; no experiment of "
        f"their own has tested them. Rows measured, and the size: {_rows(chosen, results)}."
    )
    if machines:
        loads = [load for each in machines for load in each["load"]]
        about = machines[0]
        published = sum(each["settings"]["programs"] != "generated" for each in machines)
        yield (
            f"Measured on {about['processor']} with {about['cores']} cores, Python "
            f"{about['python']}, NumPy {about['versions']['numpy']}, Numba {about['versions']['numba']}, at loads of "
            f"{min(loads):g} to {max(loads):g}; {published} of {len(machines)} runs used published rule sets where "
            "there are any. `python -m experiments run ID` measures a table, `python -m experiments report` writes "
            "this page."
        )


# -- output ------------------------------------------------------------------------------------------------------------

GENERATED = "<!-- Written by `python -m experiments report`: measure again, then `make findings`. -->"


def _markdown(blocks: list[Block], page: Path) -> str:
    lines: list[str] = []
    for number, block in enumerate(blocks):
        match block:
            case Heading(level, text):
                lines += ["#" * level + " " + text]
                if number == 0:
                    lines += ["", GENERATED]
            case Picture(file, text):
                lines += [f"![{text}]({Path(os.path.relpath(file, page.parent)).as_posix()})"]
            case str():
                lines += [block]
            case [[*header], *rows]:
                lines += ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
                lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
            case _:
                lines += [f"- {item}" for item in block]
        lines.append("")
    return "\n".join(lines)


def _html(blocks: list[Block]) -> str:
    parts = []
    for block in blocks:
        match block:
            case Heading(level, text):
                parts.append(f'<h{level} id="{_anchor(text)}">{_inline(text)}</h{level}>')
            case Picture(file, text):
                picture = file.read_text(encoding="utf-8")
                parts.append(
                    f"<figure>{picture[picture.index('<svg') :]}<figcaption>{_inline(text)}</figcaption></figure>"
                )
            case str():
                parts.append(f"<p>{_inline(block)}</p>")
            case [[*header], *rows]:
                head = "".join(f"<th>{_inline(text)}</th>" for text in header)
                body = "".join("<tr>" + "".join(f"<td>{_inline(str(t))}</td>" for t in row) + "</tr>" for row in rows)
                parts.append(f"<table><tr>{head}</tr>{body}</table>")
            case _:
                parts.append("<ul>" + "".join(f"<li>{_inline(str(item))}</li>" for item in block) + "</ul>")
    return HEAD + "\n".join(parts) + "\n"


def _inline(text: str) -> str:
    """Return the HTML of a line with bold and slanted words, code, and links to other parts of the page."""
    text = html.escape(text)
    text = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", text)
    text = re.sub(r"\*(\w[^*]*)\*", r"<em>\1</em>", text)
    text = re.sub(r"\[([^]]+)\]\((#[^)]+)\)", r'<a href="\2">\1</a>', text)
    return re.sub(r"`(.+?)`", r"<code>\1</code>", text)


def _anchor(heading: str) -> str:
    """Return the name of a heading in links, as Markdown makes it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Findings</title>
<style>
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; }
table { border-collapse: collapse; font-size: 0.85rem; display: block; overflow-x: auto; }
th, td { border-bottom: 1px solid #ddd; padding: 0.25rem 0.6rem; text-align: left; vertical-align: top; }
figure { margin: 1rem 0; } svg { max-width: 100%; height: auto; }
</style>
"""
