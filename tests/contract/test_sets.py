"""The laws of `algebra.sets`: sets, bags, rule instances and search, beside Python sets and brute force."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.contract import brute_force
from tests.contract.laws import Setting, key, law
from upheld.algebra.sets import Own, derive, derive_bag, instances, settle, supports
from upheld.compiler.compile import compile_program
from upheld.compiler.strata import stratify
from upheld.engines import ENGINES, open_engine
from upheld.language.syntax.files import read_text


@law
def test_set_operators(s: Setting):
    """`|`, `&` and `-` are those of sets, on named sets, settled sets and expressions of them."""
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


@law
def test_changing_in_place(s: Setting):
    """`|=` and `-=` change a named set; what was written before the change keeps its meaning."""
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


@law
def test_derive(s: Setting):
    """Heads of all instances, as a set and as a bag."""
    p, n = s.some(), s.some(0.3)
    P, N = s.named("P", p), s.named("N", n)
    expected = Counter(i.head for i in brute_force.instances(s.core.rules, p, n))
    assert s.plain(derive(s.core.rules, P, N)) == set(expected)
    assert Counter(dict(derive_bag(s.core.rules, P, N).items())) == expected


@law
def test_derive_via(s: Setting):
    """With `via` and `via_not`, each instance with an atom in one of them counts once."""
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


@law
def test_derive_over_expressions(s: Setting):
    """Atoms are matched in set expressions as in named sets, and a derivation keeps the meaning it had when written."""
    i, d, a = s.some(0.8), s.some(0.3), s.some(0.3)
    I, D, A = s.named("I", i), s.named("D", d), s.named("A", a)
    delta = settle(D - A)
    derived = derive(s.core.rules, I - (D - A), I | A, via=delta)
    D |= I
    found = brute_force.instances(s.core.rules, i - (d - a), i | a)
    assert s.plain(derived) == {x.head for x in brute_force.restricted(found, d - a, frozenset())}


@law
def test_derive_heads(s: Setting):
    """With `heads`, those of them that have a derivation."""
    p, n, h = s.some(), s.some(0.3), s.some()
    P, N, H = s.named("P", p), s.named("N", n), s.named("H", h)
    derivable = {i.head for i in brute_force.instances(s.core.rules, p, n)}
    assert s.plain(derive(s.core.rules, P, N, heads=H)) == h & derivable


@law
def test_derive_heads_within_an_expression(s: Setting):
    """What asks for heads can be part of an expression, and its sets expressions; they mean what they meant."""
    i, d, h, e = s.some(0.8), s.some(0.3), s.some(), s.some(0.3)
    I, D, H, E = (s.named(name, facts) for name, facts in zip("IDHE", (i, d, h, e)))
    explicit = settle(H & E)
    found = explicit | derive(s.core.rules, I - D, I, heads=H - explicit)
    D |= H
    derivable = {x.head for x in brute_force.instances(s.core.rules, i - d, i)}
    assert s.plain(settle(found)) == (h & e) | (h & derivable)


@law
def test_derive_own(s: Setting):
    """With `own`, atoms of the rule's stratum are matched there, all others in P, also where `via` is given."""
    p, o, n, x = s.some(0.7), s.some(0.5), s.some(0.3), s.some(0.4)
    P, O, N, X = (s.named(name, facts) for name, facts in zip("PONX", (p, o, n, x)))
    for stratum in stratify(s.core):
        found = [
            i
            for i in brute_force.instances(stratum.rules, p | o, n)
            if all(f in (o if k in stratum.own(i.rule) else p) for k, f in enumerate(i.body))
        ]
        own = Own(stratum, O)
        assert s.plain(derive(stratum.rules, P, N, own=own)) == {i.head for i in found}
        via = derive(stratum.rules, P, N, via=X, own=own)
        assert s.plain(via) == {i.head for i in brute_force.restricted(found, x, frozenset())}
        assert Counter(map(key, instances(stratum.rules, P, N, own=own))) == Counter(map(key, found))


@law
def test_instances(s: Setting):
    """The instances whose heads `derive` returns, each once, with all that can be asked of them."""
    p, n, x, y = s.some(0.8), s.some(0.3), s.some(0.4), s.some(0.4)
    P, N, X, Y = (s.named(name, facts) for name, facts in zip("PNXY", (p, n, x, y)))
    everything = list(brute_force.instances(s.core.rules, p, n))
    by_x = list(brute_force.restricted(everything, x, frozenset()))
    by_y = list(brute_force.restricted(everything, frozenset(), y))
    for found, expected in (
        (instances(s.core.rules, P, N), everything),
        (instances(s.core.rules, P, N, via=X, via_not=Y), list(brute_force.restricted(everything, x, y))),
        (instances(s.core.rules, P, N, via=X) | instances(s.core.rules, P, N, via_not=Y), [*by_x, *by_y]),
    ):
        distinct = list(dict.fromkeys(expected))
        assert Counter(map(key, found)) == Counter(map(key, distinct))
        assert len(found) == len(distinct)
        assert s.plain(found.heads()) == {i.head for i in distinct}
        assert s.plain(found.bodies()) == {f for i in distinct for f in i.body}
        assert dict(found.bag().items()) == Counter(i.head for i in distinct)
    having, others = instances(s.core.rules, P, N).partition(X - Y)
    assert Counter(map(key, having)) == Counter(key(i) for i in everything if not (x - y).isdisjoint(i.body))
    assert Counter(map(key, others)) == Counter(key(i) for i in everything if (x - y).isdisjoint(i.body))
    for stratum in stratify(s.core):
        found = instances(stratum.rules, P, N)
        own = {i.body[k] for i in everything if i.rule in stratum.rules for k in stratum.own(i.rule)}
        assert s.plain(found.bodies(stratum)) == own


@law
def test_supports(s: Setting):
    """The instances that derive given heads, with their bodies, each once."""
    p, n, h = s.some(), s.some(0.3), s.some()
    P, N, H = s.named("P", p), s.named("N", n), s.named("H", h)
    expected = Counter((i.rule, i.head, i.body) for i in brute_force.instances(s.core.rules, p, n) if i.head in h)
    found = supports(s.core.rules, H, P, N)
    assert Counter((i.rule, i.head, tuple(i.body)) for i in found) == expected
    assert s.plain(found.heads()) == {head for _, head, _ in expected}
    assert s.plain(found.bodies()) == {f for _, _, body in expected for f in body}


@law
def test_search(s: Setting):
    """Every instance of the heads comes exactly once, whichever are asked for when; then nothing is unfinished."""
    p, n, h = s.some(0.8), s.some(0.3), s.some(0.8)
    P, N, H = s.named("P", p), s.named("N", n), s.named("H", h)
    expected = [i for i in brute_force.instances(s.core.rules, p, n) if i.head in h]
    search = s.engine.search(s.core.rules)
    found: Counter[tuple] = Counter()
    assert s.plain(search.unfinished(H)) == h
    for turn in range(100):
        left = {i.head for i in expected if not found[key(i)]}
        unfinished = settle(search.unfinished(H))
        assert s.plain(unfinished) >= left, "an instance that will never come"
        if not unfinished:
            break
        asked = s.named("asked", frozenset(f for f in s.plain(unfinished) if turn > 8 or s.r.random() < 0.6))
        found.update(map(key, search.more(asked, P, N)))
    assert found == Counter(map(key, expected))
    assert not settle(search.unfinished(H))
    assert not len(search.more(H, P, N))


@law
def test_search_while_facts_go(s: Setting):
    """Candidates must hold when their turn comes; those that hold until the end come exactly once."""
    p, n, h = s.some(0.9), s.some(0.3), s.some(0.8)
    P, N, H = s.named("P", p), s.named("N", n), s.named("H", h)
    search = s.engine.search(s.core.rules)
    found: Counter[tuple] = Counter()
    while H and settle(search.unfinished(H)):
        holding = {key(i) for i in brute_force.instances(s.core.rules, p, n) if i.head in h}
        turn = list(map(key, search.more(H, P, N)))
        assert holding.issuperset(turn)
        found.update(turn)
        gone = s.some(0.1)
        P -= s.named("gone", gone)
        p -= gone
    assert not found or max(found.values()) == 1
    assert all(found[key(i)] for i in brute_force.instances(s.core.rules, p, n) if i.head in h)


@pytest.mark.parametrize("engine_name", ENGINES)
def test_search_doubles(engine_name):
    """One candidate for each fact and rule the first time, and twice as many each further time."""
    core = compile_program(read_text(".decl e(x:number, y:number)\n.decl h(x:number)\nh(x) :- e(x, y).")).core
    engine = open_engine(engine_name, core)
    P, H = engine.named("P"), engine.named("H")
    P |= engine.load("e", [(1, y) for y in range(100)] + [(2, y) for y in range(5)])
    H |= engine.load("h", [(1,), (2,), (3,)])
    one, two = engine.load("h", [(1,)]), engine.load("h", [(2,)])
    search = engine.search(core.rules)
    counts = []
    while settle(search.unfinished(one)):
        counts.append(len(search.more(one, P, P)))
    assert counts == [1, 2, 4, 8, 16, 32, 37]
    assert [len(search.more(two, P, P)) for _ in range(2)] == [1, 2]
    assert set(search.unfinished(H).rows("h")) == {(2,), (3,)}
    assert len(search.more(H, P, P)) == 2
    assert not settle(search.unfinished(H))


@law
def test_bags(s: Setting):
    """`+=` and `-=` add and subtract multiplicities; the facts of a bag are those above zero."""
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


@law
def test_strata_partition_the_facts(s: Setting):
    """Every fact belongs to exactly one stratum, and heads of a stratum's rules to that one."""
    facts = s.some()
    P = s.named("P", facts)
    strata = stratify(s.core)
    parts = [s.plain(stratum.out(P)) for stratum in strata]
    assert frozenset().union(*parts) == facts
    assert sum(map(len, parts)) == len(facts)
    for stratum in strata:
        heads = derive(stratum.rules, P, P)
        assert s.plain(stratum.out(heads)) == s.plain(heads)


@law
def test_instances_are_counted(s: Setting):
    """The meter counts each instance considered once."""
    p, x = s.some(0.8), s.some(0.4)
    P, X = s.named("P", p), s.named("X", x)
    with s.engine.meter.run() as statistics:
        settle(derive(s.core.rules, P, P, via=X))
    found = brute_force.instances(s.core.rules, p, p)
    assert statistics.instances.total() == len(list(brute_force.restricted(found, x, frozenset())))


@law
def test_forget_rules(s: Setting):
    """No result changes when what is kept to evaluate rules is dropped, also if they are evaluated again."""
    p, x = s.some(), s.some(0.3)
    P, X, rules = s.named("P", p), s.named("X", x), s.core.rules
    found = list(brute_force.instances(rules, p, p))
    via = {i.head for i in brute_force.restricted(found, x & p, frozenset())}
    for _ in range(2):
        assert s.plain(derive(rules, P, P)) == {i.head for i in found}
        assert s.plain(derive(rules, P, P, via=X & P)) == via
        s.engine.forget_rules([rule for rule in rules if s.r.random() < 0.5])
