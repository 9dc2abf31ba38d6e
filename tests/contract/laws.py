"""The contract of an engine: laws of the operators, each a function of a random program on an engine.

`@law` makes a test of it on every engine that works in this process, with many random programs. Spark goes through the
laws as well, with one program each: `test_spark`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import sizes
from tests.helpers.programs.strategies import Case, cases
from upheld.compiler.compile import compile_program
from upheld.compiler.equality.equality import SAME_AS, with_equality
from upheld.compiler.equality.equivalences import by_classes
from upheld.compiler.equality.layers import MEMBER
from upheld.engines import ENGINES, EngineChoice, open_engine
from upheld.language.core import Core, Fact, Predicate
from upheld.language.syntax.files import read_text
from upheld.language.terms.vocabulary import TRIPLE

Plain = frozenset[Fact]

PAIR = Predicate("pair", ("name", "number"), ("term", "number"))


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


class EqualitySetting(Setting):
    """A program over triples without rules, on an engine, with random facts about a few names, many of them equalities.

    `pair` has a column of numbers, which are not constants. `member` is a relation for memberships.
    """

    def __init__(self, engine: str | EngineChoice, r: Random):
        rewriting = with_equality(compile_program(read_text("", "dlog")).core, "rewrite")
        predicates = {**rewriting.predicates, PAIR.name: PAIR, MEMBER.name: MEMBER}
        self.core = replace(rewriting, predicates=predicates)
        self.engine, self.r = open_engine(engine, self.core), r
        self.names = [f"<http://e/{name}>" for name in "abcdefg"]
        properties = [SAME_AS, *self.names[-2:]]
        universe = {(TRIPLE, (r.choice(self.names), r.choice(properties), r.choice(self.names))) for _ in range(25)}
        universe |= {(PAIR.name, (r.choice(self.names), r.randrange(2))) for _ in range(5)}
        self.universe = sorted(universe)


class EquivalenceSetting(Setting):
    """A program with an equivalence and no rules, on an engine, with random links between a few values."""

    def __init__(self, engine: str | EngineChoice, r: Random):
        program = ".decl link(x:symbol, y:symbol) eqrel"
        self.core = by_classes(compile_program(read_text(program)).core)
        self.engine, self.r = open_engine(engine, self.core), r
        (self.classing,) = self.core.classings
        self.values = list("abcdefgh")
        self.universe = sorted({("link", (r.choice(self.values), r.choice(self.values))) for _ in range(12)})


Law = Callable[[Setting], None]

# What Hypothesis draws itself it can shrink, but of the many draws of a test it has soon had too many.
_RANDOMS = st.tuples(st.integers(0, 2**32 - 1).map(Random))
_SETTINGS = st.tuples(cases(), st.integers(0, 2**32 - 1).map(Random))


def law(check: Law) -> Callable[..., None]:
    """Return a test of a law on every engine that works in this process. `test.law` is the law itself."""
    return _tested(check, hypothesis.settings(), _SETTINGS, Setting)


def law_with(examples: int) -> Callable[[Law], Callable[..., None]]:
    """Return `law` with fewer random programs: for laws that do much with each."""
    return lambda check: _tested(check, hypothesis.settings(max_examples=examples), _SETTINGS, Setting)


def law_of_classes(check: Callable[[EqualitySetting], None]) -> Callable[..., None]:
    """Return `law` for classes of equal constants."""
    return _tested(check, sizes.examples(90), _RANDOMS, EqualitySetting)


def law_of_equivalences(check: Callable[[EquivalenceSetting], None]) -> Callable[..., None]:
    """Return `law` for equivalences."""
    return _tested(check, sizes.examples(90), _RANDOMS, EquivalenceSetting)


def laws_of(module: object) -> dict[str, Law]:
    """Return the laws that a module tests, by name."""
    return {name: test.law for name, test in vars(module).items() if hasattr(test, "law")}


def _tested(
    check: Callable[[Any], None],
    bound: hypothesis.settings,
    drawn: st.SearchStrategy[Any],
    setting_of: Callable[..., Any],
) -> Callable[..., None]:
    def test(engine_name: str, setting: tuple[Any, ...]) -> None:
        check(setting_of(engine_name, *setting))

    test.__name__, test.__doc__ = check.__name__, check.__doc__  # before `given`, which keeps examples by name
    made: Any = pytest.mark.parametrize("engine_name", ENGINES)(bound(given(setting=drawn)(test)))
    made.law = check
    return made


def key(instance) -> tuple:
    """What tells an instance from others."""
    return instance.rule, instance.head, tuple(instance.body)
