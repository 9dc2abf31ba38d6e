"""The laws of `algebra.counters` and of transactions, beside dictionaries."""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import suppress

import pytest

from tests.contract import brute_force
from tests.contract.laws import Plain, Setting, key, law, law_with
from upheld.algebra.sets import bag, derive_bag, instances, settle
from upheld.base.errors import EvaluationError
from upheld.compiler.dependencies import STRATIFICATIONS
from upheld.compiler.strata import Stratum, stratify
from upheld.language.core import Fact
from upheld.maintain.bookkeeping import Ranked
from upheld.maintain.ranked import ranked
from upheld.maintain.seminaive import seminaive
from upheld.maintain.update import State, step

Found = list[brute_force.Instance]


def heads_of(found: Found) -> Counter[Fact]:
    return Counter(i.head for i in found)


def recursive_stratum(s: Setting) -> Stratum:
    """A stratum with recursive rules, if there is one; else any."""
    strata = list(stratify(s.core))
    return s.r.choice([stratum for stratum in strata if stratum.recursive] or strata)


# -- numbers ----------------------------------------------------------------------------------------------------------


@law
def test_numbers(s: Setting):
    """Derivations and facts are counted and taken away, whether or not anybody asks for the facts they are of."""
    numbers, model, other = s.engine.numbers("n"), Counter(), s.engine.numbers("n")
    known: set[Fact] = set()
    for _ in range(5):
        p, x = s.some(0.7), s.some(0.5)
        known |= p | x
        P, X = s.named("P", p), s.named("X", x)
        found = heads_of(list(brute_force.restricted(brute_force.instances(s.core.rules, p, p), x, frozenset())))
        for derivations, expected in (
            (derive_bag(s.core.rules, P, P, via=X), found),
            (bag(X), Counter(x)),
            (bag(X - P), Counter(x - p)),
        ):
            # An engine may refuse to take from a fact that was in no set before.
            gains = s.r.random() < 0.6 or not known.issuperset(expected)
            known.update(expected)
            facts = numbers.gain(derivations) if gains else numbers.lose(derivations)
            model.update(expected) if gains else model.subtract(expected)
            match s.r.choice(["settle", "expression", "leave", "change"]):
                case "settle":
                    assert s.plain(settle(facts)) == set(expected)
                case "expression":
                    assert s.plain(settle(facts - P)) == set(expected) - p
                case "change":
                    P -= X  # the derivations are those that there were
                    P |= s.named("p", p)
        universe = s.some(0.8)
        U = s.named("U", universe)
        assert s.plain(numbers.zero(U)) == {f for f in universe if model[f] == 0}
        assert s.plain(numbers.above_zero(U - X)) == {f for f in universe - x if model[f] > 0}
        assert dict(numbers.items()) == {f: n for f, n in model.items() if n}
    assert dict(other.items()) == {}


# -- ranks ------------------------------------------------------------------------------------------------------------


class PlainBooks:
    """Rank, total and support of facts of one stratum."""

    def __init__(self, stratum: Stratum):
        self.stratum = stratum
        self.rank: dict[Fact, int] = {}
        self.total: Counter[Fact] = Counter()
        self.support: Counter[Fact] = Counter()

    def supporting(self, found: Found) -> Counter[Fact]:
        return Counter(
            i.head for i in found if all(self.rank[i.body[k]] < self.rank[i.head] for k in self.stratum.own(i.rule))
        )

    def put(self, facts: Plain, rank: int) -> None:
        self.rank.update(dict.fromkeys(facts, rank))

    def items(self) -> dict[Fact, tuple[int, int, int]]:
        return {f: (self.rank[f], n, self.support[f]) for f, n in self.total.items() if n}


@law
def test_ranks(s: Setting):
    """Totals count all derivations, supports those from bodies of lower rank; ranks go above or below all others."""
    stratum = recursive_stratum(s)
    ranks, model = s.engine.ranks(), PlainBooks(stratum)
    p = s.some(0.8)
    P = s.named("P", p)
    everything = list(brute_force.instances(stratum.rules, p, p))
    known = p | heads_of(everything).keys()
    top = bottom = 0

    def both_ways(facts: Plain) -> None:
        """All that is known has a rank before anything is supported."""
        nonlocal top
        top += 1
        ranks.put_on_top(s.named("top", facts))
        model.put(facts, top)
        model.support.update({f: model.total[f] - model.support[f] for f in facts})

    both_ways(frozenset(known))
    for _ in range(10):
        x = frozenset(f for f in known if s.r.random() < 0.4)
        X = s.named("X", x)
        found = list(brute_force.restricted(everything, x & p, frozenset()))
        match s.r.choice(["top", "gain", "lose", "total", "explicit", "below", "support", "unsupport", "forget"]):
            case "top":
                both_ways(x)
            case "gain":
                heads = ranks.gain(derive_bag(stratum.rules, P, P, via=X & P), stratum)
                model.total.update(heads_of(found))
                model.support.update(model.supporting(found))
                assert s.plain(settle(heads)) == set(heads_of(found))
            case "lose":
                heads = ranks.lose(derive_bag(stratum.rules, P, P, via=X & P), stratum)
                model.total.subtract(heads_of(found))
                model.support.subtract(model.supporting(found))
                assert s.plain(settle(heads)) == set(heads_of(found))
            case "total":
                heads = ranks.gain_total(derive_bag(stratum.rules, P, P, via=X & P), stratum)
                model.total.update(heads_of(found))
                assert s.plain(heads) == set(heads_of(found))
            case "explicit":
                ranks.gain(bag(X), stratum)
                model.total.update(x)
                model.support.update(x)
            case "below":
                bottom -= len(x)
                ranks.make_room_below(X)
                for rank, fact in enumerate(sorted(x), bottom):
                    ranks.put_below(s.named("one", frozenset([fact])))
                    model.put(frozenset([fact]), rank)
                    model.support[fact] = 0
                ranks.support_explicit(X)
                model.support.update(x)
            case "support":
                ranks.gain_support(instances(stratum.rules, P, P, via=X & P), stratum)
                model.support.update(model.supporting(found))
            case "unsupport":
                ranks.lose_support(instances(stratum.rules, P, P, via=X & P), stratum)
                model.support.subtract(model.supporting(found))
            case "forget":
                ranks.forget(X, stratum)
                for fact in x:
                    model.total[fact] = model.support[fact] = 0
                both_ways(x)
        if s.r.random() < 0.5:  # else what was put off stays so for a while
            assert s.plain(ranks.unsupported(X)) == {f for f in x if model.support[f] == 0}
            assert s.plain(ranks.derivable(X)) == {f for f in x if model.total[f] > 0}
            assert ranks.derivations(stratum) == model.total.total()
    assert dict(ranks.items()) == model.items()
    assert ranks.derivations(stratum) == model.total.total()
    for other in stratify(s.core):
        if other.index != stratum.index:
            assert ranks.derivations(other) == 0


@law_with(25)
def test_through(s: Setting):
    """After an update by way of `through`, facts and totals are those of a materialisation, and each has a support."""
    strata = stratify(s.core, s.r.choice(STRATIFICATIONS))
    explicit = s.some()
    E, kept = s.named("E", explicit), Ranked.begin(s.engine)
    try:
        state = State(s.engine, E, seminaive(s.engine, E, strata, kept), strata, kept)
        for _ in range(3):
            gone, new = explicit & s.some(0.2), s.some(0.2) - explicit
            E_minus, E_plus = settle(s.named("minus", gone) & E), settle(s.named("plus", new) - E)
            with s.engine.transaction():
                step(state, ranked, E_minus, E_plus)
            explicit = (explicit - gone) | new
            anew = Ranked.begin(s.engine)
            I = seminaive(s.engine, s.named("E anew", explicit), strata, anew)
            assert s.plain(state.I) == s.plain(I)
            numbers = dict(kept.ranks.items())
            assert {f: total for f, (_, total, _) in numbers.items()} == {f: n for f, (_, n, _) in anew.ranks.items()}
            assert all(support > 0 for _, _, support in numbers.values())
    except EvaluationError:  # a rule computes something that has no value
        return


@law
def test_renumber(s: Setting):
    """Derivations of strata are those of the strata that they become; a transaction that fails restores them."""
    strata, kept = stratify(s.core), Ranked.begin(s.engine)
    with suppress(EvaluationError):  # a rule computes something that has no value
        seminaive(s.engine, s.named("E", s.some()), strata, kept)
        before = {stratum.index: kept.ranks.derivations(stratum) for stratum in strata}
        numbers = {index: s.r.randint(1, len(strata)) for index in before}
        with suppress(Failure), s.engine.transaction():
            kept.ranks.renumber(numbers)
            raise Failure
        assert {stratum.index: kept.ranks.derivations(stratum) for stratum in strata} == before
        with s.engine.transaction():
            kept.ranks.renumber(numbers)
        for stratum in strata:
            expected = sum(n for index, n in before.items() if numbers[index] == stratum.index)
            assert kept.ranks.derivations(stratum) == expected


# -- traces -----------------------------------------------------------------------------------------------------------


@law
def test_trace(s: Setting):
    """Numbers by round, and levels as they were and as they are to be."""
    trace = s.engine.trace()
    counts: dict[Fact, Counter[int]] = defaultdict(Counter)
    old: dict[Fact, int] = {}
    new: dict[Fact, int] = {}
    for _ in range(8):
        p, x, i = s.some(0.7), s.some(0.4), s.r.randint(1, 4)
        P, X = s.named("P", p), s.named("X", x)
        derived = heads_of(list(brute_force.restricted(brute_force.instances(s.core.rules, p, p), x, frozenset())))
        match s.r.choice(["derivations", "explicit", "place", "place", "settle"]):
            case "derivations":
                facts = trace.gain(derive_bag(s.core.rules, P, P, via=X), i)
                for f, n in derived.items():
                    counts[f][i] += n
                assert s.plain(facts) == set(derived)
            case "explicit":
                gains = s.r.random() < 0.6
                facts = trace.gain(bag(X), i) if gains else trace.lose(bag(X), i)
                for f in x:
                    counts[f][i] += 1 if gains else -1
                assert s.plain(facts) == x
            case "place":
                level = s.r.randint(0, 4)
                trace.place(X, level)
                new.update(dict.fromkeys(x, level))
            case "settle":
                trace.settle_levels()
                old = dict(new)
        u, j = s.some(0.8), s.r.randint(1, 4)
        U = s.named("U", u)
        assert s.plain(trace.counted(U, j)) == {f for f in u if counts[f][j] > 0}
        assert s.plain(trace.at(U, j)) == {f for f in u if new.get(f, 0) == j}
        assert s.plain(trace.after(U, j)) == {f for f in u if new.get(f, 0) > j or not new.get(f, 0)}
        assert s.plain(trace.were_after(U, j)) == {f for f in u if old.get(f, 0) > j}
        later = {k: s.plain(facts) for k, facts in trace.later_rounds(U, j).items()}
        expected = {k: {f for f in u if counts[f][k] > 0} for k in range(j + 1, 6)}
        assert later == {k: facts for k, facts in expected.items() if facts}
    listed = {f: (dict(by_round), level) for f, by_round, level in trace.items()}
    some = {f: {k: n for k, n in by_round.items() if n} for f, by_round in counts.items()}
    assert listed == {f: (by_round, new.get(f, 0)) for f, by_round in some.items() if by_round}


@law
def test_instances_by_round(s: Setting):
    """An instance fires in the round after the highest level of its body facts in the stratum, the old or the new."""
    stratum = recursive_stratum(s)
    trace, p = s.engine.trace(), s.some(0.9)
    P = s.named("P", p)
    levels: list[dict[Fact, int]] = []
    for _ in range(2):
        levels.append({f: s.r.randint(1, 4) for f in p})
        for level in range(1, 5):
            trace.place(s.named("level", frozenset(f for f in p if levels[-1][f] == level)), level)
        if len(levels) == 1:
            trace.settle_levels()
    found = list(brute_force.instances(stratum.rules, p, p))

    def fires_in(i: brute_force.Instance, of: dict[Fact, int]) -> int:
        return 1 + max((of[i.body[k]] for k in stratum.own(i.rule)), default=0)

    q, n = s.some(0.8), s.some(0.3)
    Q, N = s.named("Q", q), s.named("N", n)
    listed = instances(stratum.rules, P, P)
    for of, groups, is_old in (
        (levels[0], trace.by_round(listed, stratum, old=True), True),
        (levels[1], trace.by_round(listed, stratum, old=False), False),
    ):
        expected = defaultdict(Counter)
        for i in found:
            expected[fires_in(i, of)][key(i)] += 1
        assert {k: Counter(map(key, group)) for k, group in groups.items()} == expected
        for k in range(1, 6):
            fire, quiet = trace.split(listed, stratum, k, Q, N, old=is_old)
            firing = [
                i for i in found if fires_in(i, of) == k and q.issuperset(i.body) and n.isdisjoint(i.negated)
            ]  # fmt: skip
            assert Counter(map(key, fire)) == Counter(map(key, firing))
            assert Counter(map(key, fire)) + Counter(map(key, quiet)) == Counter(map(key, found))


# -- transactions -----------------------------------------------------------------------------------------------------


class Failure(Exception):
    pass


class Kept:
    """Sets, numbers, ranks and a trace, and random changes to all of them."""

    def __init__(self, s: Setting):
        self.s, self.stratum, engine = s, recursive_stratum(s), s.engine
        self.sets = [s.named(name, s.some()) for name in "AB"]
        self.numbers, self.ranks, self.trace = engine.numbers("n"), engine.ranks(), engine.trace()
        self.ranks.put_on_top(s.named("all", frozenset(s.universe)))
        self.change()

    def change(self) -> None:
        s, stratum = self.s, self.stratum
        for _ in range(6):
            P, X, i = s.named("P", s.some(0.8)), s.named("X", s.some(0.4)), s.r.randint(1, 3)
            named = s.r.choice(self.sets)
            match s.r.choice(["add", "remove", "number", "rank", "top", "below", "forget", "trace", "place", "levels"]):
                case "add":
                    named |= X
                case "remove":
                    named -= X
                case "number":
                    self.numbers.gain(derive_bag(s.core.rules, P, P, via=X))
                case "rank":
                    self.ranks.gain(bag(X), stratum)
                case "top":
                    self.ranks.put_on_top(X)
                case "below":
                    self.ranks.make_room_below(X)
                    self.ranks.put_below(X)
                case "forget":
                    self.ranks.forget(X, stratum)
                    self.ranks.put_on_top(X)
                case "trace":
                    self.trace.lose(derive_bag(s.core.rules, P, P, via=X), i)
                case "place":
                    self.trace.place(X, i)
                case "levels":
                    self.trace.settle_levels()

    def known(self) -> tuple:
        s, U = self.s, self.s.named("U", frozenset(self.s.universe))
        return (
            [s.plain(named) for named in self.sets],
            dict(self.numbers.items()),
            dict(self.ranks.items()),
            [self.ranks.derivations(stratum) for stratum in stratify(s.core)],
            {f: (dict(by_round), level) for f, by_round, level in self.trace.items()},
            [[s.plain(trace(U, i)) for i in range(5)] for trace in (self.trace.at, self.trace.were_after)],
        )


@law_with(examples=25)  # each example is undone at many points
def test_transaction(s: Setting):
    """A block that fails leaves all as it was; one that ends is kept, also what had been put off."""
    kept = Kept(s)
    for _ in range(4):
        before = kept.known()
        with pytest.raises(Failure), s.engine.transaction():
            fail_after(kept)
        assert kept.known() == before
        with s.engine.transaction():
            kept.change()
            inside = kept.known()
        assert kept.known() == inside


def fail_after(kept: Kept) -> None:
    kept.change()
    raise Failure


@law_with(examples=15)
def test_complete(s: Setting):
    """What a transaction has completed stays when other sets are dropped, and is undone with the transaction."""
    kept, expected = Kept(s), None
    before = kept.known()
    with suppress(Failure), s.engine.transaction():
        for _ in range(3):
            with s.engine.attempt():
                kept.change()
                s.engine.complete()
            s.engine.abandon(keep=kept.sets)
            expected = kept.known()
            s.engine.abandon(keep=kept.sets)
            assert kept.known() == expected
        raise Failure
    assert kept.known() == before


@law_with(examples=25)  # each example is undone at many points
def test_attempt(s: Setting):
    """Within a transaction, what was done since an attempt began can be taken back, and only that; then it goes on."""
    kept = Kept(s)
    before = kept.known()
    for fails in (True, False):
        try:
            with s.engine.transaction():
                kept.change()
                first = kept.known()
                with s.engine.attempt() as attempt:
                    kept.change()
                    kept.known()  # so that nothing is put off any more
                    attempt.undo()
                assert kept.known() == first
                with s.engine.attempt():
                    kept.change()
                second = kept.known()
                if fails:
                    raise Failure
        except Failure:
            assert kept.known() == before
        else:
            assert kept.known() == second
