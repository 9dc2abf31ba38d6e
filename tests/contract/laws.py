"""The contract of an engine: laws of the operators, each a function of a random program on an engine.

`@law` makes a test of it on every engine that works in this process, with many random programs. Spark goes through the
laws as well, with one program each: `test_spark`.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.strategies import Case, cases
from upheld.engines import ENGINES, EngineChoice, open_engine
from upheld.language.compile import compile_program
from upheld.language.core import Core, Fact
from upheld.language.syntax.files import read_text

Plain = frozenset[Fact]


class Setting:
    """A program on an engine, with random subsets of a few facts as named sets."""

    def __init__(self, engine: str | EngineChoice, case: Case, r: Random):
        self.core: Core = compile_program(read_text(case.program)).core
        self.engine = open_engine(engine, self.core)
        self.r = r
        universe = {(p, row) for p, rows in case.facts.items() for row in rows}
        for p in self.core.predicates.values():
            universe |= {(p.name, tuple(r.choice(range(4)) for _ in range(p.arity))) for _ in range(4)}
        self.universe = sorted(universe)

    def some(self, chance: float = 0.6) -> Plain:
        return frozenset(f for f in self.universe if self.r.random() < chance)

    def named(self, name: str, facts: Plain):
        result = self.engine.named(name)
        for predicate in self.core.predicates:
            result |= self.engine.load(predicate, [row for p, row in facts if p == predicate])
        return result

    def plain(self, facts) -> Plain:
        return frozenset((p, row) for p in self.core.predicates for row in facts.rows(p))


Law = Callable[[Setting], None]

# What Hypothesis draws itself it can shrink, but of the many draws of a test it has soon had too many.
_SETTINGS = st.tuples(cases(), st.integers(0, 2**32 - 1).map(Random))


def law(check: Law) -> Callable[..., None]:
    """Return a test of a law on every engine that works in this process. `test.law` is the law itself."""
    return _tested(check, hypothesis.settings())


def law_with(examples: int) -> Callable[[Law], Callable[..., None]]:
    """Return `law` with fewer random programs: for laws that do much with each."""
    return lambda check: _tested(check, hypothesis.settings(max_examples=examples))


def laws_of(module: object) -> dict[str, Law]:
    """Return the laws that a module tests, by name."""
    return {name: test.law for name, test in vars(module).items() if hasattr(test, "law")}


def _tested(check: Law, bound: hypothesis.settings) -> Callable[..., None]:
    def test(engine_name: str, setting: tuple[Case, Random]) -> None:
        check(Setting(engine_name, *setting))

    test.__name__, test.__doc__ = check.__name__, check.__doc__  # before `given`, which keeps examples by name
    made: Any = pytest.mark.parametrize("engine_name", ENGINES)(bound(given(setting=_SETTINGS)(test)))
    made.law = check
    return made


def key(instance) -> tuple:
    """What tells an instance from others."""
    return instance.rule, instance.head, tuple(instance.body)
