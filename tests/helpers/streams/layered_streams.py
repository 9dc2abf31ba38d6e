"""Random programs with equality that negate, compare, compute and aggregate, and what their well-founded model says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TypeVar

from tests.helpers.streams.equality_streams import (
    VARIABLES,
    EqualityCase,
    Triple,
    assert_seen,
    atom_text,
    iri,
    opened,
    random_updates,
)
from upheld.algebra.sets import FactSet, derive, settle
from upheld.base.errors import ProgramError
from upheld.compiler.compile import compile_program
from upheld.compiler.equality.equality import with_equality
from upheld.engines.reference.engine import ReferenceEngine
from upheld.engines.reference.sets import Facts
from upheld.language.core import Core

T = TypeVar("T")

#: What programs and updates are refused by.
REFUSED = {"rewrite-positive-only", "negation-in-recursion", "aggregate-in-recursion"}

#: A condition that recovers from a part without a value.
LAZY = 'FILTER(isLiteral(?1) && STRLEN(?1) > 9 || COALESCE(LCASE(?1), UCASE(STR(?2))) IN (?2, "http://e/a"))'


def random_layered_case(seed: int, updates: int = 4) -> EqualityCase:
    """Return rules of which some negate, compare or compute, with facts that merge and split classes."""
    r = Random(seed)
    names = list("abcd")[: r.randint(3, 4)]
    odd = r.random() < 0.3
    constants = [*names, *(["R", "T", "S", "U"] if odd else [])]

    def term() -> str:
        return r.choice(VARIABLES) if r.random() < 0.85 else iri(r.choice(constants))

    rules = []
    for number in range(r.randint(2, 4)):
        body = [(term(), iri(r.choice("RRTTSU=")), term()) for _ in range(r.randint(1, 2))]
        variables = [t for atom in body for t in atom if t in VARIABLES]
        literals = [atom_text(atom) for atom in body]

        def pick(variables: list[str] = variables) -> str:
            return r.choice(variables) if variables and r.random() < 0.85 else iri(r.choice(constants))

        if number == 0:
            head = (pick(), iri("="), pick())
        else:
            head = (pick(), iri(r.choice("TSU")), pick())
            if r.random() < 0.6:
                literals.append(f"NOT {atom_text((pick(), iri(r.choice('RTSU=')), pick()))}")
            if variables and r.random() < 0.4:
                literals.append(r.choice(["FILTER(?1 != ?2)", "FILTER(?1 = ?2)", "FILTER(STR(?1) < STR(?2))", LAZY]))
                literals[-1] = literals[-1].replace("?1", r.choice(variables)).replace("?2", r.choice(variables))
            if variables and r.random() < 0.25:
                literals.append(f"BIND(STR({r.choice(variables)}) AS ?t)")
                head = (head[0], head[1], "?t")
        rules.append(f"{atom_text(head)} :- {', '.join(literals)}.")

    def fact() -> Triple:
        value = iri(r.choice(constants)) if r.random() < 0.8 else f'"http://e/{r.choice(names)}"'
        return iri(r.choice(constants)), iri(r.choice("RRTTSU==")), value

    facts = {fact() for _ in range(r.randint(2, 8))}
    return EqualityCase("\n".join(rules), facts, random_updates(r, fact, facts, updates))


#: Rules with bodies of their own: F is a function, ?1 and ?2 are the variables of an atom, and MORE is another literal.
LOCAL_BODIES = (
    "[?1, :N, ?n] :- AGGREGATE([?1, :R, ?2], MORE ON ?1 BIND F(?2) AS ?n).",
    "[?1, :N, ?n] :- AGGREGATE([?1, :R, ?2] ON ?1 ?2 BIND F(?2) AS ?n), [?1, :T, ?z], MORE.",
    "[:a, :N, ?n] :- AGGREGATE([?1, :R, ?2], MORE BIND F(?1) AS ?n).",
    "[?1, :N, ?m] :- AGGREGATE([?1, :R, ?2], [?2, :T, ?z] ON ?1 BIND MAX_ARGMAX(?z, ?2) AS ?m).",
    "[?1, :N, ?n] :- AGGREGATE([?1, owl:sameAs, ?2], MORE ON ?1 BIND COUNT(?2) AS ?n).",
    "c(?1, ?2) :- [?1, :R, ?2], MORE. [?1, :N, ?n] :- AGGREGATE(c(?1, ?2) ON ?1 BIND F(?2) AS ?n).",
    "[?1, :N, ?n] :- AGGREGATE([?1, :R, ?2] ON ?1 BIND F(?2) AS ?n), NOT [?n, :T, ?1].",
    "[?1, :M, ?2] :- [?1, :R, ?2], NOT AGGREGATE([?1, :R, ?2], MORE ON ?1 BIND F(?2) AS ?2).",
    "[?1, :M, ?m] :- AGGREGATE(AGGREGATE([?1, :R, ?2], MORE ON ?1 ?2 BIND COUNT(*) AS ?n) ON ?1 BIND F(?n) AS ?m).",
    "[?1, :M, ?2] :- [?1, :R, ?2], NOT EXISTS ?z, ?y IN ([?2, :T, ?z], [?1, :T, ?y], MORE).",
    "[?1, :R, ?2] :- VALUES (?1 ?2) { (:a :b) (:b :c) }.",
    "[?1, :M, ?2] :- [?1, :R, ?2], MORE, NOT EXISTS ?z IN ([?1, :T, ?z], FILTER(?1 != ?z)), [?1, :R, ?y].",
)
LITERALS = (
    "VALUES (?1 ?y) { (:a :b) (:b :a) (:c :c) }",
    "FILTER(?1 != ?2)",
    "FILTER(STR(?1) <= STR(?2))",
    "FILTER(?1 != :a)",
    "NOT [?2, :T, ?1]",
    "[?2, :T, ?y]",
    "[?1, owl:sameAs, ?y], FILTER(?1 != ?y)",
)
FUNCTIONS = ("COUNT(", "SUM(", "MIN(", "MAX(", "COUNT(DISTINCT ")


def random_local_case(seed: int, updates: int = 4) -> EqualityCase:
    """Return a layered case with rules that aggregate or negate bodies of their own, and sometimes one above them."""
    case, r = random_layered_case(seed, updates), Random(seed)
    rules = ["PREFIX : <http://e/>", case.text]
    for text in r.sample(LOCAL_BODIES, r.choice((1, 1, 2))):
        first, second = r.sample(("?u", "?v"), 2)
        text = text.replace("MORE", r.choice(LITERALS)).replace("F(", r.choice(FUNCTIONS))
        rules.append(text.replace("?1", first).replace("?2", second))
    if r.random() < 0.4:
        rules.append(r.choice(("[?x, :P, ?n] :- [?x, :N, ?n], NOT [?x, :M, ?n].", "[?n, :P, ?x] :- [?x, :M, ?n].")))
    if r.random() < 0.3:
        rules.append("[?x, :Q, ?n] :- AGGREGATE([?x, ?p, ?y], FILTER(?p = :N || ?p = :M) ON ?x BIND SUM(?y) AS ?n).")
    return EqualityCase("\n".join(rules), case.facts, case.updates)


@dataclass
class Outcome:
    """How many updates were made and how many refused."""

    made: int = 0
    refused: int = 0


def check_layered_stream(case: EqualityCase, engine: str, algorithm: str = "adaptive") -> Outcome:
    """Make the updates of a case, and compare what users see with the well-founded model after each."""
    outcome = Outcome()
    explicit = set(case.facts)
    m = unless_refused(lambda: opened(case, "rewrite", engine, algorithm))
    if m is None:
        return outcome
    J = well_founded(case, explicit)
    assert m["triple"].to_set() == J
    for deleted, inserted in case.updates:
        change = unless_refused(partial(m.update, delete={"triple": deleted}, insert={"triple": inserted}))
        if change is None:
            assert m["triple"].to_set() == J
            outcome.refused += 1
            continue
        explicit = (explicit - deleted) | inserted
        before, J = J, well_founded(case, explicit)
        assert_seen(m, change, explicit, before, J)
        assert m.query("[?x, ?p, ?y]").to_set() == J
        outcome.made += 1
    return outcome


def unless_refused(make: Callable[[], T]) -> T | None:
    """Return what is made, or nothing if it is refused as not stratified."""
    try:
        return make()
    except ProgramError as error:
        if not REFUSED.issuperset(error.slugs):
            raise
        return None


def well_founded(case: EqualityCase, explicit: set[Triple]) -> set[Triple]:
    """Return what holds under the axioms by the well-founded semantics, which must leave nothing undecided.

    By the alternating fixpoint: what is negated is what the round before did not derive, and what is aggregated is what
    it did. It knows nothing of strata.
    """
    core = with_equality(compile_program(case.program, {}).core, "axioms")
    engine = ReferenceEngine()
    E = engine.load("triple", explicit)
    before: set[object] = set()
    J: FactSet = engine.nothing
    while True:
        again = _least_model(core, E, J)
        if (found := set(_facts(again))) == set(_facts(J)):
            return {row for name, row in found if name == "triple"}  # type: ignore[misc]
        assert found != before, "what was accepted leaves facts undecided"
        before, J = set(_facts(J)), again


def _least_model(core: Core, E: FactSet, N: FactSet) -> FactSet:
    """Return the least model where N decides what is negated and aggregated."""
    I = E.engine.named("I")
    nothing = E.engine.nothing
    values = [E.engine.aggregate(a).changed(nothing, N, nothing, N)[1] for a in core.aggregations]
    found = settle(E | derive([rule for rule in core.rules if not rule.positive], E, N))
    for come in values:
        found = settle(found | come)
    while delta := settle(found - I):
        I |= delta
        found = derive(core.rules, I, N, via=delta)
    return I


def _facts(facts: FactSet) -> Facts:
    assert isinstance(facts, Facts)
    return facts
