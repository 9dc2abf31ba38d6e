"""Running join plans: batches of bindings go through the steps of a plan, a bounded number of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from upheld.algebra.instances import cheapest_first, is_ready, undefined
from upheld.engines.memory.joins.functors import Batch, evaluate, generate, generates, holds
from upheld.engines.memory.joins.meet_in_middle import FEWEST_TO_MEET, Meeting, side_with_runs
from upheld.engines.memory.kernels import rows as row_kernels
from upheld.engines.memory.kernels.rows import CHUNK
from upheld.engines.memory.plans.plan import (
    HEIGHT,
    LOWEST,
    AtomStep,
    BuiltinStep,
    ChoiceStep,
    Literal,
    Place,
    Plan,
    Planner,
)
from upheld.engines.memory.sets.truth_tables import Truth, are_in
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.partitions import Part
from upheld.engines.memory.storage.table import Rows, Table
from upheld.language.core import Apply, Atom, Builtin, Rule
from upheld.language.syntax.ast import Variable

#: Pairs that a probe for a single binding may write.
_LEAST_ROOM = 1024

#: A variable that carries the number of a binding; no dialect lets a user write it.
NUMBER = "$number"

#: A variable that carries the number of the row a binding began with; no dialect lets a user write it.
ROW = "$row"

Truths = Mapping[Place, Truth]


class Sink(Protocol):
    """Takes what comes out of a join: bindings of the plan's last variables."""

    def take(self, B: Codes, width: int) -> None: ...

    def take_joined(self, B: Codes, step: AtomStep, parents: Rows, matches: Rows, count: int) -> None:
        """Take bindings that were not made yet: pairs of a binding in B and a row that the last step matched."""
        ...


class FunctionSink:
    """Hands bindings to a function."""

    def __init__(self, take: Callable[[Codes, int], None]):
        self.take = take

    def take_joined(self, B: Codes, step: AtomStep, parents: Rows, matches: Rows, count: int) -> None:
        self.take(extended(B, step, parents, matches, count), count)


#: Lists the rows of a table or a part that are in a set, for atoms that share no variable with what comes before.
Lister = Callable[[Table | Part, Place], Rows]


class Join:
    """One run of a plan: where its atoms are matched, and what takes the bindings that come out.

    `rank` names the column of ranks, for plans that look at them. `made` are the bindings that came to each step so
    far, and at last those that came out.
    """

    def __init__(
        self,
        plan: Plan,
        truths: Truths,
        planner: Planner,
        types: dict[str, str],
        sink: Sink,
        tick: Callable[[Rule], None],
        listing: Lister,
        rank: str | None = None,
    ):
        self.plan, self.truths, self.planner, self.types, self.sink = plan, truths, planner, types, sink
        self.tick, self.listing, self.rank = tick, listing, rank
        self.made = [0] * (len(plan.steps) + 1)

    def within(self, truths: Truths) -> Join:
        """Return a run of the same plan with atoms matched elsewhere."""
        return Join(self.plan, truths, self.planner, self.types, self.sink, self.tick, self.listing, self.rank)

    def run(self, B: Codes, width: int) -> None:
        """Send a batch of bindings of the plan's first variables through all steps."""
        self._step(0, B, width)

    def _step(self, at: int, B: Codes, width: int) -> None:
        if width == 0:
            return
        self.made[at] += width
        if at == len(self.plan.steps):
            self.sink.take(B, width)
            return
        self.tick(self.plan.rule)
        step = self.plan.steps[at]
        if isinstance(step, BuiltinStep):
            self._builtin(at, step, B, width)
        elif isinstance(step, ChoiceStep):
            self._choose(at, step, B, width)
        elif step.filters:
            self._filter(at, step, B, width)
        elif step.known:
            self._probe(at, step, B, width)
        else:
            self._cross(at, step, B, width)

    def _filter(self, at: int, step: AtomStep, B: Codes, width: int) -> None:
        """Keep the bindings under which the atom, all of it known, holds; or, negated, does not."""
        there = self._holds(step, B, width)
        self._keep(at, B, ~there if step.negated else there)

    def _holds(self, step: AtomStep, B: Codes, width: int) -> npt.NDArray[np.bool_]:
        table = step.table
        rows = table.find(B, width, step.terms, step.constants)
        if step.ranked:
            self._raise(step, B, rows)
        return are_in(table, rows, self.truths[step.place])

    def _raise(self, step: AtomStep, B: Codes, rows: Rows) -> None:
        """Raise the heights of bindings to the ranks of the rows that they are matched to."""
        assert self.rank is not None, "a plan that looks at ranks, without any"
        height = B[step.variables.index(HEIGHT)]
        np.maximum(height, step.table.column(self.rank)[rows[: len(height)]], out=height)

    def _extended(self, B: Codes, step: AtomStep, parents: Rows, matches: Rows, count: int) -> Codes:
        result = extended(B, step, parents, matches, count)
        if step.ranked:
            self._raise(step, result, matches)
        return result

    def _choose(self, at: int, step: ChoiceStep, B: Codes, width: int) -> None:
        """Join each binding with the atom that has fewer rows for it, and look the other atom up; or let many meet."""
        if width >= FEWEST_TO_MEET:
            B = self._meet(at, step, B, width)
            width = B.shape[1]
        fewer = fewer_rows(step, B, width)
        for (join, check), mine in zip(step.ways, (fewer, ~fewer), strict=True):
            if mine.any():
                part = B if mine.all() else B.compress(mine, 1)
                for parents, matches, found in self.matches(join, part, part.shape[1]):
                    made = self._extended(part, join, parents, matches, found)
                    self._keep(at, made, self._holds(check, made, found))

    def _meet(self, at: int, step: ChoiceStep, B: Codes, width: int) -> Codes:
        """Send on what comes of the bindings for which it pays to meet; return the others."""
        (first, second), (other, _) = step.ways
        wanted = _wanted(first, B, width), _wanted(other, B, width)
        near = side_with_runs(wanted)
        if near is None:
            return B
        meeting = Meeting(step, near, wanted)
        meets = meeting.which()
        which, others = np.flatnonzero(meets), np.flatnonzero(~meets)
        part = B if not len(others) else B.take(which, 1)
        for parents, matches, found in meeting.matches(which, self.truths, pair_room(len(which))):
            self.tick(self.plan.rule)
            if second.ranked and found:
                made = self._extended(part, first, parents, matches[0], found)
                self._raise(second, made, matches[1])
                self._step(at + 1, made, found)
            else:
                self._extend(at, first, part, parents, matches[0], found)
        return B.take(others, 1)

    def _keep(self, at: int, B: Codes, kept: np.ndarray) -> None:
        count = int(np.count_nonzero(kept))
        self._step(at + 1, B if count == len(kept) else B.compress(kept, 1), count)

    def _probe(self, at: int, step: AtomStep, B: Codes, width: int) -> None:
        for parents, matches, found in self.matches(step, B, width):
            self._extend(at, step, B, parents, matches, found)

    def matches(self, step: AtomStep, B: Codes, width: int) -> Iterator[tuple[Rows, Rows, int]]:
        """Yield the pairs of a binding and a row that an atom matches, as many at a time as there is room for."""
        table, truth = step.table, self.truths[step.place]
        index = step.source.index(step.known)
        room = pair_room(width)
        parents, matches = np.empty(room, np.int32), np.empty(room, np.int32)
        wanted = _wanted(step, B, width)
        i, on = 0, None
        while i < width:
            # The table may have grown, and its arrays moved, since the last time round.
            i, on, found = index.probe(table, wanted, i, on, truth, step.equal, parents, matches)
            self.tick(self.plan.rule)
            if found:
                yield parents, matches, found

    def _cross(self, at: int, step: AtomStep, B: Codes, width: int) -> None:
        table = step.table
        candidates = self.listing(step.source, step.place)
        for first, repeated in step.equal:
            candidates = candidates[table.rows[candidates, first] == table.rows[candidates, repeated]]
        parents, matches = np.empty(CHUNK, np.int32), np.empty(CHUNK, np.int32)
        i = j = 0
        while i < width:
            i, j, found = row_kernels.cross(i, j, width, candidates, parents, matches)
            self.tick(self.plan.rule)
            self._extend(at, step, B, parents, matches, found)

    def _extend(self, at: int, step: AtomStep, B: Codes, parents: Rows, matches: Rows, found: int) -> None:
        if found and at + 1 == len(self.plan.steps) and not step.ranked:
            self.made[at + 1] += found
            self.sink.take_joined(B, step, parents, matches, found)
        elif found:
            self._step(at + 1, self._extended(B, step, parents, matches, found), found)

    def _builtin(self, at: int, step: BuiltinStep, B: Codes, width: int) -> None:
        builtin = step.builtin
        batch = Batch(self.planner.codec, dict(zip(step.before, B, strict=True)), width)
        left, right = builtin.arguments
        if isinstance(right, Variable) and (right.name == step.binds or generates(left)):
            left, right = right, left
        if generates(right):
            assert isinstance(right, Apply) and isinstance(left, Variable), "a generator stands alone on its side"
            for parents, values in generate(right, builtin.type, batch, CHUNK):
                self.tick(self.plan.rule)
                if step.binds:
                    self._step(at + 1, np.vstack([B.take(parents, 1), values]), len(parents))
                else:
                    parents = parents[batch.columns[left.name][parents] == values]
                    self._step(at + 1, B.take(parents, 1), len(parents))
        elif step.binds:
            values, known = evaluate(right, builtin.type, batch)
            self._keep(at, np.vstack([B, values]), np.broadcast_to(known, width))
        else:
            self._keep(at, B, holds(builtin, batch))
        if batch.undefined:
            self._refuse_undefined(at, step, B, batch.undefined)

    def _refuse_undefined(self, at: int, step: BuiltinStep, B: Codes, reasons: Mapping[int, str]) -> None:
        """Raise the error of a built-in without a result, if the rest of the body holds under one of these bindings.

        Whether a rule fails may not depend on the order in which its body is matched, so the rest is matched without
        the value that is missing.
        """
        rule, planner = self.plan.rule, self.planner
        # Among the rest, another built-in may have no result: then there are numbers of bindings already.
        columns = [row for row, name in enumerate(step.before) if name != NUMBER]
        before, B = tuple(step.before[row] for row in columns), B[columns]
        rest = self.plan.steps[at + 1 :] + self.plan.later
        atoms = [Literal(s.atom, s.place) for s in rest if isinstance(s, AtomStep)]
        atoms += [Literal(a.atom, a.place) for s in rest if isinstance(s, ChoiceStep) for a in s.ways[0]]
        bound = set(before).union(*(a.atom.variables() for a in atoms if not a.negated))
        left = cheapest_first(s.builtin for s in rest if isinstance(s, BuiltinStep))
        builtins: list[Builtin] = []
        while ready := next((b for b in left if is_ready(b, bound)), None):
            left.remove(ready)
            builtins.append(ready)
            bound.update(ready.variables())
        atoms = [a for a in atoms if not a.negated or bound.issuperset(a.atom.variables())]
        plan = planner.plan(rule, (*before, NUMBER), atoms, (NUMBER,), builtins)
        bindings = sorted(reasons)
        number = (plan.steps[-1].variables if plan.steps else plan.start).index(NUMBER)

        def refuse(found: Codes, width: int) -> None:
            i = int(found[number, 0])
            values = {
                name: planner.codec.decode(column[i : i + 1], self.types[name])[0]
                for name, column in zip(before, B, strict=True)
                if name in self.types
            }
            raise undefined(rule, reasons[i], values)

        doubtful = np.vstack([B[:, bindings], np.array(bindings, np.int64)])
        Join(plan, self.truths, planner, self.types, FunctionSink(refuse), self.tick, self.listing).run(
            doubtful, len(bindings)
        )


def batches(
    table: Table, rows: Rows, atom: Atom, variables: tuple[str, ...], rank: str | None = None
) -> Iterator[tuple[Codes, int]]:
    """Yield bindings of an atom's variables to rows, a chunk at a time, without rows that repeat a variable wrongly."""
    first: dict[str, int] = {}
    for column, term in enumerate(atom.terms):
        if isinstance(term, Variable):
            if term.name in first:
                rows = rows[table.rows[rows, first[term.name]] == table.rows[rows, column]]
            else:
                first[term.name] = column
    for start in range(0, len(rows), CHUNK):
        chunk = rows[start : start + CHUNK]
        B = np.empty((len(variables), len(chunk)), np.int64)
        values = table.rows.take(chunk, 0)  # whole rows, which is faster than one column after the other
        for k, name in enumerate(variables):
            if name == ROW:
                B[k] = chunk
            elif name == HEIGHT:
                B[k] = LOWEST if rank is None else table.column(rank)[chunk]
            else:
                B[k] = values[:, first[name]]
        yield B, len(chunk)


def pair_room(width: int) -> int:
    """Return how many pairs to make at a time for `width` bindings."""
    # A large array is asked of the system each time, so small batches get small ones.
    return min(CHUNK, _LEAST_ROOM + 8 * width)


def extended(B: Codes, step: AtomStep, parents: Rows, matches: Rows, count: int) -> Codes:
    """Return the batch that a step makes of pairs of a binding and a row."""
    result = np.empty((len(step.variables), count), np.int64)
    row_kernels.gather(B, step.kept, parents, step.table.rows, matches, step.added, count, result)
    return result


def fewer_rows(step: ChoiceStep, B: Codes, width: int) -> npt.NDArray[np.bool_]:
    """Return for each binding whether the first of two atoms has no more rows for it than the second."""
    first, second = (_lengths(join, B, width) for join, _ in step.ways)
    return first <= second


def _lengths(step: AtomStep, B: Codes, width: int) -> npt.NDArray[np.int64]:
    return step.source.blocks(step.known).lengths(step.table, _wanted(step, B, width))


def _wanted(step: AtomStep, B: Codes, width: int) -> npt.NDArray[np.int64]:
    """Return the key that an atom is looked up with for each binding."""
    wanted = np.empty((width, len(step.known)), np.int64)
    row_kernels.make_rows(B, width, step.terms, step.constants, wanted)
    return wanted
