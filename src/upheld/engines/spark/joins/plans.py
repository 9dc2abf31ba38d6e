"""How a body is matched in several tasks: in legs, between which bindings travel to the owner of their next key.

A leg is what can be matched in one place. All tasks have the same legs, because these follow from the rules alone; the
order of the steps within a leg is up to the planner of each task.

Views are the columns beside the first by which rules look facts up. A fact has a copy with the owner of its value in
each of them. They are collected from the plans of all rules before there is any fact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from upheld.algebra.instances import GENERATOR, cheapest_first, effort, is_ready
from upheld.compiler.strata import Stratum
from upheld.engines.memory.plans.plan import Literal, Place, Plan, Planner
from upheld.language.ast import Constant, Variable
from upheld.language.core import Atom, Builtin, CoreTerm, Rule


class Target(NamedTuple):
    """Where bindings are, or go to: the owner of a term, the home of a predicate without columns, or all tasks.

    Two are the same place if their keys are equal.
    """

    key: str
    term: CoreTerm | None = None
    predicate: str | None = None

    @classmethod
    def of(cls, term: CoreTerm) -> Target:
        """Return the owner of a term. Two constants may be equal in Python and have different codes: 0.0 and -0.0."""
        key = f"variable {term.name}" if isinstance(term, Variable) else f"{term.type} {term.value!r}"
        return cls(key, term)

    @classmethod
    def of_atom(cls, atom: Atom, column: int) -> Target:
        """Return the owner of the term in a column, or of the name of an atom without columns."""
        return cls.of(atom.terms[column]) if atom.terms else cls(f"predicate {atom.predicate}", None, atom.predicate)


#: All tasks: each joins the bindings with the facts that are at home there.
EVERYWHERE = Target("everywhere")


class Views:
    """The columns beside the first by which facts are looked up, and the predicates that all tasks have whole.

    The driver has the predicates of `known` whole as well. One task has all facts of the predicates in `collected`, as
    copies that rules do not look up.
    """

    def __init__(self, replicated: Iterable[str] = (), known: Iterable[str] = ()):
        self.known = frozenset(known)
        self.replicated = frozenset(replicated) | self.known
        self.collected: set[str] = set()
        self._columns: dict[str, list[int]] = defaultdict(list)
        #: Whether plans may ask for further columns: until there are facts.
        self.may_grow = True

    def columns(self, predicate: str) -> Sequence[int]:
        """The columns beside the first."""
        return self._columns.get(predicate, ())

    def has(self, predicate: str, column: int) -> bool:
        """Whether the owner of a value has all facts with the value in a column."""
        return column == 0 or column in self._columns.get(predicate, ())

    def has_copies(self, predicate: str) -> bool:
        """Whether tasks may have facts of a predicate that are at home elsewhere."""
        return predicate in self.replicated or predicate in self.collected or bool(self.columns(predicate))

    def add(self, predicate: str, column: int) -> None:
        if not self.has(predicate, column):
            assert self.may_grow, "a column that facts have no copies for"
            self._columns[predicate].append(column)


@dataclass(eq=False)
class Leg:
    """Literals and built-ins that are matched in one place, for bindings of `start` that have gone to `route`.

    Without a route they stay where they are. `needed` are the variables that go on, in the order in which they travel.
    Bindings that all tasks have go on from facts at home: `home` is the variable whose owner that is, and `spread` the
    predicate of these facts if the bindings are rows of a replicated relation.
    """

    route: Target | None
    literals: list[Literal] = field(default_factory=list)
    builtins: list[Builtin] = field(default_factory=list)
    start: tuple[str, ...] = ()
    needed: tuple[str, ...] | None = None
    home: str | None = None
    spread: str | None = None
    _plan: Plan | None = None

    def plan(self, planner: Planner, rule: Rule) -> Plan:
        """Return the order of the steps in this task, legs anew if its tables have changed much."""
        if self._plan is None or self._plan.is_stale():
            self._plan = planner.plan(rule, self.start, self.literals, self.needed, self.builtins)
        return self._plan


@dataclass(eq=False)
class Pipeline:
    """The legs of a rule from one beginning: rows of an atom whose values in a column the task owns, or nothing.

    Without a column all tasks begin with all rows, which are replicated. `stays` is whether the bindings at the end are
    at the homes of the heads.
    """

    rule: Rule
    legs: list[Leg]
    atom: Atom | None
    column: int | None = 0
    stays: bool = False

    @property
    def start(self) -> tuple[str, ...]:
        return self.legs[0].start


class Kind(NamedTuple):
    """From where a rule is matched, and what is asked for.

    `begin` is `via` (positive atom i), `via not` (negated atom i), `heads`, or `all`. `own` is whether atoms of the
    rule's stratum are matched in a set of their own. With `ranked_in`, bindings carry the highest rank of the facts of
    that stratum. With `whole`, they have all variables of the rule at the end.
    """

    begin: str
    position: int = 0
    own: Stratum | None = None
    ranked_in: Stratum | None = None
    whole: bool = False


#: The cost of a way to match a rule: its legs, the views that it asks for, whether heads travel, and whether it begins
#: with all rows in all tasks.
_Cost = tuple[int, int, bool, bool]

_CHEAPEST: _Cost = (1, 0, False, False)


class _Beginning(NamedTuple):
    """One way to match a rule: from the rows of an atom, by the owners of a column."""

    cost: _Cost
    legs: _Legs
    atom: Atom | None
    column: int | None


def pipeline(rule: Rule, kind: Kind, views: Views, height: str) -> Pipeline:
    """Return the pipeline of a rule with the fewest legs. `height` is the variable that carries ranks."""
    last = rule.variables() if kind.whole else None
    carried = (height,) if kind.ranked_in is not None else ()
    literals = list(_literals(rule, kind))
    match kind.begin:
        case "via":
            atoms = [(rule.positive[kind.position], literals)]
        case "via not":
            atoms = [(rule.negative[kind.position], literals)]
        case "heads":
            atoms = [(rule.head, literals)]
        case _:
            positive = [k for k, literal in enumerate(literals) if not literal.negated]
            atoms = [(literals[k].atom, [*literals[:k], *literals[k + 1 :]]) for k in positive]
    home = Target.of_atom(rule.head, 0).key
    best: _Beginning | None = None
    for atom, column, others in ((a, c, others) for a, others in atoms for c in _columns(a, kind, views)):
        place = None if column is None else Target.of_atom(atom, column)
        variables = (*dict.fromkeys(atom.variables()), *carried)
        legs = _Legs(rule, variables, place, others, rule.builtins, views, last, carried, spread=column is None)
        if legs.is_possible:
            cost = len(legs.legs), len(legs.asked), not legs.ends_at(home), column is None
            if best is None or cost < best.cost:
                best = _Beginning(cost, legs, atom, column)
            if cost == _CHEAPEST:
                break
    if best is None:
        legs = _Legs(rule, carried, None, literals, rule.builtins, views, last, carried)
        best = _Beginning(_CHEAPEST, legs, None, 0)
    for predicate, wanted in best.legs.asked:
        views.add(predicate, wanted)
    return Pipeline(rule, best.legs.with_variables(), best.atom, best.column, best.legs.ends_at(home))


def _columns(atom: Atom, kind: Kind, views: Views) -> Sequence[int | None]:
    """Return the columns by whose owners a plan may begin with the rows of an atom; None is all rows in all tasks."""
    if kind.begin == "heads":
        return (0,)
    if atom.predicate in views.replicated and atom.terms:
        return (*range(len(atom.terms)), None)
    return (0,) if kind.begin == "all" else (0, *views.columns(atom.predicate))


def rest_of(
    rule: Rule, start: tuple[str, ...], literals: Sequence[Literal], builtins: Sequence[Builtin], views: Views,
    needed: tuple[str, ...],
) -> Pipeline:  # fmt: skip
    """Return a pipeline for bindings that are anywhere, through some literals and the built-ins that can be evaluated.

    Negated atoms with a variable that has no value are left out.
    """
    bound = set(start).union(*(x.atom.variables() for x in literals if not x.negated))
    left, ready = cheapest_first(builtins), []
    while some := next((b for b in left if is_ready(b, bound)), None):
        left.remove(some)
        ready.append(some)
        bound.update(some.variables())
    known = [x for x in literals if not x.negated or bound.issuperset(x.atom.variables())]
    legs = _Legs(rule, start, None, known, ready, views, needed, needed)
    return Pipeline(rule, legs.with_variables(), None)


def _literals(rule: Rule, kind: Kind) -> Iterator[Literal]:
    """Yield where the atoms are matched beside the one that a plan begins with: queries (155) to (157)."""
    for k, atom in enumerate(rule.positive):
        if kind.begin == "via" and k == kind.position:
            continue
        before = kind.begin == "via not" or (kind.begin == "via" and k < kind.position)
        place = Place.P_NOT_X if before else Place.P
        if kind.own is not None and k in kind.own.own(rule):
            place = place.within_own
        yield Literal(atom, place, kind.ranked_in is not None and k in kind.ranked_in.own(rule))
    for k, atom in enumerate(rule.negative):
        if kind.begin != "via not" or k > kind.position:
            yield Literal(atom, Place.N)
        elif k < kind.position:
            yield Literal(atom, Place.N_OR_Y)


class _Legs:
    """Makes the legs of a body from bindings of `start` at a place, which is None if they may be anywhere.

    `last` has the variables at the end, by default the variables of the head; `carried` has the variables that no
    literal binds. With `spread` all tasks have all the bindings; it stays so if all relations are replicated.
    """

    def __init__(
        self,
        rule: Rule,
        start: tuple[str, ...],
        place: Target | None,
        literals: Sequence[Literal],
        builtins: Sequence[Builtin],
        views: Views,
        last: tuple[str, ...] | None,
        carried: tuple[str, ...],
        *,
        spread: bool = False,
    ):
        self.place, self.views, self.spread = place, views, spread
        self.held = dict.fromkeys(start)
        self.literals, self.builtins = list(literals), cheapest_first(builtins)
        self.legs = [Leg(None, start=start)]
        #: Columns of predicates by which there are no copies yet.
        self.asked: list[tuple[str, int]] = []
        self._make()
        self._last, self._in_order = {*(rule.head.variables() if last is None else last), *carried}, last

    def _make(self) -> None:
        while True:
            while ready := next((b for b in self.builtins if is_ready(b, self.held) and not self._waits(b)), None):
                self.builtins.remove(ready)
                self.legs[-1].builtins.append(ready)
                self.held.update(dict.fromkeys(ready.variables()))
            if not self.literals:
                assert not self.builtins, "an unsafe rule: nothing binds the variables that are left"
                return
            at = next((k for k, x in enumerate(self.literals) if self._is_here(x)), None)
            if at is None and self.spread:
                at = self._at_home()
                if at is None:
                    return
            self._match(self._travel() if at is None else at)

    def _at_home(self) -> int | None:
        """Return a literal of which each task matches the facts at home with bindings that all tasks have."""
        for k, literal in enumerate(self.literals):
            terms = literal.atom.terms
            if not literal.negated and literal.atom.predicate not in self.views.replicated and terms:
                first = terms[0]
                if isinstance(first, Variable) and any(map(self._is_known, terms)):
                    leg, self.spread = self.legs[-1], False
                    leg.home, leg.spread, self.place = first.name, literal.atom.predicate, Target.of(first)
                    return k
        return None

    @property
    def is_possible(self) -> bool:
        """Whether one task alone goes on with each binding, which is known by the variables at the end."""
        return not self.spread and (self.legs[-1].spread is None or self.legs[-1].home in self._last)

    def ends_at(self, place: str) -> bool:
        """Return whether the bindings at the end are at the place with a key."""
        return self.place is not None and self.place.key == place

    def _waits(self, builtin: Builtin) -> bool:
        """Return whether a generator waits for literals that do not need its values: they may guard it."""
        if effort(builtin) < GENERATOR:
            return False
        new = [v for v in builtin.variables() if v not in self.held]
        guards = (x.atom for x in self.literals if not x.negated or self._is_bound(x))
        return any(not set(new).intersection(atom.variables()) for atom in guards)

    def _match(self, at: int) -> None:
        literal = self.literals.pop(at)
        self.legs[-1].literals.append(literal)
        self.held.update(dict.fromkeys(literal.atom.variables()))
        if self.legs[-1].route is EVERYWHERE:
            # Alone in its leg: what follows is looked up where the facts of this atom are at home.
            first = literal.atom.terms[0]
            assert isinstance(first, Variable), "an atom with an owner, looked for everywhere"
            self.legs[-1].home, self.place = first.name, Target.of(first)
            self.legs.append(Leg(None))

    def _is_bound(self, literal: Literal) -> bool:
        return all(v in self.held for v in literal.atom.variables())

    def _is_known(self, term: CoreTerm) -> bool:
        return isinstance(term, Constant) or term.name in self.held

    def _has(self, predicate: str, column: int) -> bool:
        return self.views.has(predicate, column) or (predicate, column) in self.asked

    def _is_here(self, literal: Literal) -> bool:
        """Return whether all facts that a literal may match are where the bindings are."""
        if literal.negated and not self._is_bound(literal):
            return False
        atom = literal.atom
        if atom.predicate in self.views.replicated and (not atom.terms or any(map(self._is_known, atom.terms))):
            return True
        return self.place is not None and self._is_at(atom, self.place)

    def _is_at(self, atom: Atom, place: Target) -> bool:
        targets = self._targets(atom)
        return any(target.key == place.key and self._has(atom.predicate, column) for column, target in targets)

    def _targets(self, atom: Atom) -> Iterator[tuple[int, Target]]:
        """Yield the owners of the values that an atom can be looked up by, each with its column."""
        for column in range(max(1, len(atom.terms))):
            if not atom.terms or self._is_known(atom.terms[column]):
                yield column, Target.of_atom(atom, column)

    def _travel(self) -> int:
        """Begin another leg where most can be matched, and return which literal is matched first."""
        best: tuple[tuple[bool, bool, bool, int, int, int], Target] | None = None
        for k, literal in enumerate(self.literals):
            if literal.negated and not self._is_bound(literal):
                continue
            for column, target in self._targets(literal.atom):
                has = self._has(literal.atom.predicate, column)
                if has or self.views.may_grow:
                    together = sum(self._is_at(x.atom, target) for x in self.literals)
                    varies = not isinstance(target.term, Constant)
                    worth = (not literal.negated, varies, has, together, -k, -column)
                    if best is None or worth > best[0]:
                        best = worth, target
        if best is None:
            k = next((k for k, x in enumerate(self.literals) if not x.negated), 0)
            if self.literals[k].atom.predicate not in self.views.replicated:
                self.legs.append(Leg(EVERYWHERE))
            return k
        (_, _, has, _, k, column), self.place = best
        if not has:
            self.asked.append((self.literals[-k].atom.predicate, -column))
        self.legs.append(Leg(self.place))
        return -k

    def with_variables(self) -> list[Leg]:
        """Return the legs with the variables that bindings have at the beginning and at the end of each."""
        after: list[set[str]] = []
        needed = set(self._last)
        for leg in reversed(self.legs):
            after.append(needed | ({leg.home} if leg.home else set()))
            needed.update(v for x in leg.literals for v in x.atom.variables())
            needed.update(v for b in leg.builtins for v in b.variables())
            if leg.route is not None and isinstance(leg.route.term, Variable):
                needed.add(leg.route.term.name)
        bound = dict.fromkeys(self.legs[0].start)
        for leg, following, wanted in zip(self.legs, [*self.legs[1:], None], reversed(after), strict=True):
            for literal in leg.literals:
                bound.update(dict.fromkeys(literal.atom.variables()))
            for builtin in leg.builtins:
                bound.update(dict.fromkeys(builtin.variables()))
            leg.needed = self._in_order
            if following is not None:
                leg.needed = following.start = tuple(v for v in bound if v in wanted)
        return self.legs
