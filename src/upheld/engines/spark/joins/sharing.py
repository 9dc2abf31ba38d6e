"""Values with many facts, a hub's for example: all tasks share the work of joining them.

All facts with a value are with its owner. If m bindings have the value and n facts of an atom have it, too, each of the
bindings goes with each of the facts, and the owner would make all m times n by itself, while the others wait for it. It
does not: it puts both sides aside, notes so beside its results, and deals them out, the larger side in parts and the
smaller one to each task whole. Tasks pair what they get, and match the rest of the leg.

The owner decides it anew for each batch, by what it has: no fact has further copies because of it, so there is nothing
to keep in step, to undo or to save. In return both sides travel in each round that needs them; so a value is shared
only where the pairs are many times as many as what travels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from upheld.engines.memory.joins.batch import CHUNK
from upheld.engines.memory.plans.plan import HEIGHT
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.spark.joins.plans import EVERYWHERE, Leg, Views

#: Bindings of a batch from which on it is looked at, and how many of them.
FEWEST, LOOKED_AT = 32, 1024

#: Values of a batch that are looked up at most, and the bindings that each has at least, of those looked at.
MOST_VALUES, OFTEN = 4, 8

#: Pairs of a value from which on they are shared: two exchanges more take as long as some ten thousand.
LEAST_PAIRS = 1 << 17

#: How many times as many as the bindings and facts that travel the pairs have to be.
GAIN = 8


class Expansion(NamedTuple):
    """A leg in which bindings go with all facts that have their value of one variable.

    `facts` looks these facts up, given the value, and `rest` is the leg for the pairs.
    """

    variable: str
    facts: Leg
    rest: Leg

    @property
    def fresh(self) -> tuple[str, ...]:
        """The variables that the facts bind, and the one that carries ranks if bindings have it."""
        assert self.facts.needed is not None, "a leg with variables at the end"
        return self.facts.needed


def expansion_of(leg: Leg, views: Views) -> Expansion | None:
    """Return how the work of a leg may be shared, or None.

    One atom alone may be matched at the owner of a value, and bindings must know no more of it than the value: else
    they have few facts each. All tasks can match the others, which are of replicated relations.
    """
    partitioned = [x for x in leg.literals if x.atom.predicate not in views.replicated]
    if leg.route is EVERYWHERE or leg.home is not None or len(partitioned) != 1 or partitioned[0].negated:
        return None
    literal, start = partitioned[0], set(leg.start)
    variables = dict.fromkeys(literal.atom.variables())
    shared, fresh = [v for v in variables if v in start], [v for v in variables if v not in start]
    if len(shared) != 1 or not fresh:
        return None
    others = [x for x in leg.literals if x is not literal]
    # An atom or an equation that ties bindings to facts leaves few pairs: the plan of the leg begins with it.
    ties = [set(x.atom.variables()) for x in others if not x.negated]
    ties += [set(b.variables()) for b in leg.builtins if b.operator == "="]
    if any(not tie.isdisjoint(fresh) and tie & start - {*shared} for tie in ties):
        return None
    height = (HEIGHT,) if HEIGHT in start else ()
    facts = Leg(None, [literal], start=(shared[0], *height), needed=(*fresh, *height))
    rest = Leg(None, others, leg.builtins, start=(*leg.start, *fresh), needed=leg.needed)
    return Expansion(shared[0], facts, rest)


def frequent(values: Codes) -> list[int]:
    """Return values that many of some have, by a look at some of them."""
    looked_at = values[:: max(1, len(values) // LOOKED_AT)]
    distinct, counts = np.unique(looked_at, return_counts=True)
    often = np.flatnonzero(counts >= OFTEN)
    order = often[np.argsort(-counts[often], kind="stable")]
    return distinct[order[:MOST_VALUES]].tolist()  # type: ignore[no-any-return]


def is_worth_it(m: int, n: int, parts: int) -> bool:
    """Return whether m bindings and n facts make enough pairs for tasks to share."""
    return m * n >= LEAST_PAIRS and m * n >= GAIN * (max(m, n) + parts * min(m, n))


def dealt(bindings: Codes, facts: Codes, parts: int) -> Iterator[tuple[Codes, Codes]]:
    """Yield the bindings and facts of each task: of the larger side its part, and the smaller one."""
    m, n = bindings.shape[1], facts.shape[1]
    for task in range(parts):
        if m >= n:
            yield bindings[:, m * task // parts : m * (task + 1) // parts], facts
        else:
            yield bindings, facts[:, n * task // parts : n * (task + 1) // parts]


def pairs(expansion: Expansion, bindings: Codes, facts: Codes) -> Iterator[Codes]:
    """Yield bindings for the rest of a leg, some at a time: each one with each of the facts."""
    start, fresh = expansion.rest.start, expansion.fresh
    rows = [i for i, v in enumerate(fresh) if v != HEIGHT]
    m, n = bindings.shape[1], facts.shape[1]
    step = max(1, CHUNK // max(1, n))
    for begin in range(0, m if n else 0, step):
        some = bindings[:, begin : begin + step]
        count = some.shape[1]
        out = np.empty((len(start), count * n), np.int64)
        out[: len(some)] = np.repeat(some, n, axis=1)
        out[len(some) :] = np.tile(facts[rows], (1, count))
        if HEIGHT in fresh:
            height = out[start.index(HEIGHT)]
            np.maximum(height, np.tile(facts[fresh.index(HEIGHT)], count), out=height)
        yield out
