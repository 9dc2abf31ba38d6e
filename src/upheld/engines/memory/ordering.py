"""The order in which the atoms of a body are joined: the one that is expected to handle the fewest bindings in all.

Built-ins and negated atoms take no part: they only filter, and do so as soon as their variables are bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from upheld.algebra.matching import is_ready
from upheld.language.core import Atom, Builtin

#: Up to so many atoms all orders are compared; of longer bodies each next atom is the best for itself.
_ALL_ORDERS = 8

#: Estimates the rows that match one binding of these variables; below one for an atom that only filters.
FanOut = Callable[[Atom, set[str]], float]


def best_order(atoms: Sequence[Atom], builtins: Sequence[Builtin], start: set[str], fan_out: FanOut) -> list[int]:
    """Return the positions of the atoms in the order to join them in."""
    if len(atoms) < 2:
        return list(range(len(atoms)))
    if len(atoms) > _ALL_ORDERS:
        return _greedy(atoms, builtins, start, fan_out)
    # By dynamic programming over sets of atoms: what is bound after some atoms, and about how many bindings there
    # are, does not depend on their order.
    whole = (1 << len(atoms)) - 1
    best: dict[int, tuple[float, float, list[int]]] = {0: (0.0, 1.0, [])}
    for done in range(whole):
        cost, bindings, order = best[done]
        bound = _bound(start, [atoms[i] for i in order], builtins)
        for i, atom in enumerate(atoms):
            if done >> i & 1:
                continue
            matched = bindings * fan_out(atom, bound)
            total = cost + bindings + matched
            known = best.get(done | 1 << i)
            if known is None or total < known[0]:
                best[done | 1 << i] = (total, matched, [*order, i])
    return best[whole][2]


def _greedy(atoms: Sequence[Atom], builtins: Sequence[Builtin], start: set[str], fan_out: FanOut) -> list[int]:
    order: list[int] = []
    while len(order) < len(atoms):
        bound = _bound(start, [atoms[i] for i in order], builtins)
        left = [i for i in range(len(atoms)) if i not in order]
        order.append(min(left, key=lambda i: fan_out(atoms[i], bound)))
    return order


def _bound(start: set[str], atoms: Sequence[Atom], builtins: Sequence[Builtin]) -> set[str]:
    """Return the variables that have values after some atoms and the built-ins that are ready then."""
    bound = start.union(*(a.variables() for a in atoms))
    waiting = list(builtins)
    while ready := [b for b in waiting if is_ready(b, bound)]:
        bound = bound.union(*(b.variables() for b in ready))
        waiting = [b for b in waiting if b not in ready]
    return bound
