"""The laws of rounds of equality by rewriting: however many an engine goes through at once, nothing is left out.

They are stated for what comes out, so that they hold for one round and for several.
"""

from __future__ import annotations

from tests.contract.brute_force import instances
from tests.contract.laws import EqualitySetting, Plain, law_of_classes
from tests.contract.test_equality import (
    EQUALITY,
    Model,
    constants_of,
    equalities,
    loop,
    normal_facts,
    opened,
    some_constants,
)
from upheld.algebra.equality import Classes, Overdeletion
from upheld.algebra.sets import settle
from upheld.compiler.compile import compile_program
from upheld.compiler.equality.equality import reflexivity
from upheld.language.core import Fact, Rule
from upheld.language.syntax.files import read_text
from upheld.maintain.equality.rewritten_rules import RewrittenRules

#: Names and properties of `EqualitySetting`. The last rule derives equalities, some of them proper.
WRITTEN = compile_program(
    read_text(
        """
        [?y, <http://e/f>, ?x] :- [?x, <http://e/g>, ?y] .
        [?x, <http://e/g>, ?z] :- [?x, <http://e/f>, ?y], [?y, <http://e/f>, ?z] .
        [<http://e/a>, <http://e/f>, ?x] :- [<http://e/b>, <http://e/f>, ?x] .
        [?y, <http://www.w3.org/2002/07/owl#sameAs>, ?z] :- [<http://e/c>, <http://e/f>, ?y], [?y, <http://e/g>, ?z] .
        """,
        "dlog",
    )
).core.rules

#: Rules that derive equalities: two of a functional property, one of a constant, and one of any property.
EQUATING = compile_program(
    read_text(
        """
        [?y, <http://www.w3.org/2002/07/owl#sameAs>, ?z] :- [?x, <http://e/f>, ?y], [?x, <http://e/f>, ?z] .
        [?y, <http://www.w3.org/2002/07/owl#sameAs>, ?z] :- [?y, <http://e/g>, ?x], [?z, <http://e/g>, ?x] .
        [<http://e/a>, <http://www.w3.org/2002/07/owl#sameAs>, ?x] :- [?x, <http://e/f>, <http://e/b>] .
        [?x, ?p, ?y] :- [?y, ?p, ?x], [?x, <http://e/g>, ?z] .
        """,
        "dlog",
    )
).core.rules


def rules_of(s: EqualitySetting, pi: Classes, written: tuple[Rule, ...] = WRITTEN) -> RewrittenRules:
    rules = RewrittenRules(written, tuple(reflexivity(s.core, EQUALITY)))
    rules.follow(pi)
    return rules


def proper(facts: Plain) -> Plain:
    return frozenset(f for f, (a, b) in equalities(facts).items() if a != b)


def part(s: EqualitySetting, facts: Plain, chance: float) -> Plain:
    return frozenset(f for f in sorted(facts) if s.r.random() < chance)


def heads(rules: tuple[Rule, ...], facts: Plain, among: Plain) -> Plain:
    """Return the heads of instances over facts with at least one of some."""
    return frozenset(i.head for i in instances(rules, facts, frozenset()) if not among.isdisjoint(i.body))


def closed(rules: tuple[Rule, ...], facts: Plain) -> Plain:
    """Return all that follows, or what does before there is a proper equality."""
    while not proper(facts) and (more := heads(rules, facts, facts) - facts):
        facts |= more
    return facts


def connected(s: EqualitySetting, facts: Plain) -> Model:
    """Return the classes that the equalities of a set make."""
    model = Model(s)
    model.merge(equalities(facts).values())
    return model


@law_of_classes
def test_classes_that_one_step_connects(s: EqualitySetting):
    """`loose` has no class that equalities between its members connect, and all that no equalities do."""
    pi, model = opened(s)
    R, representatives = some_constants(s, pi, model.large())
    F = s.some(0.4)
    rules = tuple(rule for rule in EQUATING if s.r.random() < 0.7)
    loose = constants_of(s, pi, pi.loose(R, s.named("F", F), rules_of(s, pi, rules).listed))
    by_all = connected(s, F | heads(rules, F, F))
    assert {r for r in representatives if not model.class_of(r) <= by_all.class_of(r)} <= loose <= representatives
    for r in loose:
        members = model.class_of(r)
        mentioning = frozenset(f for f in F if not members.isdisjoint(f[1]))
        one_step = mentioning | heads(rules, F, mentioning)
        between = frozenset(f for f, (a, b) in equalities(one_step).items() if {a, b} <= members)
        assert not members <= connected(s, between).class_of(r)


@law_of_classes
def test_rounds_of_insertion(s: EqualitySetting):
    """A has what was given and nothing that does not follow; what follows from new facts is there or is returned."""
    pi, model = opened(s)
    rules = rules_of(s, pi)
    normal = normal_facts(s, model)
    normal -= proper(normal)
    I = part(s, normal, 0.5)
    D = part(s, I, 0.3)
    before = part(s, normal - (I - D), 0.2)
    delta = part(s, normal - (I - D) - before, 0.4)
    A = s.named("A", before)
    returned = settle(pi.insert(s.named("delta", delta), rules.listed, s.named("I", I), s.named("D", D), A))
    added = s.plain(A) - before
    now = (I - D) | s.plain(A)
    assert delta <= added and not proper(added)
    follows = heads(rules.all, now, added)
    assert added - delta <= follows
    assert s.plain(returned) - now == follows - now


@law_of_classes
def test_one_step_rederivation(s: EqualitySetting):
    """`rederive` has the facts of a set that some rule, reflexivity included, derives from what is not deleted."""
    pi, model = opened(s)
    rules = rules_of(s, pi)
    I = part(s, normal_facts(s, model), 0.7)
    D = part(s, I, 0.4)
    wanted = part(s, D, 0.8)
    derived = pi.rederive(s.named("heads", wanted), rules.listed, s.named("I", I), s.named("D", D))
    assert s.plain(settle(derived)) == wanted & heads(rules.all, I - D, I - D)


@law_of_classes
def test_rounds_of_overdeletion(s: EqualitySetting):
    """All that has lost a derivation is in D or P, or a candidate; P has what needs no class and no deleted fact."""
    pi, model = opened(s)
    rules = rules_of(s, pi)
    explicit = s.some(0.3)
    I = closed(rules.all, frozenset(map(model.fact, explicit)))
    while apart := proper(I):
        pi.joining(s.named("apart", apart)).make()
        model.merge(equalities(apart).values())
        rules.follow(pi)
        I = closed(rules.all, frozenset(map(model.fact, I)))
    pi.count(s.engine.nothing, s.named("E", explicit))
    D = part(s, I, 0.2)
    P = part(s, I - D, 0.1)
    delta = part(s, I - D - P, 0.4)
    candidates, reflexive = part(s, I, 0.2), part(s, I & frozenset(map(loop, model.names)), 0.2)
    gone, proved = s.named("D", D), s.named("P", P)
    over = Overdeletion(rules.listed, s.named("I", I), gone, proved, s.named("explicit", explicit))
    N, M = pi.overdelete(
        s.named("delta", delta), s.named("N", candidates), s.named("M", reflexive), over, s.r.choice((0, 3, 1000))
    )
    left, added, proofs = s.plain(N) | s.plain(M), s.plain(gone) - D, s.plain(proved) - P
    assert s.plain(gone) >= D | delta and s.plain(proved) >= P
    by_rules = heads(rules.now, I - D, added) | candidates
    by_reflexivity = heads(rules.reflexivity, I - D, added) | reflexive
    doubted = by_rules | frozenset(f for f in by_reflexivity if not all_are_mentioned(model, f, explicit))
    assert doubted <= s.plain(gone) | s.plain(proved) | left
    assert left | (added - delta) | proofs <= by_rules | by_reflexivity
    large = frozenset(loop(c) for c in model.large())
    assert large.isdisjoint(added - delta)
    obvious = needs_no_class(model, rules, explicit)
    assert proofs - large <= obvious and obvious.isdisjoint(added - delta)
    by_all = connected(s, explicit | heads(rules.written, explicit, explicit))
    assert all(model.class_of(f[1][0]) <= by_all.class_of(f[1][0]) for f in proofs & large)


def all_are_mentioned(model: Model, reflexive: Fact, explicit: Plain) -> bool:
    """Return whether explicit facts mention all members of the class of a reflexive equality."""
    mentioned = {c for _, row in explicit for c in row}
    return model.class_of(reflexive[1][0]) <= mentioned


def needs_no_class(model: Model, rules: RewrittenRules, explicit: Plain) -> Plain:
    """Return the facts for themselves alone that are explicit, or follow from explicit facts in one step."""
    mentioned = frozenset(loop(c) for _, row in explicit for c in row if c in model.by)
    known = explicit | mentioned | heads(rules.written, explicit, explicit)
    return frozenset(f for f in known if len(model.expansions(f)) == 1)
