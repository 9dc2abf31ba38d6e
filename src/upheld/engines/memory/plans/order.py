"""The order in which the atoms of a body are joined: the one that is expected to handle the fewest bindings in all.

Built-ins and negated atoms take no part: they only filter, and do so as soon as their variables are bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from upheld.algebra.instances import is_ready
from upheld.language.core import Atom, Builtin

#: Atoms up to which all orders are compared; in longer bodies the next atom is chosen greedily.
_ALL_ORDERS = 8

#: Estimates the rows that match one binding of these variables; below one for an atom that only filters.
FanOut = Callable[[Atom, set[str]], float]

#: Estimates for each variable of an atom how many distinct values the facts of the atom have there.
Values = Callable[[Atom], dict[str, float]]


def best_order(
    atoms: Sequence[Atom],
    builtins: Sequence[Builtin],
    start: set[str],
    before: Sequence[Atom],
    fan_out: FanOut,
    values: Values,
) -> list[int]:
    """Return the positions of the atoms in the order to join them in; `before` are those that are matched already."""
    if len(atoms) < 2:
        return list(range(len(atoms)))
    begun = _narrowed({}, *map(values, before))
    known = list(map(values, atoms))
    if len(atoms) > _ALL_ORDERS:
        return _greedy(atoms, builtins, start, fan_out, begun, known)
    # By dynamic programming over sets of atoms: what is bound after some atoms, and about how many bindings there
    # are, does not depend on their order.
    whole = (1 << len(atoms)) - 1
    best: dict[int, tuple[float, float, list[int]]] = {0: (0.0, 1.0, [])}
    for done in range(whole):
        cost, bindings, order = best[done]
        bound = _bound(start, [atoms[i] for i in order], builtins)
        there = _narrowed(begun, *(known[i] for i in order))
        for i, atom in enumerate(atoms):
            if done >> i & 1:
                continue
            matched = bindings * fan_out(atom, bound) * _found(there, known[i])
            total = cost + bindings + matched
            other = best.get(done | 1 << i)
            if other is None or total < other[0]:
                best[done | 1 << i] = (total, matched, [*order, i])
    return best[whole][2]


def _greedy(
    atoms: Sequence[Atom],
    builtins: Sequence[Builtin],
    start: set[str],
    fan_out: FanOut,
    begun: dict[str, float],
    known: Sequence[dict[str, float]],
) -> list[int]:
    order: list[int] = []
    while len(order) < len(atoms):
        bound = _bound(start, [atoms[i] for i in order], builtins)
        there = _narrowed(begun, *(known[i] for i in order))
        left = [i for i in range(len(atoms)) if i not in order]
        order.append(min(left, key=lambda i: fan_out(atoms[i], bound) * _found(there, known[i])))
    return order


def _narrowed(there: dict[str, float], *joined: dict[str, float]) -> dict[str, float]:
    """Return how many values variables have after a join: as many as in the atom with the fewest."""
    together = dict(there)
    for values in joined:
        for variable, count in values.items():
            together[variable] = min(count, together.get(variable, count))
    return together


def _found(there: dict[str, float], values: dict[str, float]) -> float:
    """Return the share of bindings whose values an atom has at all: of two columns, the smaller lies in the larger.

    Columns are seldom independent, so of several shared variables the one with the least share speaks for all.
    """
    return min((min(1.0, n / there[v]) for v, n in values.items() if v in there), default=1.0)


def _bound(start: set[str], atoms: Sequence[Atom], builtins: Sequence[Builtin]) -> set[str]:
    """Return the variables that have values after some atoms and the built-ins that are ready then."""
    bound = start.union(*(a.variables() for a in atoms))
    waiting = list(builtins)
    while ready := [b for b in waiting if is_ready(b, bound)]:
        bound = bound.union(*(b.variables() for b in ready))
        waiting = [b for b in waiting if b not in ready]
    return bound
