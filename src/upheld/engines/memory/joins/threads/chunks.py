"""A join by several threads: the rows that it begins with are cut into chunks, which are sent through the plan at once.

It goes by turns. First all threads take chunks, as they come, and make heads of them: that only reads tables, so no
thread sees what another one does. Then what was made is entered, in the order of the chunks, in which one thread by
itself would have made it: so row numbers, counts and changes do not depend on the number of threads. A chunk that makes
very many heads stops on the way and goes on in the next turn. Where it is safe, the calling thread enters the heads of
a turn while others make the heads of the next one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from upheld.base.threads import Threads, Work
from upheld.engines.memory.joins import batch as batch_module
from upheld.engines.memory.joins.batch import Doubt, Join, batch, columns_of
from upheld.engines.memory.joins.hot_rules import Runners
from upheld.engines.memory.joins.sinks import HeadsOnly
from upheld.engines.memory.kernels.jit import compile_kernels
from upheld.engines.memory.kernels.rows import CHUNK
from upheld.engines.memory.plans.plan import AtomStep, ChoiceStep, Plan, Step
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.table import Table
from upheld.language.core import Apply, Atom, Expression, Rule
from upheld.language.types.primitive import INTEGER_RANGES

#: Bindings that a join is expected to handle from which on it pays to share the work.
FEWEST_BINDINGS = 1 << 18

#: Functors that are evaluated on arrays, unless a result might be undefined.
ARITHMETIC = ("+", "-", "*", "/", "%")

#: Chunks for each thread in a turn. With more than one, a thread that is done sooner takes another one.
CHUNKS = 2

#: Bindings that come of a chunk of the first turn, about, and at last: each turn has twice as many as the one before.
#: Small turns are mostly waiting; in large ones, chunks make many heads twice that one thread would have known, most of
#: all before pairs are held as bits.
FIRST, LAST = CHUNK // 2, 4 * CHUNK


def pays(threads: Threads, plan: Plan, rows: int) -> bool:
    """Return whether to share the work of a join that begins with this many rows."""
    if threads.count == 1 or rows < 2 * batch_module.FEWEST_ROWS or rows * plan.expected_bindings < FEWEST_BINDINGS:
        return False
    if plan.has_choices and (plan.head in plan.tables or rows <= batch_module.CHUNK_WITH_CHOICES):
        return False  # a choice looks at all rows of the tables, those that are entered meanwhile among them
    return all(only_reads(step) for step in plan.steps)


def only_reads(step: Step) -> bool:
    """Return whether a step changes nothing, and does most of its work without the GIL."""
    if isinstance(step, AtomStep | ChoiceStep):
        return True
    # Other built-ins may give codes to new texts, call functions of users, or are evaluated value by value.
    return _is_number(step.builtin.type) and all(map(_is_arithmetic, step.builtin.arguments))


def _is_number(type: str) -> bool:
    return type in INTEGER_RANGES or type == "float"


def _is_arithmetic(expression: Expression) -> bool:
    """Return whether an expression is made of numbers by operations on arrays."""
    if not isinstance(expression, Apply):
        return True
    functor = expression.functor
    return functor.name in ARITHMETIC and _is_number(functor.type) and all(map(_is_arithmetic, expression.arguments))


def run_side_by_side(
    threads: Threads, join: Join, runners: Runners, table: Table, rows: Rows, atom: Atom, rank: str | None
) -> None:
    """Send the bindings that an atom has to rows of its table through a plan."""
    compile_kernels()
    first, rows = columns_of(table, rows, atom)
    plan, sink = join.plan, join.sink

    def look() -> None:
        join.tick(plan.rule)

    def begun(chunk: Rows) -> Callable[[Join], Iterator[Any]]:
        runner = runners.runner()
        return lambda mine: runner(mine).made_of(batch(table, chunk, first, plan.start, rank), len(chunk))

    waiting: deque[_Chunk] = deque()
    pieces: list[Any] = []
    at, bindings = 0, FIRST
    while at < len(rows) or waiting:
        room = CHUNKS * threads.count - len(waiting)
        size = _size_of_chunk(join, len(rows) - at, room, bindings)
        while at < len(rows) and len(waiting) < CHUNKS * threads.count:
            waiting.append(_Chunk(join, begun(rows[at : at + size]), 2 * bindings))
            at += size
        beside = isinstance(sink, HeadsOnly) and _are_heads(pieces) and sink.may_enter_beside(pieces)
        if not beside:
            _enter(join, pieces)
            prepare(join)
            if rank is not None:
                table.column(rank)
        with sink.sifting() if isinstance(sink, HeadsOnly) else nullcontext():
            tasks = [chunk.go_on for chunk in waiting if not chunk.is_full]
            threads.run(tasks, look, partial(_enter, join, pieces) if beside else None)
        pieces, bindings = [], min(2 * bindings, LAST)
        while waiting:
            pieces += waiting[0].taken()
            if not waiting[0].is_done:
                break
            chunk = waiting.popleft()
            join.made = [a + b for a, b in zip(join.made, chunk.came, strict=True)]
            join.tried += chunk.tried
    _enter(join, pieces)


def _are_heads(pieces: Sequence[Any]) -> bool:
    """Return whether something was made, without a doubt."""
    return bool(pieces) and not any(isinstance(piece, Doubt) for piece in pieces)


def _enter(join: Join, pieces: Sequence[Any]) -> None:
    """Enter what was made, and settle the doubts in between."""
    while pieces:
        count = next((k for k, piece in enumerate(pieces) if isinstance(piece, Doubt)), len(pieces))
        if isinstance(join.sink, HeadsOnly):
            join.sink.enter_all(pieces[:count])
        else:
            for piece in pieces[:count]:
                join.sink.enter(piece)
        if count < len(pieces):
            join.settle(pieces[count])
        pieces = pieces[count + 1 :]


def _size_of_chunk(join: Join, rows: int, chunks: int, bindings: int) -> int:
    """Return how many rows a chunk has: a batch, or fewer if that would leave threads without work."""
    size = join.batch_size(bindings)
    return size if join.plan.has_choices else max(min(size, -(-rows // max(chunks, 1))), batch_module.FEWEST_ROWS)


class _Clock:
    """Ticks for a chunk, in whichever turn it is."""

    work: Work

    def tick(self, rule: Rule) -> None:
        self.work.tick()


class _Chunk:
    """Rows that are sent through a plan, and what has been made of them."""

    def __init__(self, join: Join, begin: Callable[[Join], Iterator[Any]], most: int):
        # The chunk does not hold itself: the memory of an engine is freed as soon as nobody holds it.
        self._clock = _Clock()
        self._join, self._begin = join.apart(self._clock.tick), begin
        self._pieces: Iterator[Any] | None = None
        #: How many bindings come out in one turn, about and at most.
        self._most = most
        self._made: list[Any] = []
        #: How many bindings had come out when something was taken last.
        self._before = 0
        self.is_done = False

    @property
    def came(self) -> list[int]:
        """The bindings that came to each step."""
        return self._join.made

    @property
    def tried(self) -> int:
        return self._join.tried

    @property
    def is_full(self) -> bool:
        return self.is_done or self.came[-1] - self._before >= self._most

    def go_on(self, work: Work) -> None:
        """Make something of the rows, until all is made or much has been."""
        self._clock.work = work
        if self._pieces is None:
            self._pieces = self._begin(self._join)
        for piece in self._pieces:
            self._made.append(piece)
            if self.is_full:
                return
        self.is_done = True

    def taken(self) -> list[Any]:
        """Return what has been made and was not taken yet."""
        pieces, self._made, self._before = self._made, [], self.came[-1]
        return pieces


def prepare(join: Join) -> None:
    """Bring up to date whatever the steps of a plan look into, which would be done when they first look otherwise."""
    for step in join.plan.steps:
        if isinstance(step, AtomStep):
            _prepare_atom(join, step)
        elif isinstance(step, ChoiceStep):
            for joined, filter in step.ways:
                joined.source.blocks(joined.known)
                _prepare_atom(join, joined)
                _prepare_atom(join, filter)


def _prepare_atom(join: Join, step: AtomStep) -> None:
    join.truths[step.place]
    if step.filters:
        _ = step.table.slots
    elif step.known:
        join.index(step)
    else:
        _ = step.source.n
    if step.ranked:
        assert join.rank is not None, "a plan that looks at ranks, without any"
        step.table.column(join.rank)
