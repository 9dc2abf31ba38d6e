"""The report of a run: what each stage did and cost, what was chosen and why."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from upheld.base.errors import count
from upheld.engines.spark.session import title
from upheld.language.ast import Program

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass
class Stage:
    """A stage of a run. While it runs, its seconds and jobs are zero, and its result says how far it has come."""

    name: str
    #: Its result, as text; while it runs, its progress, as far as that is known.
    result: str = ""
    seconds: float = 0.0
    #: The jobs that Spark ran for it.
    jobs: int = 0


@dataclass(frozen=True)
class Choice:
    """Something that was decided by the data: `what` was to be chosen, the `plan` chosen, and `why`.

    `costs` has the seconds that were predicted for each mode that could be chosen.
    """

    what: str
    plan: str
    why: str
    costs: dict[str, float] = field(default_factory=dict)


#: Told of each stage when it starts, while rules are applied, and when it has ended.
StageWatcher = Callable[[Stage], None]


@dataclass
class RunReport:
    """The report of a run of a pipeline."""

    #: Rows read and rows that did not fit, for each source.
    sources: list[dict[str, Any]] = field(default_factory=list)
    #: Explicit facts, and all facts, of each relation.
    relations: dict[str, dict[str, int]] = field(default_factory=dict)
    #: The number of violations of each violated constraint.
    violations: dict[str, int] = field(default_factory=dict)
    #: Texts in the dictionary, and those that this run has added.
    dictionary: dict[str, int] = field(default_factory=dict)
    choices: list[Choice] = field(default_factory=list)
    #: Where rules were applied, as the option `mode` calls it.
    mode: str = ""
    stages: list[Stage] = field(default_factory=list)
    #: The outputs: for each sink its place, and the number of facts per relation.
    sinks: list[dict[str, Any]] = field(default_factory=list)
    #: The folder of the state and its last version, if one is kept.
    state: dict[str, Any] = field(default_factory=dict)
    #: Spark's version and master, and the id of the application.
    spark: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def jobs(self) -> int:
        """The jobs that Spark ran."""
        return sum(stage.jobs for stage in self.stages)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data, for JSON."""
        return {**asdict(self), "jobs": self.jobs}

    def to_text(self) -> str:
        """Return the report for people: a line for each stage, choice and relation."""
        lines = [f"{s.name:<12} {s.seconds:8.2f} s  {s.jobs:3} jobs  {s.result}".rstrip() for s in self.stages]
        lines.append(f"{'in all':<12} {self.seconds:8.2f} s  {self.jobs:3} jobs")
        lines += [f"{choice.what}: {choice.plan}, because {choice.why}" for choice in self.choices]
        if self.state:
            lines.append(f"state: version {self.state['version']} in {self.state['folder']}")
        for name, sizes in self.relations.items():
            lines.append(f"{name}: {count(sizes['facts'], 'fact')}, {sizes['explicit']:,} of them explicit")
        lines += [f"constraint {name}: {count(number, 'violation')}" for name, number in self.violations.items()]
        return "\n".join(lines)


class Recorder:
    """Fills a report while a pipeline runs on a session."""

    def __init__(self, spark: SparkSession, watcher: StageWatcher | None, program: Program) -> None:
        context = spark.sparkContext
        self._spans = [clause.span for clause in program.clauses]
        self._context, self._watcher, self._start = context, watcher, time.perf_counter()
        self.report = RunReport(
            spark={"version": spark.version, "master": str(context.master), "application": context.applicationId}
        )

    @contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        """Time what is done inside, and count the jobs it starts."""
        stage = Stage(name)
        self.report.stages.append(stage)
        self._tell(stage)
        group = f"upheld-{uuid4()}"
        properties = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
        before = {name: self._context.getLocalProperty(name) for name in properties}
        start = time.perf_counter()
        self._context.setJobGroup(group, title(self._spans, name))
        try:
            yield stage
        finally:
            for key, value in before.items():
                self._context.setLocalProperty(key, value)  # type: ignore[arg-type]
            stage.seconds = time.perf_counter() - start
            stage.jobs = len(self._context.statusTracker().getJobIdsForGroup(group))
            self.report.seconds = time.perf_counter() - self._start
        self._tell(stage)

    def _tell(self, stage: Stage) -> None:
        if self._watcher is not None:
            self._watcher(stage)


@dataclass(frozen=True)
class PipelineRun:
    """A finished run of a pipeline: its relations as DataFrames, and its report."""

    frames: Mapping[str, DataFrame]
    report: RunReport
    #: Holds what the DataFrames are made of.
    _held: object = field(repr=False)

    def __getitem__(self, relation: str) -> DataFrame:
        """Return the facts of a relation that went to some sink or is an output."""
        return self.frames[relation]
