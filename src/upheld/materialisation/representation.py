"""How a materialisation holds facts: as they are, with equivalences by classes, or with representatives of classes.

Each representation has the same methods. They translate between the facts of a state and the facts that users see.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from upheld.algebra.engine import Engine, Remote
from upheld.algebra.sets import FactSet, derive, settle
from upheld.base.errors import Problem, UsageError, quote
from upheld.base.statistics import phase
from upheld.compiler.equality.equality import Equality, Tested, tests_apart
from upheld.compiler.strata import Stratification, stratify
from upheld.facts.columns import Row
from upheld.language.core import Core, Fact, Rule
from upheld.language.values import Value
from upheld.maintain.equality.layers import rewriting
from upheld.maintain.registry import Algorithm, algorithm_named
from upheld.maintain.update import Outcome, State, Update, step
from upheld.materialisation.persistence.bookkeeping import Reopened

if TYPE_CHECKING:
    from upheld.compiler.queries import Query
    from upheld.explain import Explainer, Explanation

#: The algorithms that have a version for rewritten constants.
REWRITING = ("adaptive", "bf", "rematerialise")

ByName = Mapping[str, Iterable[Row]]


class Plain:
    """The facts of the state are the facts that users see."""

    #: Whether rules may be decomposed.
    decomposes = True
    #: Whether the bookkeeping is saved with the facts.
    saves_bookkeeping = True
    #: Whether rows that an engine has changed are what users see.
    shows_rows = True

    def __init__(self, engine: Engine, core: Core, strata: Stratification, E: FactSet, equality: str):
        self.engine, self.E, self._equality = engine, E, equality

    @staticmethod
    def algorithm(name: str) -> Algorithm:
        """Return an algorithm that maintains this representation."""
        return algorithm_named(name)

    def materialise(self, algorithm: Algorithm, strata: Stratification, reopened: Reopened | None) -> State:
        """Return the materialisation of E; `reopened` has what was derived before, if it was saved."""
        state = reopened.open(self.engine, algorithm, self.E, strata) if reopened else None
        if reopened and state:
            reused = f"took over the bookkeeping of version {reopened.version}"
            self.engine.meter.statistics.choices.append(reused)
        return state or algorithm.materialise(self.engine, self.E, strata)

    def convert(self, algorithm: Algorithm, state: State) -> State:
        """Return the state with the bookkeeping of an algorithm."""
        if type(state.bookkeeping) is algorithm.bookkeeping:
            return state
        return phase("conversion")(algorithm.convert)(state)

    def update(self, algorithm: Algorithm) -> Update:
        """Return the function by which an algorithm makes updates."""
        return algorithm.update

    def make(
        self, algorithm: Algorithm, state: State, E_minus: FactSet, E_plus: FactSet, remote: Remote | None
    ) -> Outcome:
        """Bring a state up to date by an algorithm; `remote` is the engine if its facts are in other processes."""
        return algorithm.make(state, E_minus, E_plus, remote)

    def layer(self, strata: Stratification, rule: Rule | None) -> tuple[int, int]:
        """Return the stratum or layer of a rule at work, and how many there are.

        The rules of a query are in no stratum of the program, and read the facts of all.
        """
        of = len(strata)
        return 1 if rule is None else strata.level(rule.head) if strata.has(rule.head) else of, of

    # -- reading -------------------------------------------------------------------------------------------------------

    def is_live(self, name: str) -> bool:
        """Return whether the rows of a relation are the rows that the state has."""
        return True

    def shown(self, state: State) -> FactSet:
        """Return the facts of the state that stand for what users see."""
        return state.I

    def rows(self, state: State, name: str) -> Iterable[Row]:
        """Return the rows of a relation."""
        return self.shown(state).rows(name)

    def derived_by(self, rule: Rule, state: State) -> int | None:
        """Return how many facts a rule derives in one step, if the state has them one by one."""
        return settle(derive((rule,), state.I, state.I)).count()

    def changed(self, state: State, outcome: Outcome) -> tuple[ByName, ByName]:
        """Return the rows that disappeared and appeared, by relation."""
        deleted, inserted = outcome.deleted, outcome.inserted
        return {p: deleted.rows(p) for p in deleted.predicates()}, {p: inserted.rows(p) for p in inserted.predicates()}

    def representative(self, constant: str) -> str:
        """Return the constant that stands for one in the state."""
        return constant

    def equals(self, state: State, constant: Value) -> list[Value]:
        """Return the constants that `owl:sameAs` makes equal to one, itself among them."""
        if self._equality == "off":
            return [constant]
        equality = Equality()
        rows = list(state.I.rows(equality.predicate))
        others = {row[2] for row in rows if row[0] == constant and row[1] == equality.value}
        return sorted({constant, *others}, key=equality.order)

    def equivalent(self, state: State, relation: str, value: Value) -> list[Value]:
        """Return the values that an equivalence relates to one."""
        return [row[1] for row in state.I.rows(relation) if row[0] == value]

    # -- queries and explanations --------------------------------------------------------------------------------------

    def asked(self, query: Query) -> tuple[Query, Sequence[Tested]]:
        """Return a query about the facts of the state, and the tests that follow it on the facts that users see."""
        return query, ()

    def answers(self, bindings: FactSet, name: str, tested: Sequence[Tested]) -> Iterable[Row]:
        """Return the answers that users see, from those on the facts of the state."""
        return bindings.rows(name)

    def explain(self, explainer: Explainer, core: Core, state: State, goal: Fact) -> Explanation:
        """Return why a fact holds, or why it does not."""
        return explainer.explain(goal, state.E, state.I)


class ByClasses(Plain):
    """Equivalences are held by classes, and all other relations as they are."""

    saves_bookkeeping = False
    shows_rows = False

    def __init__(self, engine: Engine, core: Core, strata: Stratification, E: FactSet, equality: str):
        super().__init__(engine, core, strata, E, equality)
        self._classings = {classing.relation: classing for classing in core.classings}

    def is_live(self, name: str) -> bool:
        return name not in self._classings

    def derived_by(self, rule: Rule, state: State) -> int | None:
        return None

    def rows(self, state: State, name: str) -> Iterable[Row]:
        if name in self._classings:
            return self.engine.equivalence(self._classings[name]).pairs(state.I)
        return super().rows(state, name)

    def changed(self, state: State, outcome: Outcome) -> tuple[ByName, ByName]:
        less, more = map(dict, super().changed(state, outcome))
        for relation, classing in self._classings.items():
            equivalence = self.engine.equivalence(classing)
            less[relation], more[relation] = equivalence.changed(outcome.deleted, outcome.inserted, state.I)
        return less, more

    def equivalent(self, state: State, relation: str, value: Value) -> list[Value]:
        if relation not in self._classings:
            return super().equivalent(state, relation, value)
        return self.engine.equivalence(self._classings[relation]).class_of(value, state.I)

    def explain(self, explainer: Explainer, core: Core, state: State, goal: Fact) -> Explanation:
        return explainer.explain_classes(self.engine, goal, core, stratify(core), state.E, state.I)


class Rewritten(Plain):
    """One constant stands for each class of equal constants: the state has the facts of representatives."""

    decomposes = False
    saves_bookkeeping = False
    shows_rows = False

    def __init__(self, engine: Engine, core: Core, strata: Stratification, E: FactSet, equality: str):
        super().__init__(engine, core, strata, E, equality)
        self.rewriting = rewriting(engine, core, strata, E, engine.named("I"))

    @staticmethod
    def algorithm(name: str) -> Algorithm:
        chosen = algorithm_named(name)
        if name not in REWRITING:
            raise UsageError(
                Problem(
                    "rewrite-algorithm",
                    f"{quote(name)} cannot maintain facts whose equal constants are rewritten",
                    note="the algorithms for `equality=rewrite` are `adaptive`, `bf` (B/F with equality), and "
                    "`rematerialise`, which starts from scratch",
                    hint="choose one of these, or use `equality=axioms`, which works with every algorithm",
                )
            )
        return chosen

    def materialise(self, algorithm: Algorithm, strata: Stratification, reopened: Reopened | None) -> State:
        self.rewriting.convert(algorithm.name)
        self.rewriting.materialise()
        return State(self.engine, self.E, self.rewriting.I, strata, beside=self.rewriting.sets())

    def convert(self, algorithm: Algorithm, state: State) -> State:
        phase("conversion")(self.rewriting.convert)(algorithm.name)
        return state

    def update(self, algorithm: Algorithm) -> Update:
        rewriting = self.rewriting
        return {"adaptive": rewriting.update, "bf": rewriting.bf, "rematerialise": rewriting.rematerialise}[
            algorithm.name
        ]

    def make(
        self, algorithm: Algorithm, state: State, E_minus: FactSet, E_plus: FactSet, remote: Remote | None
    ) -> Outcome:
        return step(state, self.update(algorithm), E_minus, E_plus)

    def layer(self, strata: Stratification, rule: Rule | None) -> tuple[int, int]:
        return self.rewriting.layer(rule)

    def is_live(self, name: str) -> bool:
        return False

    def shown(self, state: State) -> FactSet:
        return self.rewriting.shown()

    def derived_by(self, rule: Rule, state: State) -> int | None:
        return None

    def rows(self, state: State, name: str) -> Iterable[Row]:
        return self.rewriting.pi.expanded(self.shown(state), name)

    def changed(self, state: State, outcome: Outcome) -> tuple[ByName, ByName]:
        return self.rewriting.changed(outcome.deleted, outcome.inserted)

    def representative(self, constant: str) -> str:
        return str(self.rewriting.pi.representatives([constant])[0])

    def equals(self, state: State, constant: Value) -> list[Value]:
        return list(self.rewriting.pi.class_of(constant))

    def asked(self, query: Query) -> tuple[Query, Sequence[Tested]]:
        core, tested = tests_apart(query.core)
        return replace(query, core=self.rewriting.represented(core)), tested

    def answers(self, bindings: FactSet, name: str, tested: Sequence[Tested]) -> Iterable[Row]:
        rows = self.rewriting.pi.expanded(bindings, name)
        return {*rows, *self._tested(bindings, name, tested)} if tested else rows

    def _tested(self, bindings: FactSet, answer: str, tested: Sequence[Tested]) -> Iterator[Row]:
        """Yield the answers of rules that compare or compute, by the constants that normal bindings stand for."""
        for rule in tested:
            name = rule.bindings.name
            seen = self.engine.load(name, self.rewriting.pi.expanded(bindings, name))
            yield from settle(derive((rule.test,), seen, seen)).rows(answer)

    def explain(self, explainer: Explainer, core: Core, state: State, goal: Fact) -> Explanation:
        from upheld.explain import Aggregates, Kept

        exact, aggregating = self.rewriting.exact()
        rules, aggregates = self.rewriting.rule_pairs(), Aggregates(aggregating) if aggregating else None
        normal = Kept(state.E, self.shown(state), self.rewriting.pi, rules, exact, aggregates)
        return explainer.explain_rewritten(goal, normal, self.rewriting.represented(core))


def representation_of(core: Core, equality: str) -> type[Plain]:
    """Return the representation of the facts of a program."""
    if core.classings:
        return ByClasses
    return Rewritten if equality == "rewrite" else Plain
