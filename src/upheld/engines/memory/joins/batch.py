"""Running join plans: batches of bindings go through the steps of a plan, a bounded number of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from upheld.algebra.instances import cheapest_first, is_ready, undefined
from upheld.engines.memory.joins.functors import Batch, evaluate, generate, generates, holds
from upheld.engines.memory.joins.meet_in_middle import FEWEST_TO_MEET, WALKED, Meeting, side_with_runs
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
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.block_index import BlockIndex
from upheld.engines.memory.storage.chain_index import ChainIndex
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.partitions import Part
from upheld.engines.memory.storage.table import Table
from upheld.language.ast import Variable
from upheld.language.core import Apply, Atom, Builtin, Rule

#: Pairs that a probe for a single binding may write.
_LEAST_ROOM = 1024

#: Rows that a batch begins with at least, however many bindings come of them.
FEWEST_ROWS = 1 << 8

#: Rows that a batch begins with where bindings choose between two atoms. The order in which pieces come then depends on
#: all bindings of the batch, so batches are the same for any number of threads.
CHUNK_WITH_CHOICES = CHUNK // 8

#: A variable that carries the number of a binding; no dialect lets a user write it.
NUMBER = "$number"

#: A variable that carries the number of the row a binding began with; no dialect lets a user write it.
ROW = "$row"


def row_of(position: int) -> str:
    """Return the variable that carries the row that the positive atom at a position is matched to."""
    return f"{ROW} {position}"


Truths = Mapping[Place, Truth]


class Sink(Protocol):
    """Takes what comes out of a join: bindings of the plan's last variables.

    First it makes something of them, such as heads, which changes nothing that anybody reads: several threads may do
    so at once. The pieces that come of it are then entered, in order.
    """

    def make(self, B: Codes, width: int) -> Any: ...

    def make_joined(self, B: Codes, step: AtomStep, parents: Rows, matches: Rows, count: int) -> Any:
        """As `make`, of bindings that are not there yet: pairs of a binding in B and a row that the last step matched.

        The arrays of pairs are used again for the next ones.
        """

    def enter(self, piece: Any) -> None:
        """Take a piece that was made."""


class FunctionSink:
    """Hands bindings to a function."""

    def __init__(self, take: Callable[[Codes, int], None]):
        self.take = take

    def make(self, B: Codes, width: int) -> tuple[Codes, int]:
        return B, width

    def make_joined(self, B: Codes, step: AtomStep, parents: Rows, matches: Rows, count: int) -> tuple[Codes, int]:
        return extended(B, step, parents, matches, count), count

    def enter(self, piece: tuple[Codes, int]) -> None:
        self.take(*piece)


class Doubt(NamedTuple):
    """Bindings that came to a step, under some of which its built-in has no result, for reasons."""

    at: int
    step: BuiltinStep
    B: Codes
    reasons: Mapping[int, str]


#: Lists the rows of a table or a part that are in a set, for atoms that share no variable with what comes before.
Lister = Callable[[Table | Part, Place], Rows]


class Join:
    """One run of a plan: where its atoms are matched, and what takes the bindings that come out.

    `rank` names the column of ranks, for plans that look at them. `made` are the bindings that came to each step so
    far, and at last those that came out; `tried` counts what a step or a kernel tries in between.
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
        self.tried = 0
        #: The run that this one is a part of, if it is done by another thread: doubts are left to it.
        self._whole: Join | None = None
        #: The indexes that steps look into. They stay as they are: rows that are entered meanwhile are not to be met.
        self._indexes: dict[AtomStep, ChainIndex | BlockIndex] = {}

    def within(self, truths: Truths) -> Join:
        """Return a run of the same plan with atoms matched elsewhere."""
        return Join(self.plan, truths, self.planner, self.types, self.sink, self.tick, self.listing, self.rank)

    def apart(self, tick: Callable[[Rule], None]) -> Join:
        """Return a run of the same plan for another thread, with what came to each step counted apart.

        Among the pieces that it yields may be a `Doubt`, for `settle`.
        """
        join = Join(self.plan, self.truths, self.planner, self.types, self.sink, tick, self.listing, self.rank)
        join._indexes, join._whole = self._indexes, self
        return join

    @property
    def bindings(self) -> int:
        """How many bindings were made on the way to those that came out."""
        return sum(self.made[1:-1]) + self.tried

    def growth(self) -> int:
        """Return about how many bindings come of one that the plan begins with, at the step with most of them."""
        counts = (self._whole or self).made
        return max(counts) // counts[0] if counts[0] else int(self.plan.expected_bindings)

    def batch_size(self, bindings: int) -> int:
        """Return how many rows to begin a batch with so that not many more than some bindings come of them."""
        if self.plan.has_choices:
            return CHUNK_WITH_CHOICES
        return min(CHUNK, max(FEWEST_ROWS, bindings // max(1, self.growth())))

    def room(self, width: int) -> int:
        """Return how many pairs to make at a time for `width` bindings."""
        return pair_room(width * self.growth())

    def index(self, step: AtomStep) -> ChainIndex | BlockIndex:
        """Return the index that a step looks into, with the rows that were there when it was first asked for."""
        index = self._indexes.get(step)
        if index is None:
            index = self._indexes[step] = step.source.index(step.known)
        return index

    def run(self, B: Codes, width: int) -> None:
        """Send a batch of bindings of the plan's first variables through all steps, and enter what comes out."""
        for piece in self.made_of(B, width):
            self.sink.enter(piece)

    def made_of(self, B: Codes, width: int) -> Iterator[Any]:
        """Yield what the sink makes of a batch of bindings of the plan's first variables, piece by piece."""
        return self._step(0, B, width)

    def _step(self, at: int, B: Codes, width: int) -> Iterator[Any]:
        if width == 0:
            return
        self.made[at] += width
        if at == len(self.plan.steps):
            yield self.sink.make(B, width)
            return
        self.tick(self.plan.rule)
        step = self.plan.steps[at]
        if isinstance(step, BuiltinStep):
            yield from self._builtin(at, step, B, width)
        elif isinstance(step, ChoiceStep):
            yield from self._choose(at, step, B, width)
        elif step.filters:
            yield from self._filter(at, step, B, width)
        elif step.known:
            yield from self._probe(at, step, B, width)
        else:
            yield from self._cross(at, step, B, width)

    def _filter(self, at: int, step: AtomStep, B: Codes, width: int) -> Iterator[Any]:
        """Keep the bindings under which the atom, all of it known, holds; or, negated, does not."""
        there = self._holds(step, B, width)
        return self._keep(at, B, ~there if step.negated else there)

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

    def _choose(self, at: int, step: ChoiceStep, B: Codes, width: int) -> Iterator[Any]:
        """Join each binding with the atom that has fewer rows for it, and look the other atom up; or let many meet."""
        if width >= FEWEST_TO_MEET:
            B = yield from self._meet(at, step, B, width)
            width = B.shape[1]
        fewer = fewer_rows(step, B, width)
        for (join, check), mine in zip(step.ways, (fewer, ~fewer), strict=True):
            if mine.any():
                part = B if mine.all() else B.compress(mine, 1)
                for parents, matches, found in self.matches(join, part, part.shape[1]):
                    self.tried += found
                    made = self._extended(part, join, parents, matches, found)
                    yield from self._keep(at, made, self._holds(check, made, found))

    def _meet(self, at: int, step: ChoiceStep, B: Codes, width: int) -> Generator[Any, None, Codes]:
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
        walked = 0
        for parents, matches, found, rows in meeting.matches(which, self.truths, pair_room(len(which))):
            self.tick(self.plan.rule)
            walked += rows
            if second.ranked and found:
                made = self._extended(part, first, parents, matches[0], found)
                self._raise(second, made, matches[1])
                yield from self._step(at + 1, made, found)
            else:
                yield from self._extend(at, first, part, parents, matches[0], found)
        self.tried += walked // WALKED
        return B.take(others, 1)

    def _keep(self, at: int, B: Codes, kept: np.ndarray) -> Iterator[Any]:
        count = int(np.count_nonzero(kept))
        return self._step(at + 1, B if count == len(kept) else B.compress(kept, 1), count)

    def _probe(self, at: int, step: AtomStep, B: Codes, width: int) -> Iterator[Any]:
        for parents, matches, found in self.matches(step, B, width):
            yield from self._extend(at, step, B, parents, matches, found)

    def matches(self, step: AtomStep, B: Codes, width: int) -> Iterator[tuple[Rows, Rows, int]]:
        """Yield the pairs of a binding and a row that an atom matches, as many at a time as there is room for."""
        table, truth = step.table, self.truths[step.place]
        index = self.index(step)
        room = self.room(width)
        parents, matches = np.empty(room, np.int32), np.empty(room, np.int32)
        wanted = _wanted(step, B, width)
        i, on = 0, None
        while i < width:
            # The table may have grown, and its arrays moved, since the last time round.
            i, on, found = index.probe(table, wanted, i, on, truth, step.equal, parents, matches)
            self.tick(self.plan.rule)
            if found:
                yield parents, matches, found

    def _cross(self, at: int, step: AtomStep, B: Codes, width: int) -> Iterator[Any]:
        table = step.table
        candidates = self.listing(step.source, step.place)
        for first, repeated in step.equal:
            candidates = candidates[table.rows[candidates, first] == table.rows[candidates, repeated]]
        parents, matches = np.empty(CHUNK, np.int32), np.empty(CHUNK, np.int32)
        i = j = 0
        while i < width:
            i, j, found = row_kernels.cross(i, j, width, candidates, parents, matches)
            self.tick(self.plan.rule)
            yield from self._extend(at, step, B, parents, matches, found)

    def _extend(self, at: int, step: AtomStep, B: Codes, parents: Rows, matches: Rows, found: int) -> Iterator[Any]:
        if found and at + 1 == len(self.plan.steps) and not step.ranked:
            self.made[at + 1] += found
            yield self.sink.make_joined(B, step, parents, matches, found)
        elif found:
            yield from self._step(at + 1, self._extended(B, step, parents, matches, found), found)

    def _builtin(self, at: int, step: BuiltinStep, B: Codes, width: int) -> Iterator[Any]:
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
                    yield from self._step(at + 1, np.vstack([B.take(parents, 1), values]), len(parents))
                else:
                    parents = parents[batch.columns[left.name][parents] == values]
                    yield from self._step(at + 1, B.take(parents, 1), len(parents))
        elif step.binds:
            values, known = evaluate(right, builtin.type, batch)
            yield from self._keep(at, np.vstack([B, values]), np.broadcast_to(known, width))
        else:
            yield from self._keep(at, B, holds(builtin, batch))
        if batch.undefined:
            doubt = Doubt(at, step, B, batch.undefined)
            if self._whole is not None:
                yield doubt
            else:
                self.settle(doubt)

    def settle(self, doubt: Doubt) -> None:
        """Raise the error of a built-in without a result, if the rest of the body holds under one of the bindings.

        Whether a rule fails may not depend on the order in which its body is matched, so the rest is matched without
        the value that is missing.
        """
        rule, planner = self.plan.rule, self.planner
        at, step, B, reasons = doubt
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
    table: Table,
    rows: Rows,
    atom: Atom,
    variables: tuple[str, ...],
    rank: str | None = None,
    size: Callable[[], int] = lambda: CHUNK,
) -> Iterator[tuple[Codes, int]]:
    """Yield bindings of an atom's variables to rows, a chunk at a time, without rows that repeat a variable wrongly."""
    first, rows = columns_of(table, rows, atom)
    at = 0
    while at < len(rows):
        chunk = rows[at : at + size()]
        yield batch(table, chunk, first, variables, rank), len(chunk)
        at += len(chunk)


def columns_of(table: Table, rows: Rows, atom: Atom) -> tuple[dict[str, int], Rows]:
    """Return the first column of each variable of an atom, and the rows that do not repeat a variable wrongly."""
    first: dict[str, int] = {}
    for column, term in enumerate(atom.terms):
        if isinstance(term, Variable):
            if term.name in first:
                rows = rows[table.rows[rows, first[term.name]] == table.rows[rows, column]]
            else:
                first[term.name] = column
    return first, rows


def batch(table: Table, rows: Rows, first: Mapping[str, int], variables: tuple[str, ...], rank: str | None) -> Codes:
    """Return the bindings of variables, which are in the columns `first`, to rows of a table."""
    B = np.empty((len(variables), len(rows)), np.int64)
    values = table.rows.take(rows, 0)  # whole rows, which is faster than one column after the other
    for k, name in enumerate(variables):
        if name.startswith(ROW):
            B[k] = rows
        elif name == HEIGHT:
            B[k] = LOWEST if rank is None else table.column(rank)[rows]
        else:
            B[k] = values[:, first[name]]
    return B


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


_NO_REPEATS = np.empty((0, 2), np.int64)


def rows_with(
    table: Table, columns: tuple[int, ...], wanted: Codes, truth: Truth
) -> tuple[npt.NDArray[np.int64], Rows]:
    """Return the rows of a set with one of some keys in these columns, each with the place of its key."""
    keys = np.ascontiguousarray(wanted, np.int64)
    room = pair_room(len(keys))
    parents, matches = np.empty(room, np.int32), np.empty(room, np.int32)
    index = table.index(columns)
    places, rows = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    i, on = 0, None
    while i < len(keys):
        i, on, count = index.probe(table, keys, i, on, truth, _NO_REPEATS, parents, matches)
        places.append(parents[:count].copy())
        rows.append(matches[:count].copy())
    return np.concatenate(places).astype(np.int64), np.concatenate(rows)
