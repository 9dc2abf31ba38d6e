"""Equality by rewriting for programs that negate, compare, aggregate and compute: in two layers.

E        explicit facts, as they were given
I_low    the normal facts that follow by rules that equalities depend on, and those that stand for explicit facts
I        the materialisation of the other rules, which has I_low, and the members of classes, for explicit facts
loops    equalities with themselves of constants that the other rules have brought: they hold beside those of I

`language.equality.layers` assigns the rules to layers. `rewriting` maintains the lower layer like a program without
negation, and `adaptive` the upper one like a program without equality: the changes below are explicit facts that it
deletes and inserts. So the cost of an update is proportional to its changes below and above. `bf` maintains the lower
layer by B/F with equality (`backward_forward`), and the upper one by B/F (`fbf`). It keeps no ranks, so `adaptive`
after `bf` computes them anew.

The constants of rules are rewritten as classes change. Then the layers may be others, as rules may derive what other
rules ask for; all is then derived anew, below if the lower rules are others, and above in any case. An update by which
negation comes to depend on itself is refused, as a program would be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from upheld.algebra.counters import Ranks
from upheld.algebra.engine import Engine
from upheld.algebra.expansion import Rows
from upheld.algebra.sets import FactSet, derive, settle
from upheld.base.statistics import phase
from upheld.compiler.equality.equality import Equality
from upheld.compiler.equality.layers import LOOP, MEMBER, Layers, has_layers, layers
from upheld.compiler.strata import Stratification
from upheld.language.ast import Variable
from upheld.language.core import Atom, Core, Rule
from upheld.maintain.adaptive import by_strata, forecast_of_all, has_started_again
from upheld.maintain.aggregates import aggregates
from upheld.maintain.backward import Abort
from upheld.maintain.bookkeeping import Bookkeeping, Ranked
from upheld.maintain.equality.rewriting import Rewriting, changed_rows
from upheld.maintain.equality.rewritten_rules import RewrittenRules
from upheld.maintain.fbf import fbf
from upheld.maintain.ranked import add
from upheld.maintain.seminaive import seminaive
from upheld.maintain.update import State


class Layered:
    """The classes of equal constants of a materialisation in two layers, and how updates change all of it."""

    def __init__(self, engine: Engine, core: Core, strata: Stratification, E: FactSet, I: FactSet):
        self.engine, self.E, self.I, self.I_low, self._core = engine, E, I, engine.named("I of equality"), core
        #: The ranks of the upper layer, for the algorithms that keep them up to date.
        self.ranks: Ranks | None = engine.ranks()
        self.rules = RewrittenRules(core.rules, ())
        self._layers: dict[tuple[Rule, ...], Layers] = {}
        self._lower: dict[tuple[int, ...], RewrittenRules] = {}
        #: The predicates that stay declared to the engine.
        self._declared = set(core.predicates)
        self.lower = Rewriting(engine, replace(core, rules=()), strata, E, self.I_low)
        self.pi = self.lower.pi
        self.layers = self._layers_now()
        constant = Variable("c")
        self._loop = (Rule(Equality().atom(constant, constant), (Atom(LOOP.name, (constant,)),)),)

    def sets(self) -> tuple[FactSet, ...]:
        """The sets beside E and I that are kept from one update to the next."""
        return (self.I_low,)

    def shown(self) -> FactSet:
        """Return the normal facts that stand for what users see."""
        return self.I | settle(derive(self._loop, self.I, self.I))

    def layer(self, rule: Rule | None) -> tuple[int, int]:
        """Return the layer of a rule at work, and how many there are."""
        return 2 if rule in self.layers.upper.rules else 1, 2

    def convert(self, algorithm: str) -> None:
        """Begin the ranks that an algorithm relies on, or drop those that it would not keep up to date."""
        if algorithm == "bf":
            self.ranks = None
        elif algorithm == "adaptive" and self.ranks is None:
            self.layers = self._layers_now()
            E, bookkeeping = self._explicit_above(self.layers.strata), Ranked.begin(self.engine)
            seminaive(self.engine, E, self.layers.strata, bookkeeping)
            self.ranks = bookkeeping.ranks

    def materialise(self) -> None:
        """Derive all that follows from E."""
        nothing = self.E.engine.nothing
        self.pi.remember()
        D, A = self.lower.first()
        D, A = self._with_its_rules(nothing, nothing, D, A)
        _, A = self._above(D, A, self.layers.strata)
        self.I |= A

    def update(self, state: State, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
        """Return what is over-deleted and what is added by an update. The classes and the lower layer are changed."""
        return self._make(E_minus, E_plus, self.lower.changes)

    def bf(self, state: State, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
        """As `update`, by B/F with equality below and B/F above."""
        return self._make(E_minus, E_plus, self.lower.changes_by_bf)

    def rematerialise(self, state: State, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
        """As `update`, by deriving everything anew."""
        return self._make(E_minus, E_plus, self.lower.anew, afresh=True)

    def changed(self, deleted: FactSet, inserted: FactSet) -> tuple[dict[str, Rows], dict[str, Rows]]:
        """Return by predicate what an update has made disappear and appear, given the normal facts that have."""
        I, pi, loop = self.I, self.pi, self._loop
        then = (I - inserted) | deleted
        less = settle(deleted | derive(loop, deleted, deleted))
        more = settle(inserted | derive(loop, inserted, inserted))
        gone = settle(less - (I | settle(derive(loop, I, I, heads=less))))
        came = settle(more - (then | settle(derive(loop, then, then, heads=more))))
        differ = pi.difference()
        if differ.before or differ.now:
            gone = settle(gone | derive(loop, then, then, heads=pi.loops(differ.before)))
            came = settle(came | derive(loop, I, I, heads=pi.loops(differ.now)))
            gone = settle(gone | pi.mentioning(then, differ.before))
            came = settle(came | pi.mentioning(I, differ.now))
        hidden = {p.name for p in self.layers.upper.predicates.values() if p.internal}
        return changed_rows(pi, gone, came, hidden)

    def rule_pairs(self) -> Sequence[tuple[Rule, Rule]]:
        """Return each rule as it was written, and as it is by the classes that there are."""
        self.rules.follow(self.pi)
        return list(zip(self.rules.written, self.rules.now, strict=True))

    def exact(self) -> tuple[frozenset[str], Core]:
        """Return the relations whose facts speak of constants themselves, and a program with their aggregates."""
        return self.layers.exact, self.layers.upper

    def represented(self, core: Core) -> Core:
        """Return a program, such as a query, whose rules speak of representatives."""
        return self.lower.represented(core)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _make(
        self,
        E_minus: FactSet,
        E_plus: FactSet,
        change: Callable[[FactSet, FactSet], tuple[FactSet, FactSet]],
        afresh: bool = False,
    ) -> tuple[FactSet, FactSet]:
        self.layers = before = self._layers_now()  # an update that failed may have left others than the classes ask for
        self.lower.begin(E_minus, E_plus)
        D, A = change(E_minus, E_plus)
        D, A = self._with_its_rules(E_minus, E_plus, D, A)
        return self._above(D, A, before.strata if afresh or self.layers is not before else None)

    def _layers_now(self) -> Layers:
        """Return the layers by the classes that there are, and have the lower one follow them."""
        self.rules.follow(self.pi)
        rules = self.rules.now
        if rules not in self._layers:
            self._layers[rules] = layers(self._core, rules)
        found = self._layers[rules]
        for name, predicate in found.upper.predicates.items():
            if name not in self._declared:
                self.engine.declare(predicate)
                self._declared.add(name)
        if found.lower not in self._lower:
            written = [self._core.rules[i] for i in found.lower]
            self._lower[found.lower] = RewrittenRules(written, self.lower.reflexivity)
        self.lower.follow(self._lower[found.lower])
        return found

    def _with_its_rules(self, E_minus: FactSet, E_plus: FactSet, D: FactSet, A: FactSet) -> tuple[FactSet, FactSet]:
        """Return what the lower layer loses and gains, by the rules that are in it once its classes are known."""
        while True:
            before, self.layers = self.layers, self._layers_now()
            if self.layers.lower == before.lower:
                return settle(D - A), settle(A - D)
            D, A = self.lower.again(E_minus, E_plus)

    def _above(self, gone: FactSet, came: FactSet, before: Stratification | None) -> tuple[FactSet, FactSet]:
        """Return what the upper layer loses and gains when the lower one has lost and gained, and change that one.

        Strata of before are given if all is to be derived anew.
        """
        E_minus, E_plus = gone, came
        if self.layers.expands:
            left, joined = self.pi.memberships(MEMBER.name)
            E_minus, E_plus = settle(gone | left), settle(came | joined)
        bookkeeping = Ranked(self.ranks) if self.ranks is not None else Bookkeeping()
        state = State(self.engine, self.I_low, self.I, self.layers.strata, bookkeeping)
        changes: tuple[FactSet, FactSet] | None = None
        forecast = None
        if before is None and self.ranks is not None:
            forecast = forecast_of_all(state, E_minus.count(), E_plus.count())
            changes = by_strata(state, E_minus, E_plus, forecast)
        elif before is None:
            changes = fbf(state, E_minus, E_plus, Abort())
        if changes is None:
            changes = self._anew(before or self.layers.strata, E_minus, E_plus)
            has_started_again(state, forecast)
        D, A = changes
        I_low = self.I_low
        I_low -= gone
        I_low |= came
        return D, A

    @phase("materialisation")
    def _anew(self, before: Stratification, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
        """Return all of the upper layer as it was, and as it is; its strata may have been others."""
        I, ranks, E = self.I, self.ranks, self._explicit_above(before)
        D, A = I.engine.named("D"), I.engine.named("A")
        E -= E_minus
        E |= E_plus
        D |= I
        if ranks is None:
            A |= seminaive(self.engine, E, self.layers.strata, Bookkeeping())
            return D, A
        for s in before:
            if s.rules:
                ranks.forget(settle(s.out(I)), s)
        for s in self.layers.strata:
            if s.aggregations:
                A |= aggregates(self.engine, s, A)
            elif s.rules:
                add(s, I, D, A, Ranked(ranks).first(s, E, A), ranks)
            else:
                A |= settle(s.out(E))
        return D, A

    def _explicit_above(self, strata: Stratification) -> FactSet:
        """Return a new set of the facts that are explicit in the upper layer: those below, and the memberships."""
        E = self.engine.named("E above")
        E |= self.I_low
        for s in strata:
            if not s.rules and not s.aggregations:
                E |= settle(s.out(self.I))  # the members of classes are here
        return E


def rewriting(engine: Engine, core: Core, strata: Stratification, E: FactSet, I: FactSet) -> Rewriting | Layered:
    """Return classes for a program, in layers if it has any."""
    return (Layered if has_layers(core) else Rewriting)(engine, core, strata, E, I)
