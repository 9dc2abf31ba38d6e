"""Built-ins without a result: a rule fails by one if the rest of the body holds, in whatever order it is matched."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import NamedTuple, Protocol

import numpy as np

from upheld.algebra.instances import undefined
from upheld.base.errors import EvaluationError
from upheld.engines.memory.joins.batch import Doubt, Join
from upheld.engines.memory.plans.plan import HEIGHT, BuiltinStep
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.spark.context import Context
from upheld.engines.spark.joins.pipelines import Key
from upheld.engines.spark.joins.plans import Pipeline, rest_of
from upheld.engines.spark.joins.reach import Reach
from upheld.engines.spark.joins.results import End

#: A variable that carries the number of a binding; no dialect lets a user write it.
_NUMBER = "$number"

#: Bindings that a task numbers at most.
_MOST_NUMBERED = 1 << 40


class Doomed(NamedTuple):
    """Bindings for which a built-in of a leg has no result: their variables and values, and the reasons."""

    key: Key
    leg: int
    #: The position of the built-in among the built-ins of the rule.
    builtin: int
    variables: tuple[str, ...]
    B: Codes
    reasons: list[str]

    @property
    def kind(self) -> tuple[Key, int, int, tuple[str, ...]]:
        return self.key, self.leg, self.builtin, self.variables


class LegJoin(Join):
    """A join that puts bindings aside for which a built-in has no result: other legs may not match them."""

    doom: Callable[[BuiltinStep, Codes, list[str]], None]

    def settle(self, doubt: Doubt) -> None:
        which = sorted(doubt.reasons)
        self.doom(doubt.step, doubt.B[:, which], [doubt.reasons[i] for i in which])


class Bodies(Protocol):
    """A run that matches bodies."""

    context: Context
    reach: Reach
    end: End
    doomed: list[Doomed]
    #: Whether what comes out are bindings that fail, and no results.
    is_judging: bool
    #: Pipelines that no rule has.
    extra: dict[Key, Pipeline]

    def pipeline_of(self, key: Key) -> Pipeline: ...
    def leg(self, key: Key, mine: Pipeline, j: int, bindings: Iterable[Codes]) -> None: ...
    def travel(self, operator: str, j: int) -> None: ...


def judge(run: Bodies) -> None:
    """Raise the error of a built-in without a result, if the rest of the body holds under one of its bindings.

    Whether a rule fails may not depend on the order in which its body is matched, so the rest is matched without
    the value that is missing.
    """
    wire, me = run.context.wire, run.context.wire.me
    doomed, survivors, first = run.doomed, list[int](), me * _MOST_NUMBERED
    run.doomed = []
    for d in doomed:  # each binding gets a number, by which it is known from now on
        places = [i for i, v in enumerate(d.variables) if v != HEIGHT]
        numbers = first + np.arange(len(d.reasons))
        first += len(d.reasons)
        variables = (*(d.variables[i] for i in places), _NUMBER)
        run.doomed.append(d._replace(variables=variables, B=np.vstack([d.B[places], numbers[None]])))
    run.reach = run.reach._replace(new_texts=False)  # only the number of a binding goes on
    run.is_judging = True  # and to nobody who takes heads
    run.end = lambda _, __, plan, B, *___: survivors.append(int(B[plan.last.index(_NUMBER)].min()))
    # The rest of a body may have further built-ins without a result, which are left out in turn.
    for turn in count():
        left, run.doomed = run.doomed, []
        _, notes = wire.exchange("built-ins without a result", None, {d.kind for d in left})
        kinds = sorted(set().union(*notes))
        if not kinds:
            break
        keys = {kind: (n, "rest", turn) for n, kind in enumerate(kinds)}
        rests = {keys[kind]: _rest(run, *kind) for kind in kinds}
        run.extra.update(rests)
        for d in left:
            run.leg(keys[d.kind], rests[keys[d.kind]], 0, [d.B])
        for j in range(1, max(len(rest.legs) for rest in rests.values())):
            run.travel("the rest of a body", j)
    _, notes = wire.exchange("bindings that fail", None, min(survivors, default=None))
    failed = [note for note in notes if note is not None]
    if not failed:
        return
    task, number = divmod(min(failed), _MOST_NUMBERED)
    mine_failed = _error(run, doomed, number) if task == me else None
    _, notes = wire.exchange("the error", None, mine_failed and mine_failed.problems)
    raise EvaluationError(notes[task])


def _rest(run: Bodies, key: Key, leg: int, builtin: int, variables: tuple[str, ...]) -> Pipeline:
    """Return what is left of a body, from a leg on, without a built-in."""
    mine = run.pipeline_of(key)
    literals = [x._replace(ranked=False) for later in mine.legs[leg:] for x in later.literals]
    without = mine.rule.builtins[builtin]
    builtins = [b for later in mine.legs[leg:] for b in later.builtins if b is not without]
    return rest_of(mine.rule, variables, literals, builtins, run.context.views, (_NUMBER,))


def _error(run: Bodies, doomed: list[Doomed], number: int) -> EvaluationError:
    for d in doomed:
        if number < len(d.reasons):
            rule = run.pipeline_of(d.key).rule
            types = run.context.matcher.variable_types(rule)
            values = {
                name: run.context.codec.decode(column[number : number + 1], types[name])[0]
                for name, column in zip(d.variables, d.B, strict=True)
                if name in types
            }
            return undefined(rule, d.reasons[number], values)
        number -= len(d.reasons)
    raise AssertionError("a binding without a number")
