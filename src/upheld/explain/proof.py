"""The shortest proof of a fact.

E, I     explicit facts, and their materialisation
G        the fact to be proved
R, F     facts that a proof may use, found by going backwards from G; those found last, not looked behind yet
K        derived facts that are known to follow: all those of a height up to some bound, or those that R has

The height of an explicit fact is 0, that of another is one more than the heights that its derivation rests on; a fact
of a hidden relation stands for a part of a body, so that its height is that of the part. A proof has the least height
there is. It is looked for from both ends, a step at a time where that takes less work: d steps backwards find all facts
of R up to a distance of d, and f rounds forwards all facts of K up to a height of f. Facts that one rule derives from K
are not searched further back. As soon as G can be proved from R and K at a height of at most d + f + 1, no proof is
lower.

Rounds put facts in layers, each derived from explicit facts and lower layers. Going down through them from G, every
fact gets the derivations from below its layer; coming back up, the one with the fewest facts is chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

from upheld.algebra.instances import RuleInstance
from upheld.algebra.sets import Bag, FactSet, bag, derive, settle, supports
from upheld.explain.unfold import Rules
from upheld.language.core import Fact, Rule
from upheld.language.values import Value

#: Facts that are looked behind at a time, so that their derivations fit in memory however many there are.
BATCH = 8192

#: Steps that take less work than this are not worth comparing: they go backwards.
LITTLE = 1000

#: Derivations of the facts of a layer that are looked at; a fact may have millions, all of the same height.
MOST_DERIVATIONS = 2_000

#: Derivations that are compared by the number of their facts; beyond, a fact takes the first of its own.
MOST_COMPARED = 20_000

#: An upper bound on the facts of a proof; larger sums are cut off. A fact used twice counts twice.
HUGE = 10**18


@dataclass
class Layers:
    """Facts in layers: each is derivable from explicit facts and facts of lower layers. K has all of them."""

    K: FactSet
    layers: list[Bag] = field(default_factory=list)
    #: The height of the facts of the last layer.
    height: int = 0
    count: int = 0

    def add(self, facts: FactSet, *, higher: bool) -> None:
        self.K |= facts
        self.layers.append(bag(facts))
        self.height += higher
        self.count += facts.count()


@dataclass(frozen=True, eq=False)
class Derivation:
    """A rule instance with its facts, and its place in a fixed order of the derivations of a fact."""

    instance: RuleInstance
    head: Fact
    body: tuple[Fact, ...]
    place: tuple[object, ...]


class Prover:
    """Looks for proofs in a materialisation."""

    def __init__(self, rules: Rules, E: FactSet, I: FactSet):
        self.rules, self.E, self.I, self.engine = rules, E, I, I.engine

    def holds(self, fact: Fact) -> bool:
        return bool(settle(self.loaded([fact]) & self.I))

    def prove(self, goal: Fact) -> dict[Fact, RuleInstance]:
        """Return the derivation of each derived fact of the shortest proof of a fact that holds."""
        G = self.loaded([goal])
        return {} if settle(G & self.E) else self._choose(goal, self._search(G))

    # -- finding what is provable --------------------------------------------------------------------------------------

    def _search(self, G: FactSet) -> Layers:
        """Return layers among which is that of the goal, at its least height."""
        backwards, forwards = Backwards(self, G), Forwards(self)
        height, looked = None, 0
        while True:
            known = forwards.known
            backwards.leave_out(known.K)
            reach = backwards.depth + known.height + 1
            size = backwards.count + known.count
            last = not backwards.F or (height is not None and height <= reach)
            # Looking each time that there is twice as much to look at costs no more in all than the last two looks.
            if size >= 2 * looked or last:
                looked = size
                result = self._rounds(G, backwards.R, known)
                height = result.height if result is not None else None
                if result is not None and (not backwards.F or result.height <= reach):
                    return result
            assert backwards.F, "a fact that holds and has no proof"
            if backwards.work <= LITTLE or backwards.work <= forwards.work:
                backwards.step(known.K)
            else:
                forwards.step()
                if settle(G & known.K):
                    return known

    def _rounds(self, G: FactSet, R: FactSet, known: Layers) -> Layers | None:
        """Return layers that lead from those known to the goal within R, if some do."""
        E, I, rules = self.E, self.I, self.rules
        result = Layers(self.named(known.K), list(known.layers), known.height)
        if rules.spliced and (new := settle(derive(rules.spliced, E | result.K, I, heads=R) - result.K)):
            result.add(new, higher=False)
        new = settle(derive(rules.visible, E | result.K, I, heads=R) - result.K)
        while new:
            result.add(new, higher=True)
            if settle(G & new):
                return result
            delta = self.with_spliced(result, new, R)
            new = settle((derive(rules.visible, E | result.K, I, via=delta) & R) - result.K)
        return None

    def with_spliced(self, known: Layers, delta: FactSet, R: FactSet | None = None) -> FactSet:
        """Add the hidden facts that follow from the facts just added, restricted to R if given; return both."""
        new = delta
        while self.rules.spliced:
            one_rule = derive(self.rules.spliced, self.E | known.K, self.I, via=new)
            new = settle((one_rule if R is None else one_rule & R) - known.K)
            if not new:
                break
            known.add(new, higher=False)
            delta = settle(delta | new)
        return delta

    # -- choosing derivations ------------------------------------------------------------------------------------------

    def _choose(self, goal: Fact, found: Layers) -> dict[Fact, RuleInstance]:
        """Return for each derived fact of the proof its derivation, going down from the goal and coming back up."""
        ways: dict[Fact, list[Derivation]] = {}
        wanted = self.named(self.loaded([goal]))
        compared = 0
        for layer in reversed(found.layers):
            facts = layer.facts()
            found.K -= facts
            bodies: set[Fact] = set()
            for fact, mine in self._derivations(settle(facts & wanted), found.K).items():
                ways[fact] = mine if compared + len(mine) <= MOST_COMPARED else mine[:1]
                compared += len(mine)
                bodies.update(body for way in ways[fact] for body in way.body)
            wanted |= self.loaded(bodies)
        sizes: dict[Fact, int] = {}
        chosen: dict[Fact, Derivation] = {}
        for fact in reversed(ways):  # facts of lower layers were added later
            weighed = [(self._size(way, sizes), i) for i, way in enumerate(ways[fact])]
            sizes[fact], best = min(weighed)
            chosen[fact] = ways[fact][best]
        return {fact: chosen[fact].instance for fact in _reached(goal, chosen)}

    def _derivations(self, facts: FactSet, K: FactSet) -> dict[Fact, list[Derivation]]:
        """Return the derivations of facts from explicit ones and K, in a fixed order.

        This is where a proof takes its way down. A materialisation that keeps for each fact a rank, above those of
        some derivation of it, needs no layers: that derivation can be followed.
        """
        if not facts:
            return {}
        result: dict[Fact, list[Derivation]] = {fact: [] for fact in _listed(facts)}
        for way in islice(self._deriving(facts, K), MOST_DERIVATIONS):
            result[way.head].append(way)
        for fact, ways in result.items():
            if not ways:  # proofs of other facts were too many
                ways += islice(self._deriving(self.loaded([fact]), K), MOST_DERIVATIONS)
            ways.sort(key=lambda way: way.place)
        return result

    def _deriving(self, facts: FactSet, K: FactSet) -> Iterator[Derivation]:
        for instance in supports(self.rules.all, facts, self.E | K, self.I):
            assert isinstance(instance, RuleInstance), "an instance without its binding"
            place = (self.rules.place[instance.rule], *map(_order, instance.values))
            yield Derivation(instance, instance.head, instance.body, place)

    def _size(self, way: Derivation, sizes: dict[Fact, int]) -> int:
        """Return the number of facts that a derivation takes; one of a hidden relation is none itself."""
        below = sum(sizes.get(body, 1) for body in way.body)
        return min(below if self.rules.is_hidden(way.head) else 1 + below, HUGE)

    # -- sets ----------------------------------------------------------------------------------------------------------

    @property
    def considered(self) -> int:
        """The number of rule instances that have been considered so far."""
        return self.engine.meter.statistics.instances.total()

    def named(self, facts: FactSet) -> FactSet:
        """Return a set of these facts that can be changed."""
        result = self.engine.named("explaining")
        result |= facts
        return result

    def loaded(self, facts: Iterable[Fact]) -> FactSet:
        rows: dict[str, list[tuple[Value, ...]]] = {}
        for predicate, row in facts:
            rows.setdefault(predicate, []).append(row)
        if len(rows) == 1:
            return self.engine.load(*rows.popitem())
        result = self.engine.named("loaded")
        for predicate, mine in rows.items():
            result |= self.engine.load(predicate, mine)
        return result


class Backwards:
    """The way back from a fact: R has the derived facts within a distance of `depth` steps."""

    def __init__(self, prover: Prover, G: FactSet):
        self.prover, self.depth, self.count, self.rate = prover, 0, 1, 1.0
        self.R, self.F = prover.named(G), G

    @property
    def work(self) -> float:
        """About how many rule instances the next step will consider."""
        return self.F.count() * self.rate

    def leave_out(self, K: FactSet) -> None:
        """Do not look behind facts that are known, or follow from known ones by one rule."""
        p = self.prover
        self.F = settle(self.F - K - derive(p.rules.visible, p.E | K, p.I, heads=self.F))

    def step(self, K: FactSet) -> None:
        """Look behind the facts found last, and at once behind hidden ones among what comes up."""
        p = self.prover
        before, asked = p.considered, self.F.count()
        found = self._behind(p.rules.visible, self.F)
        behind = found
        while p.rules.spliced and behind:
            behind = settle(behind - K - derive(p.rules.spliced, p.E | K, p.I, heads=behind))
            behind = self._behind(p.rules.spliced, behind)
            found = settle(found | behind)
        self.F, self.depth, self.count = found, self.depth + 1, self.count + found.count()
        self.rate = max(1.0, (p.considered - before) / asked)

    def _behind(self, rules: Sequence[Rule], facts: FactSet) -> FactSet:
        """Return the derived facts that derivations of facts use and that are new to R, where they are put."""
        p = self.prover
        if facts.count() <= BATCH:
            result = settle(supports(rules, facts, p.I, p.I).bodies() - p.E - self.R)
            self.R |= result
            return result
        before = p.named(self.R)
        listed = _listed(facts)
        while some := list(islice(listed, BATCH)):
            self.R |= supports(rules, p.loaded(some), p.I, p.I).bodies() - p.E
        return settle(self.R - before)


class Forwards:
    """The way up from explicit facts: `known` has all facts up to its height."""

    def __init__(self, prover: Prover):
        self.prover, self.rate = prover, 1.0
        self.known = Layers(prover.engine.named("known"))
        self.delta: FactSet = prover.E

    @cached_property
    def explicit(self) -> int:
        """The number of explicit facts, which is not asked for before it matters."""
        return self.prover.E.count()

    @property
    def work(self) -> float:
        """About how many rule instances the next step will consider."""
        return (self.delta.count() if self.known.layers else self.explicit) * self.rate

    def step(self) -> None:
        """Apply all rules once."""
        p, known = self.prover, self.known
        before, asked = p.considered, self.work / self.rate
        if not known.layers:
            known.add(settle(derive(p.rules.spliced, p.E, p.I) - p.E), higher=False)
            new = settle(derive(p.rules.visible, p.E | known.K, p.I) - p.E)
        else:
            new = settle(derive(p.rules.visible, p.E | known.K, p.I, via=self.delta) - p.E - known.K)
        known.add(new, higher=True)
        self.delta = p.with_spliced(known, new)
        self.rate = max(1.0, (p.considered - before) / asked)


def _listed(facts: FactSet) -> Iterator[Fact]:
    return (fact for fact, _ in bag(facts).items())


def _order(value: Value) -> tuple[bool, Value]:
    """Return a key by which values of one type are in ascending order, NaN last."""
    return value != value, value


def _reached(goal: Fact, chosen: dict[Fact, Derivation]) -> Iterator[Fact]:
    """Yield the derived facts that the chosen derivation of the goal rests on, and the goal."""
    seen = {goal}
    pending = [goal]
    while pending:
        fact = pending.pop()
        yield fact
        for body in chosen[fact].body:
            if body in chosen and body not in seen:
                seen.add(body)
                pending.append(body)
