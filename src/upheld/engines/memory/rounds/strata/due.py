"""Kernels of the strata that are due: a heap, so that the next one is found without a look at those that are not."""

from __future__ import annotations

from upheld.engines.memory.kernels.jit import inner_kernel
from upheld.engines.memory.rounds.strata.records import DUE, IS_DUE


@inner_kernel
def make_due(strata, due, s, state):
    """Enter a stratum into the heap, unless it is there."""
    if strata[s, IS_DUE]:
        return
    strata[s, IS_DUE] = 1
    at = state[DUE]
    state[DUE] = at + 1
    while at > 0 and due[(at - 1) // 2] > s:
        due[at] = due[(at - 1) // 2]
        at = (at - 1) // 2
    due[at] = s


@inner_kernel
def drop_first(strata, due, state):
    """Take the lowest stratum out of the heap."""
    strata[due[0], IS_DUE] = 0
    state[DUE] -= 1
    end = state[DUE]
    last = due[end]
    at, child = 0, 1
    while child < end:
        if child + 1 < end and due[child + 1] < due[child]:
            child += 1
        if due[child] >= last:
            break
        due[at] = due[child]
        at, child = child, 2 * child + 1
    due[at] = last
