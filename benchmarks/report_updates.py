"""Tables of maintenance, and whether its goals are reached."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median


def typical(values: Sequence[float] | None) -> float | None:
    """Return the median of different updates, without the first, which meets kernels and plans; of two, the least."""
    if not values:
        return None
    return median(values[1:]) if len(values) > 2 else min(values)
