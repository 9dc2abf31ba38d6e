"""Where rules are applied: by the memory engine in the driver, in tasks, or in tasks that work in step.

Of the modes that have room for the facts the cheapest is chosen (`costs`). The driver is the first choice, since all
costs are estimates. Tasks on their own are for programs that fall into parts. With a state the driver is chosen if the
facts fit there: its updates take milliseconds.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from upheld.base.dataclass import dataclass
from upheld.base.errors import LimitReached, Problem, ProgramError, count, quote
from upheld.base.sizes import size_of
from upheld.compiler.pivots import Obstacle, Pivots
from upheld.pipeline.job import Settings
from upheld.pipeline.modes.costs import GROWTH, MARGIN, RECURSIVE_GROWTH, Work, seconds
from upheld.pipeline.report import Choice

# Memory of facts in the driver, at least: for each fact a row on its way in, its place in the table, flags and an
# index; for each text a Python object beside its characters.
_FACT_BYTES = 64
_VALUE_BYTES = 16
_TEXT_BYTES = 80

_PLANS = {
    "driver": "the driver's memory engine",
    "decomposed": "parts, each by the memory engine in a task of Spark",
    "distributed": "partitions, in the tasks of one Spark job",
}

_PLACES = {"driver": "in the driver", "decomposed": "in parts", "distributed": "in partitions"}


@dataclass(frozen=True)
class Sizes:
    """The size of the explicit facts of a run."""

    facts: int
    values: int
    texts: int
    characters: int

    @property
    def need(self) -> int:
        """The bytes they take in the driver."""
        return self.facts * _FACT_BYTES + self.values * _VALUE_BYTES + self.texts * _TEXT_BYTES + self.characters

    def __str__(self) -> str:
        return f"{count(self.facts, 'fact')} and {count(self.texts, 'text')} take about {_shown(self.need)}"


def bytes_of(size: str | None) -> int:
    """Return the bytes that a size such as `4g` means; half of the machine's memory by default."""
    if size is None:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    result = size_of(size)
    assert result is not None, "a size that the job should have refused"
    return result


def fits(settings: Settings, sizes: Sizes) -> bool:
    """Return whether the driver has room for facts."""
    return sizes.need <= bytes_of(settings.driver_memory)


@dataclass(frozen=True)
class Shape:
    """How a program falls into parts, if it does, and what there is to derive them."""

    pivots: Pivots | Obstacle
    #: The part of the explicit facts that all parts must know.
    whole: float = 1.0
    #: The tasks that Spark runs at once.
    tasks: int = 1
    is_recursive: bool = False


def choose(settings: Settings, sizes: Sizes, shape: Shape) -> tuple[str, Choice]:
    """Return the mode of a run, and why; raise if the facts do not fit where they must, or do not fall into parts."""
    limit, has_room = bytes_of(settings.driver_memory), fits(settings, sizes)
    room = f"{sizes}, and {_shown(limit)} are allowed"
    costs: dict[str, float] = {}
    if settings.mode != "auto":
        mode, why = settings.mode, f"it was asked for; {room}"
        if mode == "decomposed" and isinstance(shape.pivots, Pivots):
            why = f"it was asked for; {_parts(shape)}"
    elif settings.state is not None:
        mode = "driver" if has_room else "distributed"
        why = f"{room} in the driver, {'which has room for the state' if has_room else 'and parts cannot have a state'}"
    else:
        costs = _costs(sizes, shape, limit)
        mode = _cheapest(costs)
        obstacle = _why_no_parts(sizes, shape, limit)
        why = "; ".join([f"{room} in the driver", _predicted(costs, shape), obstacle or _parts(shape)])
    if mode == "driver" and not has_room:
        raise LimitReached(
            Problem(
                "too-large-for-driver",
                f"{sizes} in the driver, and {_shown(limit)} are allowed",
                note="rules are applied by the memory engine in the driver, if that is asked for",
                hint="raise `driver_memory` if the machine has more, or choose the mode `distributed`",
            )
        )
    if mode == "decomposed" and isinstance(shape.pivots, Obstacle):
        rule, why = shape.pivots.rule, shape.pivots.why
        raise ProgramError(
            Problem(
                "no-pivot",
                "the program does not fall into parts, which the mode `decomposed` asks for",
                rule.span if rule else None,
                note=f"{quote(rule)} is in the way: {why}" if rule else why,
                hint="choose the mode `auto`, or keep one variable in one column of all that is recursive",
            )
        )
    return mode, Choice("rules are applied in", _PLANS[mode], why, costs)


def _costs(sizes: Sizes, shape: Shape, limit: int) -> dict[str, float]:
    """Return the modes that have room for the facts, each with the seconds that a run takes by the model."""
    work = Work.of(sizes.facts, sizes.texts, shape.whole, shape.is_recursive)
    possible = {
        "driver": sizes.need <= limit,
        "decomposed": _why_no_parts(sizes, shape, limit) is None,
        "distributed": True,
    }
    return {mode: seconds(mode, work, shape.tasks) for mode, is_possible in possible.items() if is_possible}


def _cheapest(costs: Mapping[str, float]) -> str:
    """Return the mode that takes least time; the driver, if that takes hardly longer."""
    best = min(costs, key=costs.__getitem__)
    return "driver" if "driver" in costs and costs["driver"] <= MARGIN * costs[best] else best


def _predicted(costs: Mapping[str, float], shape: Shape) -> str:
    """Return predicted costs as text."""
    growth = RECURSIVE_GROWTH if shape.is_recursive else GROWTH
    each = ", ".join(f"{_PLACES[mode]} {cost:.1f} s" for mode, cost in costs.items())
    assumed = f"{count(shape.tasks, 'task')} at once and {count(growth, 'fact')} derived for each explicit one"
    return f"with {assumed} it would take {each}"


def _why_no_parts(sizes: Sizes, shape: Shape, limit: int) -> str | None:
    """Return why the rules cannot be applied in parts, if they cannot."""
    if isinstance(shape.pivots, Obstacle):
        rule = shape.pivots.rule
        return "the program does not fall into parts" + (f": {quote(rule)} is in the way" if rule else "")
    if shape.pivots.is_recursive_before or sizes.need * shape.whole > limit:
        return "each part would need too much of the facts"
    return None


def _parts(shape: Shape) -> str:
    assert isinstance(shape.pivots, Pivots), "parts of a program that has none"
    names = [f"{quote(name)} by column {column + 1}" for name, column in shape.pivots.columns.items()]
    return f"the program falls into parts ({', '.join(names[:5])}{', ...' if len(names) > 5 else ''})"


def _shown(size: int) -> str:
    return f"{size / 2**30:.1f} GB" if size >= 2**30 else f"{size / 2**20:.1f} MB"
