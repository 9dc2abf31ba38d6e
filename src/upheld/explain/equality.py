"""Proofs of facts about constants of which several may be equal, where one stands for all of them.

The state has normal facts. A proof has facts as users know them: a rule is applied to facts whose constants are the
same, and where they are only equal, a step by equality replaces one by the other and rests on the proof that they are.

It is found in two moves. Backwards: the normal facts that derivations of the goal may use, some steps deep, with the
uses of rules among them. Forwards: from the explicit facts that these stand for, each constant alone at first, these
uses are tried a round at a time on facts as users know them; the classes of a round are what the equalities of earlier
rounds connect. So nothing rests on itself. If the goal is not reached the way back was too short, and is made longer.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, product

from upheld.algebra.equality import Classes
from upheld.algebra.instances import (
    Binding,
    RuleInstance,
    cheapest_first,
    evaluate_builtin,
    instantiate,
    is_ready,
    unify,
)
from upheld.algebra.sets import FactSet, Instances, bag, instances, settle, supports
from upheld.compiler.equality.equality import Equality
from upheld.explain.aggregates import Aggregates
from upheld.language.ast import Variable
from upheld.language.core import Atom, Builtin, Fact, Predicate, Rule
from upheld.language.types.functors import Undefined
from upheld.language.values import Value

#: The relation of what the atoms of a rule bind, where its head has more; no dialect lets a user write such a name.
BOUND = "$bound"

#: Derived facts that are looked at to find one that mentions a constant.
MOST_MENTIONS = 10


@dataclass(frozen=True, eq=False)
class Kept:
    """The state under rewriting: the explicit facts E, the normal facts I, and the classes.

    `rules` has each rule as it was written, and with representatives for its constants. `aggregates` are given as
    explicit facts are: a proof does not look behind their values. Facts of the relations `exact` speak of constants
    themselves: they do not hold by equality.
    """

    E: FactSet
    I: FactSet
    pi: Classes
    rules: Sequence[tuple[Rule, Rule]]
    exact: frozenset[str] = frozenset()
    aggregates: Aggregates | None = None
    equality: Equality = Equality()

    @cached_property
    def leaves(self) -> FactSet:
        """The explicit facts, and the values of aggregates."""
        return self.E | self.aggregates.values(self.I) if self.aggregates else self.E

    @cached_property
    def sought(self) -> FactSet:
        """The normal facts; facts of exact relations are made normal, too."""
        facts = self.I
        for name in sorted(self.exact):
            rows = list(self.I.rows(name))
            normal = [self.normal((name, row))[1] for row in rows]
            facts = settle((facts - self.E.engine.load(name, rows)) | self.E.engine.load(name, normal))
        return facts

    def has(self, atom: Atom, binding: Binding) -> bool:
        """Return whether a fact of an exact relation holds."""
        return bool(settle(self.loaded([instantiate(atom, binding)]) & self.I))

    @cached_property
    def _representative(self) -> dict[Value, Value]:
        return {}

    def normal(self, fact: Fact) -> Fact:
        """Return the normal fact that stands for a fact."""
        known = self._representative
        missing = [value for value in constants((fact,)) if value not in known]
        if missing:
            known.update(zip(missing, self.pi.representatives(missing), strict=True))
        return fact[0], tuple(known.get(value, value) for value in fact[1])

    def holds(self, fact: Fact) -> bool:
        return bool(settle(self.loaded([self.normal(fact)]) & self.I))

    def loaded(self, facts: Iterable[Fact]) -> FactSet:
        rows: dict[str, list[tuple[Value, ...]]] = defaultdict(list)
        for predicate, row in facts:
            rows[predicate].append(row)
        result = self.E.engine.named("explaining")
        for predicate, mine in rows.items():
            result |= self.E.engine.load(predicate, mine)
        return result

    def loops(self, constants: Iterable[Value]) -> FactSet:
        return self.loaded([self.equality.fact(c, c) for c in constants])

    def sides(self, fact: Fact) -> tuple[Value, Value] | None:
        """Return the constants that a fact says are equal, if it does."""
        predicate, row = fact
        if predicate != self.equality.predicate or row[self.equality.column] != self.equality.value:
            return None
        left, right = self.equality.sides
        return row[left], row[right]


def constants(facts: Iterable[Fact]) -> dict[Value, None]:
    """Return the constants that facts mention. The numbers that an aggregate keeps beside its value are none."""
    return {value: None for _, row in facts for value in row if isinstance(value, str)}


#: How a fact is proved: by an instance of a rule, by equality from other facts, or, if it is explicit, by nothing.
Step = RuleInstance | tuple[Fact, ...] | None


@dataclass(frozen=True)
class Use:
    """A rule as it was written, and the normal facts that its positive atoms may be matched to."""

    rule: Rule
    body: tuple[Fact, ...]


@dataclass(frozen=True)
class Proved:
    """The steps of a proof: instances of rules, and what a step by equality rests on. All other facts are explicit."""

    by_rule: Mapping[Fact, RuleInstance]
    by_equality: Mapping[Fact, tuple[Fact, ...]]


def prove(kept: Kept, goal: Fact) -> Proved:
    """Return a proof of a fact that holds."""
    with Backwards(kept, goal) as back:
        steps = 1
        while True:
            for _ in range(steps):
                back.step()
            forwards = Forwards(kept, back)
            if forwards.reach(goal):
                return forwards.proof(goal)
            assert back.frontier, "a fact that holds and has no proof"
            steps *= 2


class Backwards:
    """The way back from a goal: `facts` are the normal facts that derivations may use, `uses` those of rules."""

    def __init__(self, kept: Kept, goal: Fact):
        self.kept = kept
        self.facts: set[Fact] = set()
        self.uses: dict[Use, None] = {}
        self.frontier: list[Fact] = [kept.normal(goal)]
        self._written: dict[Rule, Rule] = {}
        self._bound: dict[Rule, tuple[Atom, Predicate]] = {}
        for number, (written, now) in enumerate(kept.rules):
            self._written[self._without_builtins(self._closed(now), number)] = written

    def __enter__(self) -> Backwards:
        return self

    def __exit__(self, *failure: object) -> None:
        for _, predicate in self._bound.values():
            self.kept.E.engine.forget(predicate)

    def _closed(self, rule: Rule) -> Rule:
        """Return a rule that negates no facts of exact relations: of these, the way forward decides."""
        negative = tuple(atom for atom in rule.negative if atom.predicate not in self.kept.exact)
        return rule if negative == rule.negative else replace(rule, negative=negative)

    def _without_builtins(self, rule: Rule, number: int) -> Rule:
        """Return a rule that binds what atoms bind. If its head has more, its head is a relation of what they bind."""
        if not rule.builtins:
            return rule
        names = dict.fromkeys(name for atom in rule.positive for name in atom.variables())
        negative = tuple(atom for atom in rule.negative if all(name in names for name in atom.variables()))
        if all(name in names for name in rule.head.variables()):
            return replace(rule, negative=negative, builtins=())
        predicate = Predicate(f"{BOUND} {number}", tuple(names), ("term",) * len(names), hidden=True)
        self.kept.E.engine.declare(predicate)
        head = Atom(predicate.name, tuple(map(Variable, names)))
        result = replace(rule, head=head, negative=negative, builtins=())
        self._bound[result] = rule.head, predicate
        return result

    def step(self) -> None:
        """Look behind the facts found last."""
        kept, fresh = self.kept, [f for f in dict.fromkeys(self.frontier) if f not in self.facts]
        self.facts.update(fresh)
        self.frontier = []
        if not fresh:
            return
        asked = settle(kept.loaded(fresh) & kept.sought)
        plain = tuple(rule for rule in self._written if rule not in self._bound)
        self._note(supports(plain, asked, kept.sought, kept.sought))
        wanted = [made for made, (head, _) in self._bound.items() if any(_may_be(head, fact) for fact in fresh)]
        if wanted:
            self._note(instances(wanted, kept.sought, kept.sought))
        several = settle(kept.pi.several(kept.loops(constants(fresh))))
        self.frontier += [fact for fact, _ in bag(several).items()]
        loops = [fact for fact in fresh if (sides := kept.sides(fact)) and sides[0] == sides[1]]
        alone = settle(kept.loaded(loops) - settle(kept.pi.counted(kept.loaded(loops)) | several))
        for loop, _ in bag(alone).items():
            mentioning = kept.pi.mentioning(kept.sought, kept.pi.constants(kept.loaded([loop])))
            others = (fact for fact, _ in bag(mentioning).items() if fact != loop)
            self.frontier += islice(others, MOST_MENTIONS)

    def _note(self, found: Instances) -> None:
        for instance in found:
            self.uses[Use(self._written[instance.rule], tuple(instance.body))] = None
            self.frontier += instance.body

    def explicit(self) -> Iterator[Fact]:
        """Yield the explicit facts that the facts stand for, and some that mention what is asked to equal itself."""
        kept = self.kept
        yield from (fact for fact, _ in bag(settle(kept.loaded(self.facts) & kept.leaves)).items())
        several = kept.pi.constants(settle(kept.pi.several(kept.loops(constants(self.facts)))))
        if len(several):
            yield from (f for f, _ in bag(settle(kept.pi.mentioning(kept.leaves, kept.pi.members(several)))).items())
        for fact in self.facts:
            if (sides := kept.sides(fact)) and sides[0] == sides[1]:
                mentioning = kept.pi.mentioning(kept.E, kept.pi.constants(kept.loaded([fact])))
                yield from islice((f for f, _ in bag(settle(mentioning)).items()), 1)


class Forwards:
    """The way up from explicit facts: `known` are the facts proved so far, by the normal facts that stand for them."""

    def __init__(self, kept: Kept, back: Backwards):
        self.kept, self.back, self.round = kept, back, 0
        self.known: dict[Fact, list[Fact]] = defaultdict(list)
        #: In which round a fact was proved first, and by what; explicit ones by nothing.
        self.found: dict[Fact, tuple[int, Step]] = {}
        #: For each constant those that an equality connects it with, the equality, and the round since which it does.
        self.edges: dict[Value, list[tuple[Value, Fact, int]]] = defaultdict(list)
        #: The first fact that mentions a constant, and the constants of each class that some fact mentions.
        self.mention: dict[Value, Fact] = {}
        self.mentioned: dict[Fact, list[Value]] = defaultdict(list)
        self._root: dict[Value, Value] = {}
        self._class: dict[Value, list[Value]] = {}
        for fact in back.explicit():
            self._add(fact, None)
        self._connect()

    # -- rounds --------------------------------------------------------------------------------------------------------

    def reach(self, goal: Fact) -> bool:
        """Try rounds until the goal is proved, and return whether it is."""
        while not self._is_proved(goal):
            self.round += 1
            made = [pair for use in self.back.uses for pair in self._applied(use)]
            before = len(self.found)
            for fact, instance in made:
                if not self._is_known(fact):
                    self._add(fact, instance)
            if not self._connect() and len(self.found) == before:
                return False
        return True

    def _add(self, fact: Fact, step: Step) -> None:
        if fact in self.found:
            return
        self.found[fact] = self.round, step
        self.known[self.kept.normal(fact)].append(fact)
        equality = self.kept.equality
        if fact[0] in self.kept.exact:  # its constants are mentioned by the facts that it is made from
            return
        mentions = [(value, fact) for value in fact[1]]
        mentions += [(equality.value, equality.fact(value, value)) for value in fact[1]]  # these equalities mention it
        for value, mention in mentions:
            if value not in self.mention:
                self.mention[value] = mention
                self.mentioned[self.kept.normal(equality.fact(value, value))].append(value)

    def _connect(self) -> bool:
        """Take equalities that have come into the classes, and return whether classes have changed.

        A property that becomes equal to `owl:sameAs` counts from the next round on.
        """
        kept, column = self.kept, self.kept.equality.column
        fresh: list[Fact] = []
        for normal, facts in list(self.known.items()):
            for fact in list(facts) if kept.sides(normal) else ():
                left, right = (fact[1][side] for side in kept.equality.sides)
                property, literal = fact[1][column], kept.equality.fact(left, right)
                if not self._same(property, kept.equality.value) or self._same(left, right):
                    continue
                if literal not in self.found:
                    self._add(literal, (fact, kept.equality.fact(property, kept.equality.value)))
                fresh.append(literal)
        for fact in dict.fromkeys(fresh):
            left, right = (fact[1][side] for side in kept.equality.sides)
            self.edges[left].append((right, fact, self.round))
            self.edges[right].append((left, fact, self.round))
            self._join(left, right)
        return bool(fresh)

    def _join(self, left: Value, right: Value) -> None:
        one, other = self._find(left), self._find(right)
        if one == other:
            return
        mine = [*self._class.pop(one, [one]), *self._class.pop(other, [other])]
        self._class[one] = mine
        self._root.update((value, one) for value in mine)

    def _find(self, value: Value) -> Value:
        return self._root.get(value, value)

    def _same(self, left: Value, right: Value) -> bool:
        return self._find(left) == self._find(right)

    def _key(self, fact: Fact) -> tuple[Value, ...]:
        return tuple(map(self._find, fact[1]))

    def _is_known(self, fact: Fact) -> bool:
        if fact[0] in self.kept.exact:
            return fact in self.found
        key = self._key(fact)
        return any(self._key(other) == key for other in self._standing_for(self.kept.normal(fact)))

    def _standing_for(self, normal: Fact) -> Iterator[Fact]:
        """Yield the facts that are known of those that a normal one stands for, and equalities that mentions give."""
        yield from self.known.get(normal, ())
        yield from (self.kept.equality.fact(c, c) for c in self.mentioned.get(normal, ()))

    def _is_proved(self, fact: Fact) -> bool:
        if (sides := self.kept.sides(fact)) and self._same(*sides) and sides[0] in self.mention:
            return True
        return self._is_known(fact)

    def _candidates(self, normal: Fact) -> Iterator[Fact]:
        """Yield facts that a normal one stands for, one of those that are equal in this round."""
        seen = set()
        exact = normal[0] in self.kept.exact
        for fact in self._standing_for(normal):
            if exact:
                yield fact
            elif (key := self._key(fact)) not in seen:
                seen.add(key)
                yield fact

    def _applied(self, use: Use) -> Iterator[tuple[Fact, RuleInstance]]:
        """Yield what a rule derives in this round, with the instance."""
        rule = use.rule
        for matched in self._matched(use, 0, {}):
            for binding in self._passing(rule, matched):
                head = instantiate(rule.head, binding)
                computed = [a for a in rule.negative if not matched.keys() >= set(a.variables())]
                computed = [a for a in computed if a.predicate not in self.kept.exact]
                if self.kept.normal(head) in self.back.facts and not any(
                    self.kept.holds(instantiate(atom, binding)) for atom in computed
                ):
                    yield head, RuleInstance(rule, tuple(binding[name] for name in rule.variables()))

    def _matched(self, use: Use, at: int, binding: Binding) -> Iterator[Binding]:
        """Yield bindings under which positive atoms hold, up to equality."""
        if at == len(use.body):
            yield binding
            return
        atom = use.rule.positive[at]
        for _, row in self._candidates(use.body[at]):
            extended = dict(binding)
            for term, value in zip(atom.terms, row, strict=True):
                expected = extended.setdefault(term.name, value) if isinstance(term, Variable) else term.value
                if not self._same(expected, value):
                    break
            else:
                yield from self._matched(use, at + 1, extended)

    def _passing(self, rule: Rule, binding: Binding) -> Iterator[Binding]:
        """Yield bindings to constants that equal those of a binding and pass what looks at constants themselves.

        These are the built-ins, which may bind more, and the atoms of exact relations.
        """
        exact = self.kept.exact
        positive = [atom for atom in rule.positive if atom.predicate in exact]
        negative = [atom for atom in rule.negative if atom.predicate in exact]
        looking: list[Builtin | Atom] = [*rule.builtins, *positive, *negative]
        names = [n for n in dict.fromkeys(n for part in looking for n in part.variables()) if n in binding]
        for values in product(*(self._class.get(self._find(binding[n]), [binding[n]]) for n in names)):
            for extended in _evaluated(
                cheapest_first(rule.builtins), {**binding, **dict(zip(names, values, strict=True))}
            ):
                if all(self.kept.has(a, extended) for a in positive) and not any(
                    self.kept.has(a, extended) for a in negative
                ):
                    yield extended

    # -- the proof -----------------------------------------------------------------------------------------------------

    def proof(self, goal: Fact) -> Proved:
        """Return the proof of a fact that was reached."""
        by_rule: dict[Fact, RuleInstance] = {}
        by_equality: dict[Fact, tuple[Fact, ...]] = {}
        pending, seen = [goal], {goal}
        while pending:
            fact = pending.pop()
            step = self._first(fact)
            if step is None:
                continue
            if isinstance(step, RuleInstance):
                by_rule[fact] = step
                premises: Sequence[Fact] = step.body
            else:
                by_equality[fact] = premises = step
            fresh = [premise for premise in dict.fromkeys(premises) if premise not in seen]
            seen.update(fresh)
            pending += fresh
        return Proved(by_rule, by_equality)

    def _first(self, fact: Fact) -> Step:
        """Return how a fact was proved first: explicitly, by a rule, or by equality from these facts.

        A step of a round rests on facts of earlier ones, or, by equality, on facts of the same that need none.
        """
        for round in range(self.round + 1):
            number, step = self.found.get(fact, (None, None))
            if number == round:
                return step
            if (premises := self._equal_since(fact, round)) is not None:
                return premises
        raise AssertionError("a fact that is used and not proved")

    def _equal_since(self, fact: Fact, round: int) -> tuple[Fact, ...] | None:
        """Return what makes a fact hold by equality in a round, if something does."""
        sides = self.kept.sides(fact)
        if sides and sides[0] == sides[1]:
            mention = self.mention.get(sides[0])
            return (mention,) if mention is not None and self._since(mention) <= round else None
        if sides and (path := self._path(*sides, round)) is not None and path != [fact]:
            return tuple(path)
        for other in self._standing_for(self.kept.normal(fact)):
            if self._since(other) <= round:
                pairs = [(a, b) for a, b in zip(other[1], fact[1], strict=True) if a != b]
                if all(self._path(a, b, round) is not None for a, b in pairs):
                    return other, *(self.kept.equality.fact(a, b) for a, b in dict.fromkeys(pairs))
        return None

    def _since(self, fact: Fact) -> int:
        """Return the round in which a fact was found, or a first one that mentions what equals itself."""
        while fact not in self.found:
            fact = self.mention[fact[1][0]]
        return self.found[fact][0]

    def _path(self, start: Value, end: Value, round: int) -> list[Fact] | None:
        """Return the fewest equalities of rounds up to one that connect two constants."""
        came: dict[Value, tuple[Value, Fact] | None] = {start: None}
        waiting = deque([start])
        while waiting and end not in came:
            at = waiting.popleft()
            for other, fact, since in self.edges.get(at, ()):
                if since <= round and other not in came:
                    came[other] = at, fact
                    waiting.append(other)
        if end not in came:
            return None
        path: list[Fact] = []
        while (step := came[end]) is not None:
            end, fact = step
            path.append(fact)
        return path[::-1]


def _evaluated(builtins: list[Builtin], binding: Binding) -> Iterator[Binding]:
    """Yield the bindings under which built-ins hold; what has no result does not."""
    if not builtins:
        yield binding
        return
    ready = next(b for b in builtins if is_ready(b, binding))
    rest = [b for b in builtins if b is not ready]
    try:
        found = list(evaluate_builtin(ready, binding))
    except Undefined:
        return
    for extended in found:
        yield from _evaluated(rest, extended)


def _may_be(head: Atom, fact: Fact) -> bool:
    return head.predicate == fact[0] and unify(head, fact[1], {}) is not None
