"""Whether explanations are true and shortest: checked against the rules, and against naive evaluation by rounds."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given

from tests.helpers.programs.strategies import Case, cases, random_case, random_typed_case
from tests.helpers.sizes import examples, usually
from upheld.algebra.instances import evaluate, evaluate_builtin, unify
from upheld.algebra.sets import derive, settle, supports
from upheld.base.errors import EvaluationError
from upheld.engines import ENGINES
from upheld.engines.reference.engine import ReferenceEngine
from upheld.engines.reference.sets import Facts
from upheld.explain import proof
from upheld.explain.explanation import Explanation, Literal, Proof
from upheld.language.ast import Constant, Variable
from upheld.language.core import Apply, Atom, Builtin, Expression, Fact, Rule
from upheld.language.types.functors import Undefined
from upheld.language.values import Value
from upheld.materialisation.build import materialise
from upheld.materialisation.materialisation import Materialisation


@pytest.fixture(params=ENGINES)
def engine(request) -> str:
    return request.param


def matches(atom: Atom, facts: set[Fact]) -> bool:
    """Return whether some fact is an instance of an atom with variables."""
    return any(predicate == atom.predicate and unify(atom, row, {}) is not None for predicate, row in facts)


def is_true(builtin: Builtin) -> bool:
    left, right = builtin.arguments
    for value, generator in ((left, right), (right, left)):
        if isinstance(generator, Apply) and generator.functor.generates:
            return evaluate(value, {}) in list(
                generator.functor.evaluate(*(evaluate(a, {}) for a in generator.arguments))
            )
    return bool(list(evaluate_builtin(builtin, {})))


def ground(atom: Atom) -> Fact:
    assert all(isinstance(t, Constant) for t in atom.terms)
    return atom.predicate, tuple(t.value for t in atom.terms)


def terms(rule: Rule) -> Iterator[Expression]:
    """Yield all terms of a rule, from left to right."""
    pending: list[Expression] = [t for a in (rule.head, *rule.positive, *rule.negative) for t in a.terms]
    pending += [t for b in rule.builtins for t in b.arguments]
    while pending:
        term = pending.pop()
        yield term
        if isinstance(term, Apply):
            pending += term.arguments


def check_instance(rule: Rule, instance: Rule) -> None:
    """An instance has the same constants and functors as its rule, and one value for each variable."""
    assert [a.predicate for a in (rule.head, *rule.atoms)] == [a.predicate for a in (instance.head, *instance.atoms)]
    values: dict[str, Expression] = {}
    for term, value in zip(terms(rule), terms(instance), strict=True):
        match term:
            case Variable(name=name):
                assert values.setdefault(name, value) == value or value.value != value.value
            case Constant():
                assert value.value == term.value or term.value != term.value
            case Apply():
                assert isinstance(value, Apply) and value.functor is term.functor


def check_proof(m: Materialisation, explanation: Explanation) -> Proof:
    """Each step is an instance of a rule over facts that hold; premises come later; leaves are explicit."""
    facts, proof = m.facts(), explanation.proof
    assert proof is not None
    visible = set(m.relations)
    assert proof.steps[0].fact == explanation.fact
    assert len({s.fact for s in proof.steps}) == len(proof.steps)
    used = {p for s in proof.steps for p in s.premises}
    assert used == set(range(1, len(proof.steps)))
    for i, step in enumerate(proof.steps):
        if step.rule is None:
            assert step.fact[1] in m.explicit(step.fact[0])
            continue
        assert step.instance is not None
        assert step.rule.span in {rule.span for rule in m._core.rules}
        assert visible.issuperset(a.predicate for a in (step.rule.head, *step.rule.atoms))
        check_instance(step.rule, step.instance)
        assert ground(step.instance.head) == step.fact
        assert [ground(a) for a in step.instance.positive] == [proof.steps[p].fact for p in step.premises]
        assert all(p > i for p in step.premises)
        assert all(proof.steps[p].fact in facts for p in step.premises)
        assert not any(matches(a, facts) for a in step.instance.negative)
        assert all(map(is_true, step.instance.builtins))
    return proof


def holds(literal: Literal, facts: set[Fact]) -> bool:
    if isinstance(literal.of, Builtin):
        try:
            return is_true(literal.of)
        except Undefined:
            return False
    return matches(literal.of, facts) != literal.negated


def check_failures(m: Materialisation, explanation: Explanation) -> None:
    """Each rule whose head the fact is an instance of is there, with literals that hold and one that does not."""
    predicate, row = explanation.fact
    facts = m.facts()
    could = [r for r in m._core.rules if r.head.predicate == predicate and unify(r.head, row, {}) is not None]
    assert [f.rule.span for f in explanation.failures] == [rule.span for rule in could]
    for failure in explanation.failures:
        assert set(m.relations).issuperset(a.predicate for a in (failure.rule.head, *failure.rule.atoms))
        assert all(holds(literal, facts) for literal in failure.holds)
        assert not holds(failure.fails, facts)
        assert not any(v.startswith("_$") or v.startswith("$") for v in failure.binding)


class Naive:
    """Heights and sizes by the definition, on the reference engine."""

    def __init__(self, m: Materialisation):
        core = m._core
        engine = ReferenceEngine()
        E, I = (
            Facts(engine, ((p, row) for p in core.predicates for row in facts.rows(p)))
            for facts in (m._state.E, m._state.I)
        )
        hidden = [r for r in core.rules if core.predicates[r.head.predicate].hidden]
        visible = [r for r in core.rules if r not in hidden]
        self.height: dict[Fact, int] = dict.fromkeys(E, 0)
        known = E | E
        height = 0
        while True:
            while new := settle(derive(hidden, known, I) - known):
                known |= new
                self.height |= dict.fromkeys(new, height)
            height += 1
            new = settle(derive(visible, known, I) - known)
            if not new:
                break
            known |= new
            self.height |= dict.fromkeys(new, height)
        self.size: dict[Fact, int] = dict.fromkeys(E, 1)
        for fact in sorted(set(self.height) - set(E), key=lambda f: (self.height[f], core.predicates[f[0]].hidden)):
            own = 0 if core.predicates[fact[0]].hidden else 1
            self.size[fact] = min(
                own + sum(self.size[b] for b in instance.body)
                for instance in supports(core.rules, Facts(engine, [fact]), I, I)
                if all(self.height[b] <= self.height[fact] - own for b in instance.body)
            )


def size(proof: Proof) -> int:
    """Return the number of facts of a proof, each as often as it is used."""
    sizes = [1] * len(proof.steps)
    for i in range(len(sizes) - 1, -1, -1):
        sizes[i] += sum(sizes[p] for p in proof.steps[i].premises)
    return sizes[0]


def explain_some(case: Case, engine: str) -> list[Explanation]:
    """Explain some facts and some that are none, before and after updates; return explanations that were checked."""
    try:
        m = materialise(case.program, case.facts, engine=engine)
        found = explain_present(m)
        for update in case.updates:
            m.update(delete=update.deletions, insert=update.insertions)
            found += explain_present(m, 4)
        return found
    except EvaluationError:
        return []


def explain_present(m: Materialisation, facts: int = 12) -> list[Explanation]:
    r = Random(1)
    there = sorted(m.facts(), key=repr)
    values: dict[str, list[Value]] = {}
    for predicate, row in there:
        for type, value in zip(m._core.predicates[predicate].types, row):
            values.setdefault(type, []).append(value)
    found = [m.explain(*fact) for fact in r.sample(there, min(len(there), facts))]
    for explanation in found:
        check_proof(m, explanation)
    for name in m.relations:
        types = m._core.predicates[name].types
        if all(t in values for t in types):
            row = tuple(r.choice(values[t]) for t in types)
            explanation = m.explain(name, row)
            assert explanation.holds == ((name, row) in there)
            if not explanation.holds:
                check_failures(m, explanation)
            found.append(explanation)
    return found


def explain_on_all_engines(case: Case) -> None:
    """Explanations are right, and the same on every engine."""
    first, *others = (explain_some(case, engine) for engine in ENGINES)
    for other in others:
        assert [e.to_dict() for e in first] == [e.to_dict() for e in other]


@examples(40)
@given(case=cases())
def test_explanations(case):
    explain_on_all_engines(case)


@pytest.mark.parametrize("seed", range(40))
def test_explanations_of_every_type(seed):
    explain_on_all_engines(random_typed_case(Random(seed)))


@pytest.mark.parametrize("seed", range(15))
def test_explanations_after_updates(seed):
    explain_on_all_engines(random_case(Random(seed), updates=4))


def check_shortest(m: Materialisation, r: Random, facts: int) -> None:
    """No proof is lower, and fact by fact none of that height has fewer facts."""
    naive = Naive(m)
    derived = sorted(fact for fact in m.facts() if naive.height[fact])
    for fact in r.sample(derived, min(len(derived), facts)):
        proof = check_proof(m, m.explain(*fact))
        assert proof.height == naive.height[fact]
        assert size(proof) == naive.size[fact]


@pytest.mark.parametrize("seed", range(40))
def test_no_proof_is_shorter(seed, engine):
    case = random_case(Random(seed))
    check_shortest(materialise(case.program, case.facts, engine=engine), Random(seed), 15)


#: Facts that need one or two others: with few of each, proofs are high, and a fact has low and high ones. Those of `g`
#: lean on a part of their body of their own, which may itself be high.
NEEDS = """\
.decl base(x:number)
.decl one(x:number, y:number)
.decl two(x:number, y:number, z:number)
.decl far(x:number)
.decl d(x:number)
.decl g(x:number)
d(x) :- base(x).
d(x) :- one(x, y), d(y).
d(x) :- two(x, y, z), d(y), d(z).
g(x) :- one(x, y), d(y), d(z), far(z).
g(x) :- two(x, y, z), g(y), g(z).
d(x) :- two(_, _, x), g(x).
"""


def needs(r: Random) -> dict[str, list[tuple[int, ...]]]:
    n = r.randint(6, 60)

    def rows(arity: int, count: float) -> list[tuple[int, ...]]:
        return [tuple(r.randrange(n) for _ in range(arity)) for _ in range(round(count))]

    thin, wide = r.uniform(0.5, 1.2), r.uniform(0.3, 2)
    return {"base": rows(1, 2), "one": rows(2, thin * n), "two": rows(3, wide * n), "far": rows(1, 2), "g": rows(1, 1)}


@pytest.mark.parametrize("little", [0, proof.LITTLE])
@pytest.mark.parametrize("seed", range(65, usually(73, 90)))
def test_no_high_proof_is_shorter(seed, little, engine, monkeypatch):
    """The same for proofs of many levels, looked for from both ends or mostly from above."""
    monkeypatch.setattr(proof, "LITTLE", little)
    check_shortest(materialise(NEEDS, needs(Random(seed)), engine=engine), Random(seed), 8)
