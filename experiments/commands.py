"""The commands of `python -m experiments`: list, run, show and report."""

from __future__ import annotations

import json
from pathlib import Path

from experiments.catalogue import experiment_named, experiments
from experiments.measuring.measure import Progress, folder_of, load
from experiments.measuring.measure import run as measure
from experiments.registry import Experiment, Settings
from experiments.report.findings import sizes, write_findings
from upheld.base.errors import Problem, UpheldError, UsageError


def listed(results: Path, size: str | None = None) -> str:
    """Return one line for each experiment: id, paper, size, minutes, whether it is measured, and title."""
    lines = [("id", "paper", "size", "minutes", "measured", "title")]
    chosen = sizes(results, size)
    for experiment in experiments().values():
        settings = chosen[experiment.id]
        minutes = experiments()[experiment.measured_by].minutes.get(settings.size)
        done = load(folder_of(results, settings, experiment.measured_by))
        cells = f"{len(done.values)} cells" if done else "no"
        takes = f"{minutes:g}" if minutes else ""
        lines.append((experiment.id, str(experiment.paper), settings.size, takes, cells, experiment.title))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(t.ljust(w) for t, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def run(
    id: str | None, settings: Settings, results: Path, progress: Progress | None = None, engine: str = "memory"
) -> Path:
    """Measure what is missing of an experiment, write its files, and return their folder."""
    experiment = _named(id, engine)
    measured_by = experiment_named(experiment.measured_by)
    measure(measured_by, settings, results, progress)
    for each in experiments().values():
        if each.measured_by == measured_by.id:
            write(each, settings, results)
    return folder_of(results, settings, experiment.id)


def run_all(settings: Settings, results: Path, progress: Progress | None = None) -> list[Path]:
    """Measure what is missing of all experiments, the quick ones first, and return their folders.

    An experiment that fails does not keep the others from being measured: the error comes at the end.
    """
    measuring = [each for each in experiments().values() if each.measure is not None]
    folders, failed = list[Path](), list[UpheldError]()
    for experiment in sorted(measuring, key=lambda each: each.minutes.get(settings.size, 0.0)):
        try:
            folders.append(run(experiment.id, settings, results, progress))
        except UpheldError as error:
            failed.append(error)
    if failed:
        raise UsageError([problem for error in failed for problem in error.problems])
    return folders


def write(experiment: Experiment, settings: Settings, results: Path) -> None:
    """Write the table and the figure of an experiment from the cells that are there."""
    folder = folder_of(results, settings, experiment.id)
    folder.mkdir(parents=True, exist_ok=True)
    measured = load(folder_of(results, settings, experiment.measured_by))
    table = experiment.table(measured)
    (folder / "table.md").write_text(table.to_markdown(), encoding="utf-8")
    (folder / "table.csv").write_text(table.to_csv(), encoding="utf-8")
    if experiment.figure:
        experiment.figure(measured, folder / "figure.svg")
    machine = folder_of(results, settings, experiment.measured_by) / "machine.json"
    if experiment.cells_of and machine.exists():
        about = {"cells_of": experiment.cells_of, **json.loads(machine.read_text(encoding="utf-8"))}
        (folder / "machine.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def shown(id: str | None, results: Path, size: str | None = None, engine: str = "memory") -> str:
    """Return the table of an experiment for a terminal; without a size, at which most of its rows are measured."""
    experiment = _named(id, engine)
    settings = sizes(results, size)[experiment.id]
    folder = folder_of(results, settings, experiment.measured_by)
    measured = load(folder)
    text = experiment.table(measured).to_text()
    if not measured:
        measuring = f"python -m experiments run {experiment.id}"
        return f"{text}\nnote: nothing is measured at size {settings.size}; run `{measuring}`"
    machine = folder / "machine.json"
    if machine.exists():
        about = json.loads(machine.read_text(encoding="utf-8"))
        text += f"\nnote: size {settings.size}, measured on {about['date']} on {about['processor']}, "
        text += f"load {about['load'][0]:g}"
    return text


def write_report(results: Path, page: Path, size: str | None = None) -> list[Path]:
    """Write all tables and figures, and the page of findings; return the files of the page.

    Without a size, each experiment is shown at the size at which most of its rows are measured.
    """
    chosen = sizes(results, size)
    for experiment in experiments().values():
        if load(folder_of(results, chosen[experiment.id], experiment.measured_by)):
            write(experiment, chosen[experiment.id], results)
    return write_findings(chosen, results, page)


def _named(id: str | None, engine: str = "memory") -> Experiment:
    if id is None:
        problem = Problem(
            "missing-experiment",
            "no experiment is named",
            hint="`python -m experiments list` lists their ids; `run --all` runs all",
        )
        raise UsageError(problem)
    return experiment_named(id if engine == "memory" else f"{id}-{engine}")
