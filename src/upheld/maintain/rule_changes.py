"""Changes of the rules: what only removed rules derive goes, and what added rules derive comes.

E, I, E_minus, E_plus   as in `dred`
removed, added          rules that are only in the old program, or only in the new one
$removed, $added        guards: relations without columns, each with one fact while the rules that name it apply

A rule change is an update. Each removed rule gets the guard `$removed`, which is an explicit fact, and each added rule
the guard `$added`, which is not yet: so the materialisation is what it was. Then `$removed` is deleted and `$added`
inserted, by whatever algorithm: the join that these two facts drive considers the instances of the changed rules, and
maintenance goes on from there. Aggregates that come have a guard too: they may have no value on the facts of before.
After that the guards are taken out. A guard is in a lower stratum than the head, so counters, ranks and levels are the
same with and without it.

The strata in between belong to both programs together. Strata are not split again: the dependencies of removed rules
and aggregates stay (`Rules.past`), so that facts keep their stratum and their bookkeeping. Where an added rule makes
one stratum of several, derivations that were nonrecursive may become recursive; those strata are counted anew. If both
programs together have no stratification, the old rules go first and the new ones come in a second step.

Granular strata keep facts without rules apart from all others, which this relies on. With other strata, or where strata
must be split after all, the bookkeeping and the facts are begun anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from upheld.algebra.sets import FactSet, settle
from upheld.base.errors import ProgramError
from upheld.base.statistics import phase
from upheld.compiler.edits import changed
from upheld.compiler.strata import Stratification, Stratum, stratify, values_depend
from upheld.language.core import Atom, Core, Predicate, Rule
from upheld.maintain.seminaive import saturate, seminaive
from upheld.maintain.update import Outcome, State, Update, step

REMOVED = Predicate("$removed", (), (), hidden=True)
ADDED = Predicate("$added", (), (), hidden=True)
GUARDS = (REMOVED, ADDED)

#: Removed rules whose dependencies stay, at most: this many, and as many as there are rules.
SPARE = 64


@dataclass(frozen=True)
class Rules:
    """The rules of a program, and removed ones whose dependencies the strata still have, with all their relations."""

    core: Core
    past: tuple[Rule, ...] = ()
    predicates: Mapping[str, Predicate] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Step:
    """A step of a rule change.

    during, after   the strata with guarded rules, and with the new rules as they are
    guarded         rules of the old and the new program, each with its guarded version
    gone            relations whose values of aggregates go
    """

    during: Stratification
    after: Stratification
    guarded: Mapping[Rule, Rule]
    gone: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """The steps of a rule change, or the strata to start again with, and the rules after it."""

    steps: tuple[Step, ...] | Stratification
    rules: Rules
    #: The relations of the program before, and of that after: all that a change may speak of.
    predicates: Mapping[str, Predicate] = field(repr=False)

    def temporary(self) -> list[Rule]:
        """Return the rules that are not needed after the change: those with guards, and those that were removed."""
        there = set(self.rules.core.rules)
        return [rule for rule in self.new_rules() if rule not in there]

    def new_rules(self) -> list[Rule]:
        """Return the rules that are not needed if the change fails: those with guards, and those that were added."""
        steps = () if isinstance(self.steps, Stratification) else self.steps
        return [rule for s in steps for pair in s.guarded.items() for rule in pair]


# -- planning ----------------------------------------------------------------------------------------------------------


def plan(rules: Rules, core: Core, stratification: str, *, counted: bool) -> Plan:
    """Return the plan to change to the rules of another program; raise `ProgramError` if it cannot be stratified.

    Where derivations are `counted`, facts must keep their strata, or all are derived again.
    """
    removed, added = changed(rules.core.rules, core.rules)
    past = (*rules.past, *removed, *_dependencies_gone(rules.core, core))
    predicates = {**rules.core.predicates, **core.predicates, **{guard.name: guard for guard in GUARDS}}
    known = {**rules.predicates, **predicates}
    if len(past) <= SPARE + len(core.rules) and (stratification == "granular" or not counted):
        try:
            one = _step(rules.core, core, stratification, rules.past, known)
            return Plan((one,), Rules(core, past, known), predicates)
        except ProgramError:
            pass  # the new program may have a stratification by itself
    alone = stratify(core, stratification)
    if counted:
        return Plan(alone, Rules(core), predicates)
    between = replace(core, rules=tuple(rule for rule in core.rules if rule not in set(added)))
    between = replace(between, aggregations=tuple(a for a in core.aggregations if a in rules.core.aggregations))
    first = _step(rules.core, between, stratification, rules.past, known)
    return Plan((first, _step(between, core, stratification, (), known)), Rules(core), predicates)


def _step(before: Core, after: Core, stratification: str, past: Sequence[Rule], known: Mapping[str, Predicate]) -> Step:
    removed, added = changed(before.rules, after.rules)
    guarded = {**{r: _guarded(r, REMOVED) for r in removed}, **{r: _guarded(r, ADDED) for r in added}}
    staying = [rule for rule in after.rules if rule not in guarded]
    there = {a.relation for a in before.aggregations}
    stay = {a.relation for a in after.aggregations}
    together = replace(
        after,
        predicates=dict(known),
        rules=(*staying, *guarded.values()),
        # Values that go are not maintained any more: removed rules alone read them. Aggregates that come have a guard,
        # as added rules have.
        aggregations=tuple(a if a.relation in there else replace(a, guard=ADDED.name) for a in after.aggregations),
    )
    during = stratify(together, stratification, (*past, *_dependencies_gone(before, after)))
    gone = tuple(name for name in there if name not in stay)
    places = {**{guarded[r]: None for r in removed}, **{guarded[r]: r for r in added}}
    return Step(during, during.exchanged(places), guarded, gone)


def _dependencies_gone(before: Core, after: Core) -> list[Rule]:
    """Return the dependencies of aggregates that go, as rules that derive nothing."""
    stay = {a.relation for a in after.aggregations}
    return [values_depend(a, before) for a in before.aggregations if a.relation not in stay]


def _guarded(rule: Rule, guard: Predicate) -> Rule:
    return replace(rule, positive=(*rule.positive, Atom(guard.name, ())), part_of=rule.whole)


# -- carrying out ------------------------------------------------------------------------------------------------------


def change_rules(state: State, changes: Plan, update: Update, E_minus: FactSet, E_plus: FactSet) -> Outcome:
    """Bring E and I up to date with other rules, and with explicit facts to delete and to insert."""
    if isinstance(changes.steps, Stratification):
        return _start_again(state, changes.steps, E_minus, E_plus)
    nothing = state.engine.nothing
    outcome = Outcome(nothing, nothing)
    for number, one in enumerate(changes.steps):
        is_last = number + 1 == len(changes.steps)
        one_outcome = _carry_out(state, one, update, E_minus if is_last else nothing, E_plus if is_last else nothing)
        outcome = outcome.then(one_outcome)
    return outcome


def _start_again(state: State, strata: Stratification, E_minus: FactSet, E_plus: FactSet) -> Outcome:
    """Derive all facts again, with other rules, and begin the bookkeeping anew."""
    state.strata, state.bookkeeping = strata, type(state.bookkeeping).begin(state.engine)
    state.engine.meter.statistics.choices.append("started again since strata were split")

    def all_again(state: State, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
        E = state.engine.named("new E")
        E |= (state.E - E_minus) | E_plus
        return state.I, seminaive(state.engine, E, strata, state.bookkeeping)

    outcome = step(state, phase("materialisation")(all_again), E_minus, E_plus)
    state.bookkeeping.end()
    return outcome


def _carry_out(state: State, one: Step, update: Update, E_minus: FactSet, E_plus: FactSet) -> Outcome:
    engine, E, I = state.engine, state.E, state.I
    before, state.strata = state.strata, one.during
    on, off = engine.load(REMOVED.name, [()]), engine.load(ADDED.name, [()])
    E |= on
    I |= on
    if state.bookkeeping.kinds:
        _recount(state, before, one)
    else:
        state.bookkeeping = type(state.bookkeeping).begin(engine)  # marks are for the rules before
    outcome = step(state, update, settle(E_minus | on), settle(E_plus | off))
    state.strata = one.after
    E -= off
    I -= off
    for relation in one.gone:
        I -= engine.load(relation, I.rows(relation))
    for was, s in zip(one.during, one.after, strict=True):
        if was.rules and not s.rules:
            state.bookkeeping.leave(settle(s.out(E)), was)
    return outcome


@phase("conversion")
def _recount(state: State, before: Stratification, one: Step) -> None:
    """Bring the bookkeeping from the strata before to the strata during a step; the rules that apply are the same."""
    engine, E, during = state.engine, state.E, one.during
    became: dict[int, int] = {}
    sources: dict[int, set[int | None]] = {}
    for pattern, index in during.levels.items():
        level = before.levels.get(pattern)
        sources.setdefault(index, set()).add(level)
        if level is not None:
            became[level] = index
    merged = {index for index, levels in sources.items() if len(levels) > 1}
    again = _regrouped(before, one, merged)
    if again and not state.bookkeeping.forgets:
        state.bookkeeping = type(state.bookkeeping).begin(engine)
        seminaive(engine, E, during, state.bookkeeping)
        state.bookkeeping.end()
        return
    state.bookkeeping.renumber(became)
    counted = {s.index for s in before.with_rules}
    grown = {index for index, levels in sources.items() if not levels <= counted}
    without_rules = [s for s in before if not s.rules]
    for s in during.with_rules:
        if s.index in again:
            _count_again(state, s)
        elif s.index in grown:
            mine, new = settle(s.out(E)), engine.nothing
            for old in without_rules:
                new = settle(new | old.out(mine))
            state.bookkeeping.enter(new, s)


def _count_again(state: State, s: Stratum) -> None:
    """Count all derivations of a stratum, whose facts are known, and begin with none."""
    facts = settle(s.out(state.I))
    state.bookkeeping.forget(facts, s)
    below = state.engine.named("I below")
    below |= state.I - facts
    saturate(state.engine, s, state.E, below, state.bookkeeping)
    state.bookkeeping.end()


def _regrouped(before: Stratification, one: Step, among: set[int]) -> set[int]:
    """Return the strata, of some, with rules whose body atoms in the rule's own stratum are not the same as before."""
    again: set[int] = set()
    for s in before.with_rules:
        now = one.guarded.get(s.rules[0], s.rules[0])
        if one.during.level(now.head) not in among:
            continue
        for rule in s.rules:
            now = one.guarded.get(rule, rule)
            stratum = one.during.strata[one.during.level(now.head) - 1]
            if s.own(rule) != stratum.own(now):
                again.add(stratum.index)
    return again
