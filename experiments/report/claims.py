"""Claims of the papers as predicates over measured tables: each is confirmed, contradicted or open."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median

from experiments.report.tables import Table, number

#: The tables of all experiments by id; unmeasured ones have the papers' numbers alone.
Tables = dict[str, Table]

CONFIRMED, CONTRADICTED, OPEN = "confirmed", "contradicted", "open"


@dataclass(frozen=True)
class Outcome:
    """Whether a claim holds for the measured numbers, and these numbers in words."""

    holds: bool
    ours: str


@dataclass(frozen=True)
class Claim:
    """A finding of a paper; `test` returns None where the cells that it needs are not measured."""

    question: str
    paper: int
    finding: str
    test: Callable[[Tables], Outcome | None]
    #: Why it comes out as it does, by verdict.
    because: dict[str, str]


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict, the measured numbers in words, and the reason."""

    claim: Claim
    verdict: str
    ours: str
    why: str


def judged(claims: Iterable[Claim], tables: Tables) -> list[Judged]:
    """Return the claims with their verdicts."""
    judgements = []
    for claim in claims:
        outcome = claim.test(tables)
        if outcome is None:
            judgements.append(Judged(claim, OPEN, "not measured", ""))
        else:
            verdict = CONFIRMED if outcome.holds else CONTRADICTED
            judgements.append(Judged(claim, verdict, outcome.ours, claim.because.get(verdict, "")))
    return judgements


# -- what predicates are made of -----------------------------------------------------------------------------------


def pairs(table: Table, left: str, right: str, where: Callable[[tuple[str, ...]], bool] | None = None) -> list[float]:
    """Return, for each row in which both are measured, what the left column is as a multiple of the right one."""
    ratios = []
    for key in table.rows:
        a, b = table.ours(key, left), table.ours(key, right)
        if a is not None and b is not None and b > 0 and (where is None or where(key)):
            ratios.append(a / b)
    return ratios


def faster(table: Table, left: str, right: str, share: float = 0.5, **more: object) -> Outcome | None:
    """Test that the left column is less than the right one in more than a share of the rows."""
    ratios = pairs(table, left, right, **more)  # type: ignore[arg-type]
    if not ratios:
        return None
    less = sum(ratio < 1 for ratio in ratios)
    words = f"less in {less} of {len(ratios)} rows; median ratio {number(median(ratios))}"
    return Outcome(less > share * len(ratios), words)


def at_most(table: Table, left: str, right: str, bound: float, **more: object) -> Outcome | None:
    """Test that the median of left over right, with three digits as papers print them, is at most a bound."""
    ratios = pairs(table, left, right, **more)  # type: ignore[arg-type]
    if not ratios:
        return None
    ratio = float(f"{median(ratios):.3g}")
    return Outcome(ratio <= bound, f"median ratio {number(ratio)} over {len(ratios)} rows")


def range_of(table: Table, column: str) -> list[float]:
    """Return the measured numbers of a column."""
    return [value for key in table.rows if (value := table.ours(key, column)) is not None]
