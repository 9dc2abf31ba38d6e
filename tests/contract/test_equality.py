"""The laws of `algebra.equality`: classes of equal constants, and equivalences, beside dictionaries."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import product

import pytest

from tests.contract.laws import PAIR, EqualitySetting, EquivalenceSetting, Plain, law_of_classes, law_of_equivalences
from tests.contract.test_counters import Failure
from upheld.algebra.equality import Classes, Constants
from upheld.algebra.sets import FactSet, settle
from upheld.compiler.equality.equality import SAME_AS, Equality
from upheld.compiler.equality.layers import MEMBER
from upheld.language.core import Fact
from upheld.language.terms.vocabulary import TRIPLE
from upheld.language.values import Value

EQUALITY = Equality()


class Model:
    """Classes as a dictionary: the representative of each constant."""

    def __init__(self, s: EqualitySetting):
        self.s, self.names = s, [*s.names, SAME_AS]
        self.by: dict[Value, Value] = {c: c for c in self.names}

    def class_of(self, constant: Value) -> set[Value]:
        return {c for c in self.names if self.by[c] == self.by[constant]}

    def fact(self, fact: Fact) -> Fact:
        return fact[0], tuple(self.by.get(value, value) for value in fact[1])

    def expansions(self, fact: Fact) -> Plain:
        columns = (self.class_of(c) if c in self.by else {c} for c in fact[1])
        return frozenset((fact[0], row) for row in product(*columns))

    def merge(self, pairs: Iterable[tuple[Value, Value]]) -> None:
        for a, b in pairs:
            together = self.class_of(a) | self.class_of(b)
            self.by.update(dict.fromkeys(together, min(together, key=EQUALITY.order)))

    def split(self, representatives: Iterable[Value]) -> None:
        for r in list(representatives):
            self.by.update({c: c for c in self.class_of(r)})

    def large(self) -> set[Value]:
        """The representatives of classes with several members."""
        return {r for r in self.by.values() if len(self.class_of(r)) > 1}


def loop(constant: Value) -> Fact:
    return EQUALITY.fact(constant, constant)


def equalities(facts: Plain) -> dict[Fact, tuple[Value, Value]]:
    return {f: (f[1][0], f[1][2]) for f in facts if f[0] == TRIPLE and f[1][1] == SAME_AS}


def constants_of(s: EqualitySetting, pi: Classes, constants: Constants) -> set[Value]:
    """The constants of a set: what their reflexive equalities say."""
    loops = s.plain(pi.loops(constants))
    found = {f[1][0] for f in loops}
    assert loops == {loop(c) for c in found} and len(constants) == len(found)
    return found


def some_constants(s: EqualitySetting, pi: Classes, among: Iterable[Value]) -> tuple[Constants, set[Value]]:
    chosen = {c for c in sorted(among, key=str) if s.r.random() < 0.5}
    return pi.constants(s.named("loops", frozenset(map(loop, chosen)))), chosen


def change(s: EqualitySetting, pi: Classes, model: Model) -> None:
    """Merge or split some classes, in the engine and in the model."""
    if s.r.random() < 0.7:
        proper = {f: sides for f, sides in equalities(s.some(0.3)).items() if sides[0] != sides[1]}
        joining = pi.joining(s.named("equalities", frozenset(proper)))
        before, moved = dict(model.by), constants_of(s, pi, joining.constants)
        assert [model.by[c] for c in model.names] == pi.representatives(model.names)
        joining.make()
        model.merge(proper.values())
        assert moved == {c for c in model.names if model.by[c] != before[c]}
    else:
        chosen, wanted = some_constants(s, pi, model.large())
        pi.split(chosen)
        model.split(wanted)


def opened(s: EqualitySetting, steps: int = 3) -> tuple[Classes, Model]:
    pi, model = s.engine.classes(EQUALITY), Model(s)
    for _ in range(s.r.randint(0, steps)):
        change(s, pi, model)
    return pi, model


def normal_facts(s: EqualitySetting, model: Model) -> Plain:
    return frozenset(map(model.fact, s.some(0.8) | {loop(c) for c in model.names if s.r.random() < 0.5}))


# -- classes ----------------------------------------------------------------------------------------------------------


@law_of_classes
def test_merging_and_splitting(s: EqualitySetting):
    """Classes are what equalities ask for, each represented by its least member; who is split is alone."""
    pi, model = opened(s, steps=6)
    assert pi.representatives(model.names) == [model.by[c] for c in model.names]
    for c in model.names:
        assert pi.class_of(c) == sorted(model.class_of(c), key=EQUALITY.order)
    pi.split_all()
    assert pi.representatives(model.names) == model.names


@law_of_classes
def test_splitting_by_finer_classes(s: EqualitySetting):
    """With `by`, each member of a class that is split has the representative that `by` gives it."""
    pi, model = opened(s)
    gamma, finer = finer_classes(s, model)
    chosen, wanted = some_constants(s, pi, model.large())
    members = {c for r in wanted for c in model.class_of(r)}
    pi.split(chosen, gamma)
    assert pi.representatives(model.names) == [(finer if c in members else model).by[c] for c in model.names]
    for c in model.names:
        assert pi.class_of(c)[0] == pi.representatives([c])[0]


def finer_classes(s: EqualitySetting, model: Model) -> tuple[Classes, Model]:
    """Return classes that are parts of others."""
    gamma, finer = s.engine.classes(EQUALITY), Model(s)
    pairs = [(a, b) for a in model.names for b in model.class_of(a) if a != b and s.r.random() < 0.4]
    gamma.joining(s.named("equalities", frozenset(EQUALITY.fact(a, b) for a, b in pairs))).make()
    finer.merge(pairs)
    return gamma, finer


@law_of_classes
def test_sets_of_constants(s: EqualitySetting):
    """`|` and `-` are those of sets; members of classes are found by their representatives."""
    pi, model = opened(s)
    (A, a), (B, b) = (some_constants(s, pi, set(model.by.values())) for _ in range(2))
    assert constants_of(s, pi, A | B) == a | b
    assert constants_of(s, pi, A - B) == a - b
    assert constants_of(s, pi, pi.members(A)) == {c for c in model.names if model.by[c] in a}


@law_of_classes
def test_representatives_of_facts(s: EqualitySetting):
    """`represent` and `rewritten` replace constants, in columns of constants alone."""
    pi, model = opened(s)
    facts = s.some()
    F = s.named("F", facts)
    normal = s.plain(pi.represent(F))
    assert normal == set(map(model.fact, facts))
    assert s.plain(pi.represent(settle(pi.represent(F)))) == normal
    others = Counter(model.fact(f) for f in facts if f != model.fact(f))
    assert dict(pi.rewritten(F).items()) == others


@law_of_classes
def test_kinds_of_facts(s: EqualitySetting):
    """Proper equalities; those of classes with several members; facts that stand for themselves alone."""
    pi, model = opened(s)
    facts, normal = s.some(), normal_facts(s, model)
    F, N, large = s.named("F", facts), s.named("N", normal), model.large()
    assert s.plain(pi.apart(F)) == {f for f, (a, b) in equalities(facts).items() if a != b}
    assert s.plain(pi.several(N)) == {f for f, (a, b) in equalities(normal).items() if a == b and a in large}
    assert s.plain(pi.plain(N)) == {f for f in normal if len(model.expansions(f)) == 1}
    assert constants_of(s, pi, pi.non_singletons(N)) == {c for _, row in normal for c in row if c in large}


@law_of_classes
def test_mentions(s: EqualitySetting):
    """Facts that have some constants, and constants that facts have: looked up, and counted."""
    pi, model = opened(s)
    facts, loops = s.some(), frozenset(map(loop, model.names))
    F, L = s.named("F", facts), s.named("L", loops)
    C, wanted = some_constants(s, pi, model.names)
    assert s.plain(pi.mentioning(F, C)) == {f for f in facts if not wanted.isdisjoint(f[1])}
    assert s.plain(pi.mentioning(settle(F), C)) == s.plain(pi.mentioning(F, C))
    assert s.plain(pi.mentioned(L, F)) == {loop(c) for _, row in facts for c in row if c in model.by}
    pi.count(s.engine.nothing, F)
    assert s.plain(pi.counted(L)) == s.plain(pi.mentioned(L, F))
    gone = frozenset(f for f in facts if s.r.random() < 0.5)
    pi.count(s.named("gone", gone), s.engine.nothing)
    assert s.plain(pi.counted(L)) == s.plain(pi.mentioned(L, s.named("left", facts - gone)))
    pi.count(s.engine.nothing, s.named("gone", gone))
    assert s.plain(pi.counted(L)) == s.plain(pi.mentioned(L, F))


@law_of_classes
def test_classes_that_equalities_connect(s: EqualitySetting):
    """`torn` has the classes of which some members are not connected."""
    pi, model = opened(s)
    R, representatives = some_constants(s, pi, model.large())
    proper = frozenset(f for f, (a, b) in equalities(s.some(0.5)).items() if a != b)
    connected = Model(s)
    connected.merge(equalities(proper).values())
    expected = {r for r in representatives if not model.class_of(r) <= connected.class_of(r)}
    assert constants_of(s, pi, pi.torn(R, s.named("F", proper))) == expected


@law_of_classes
def test_expansions(s: EqualitySetting):
    """`expansions` and `expanded` have the facts that normal facts stand for, in a set and all of them."""
    pi, model = opened(s)
    facts, normal = s.some(), normal_facts(s, model)
    F, N = s.named("F", facts), s.named("N", normal)
    expected = {f for f in facts if model.fact(f) in normal}
    for given, wanted in ((F, N), (settle(F), N), (F, settle(N)), (settle(F), settle(N))):
        assert s.plain(pi.expansions(wanted, given)) == expected
    everything = {g for f in normal for g in model.expansions(f)}
    for predicate in (TRIPLE, PAIR.name):
        rows = pi.expanded(N, predicate)
        assert set(rows) == {row for p, row in everything if p == predicate}
        assert len(rows) == len(set(rows))


@law_of_classes
def test_facts_that_are_covered(s: EqualitySetting):
    """`covered` has the normal facts whose expansions, represented by finer classes, are all in a set."""
    pi, model = opened(s)
    gamma, finer = finer_classes(s, model)
    normal = normal_facts(s, model)
    parts = {finer.fact(g) for f in normal for g in model.expansions(f)}
    known = frozenset(g for g in sorted(parts) if s.r.random() < 0.9) | s.some(0.2)
    expected = {f for f in normal if known.issuperset(map(finer.fact, model.expansions(f)))}
    assert s.plain(pi.covered(s.named("N", normal), s.named("F", known), gamma)) == expected


@law_of_classes
def test_what_has_changed(s: EqualitySetting):
    """Classes, memberships and expansions are compared with those that were remembered."""
    pi, model = opened(s)
    then, old = normal_facts(s, model), dict(model.by)
    before = {f: model.expansions(f) for f in then}
    pi.remember()
    assert not len(pi.difference().before) and not len(pi.difference().now)
    classes = {r: model.class_of(r) for r in model.by.values()}
    for _ in range(s.r.randint(0, 3)):
        change(s, pi, model)
    now_classes = {r: model.class_of(r) for r in model.by.values()}
    difference = pi.difference()
    assert constants_of(s, pi, difference.before) == {r for r, mine in classes.items() if now_classes.get(r) != mine}
    assert constants_of(s, pi, difference.now) == {r for r, mine in now_classes.items() if classes.get(r) != mine}
    memberships = [{(r, c) for c, r in by.items() if c != r} for by in (old, model.by)]
    left, joined = (set(facts.rows(MEMBER.name)) for facts in pi.memberships(MEMBER.name))
    assert (left, joined) == (memberships[0] - memberships[1], memberships[1] - memberships[0])
    now = frozenset(model.fact(f) for f in then) | normal_facts(s, model)
    gone = {
        f
        for f in then
        if f not in now or not {r for r, m in classes.items() if now_classes.get(r) != m}.isdisjoint(f[1])
    }
    came = {
        f
        for f in now
        if f not in then or not {r for r, m in now_classes.items() if classes.get(r) != m}.isdisjoint(f[1])
    }
    was = {g for f in then for g in before[f]}
    there = {g for f in now for g in model.expansions(f)}
    for predicate in (TRIPLE, PAIR.name):
        sides = pi.changed(s.named("gone", frozenset(gone)), s.named("came", frozenset(came)), predicate)
        for rows, facts in zip(sides, (was - there, there - was), strict=True):
            assert set(rows) == {row for p, row in facts if p == predicate}
            assert len(rows) == len(set(rows))


@law_of_classes
def test_classes_in_a_transaction(s: EqualitySetting):
    """A transaction that fails leaves classes and counts of mentions as they were."""
    pi, model = opened(s)
    facts, L = s.some(), s.named("L", frozenset(map(loop, model.names)))
    pi.count(s.engine.nothing, s.named("F", facts))
    representatives, counted = pi.representatives(model.names), s.plain(pi.counted(L))
    with pytest.raises(Failure), s.engine.transaction():
        fail_after_changes(s, pi, model, facts)
    assert pi.representatives(model.names) == representatives
    assert s.plain(pi.counted(L)) == counted
    for c in model.names:
        assert pi.class_of(c)[0] == pi.representatives([c])[0]


def fail_after_changes(s: EqualitySetting, pi: Classes, model: Model, counted: Plain) -> None:
    pi.count(s.named("F", counted), s.named("G", s.some()))
    for _ in range(3):
        change(s, pi, model)
    raise Failure


# -- equivalences -----------------------------------------------------------------------------------------------------


Groups = dict[Value, frozenset[Value]]


def groups_of(links: Iterable[tuple[Value, ...]], known: Groups | None = None) -> Groups:
    """The classes of values that links connect, beside those that are known."""
    groups = dict(known or {})
    for a, b in links:
        together = groups.get(a, frozenset([a])) | groups.get(b, frozenset([b]))
        groups.update(dict.fromkeys(together, together))
    return groups


def held_groups(s: EquivalenceSetting, held: FactSet) -> Groups:
    """The classes that memberships say; each value has one."""
    members: dict[Value, set[Value]] = defaultdict(set)
    rows = list(held.rows(s.classing.members))
    for value, number in rows:
        members[number].add(value)
    assert len({value for value, _ in rows}) == len(rows)
    return {value: frozenset(members[number]) for value, number in rows}


class Held:
    """An equivalence with links and memberships in one named set."""

    def __init__(self, s: EquivalenceSetting):
        self.s, self.groups = s, s.engine.equivalence(s.classing)
        self.set = s.engine.named("I")
        self.links: Plain = frozenset()

    def join(self, links: Plain) -> tuple[FactSet, FactSet]:
        added = self.s.named("links", links)
        self.set |= added
        self.links |= links
        return self._changed(*self.groups.join(added, self.set))

    def part(self, links: Plain, sure: Plain) -> tuple[FactSet, FactSet]:
        return self._changed(*self.groups.part(self.s.named("links", links), self.s.named("sure", sure), self.set))

    def _changed(self, left: FactSet, come: FactSet) -> tuple[FactSet, FactSet]:
        left, come = settle(left), settle(come)
        self.set -= left
        self.set |= come
        return left, come

    def rows(self) -> set[tuple[Value, ...]]:
        return {row for _, row in self.links}


@law_of_equivalences
def test_joining_links(s: EquivalenceSetting):
    """Classes are what links connect, whether they come together or one after the other."""
    held = Held(s)
    for _ in range(3):
        held.join(s.some(0.3))
        assert held_groups(s, held.set) == groups_of(held.rows())
    for value in s.values:
        assert set(held.groups.class_of(value, held.set)) == groups_of(held.rows()).get(value, set())
    pairs = held.groups.pairs(held.set)
    assert set(pairs) == {(a, b) for a, mine in groups_of(held.rows()).items() for b in mine}
    assert len(pairs) == len(set(pairs))


@law_of_equivalences
def test_parting_classes(s: EquivalenceSetting):
    """Classes in doubt become what sure links connect; others stay as they are."""
    held = Held(s)
    held.join(s.some(0.7))
    before = groups_of(held.rows())
    doubted = frozenset(f for f in held.links if s.r.random() < 0.4)
    concerned = {value for _, (a, _) in doubted for value in before[a]}
    around = s.plain(held.groups.around(s.named("doubted", doubted), held.set))
    assert around == {(p, row) for p, row in held.links if row[0] in concerned}
    sure = frozenset(f for f in around if s.r.random() < 0.6)
    left, come = held.part(doubted, sure)
    untouched = {value: mine for value, mine in before.items() if value not in concerned}
    after = untouched | groups_of(row for _, row in sure)
    assert held_groups(s, held.set) == after
    sides = held.groups.changed(left, come, held.set)
    was, there = ({(a, b) for a, mine in groups.items() for b in mine} for groups in (before, after))
    for rows, pairs in zip(sides, (was - there, there - was), strict=True):
        assert set(rows) == pairs
        assert len(rows) == len(pairs)


@law_of_equivalences
def test_an_equivalence_is_one_object(s: EquivalenceSetting):
    """Each call returns the same object."""
    assert s.engine.equivalence(s.classing) is s.engine.equivalence(s.classing)
