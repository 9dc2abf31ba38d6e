"""Engines agree on programs of every type: with each other, and with naive evaluation by the definition."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given, settings

from tests.helpers.programs.strategies import Case, random_typed_case, typed_cases
from upheld.base.errors import EvaluationError
from upheld.compiler.compile import compile_program
from upheld.compiler.strata import stratify
from upheld.engines import ENGINES
from upheld.language.ast import Constant, Variable
from upheld.language.core import Apply, Builtin, Expression, Fact, Rule
from upheld.language.syntax.files import read_text
from upheld.language.types.functors import Undefined, constraint
from upheld.language.values import NAN, Value
from upheld.materialisation.build import materialise
from upheld.materialisation.materialisation import Materialisation

Binding = dict[str, Value]


# -- naive evaluation -------------------------------------------------------------------------------------------------


def naive(case: Case, explicit: set[Fact]) -> set[Fact]:
    """Apply all rules of a stratum to all facts until nothing new comes."""
    core = compile_program(read_text(case.program)).core
    I = explicit | set(core.facts)
    for stratum in stratify(core):
        while new := {head for rule in stratum.rules for head in heads(rule, I)} - I:
            I |= new
    return {(p, row) for p, row in I if not core.predicates[p].hidden}


def heads(rule: Rule, I: set[Fact]) -> Iterator[Fact]:
    for binding in bindings(rule, I, 0, {}):
        for complete in with_builtins(list(rule.builtins), binding):
            if not any(fact(a, complete) in I for a in rule.negative):
                yield fact(rule.head, complete)


def bindings(rule: Rule, I: set[Fact], at: int, binding: Binding) -> Iterator[Binding]:
    if at == len(rule.positive):
        yield binding
        return
    atom = rule.positive[at]
    for predicate, row in I:
        if predicate == atom.predicate:
            extended = dict(binding)
            for term, value in zip(atom.terms, row):
                expected = term.value if isinstance(term, Constant) else extended.setdefault(term.name, value)
                if not same(expected, value):
                    break
            else:
                yield from bindings(rule, I, at + 1, extended)


def with_builtins(todo: list[Builtin], binding: Binding) -> Iterator[Binding]:
    """Yield the bindings that make all built-ins hold, solving equations for what is not bound.

    Where one has no result the rest of the body does not hold, or the run would have failed.
    """
    with suppress(Undefined):
        yield from solved(todo, binding)


def solved(todo: list[Builtin], binding: Binding) -> Iterator[Binding]:
    if not todo:
        yield binding
        return
    for builtin in todo:
        rest = [b for b in todo if b is not builtin]
        for left, right in (builtin.arguments, builtin.arguments[::-1]):
            generates = isinstance(right, Apply) and right.functor.generates
            if not all(name in binding for name in variables(right)):
                continue
            if isinstance(left, Variable) and (generates or (left.name not in binding and builtin.operator == "=")):
                for value in value_of(right, binding) if generates else [value_of(right, binding)]:
                    if same(binding.get(left.name, value), value):
                        yield from with_builtins(rest, {**binding, left.name: value})
                return
        if all(name in binding for name in builtin.variables()):
            left, right = (value_of(a, binding) for a in builtin.arguments)
            if constraint(builtin.operator, builtin.type)(left, right):
                yield from with_builtins(rest, binding)
            return
    raise AssertionError("an unsafe rule")


def variables(expression: Expression) -> Iterator[str]:
    if isinstance(expression, Variable):
        yield expression.name
    elif isinstance(expression, Apply):
        for argument in expression.arguments:
            yield from variables(argument)


def value_of(expression: Expression, binding: Binding):
    if isinstance(expression, Variable):
        return binding[expression.name]
    if isinstance(expression, Constant):
        return expression.value
    return expression.functor.evaluate(*(value_of(a, binding) for a in expression.arguments))


def fact(atom, binding: Binding) -> Fact:
    return atom.predicate, tuple(t.value if isinstance(t, Constant) else binding[t.name] for t in atom.terms)


def same(a: Value, b: Value) -> bool:
    return a == b or a is b  # the one NaN of facts equals itself


# -- agreement --------------------------------------------------------------------------------------------------------


def outcomes(act) -> list:
    """Return what each engine gives, or the errors it raises."""
    results = []
    for engine in ENGINES:
        try:
            results.append(act(engine))
        except EvaluationError as error:
            results.append(error.slugs)
    return results


def explicit_facts(m: Materialisation) -> set[Fact]:
    return {(name, row) for name in m.relations for row in m.explicit(name).to_set()}


@settings(max_examples=150)
@given(typed_cases())
def test_engines_agree(case):
    """The same facts on each engine, by as many rule instances in each phase, and those of naive evaluation."""
    results = outcomes(lambda engine: materialise(case.program, case.facts, engine=engine))
    if all(isinstance(m, Materialisation) for m in results):
        expected = results[-1].facts()
        for m in results:
            assert m.facts() == expected
            assert m.statistics.instances == results[-1].statistics.instances
            assert m.statistics.facts == results[-1].statistics.facts
            assert m.statistics.rounds == results[-1].statistics.rounds
        if len(expected) < 60:
            assert naive(case, explicit_facts(results[0])) == expected
    else:
        assert len(set(results)) == 1, results


@settings(max_examples=60)
@given(typed_cases(updates=3))
def test_engines_agree_on_updates(case):
    """The same changes on each engine, and an update that fails on one fails on all and changes nothing."""
    results = outcomes(lambda engine: materialise(case.program, case.facts, engine=engine))
    if not all(isinstance(m, Materialisation) for m in results):
        return
    for update in case.updates:
        told = outcomes(
            lambda engine, u=update: told_of(
                results[ENGINES.index(engine)].update(insert=u.insertions, delete=u.deletions)
            )
        )
        assert all(t == told[-1] for t in told)
        for m in results:
            assert m.facts() == results[-1].facts()
            assert explicit_facts(m) == explicit_facts(results[-1])


def told_of(change) -> list:
    parts = (change.inserted, change.deleted, change.ignored)
    return [{name: relation.to_set() for name, relation in part.items()} for part in parts]


def test_typed_cases_are_worth_running():
    """Most random programs run to their end, and many derive something."""
    r = Random(7)
    ended = derived = 0
    for _ in range(100):
        case = random_typed_case(r)
        try:
            m = materialise(case.program, case.facts, engine="reference")
        except EvaluationError:
            continue
        ended += 1
        derived += len(m.facts()) > len(explicit_facts(m))
    assert ended > 80 and derived > 40, (ended, derived)


# -- kept cases -------------------------------------------------------------------------------------------------------

KEPT = {
    # A fact with NaN was put into no stratum with the rules that it concerns.
    "NaN and strata": (
        ".decl r(x:float, y:float)\nr(y, y) :- r(_, y).",
        {"r": [(1.0, float("nan"))]},
        {"r": {(1.0, NAN), (NAN, NAN)}},
    ),
    # A quotient without a result was told of although a negated atom, matched too early, does not hold.
    "no result, and a negated atom that binds late": (
        ".decl r(x:number, y:number)\n.decl q(x:number)\nq(x) :- r(x, y), z = x / x, !r(y, z), r(x, x), r(y, z).",
        {"r": [(2, 2), (0, 0)]},
        {"r": {(2, 2), (0, 0)}, "q": set()},
    ),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", KEPT)
def test_kept_cases(name, engine):
    """Programs that once gave wrong facts."""
    program, facts, expected = KEPT[name]
    m = materialise(program, facts, engine=engine)
    assert {relation: m[relation].to_set() for relation in m.relations} == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_error_behind_more_atoms(engine):
    """An expression without a result is told of with its binding, though atoms that bind more come after it."""
    program = ".decl r(x:number, y:number)\n.decl q(x:number)\nq(x) :- r(x, x), r(_, y), !r(y, x), x >= y, z = x % x."
    facts = {"r": [(0, 0), (1, 1), (2, 2), (-2, -2)]}
    with pytest.raises(EvaluationError, match="division by zero") as caught:
        materialise(program, facts, engine=engine)
    assert "x = 0" in str(caught.value)
