"""An experiment: its cells, how they are measured, and the tables and figures that they give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from experiments.report.tables import Table

#: Sizes by name: seconds (for tests), a minute a table, an evening for all, and the papers' own.
SIZES = ("tiny", "small", "default", "paper")

Values = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One measurement: a row of a table, a stratification, an algorithm or method, a task and a seed."""

    row: str
    strat: str
    way: str
    task: str = ""
    seed: int = 0

    @property
    def name(self) -> str:
        """Row, stratification and way, for messages; cells of one name are given up together."""
        return " ".join(filter(None, (self.row, self.strat, self.way)))


@dataclass(frozen=True)
class Settings:
    """The choices of a user: a size, the number of seeds, the rows, and a folder with published programs."""

    size: str = "small"
    seeds: int | None = None
    only: tuple[str, ...] = ()
    programs: str | None = None

    def to_dict(self) -> Values:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Values) -> Settings:
        return cls(**{**values, "only": tuple(values["only"])})


class Measured:
    """The values of measured cells. Cells that took too long have none, but `stopped`."""

    def __init__(self, lines: Iterable[Values] = ()):
        self.values: dict[Cell, Values] = {}
        for line in lines:
            values = dict(line)
            self.values[Cell(**values.pop("cell"))] = values

    def __bool__(self) -> bool:
        return bool(self.values)

    def __contains__(self, cell: object) -> bool:
        return cell in self.values

    def rows(self) -> list[str]:
        """Return the rows in the order in which they were measured."""
        return list(dict.fromkeys(cell.row for cell in self.values))

    def of(self, **wanted: object) -> Iterator[Values]:
        """Yield the values of the finished cells whose fields are as wanted."""
        for cell, values in self.values.items():
            if "stopped" not in values and all(getattr(cell, name) == value for name, value in wanted.items()):
                yield values

    def numbers(self, name: str, **wanted: object) -> list[float]:
        """Return one value, such as `delete.cpu`, of each finished cell whose fields are as wanted."""
        return [value for values in self.of(**wanted) if (value := _inside(values, name)) is not None]


def _inside(values: Any, name: str) -> float | None:
    for part in name.split("."):
        if not isinstance(values, dict) or part not in values:
            return None
        values = values[part]
    return float(values)


#: Measures the cells of one group, in their order.
Measure = Callable[[Settings, list[Cell]], Iterator[tuple[Cell, Values]]]


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper. One with `cells_of` shows cells that another experiment measures."""

    id: str
    paper: int
    title: str
    table: Callable[[Measured], Table]
    cells: Callable[[Settings], list[Cell]] = lambda settings: []
    measure: Measure | None = None
    cells_of: str = ""
    #: Fields of a cell; cells that agree in them are measured by one process.
    process: tuple[str, ...] = ("row", "strat", "way")
    #: Minutes of CPU time that a size takes, roughly.
    minutes: dict[str, float] = field(default_factory=dict)
    #: Draws the figure into a file, if there is something to draw.
    figure: Callable[[Measured, Path], bool] | None = None

    @property
    def measured_by(self) -> str:
        """The id of the experiment that measures the cells of this one."""
        return self.cells_of or self.id
