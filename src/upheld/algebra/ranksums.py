"""What ranks know of all facts together, by names under which it is saved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping


def rank_sums(top: int, bottom: int, below: int, by_stratum: Mapping[int, int]) -> dict[str, int]:
    """Return what ranks know of all facts together, by name: their ends, and the derivations of each stratum."""
    ends = {"top": top, "bottom": bottom, "below": below}
    return ends | {f"stratum {index}": total for index, total in by_stratum.items()}


def sums_of_ranks(sums: Mapping[str, int]) -> tuple[int, int, int, Counter[int]]:
    """Return the ends of ranks and the derivations of each stratum, by their names."""
    strata = {int(name.removeprefix("stratum ")): n for name, n in sums.items() if name.startswith("stratum ")}
    return sums["top"], sums["bottom"], sums["below"], Counter(strata)
