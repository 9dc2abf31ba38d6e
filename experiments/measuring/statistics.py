"""Means with 95 % intervals, scores, medians and correlations, as section 10.2 of paper 1 defines them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

#: The 97.5 % quantile of the normal distribution.
Z = 1.96


@dataclass(frozen=True)
class Mean:
    """A mean, the half width of its 95 % interval, and the number of values; the interval of one value is None."""

    value: float
    interval: float | None
    count: int


def mean(values: Sequence[float]) -> Mean | None:
    """Return the mean of some values with its interval: equations (164) and (165) of paper 1.

    >>> mean([2.0, 2.0])
    Mean(value=2.0, interval=0.0, count=2)
    """
    if not values:
        return None
    n, middle = len(values), fmean(values)
    if n == 1:
        return Mean(middle, None, 1)
    deviation = math.sqrt(sum((v - middle) ** 2 for v in values) / (n - 1))
    return Mean(middle, Z * deviation / math.sqrt(n), n)


def scores(values: Sequence[float | None]) -> list[float | None]:
    """Return each value as a multiple of the least; the best has the score 1, and an unknown value has none.

    >>> scores([2.0, None, 1.0])
    [2.0, None, 1.0]
    """
    known = [v for v in values if v is not None]
    least = min(known, default=0.0)
    return [None if v is None else v / least if least > 0 else 1.0 for v in values]


def middle(values: Sequence[float | None]) -> float | None:
    """Return the median of the known values, or None if none is known."""
    known = [v for v in values if v is not None]
    return median(known) if known else None


def average(values: Sequence[float | None]) -> float | None:
    """Return the mean of the known values, or None if none is known."""
    known = [v for v in values if v is not None]
    return fmean(known) if known else None


def pearson(xs: Sequence[float | None], ys: Sequence[float | None]) -> float | None:
    """Return the Pearson correlation of the pairs that are known; None for fewer than two, or without variation.

    >>> round(pearson([1, 2, 3], [2, 4, 6.5]), 3)
    0.998
    """
    pairs = [(x, y) for x, y in zip(xs, ys, strict=True) if x is not None and y is not None]
    if len(pairs) < 2:
        return None
    mx, my = fmean(x for x, _ in pairs), fmean(y for _, y in pairs)
    sxy = sum((x - mx) * (y - my) for x, y in pairs)
    sxx, syy = sum((x - mx) ** 2 for x, _ in pairs), sum((y - my) ** 2 for _, y in pairs)
    return None if sxx == 0 or syy == 0 else sxy / math.sqrt(sxx * syy)
