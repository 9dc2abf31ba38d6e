"""The laws of the algebra. Every engine goes through them."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.algebra import brute_force
from tests.strategies import Case, cases
from upheld.algebra.words import derive, derive_bag, settle, supports
from upheld.engines import ENGINES, open_engine
from upheld.language.compiling import compile_program
from upheld.language.core import Core, Fact
from upheld.language.reading import read_text
from upheld.language.stratification import stratify

Plain = frozenset[Fact]


pytestmark = pytest.mark.parametrize("engine_name", ENGINES)


class Setting:
    """A program on an engine, with random subsets of a few facts as named sets."""

    def __init__(self, engine_name: str, case: Case, r: Random):
        self.core: Core = compile_program(read_text(case.program)).core
        self.engine = open_engine(engine_name, self.core)
        self.r = r
        universe = {(p, row) for p, rows in case.facts.items() for row in rows}
        for p in self.core.predicates.values():
            universe |= {(p.name, tuple(r.choice(range(4)) for _ in range(p.arity))) for _ in range(4)}
        self.universe = sorted(universe)

    def some(self, chance: float = 0.6) -> Plain:
        return frozenset(f for f in self.universe if self.r.random() < chance)

    def named(self, name: str, facts: Plain):
        result = self.engine.named(name)
        for predicate, row in facts:
            result |= self.engine.load(predicate, [row])
        return result

    def plain(self, facts) -> Plain:
        return frozenset((p, row) for p in self.core.predicates for row in facts.rows(p))


def settings():
    return st.tuples(cases(), st.randoms(use_true_random=False))


@given(settings())
def test_set_operators(engine_name, setting):
    """`|`, `&` and `-` are those of sets, on named sets, settled sets and expressions of them."""
    s = Setting(engine_name, *setting)
    a, b, c = s.some(), s.some(), s.some()
    A, B, C = s.named("A", a), s.named("B", b), s.named("C", c)
    assert s.plain(A) == a
    for built, expected in (
        (A | B, a | b),
        (A & B, a & b),
        (A - B, a - b),
        (A - (B - C), a - (b - c)),
        ((A | B) & C, (a | b) & c),
        ((A - B) | (B & C), (a - b) | (b & c)),
        (A - A, frozenset()),
    ):
        assert s.plain(built) == expected
        settled = settle(built)
        assert s.plain(settled) == expected
        assert bool(settled) == bool(expected)
        assert settled.count() == len(expected)


@given(settings())
def test_changing_in_place(engine_name, setting):
    """`|=` and `-=` change a named set; what was written before the change keeps its meaning."""
    s = Setting(engine_name, *setting)
    a, b, c = s.some(), s.some(), s.some()
    A, B, C = s.named("A", a), s.named("B", b), s.named("C", c)
    same = A
    before, delta = A - B, settle(B - A)
    A |= delta
    assert same is A
    assert s.plain(A) == a | b
    assert s.plain(before) == a - b
    assert s.plain(delta) == b - a
    A -= C
    assert s.plain(A) == (a | b) - c
    assert s.plain(before) == a - b
    A |= C & B
    assert s.plain(A) == ((a | b) - c) | (c & b)


@given(settings())
def test_derive(engine_name, setting):
    """Heads of all instances, as a set and as a bag."""
    s = Setting(engine_name, *setting)
    p, n = s.some(), s.some(0.3)
    P, N = s.named("P", p), s.named("N", n)
    expected = Counter(i.head for i in brute_force.instances(s.core.rules, p, n))
    assert s.plain(derive(s.core.rules, P, N)) == set(expected)
    assert Counter(dict(derive_bag(s.core.rules, P, N).items())) == expected


@given(settings())
def test_derive_via(engine_name, setting):
    """With `via` and `via_not`, each instance with an atom in one of them counts once."""
    s = Setting(engine_name, *setting)
    p, n, x, y = s.some(0.8), s.some(0.3), s.some(0.4), s.some(0.4)
    P, N, X, Y = (s.named(name, facts) for name, facts in zip("PNXY", (p, n, x, y)))
    found = list(brute_force.instances(s.core.rules, p, n))
    for via, via_not, plain_x, plain_y in (
        (X, Y, x, y),
        (X, None, x, frozenset()),
        (None, Y, frozenset(), y),
        (X - Y, Y - X, x - y, y - x),
    ):
        expected = Counter(i.head for i in brute_force.restricted(found, plain_x, plain_y))
        assert s.plain(derive(s.core.rules, P, N, via=via, via_not=via_not)) == set(expected)
        bag = derive_bag(s.core.rules, P, N, via=via, via_not=via_not)
        assert Counter(dict(bag.items())) == expected


@given(settings())
def test_derive_over_expressions(engine_name, setting):
    """Atoms are matched in set expressions as in named sets, and a derivation keeps the meaning it had when written."""
    s = Setting(engine_name, *setting)
    i, d, a = s.some(0.8), s.some(0.3), s.some(0.3)
    I, D, A = s.named("I", i), s.named("D", d), s.named("A", a)
    delta = settle(D - A)
    derived = derive(s.core.rules, I - (D - A), I | A, via=delta)
    D |= I
    found = brute_force.instances(s.core.rules, i - (d - a), i | a)
    assert s.plain(derived) == {x.head for x in brute_force.restricted(found, d - a, frozenset())}


@given(settings())
def test_derive_heads(engine_name, setting):
    """With `heads`, those of them that have a derivation."""
    s = Setting(engine_name, *setting)
    p, n, h = s.some(), s.some(0.3), s.some()
    P, N, H = s.named("P", p), s.named("N", n), s.named("H", h)
    derivable = {i.head for i in brute_force.instances(s.core.rules, p, n)}
    assert s.plain(derive(s.core.rules, P, N, heads=H)) == h & derivable


@given(settings())
def test_supports(engine_name, setting):
    """The instances that derive given heads, with their bodies, each once."""
    s = Setting(engine_name, *setting)
    p, n, h = s.some(), s.some(0.3), s.some()
    P, N, H = s.named("P", p), s.named("N", n), s.named("H", h)
    expected = Counter((i.rule, i.head, i.body) for i in brute_force.instances(s.core.rules, p, n) if i.head in h)
    found = supports(s.core.rules, H, P, N)
    assert Counter((i.rule, i.head, tuple(i.body)) for i in found) == expected
    assert s.plain(found.heads()) == {head for _, head, _ in expected}
    assert s.plain(found.bodies()) == {f for _, _, body in expected for f in body}


@given(settings())
def test_bags(engine_name, setting):
    """`+=` and `-=` add and subtract multiplicities; the facts of a bag are those above zero."""
    s = Setting(engine_name, *setting)
    p, a = s.some(), s.some()
    P, A = s.named("P", p), s.named("A", a)
    counts = Counter(i.head for i in brute_force.instances(s.core.rules, p, p))
    bag = s.engine.bag(A)
    assert dict(bag.items()) == dict.fromkeys(a, 1)
    bag += derive_bag(s.core.rules, P, P)
    bag -= s.engine.bag(P)
    expected = Counter(a)
    expected.update(counts)
    expected.subtract(p)
    assert dict(bag.items()) == {f: n for f, n in expected.items() if n}
    assert s.plain(bag.facts()) == {f for f, n in expected.items() if n > 0}


@given(settings())
def test_strata_partition_the_facts(engine_name, setting):
    """Every fact belongs to exactly one stratum, and heads of a stratum's rules to that one."""
    s = Setting(engine_name, *setting)
    facts = s.some()
    P = s.named("P", facts)
    strata = stratify(s.core)
    parts = [s.plain(stratum.out(P)) for stratum in strata]
    assert frozenset().union(*parts) == facts
    assert sum(map(len, parts)) == len(facts)
    for stratum in strata:
        heads = derive(stratum.rules, P, P)
        assert s.plain(stratum.out(heads)) == s.plain(heads)


@given(settings())
def test_instances_are_counted(engine_name, setting):
    """The meter counts each instance considered once."""
    s = Setting(engine_name, *setting)
    p, x = s.some(0.8), s.some(0.4)
    P, X = s.named("P", p), s.named("X", x)
    with s.engine.meter.run() as statistics:
        settle(derive(s.core.rules, P, P, via=X))
    found = brute_force.instances(s.core.rules, p, p)
    assert statistics.instances.total() == len(list(brute_force.restricted(found, x, frozenset())))
