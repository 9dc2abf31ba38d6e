"""Samples of explicit facts, uniform and along random walks; a smaller sample of one seed is a prefix of a larger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from experiments.data.facts import Facts, count, numbered

#: Probability that a walk begins anew after a step, besides dead ends.
RESTART = 0.02


def uniform(facts: Facts, seed: int) -> Iterator[int]:
    """Yield the numbers of all facts in an order drawn by the seed."""
    yield from np.random.default_rng(seed).permutation(count(facts)).tolist()


def walk(facts: Facts, seed: int) -> Iterator[int]:
    """Yield the numbers of all facts, each once, in the order in which a random walk first meets them.

    Facts are edges between the first and the last of their values, which the walk follows in both directions. A walk
    that finds no new fact at a value begins anew at a fact that it has not met.
    """
    ends = np.concatenate([rows[:, [0, -1]] for rows in facts.values()])
    rest = iter(np.random.default_rng([seed, 1]).permutation(len(ends)).tolist())
    r = np.random.default_rng(seed)
    values, places = np.unique(ends, return_inverse=True)
    places = places.reshape(ends.shape)
    owners = np.argsort(places, axis=None, kind="stable")
    bounds = np.searchsorted(places.ravel()[owners], np.arange(len(values) + 1))
    at_value = [(owners[bounds[k] : bounds[k + 1]] // 2).tolist() for k in range(len(values))]
    met = np.zeros(len(ends), np.bool_)
    at: int | None = None
    while True:
        number = _unmet(at_value[at], met, r) if at is not None and r.random() >= RESTART else None
        if number is None:
            number = next((k for k in rest if not met[k]), None)
        if number is None:
            return
        met[number] = True
        yield number
        first, last = places[number].tolist()
        at = last if at == first else first if at == last else (first, last)[int(r.integers(2))]


def _unmet(numbers: list[int], met: np.ndarray, r: np.random.Generator) -> int | None:
    """Return a fact drawn from those that are not met yet, and forget the others."""
    while numbers:
        place = int(r.integers(len(numbers)))
        numbers[place], numbers[-1] = numbers[-1], numbers[place]
        if not met[number := numbers.pop()]:
            return number
    return None


SAMPLES: dict[str, Callable[[Facts, int], Iterator[int]]] = {"uniform": uniform, "walk": walk}


def sample(facts: Facts, size: int, seed: int, kind: str = "uniform") -> Facts:
    """Return `size` of the facts; for one seed and kind, the sample of a smaller size is a part of a larger one."""
    return numbered(facts, np.fromiter(islice(SAMPLES[kind](facts, seed), size), np.int64))
