"""Rules that prove hot get a kernel of their own, compiled beside the work and kept on disk.

Until it is ready the generic kernels serve; both meet the same instances and make the same rows. To compile takes some
seconds the first time ever, and to find the machine code on disk later a tenth of one.
"""

from __future__ import annotations

import hashlib
import inspect
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, Protocol

import numpy as np

from upheld.engines.memory.codegen import Shape, shape_of, source_of
from upheld.engines.memory.joins.batch import Join
from upheld.engines.memory.joins.sinks import Heads, HeadsOnly
from upheld.engines.memory.kernels import hashing, jit, pairs
from upheld.engines.memory.plans.plan import AtomStep
from upheld.engines.memory.storage.arrays import key_view
from upheld.engines.memory.storage.block_index import BlockIndex
from upheld.engines.memory.storage.chain_index import ChainIndex
from upheld.engines.memory.storage.codec import Codes

#: Instances of rules of one shape from which on it is worth while to compile: about a tenth of a second of work.
HOT = 1 << 20

#: For fewer bindings it takes longer to find out which kernel to use than to use any.
FEWEST_BINDINGS = 256

#: Tables of more rows than this are not in the cache. The generic kernels ask for the rows of a whole group of bindings
#: before they look at one; a nest of loops can do so for its outermost loop alone.
CACHED_ROWS = 1 << 15

#: The name of threads that compile.
THREAD = "upheld-compiles-a-rule"


class Runner(Protocol):
    """Sends batches of bindings through a plan."""

    def made_of(self, B: Codes, width: int) -> Iterator[Any]:
        """Yield what the sink of the plan makes of a batch of bindings, piece by piece."""


#: Returns what runs a join: the join itself, by the generic kernels, or a kernel of its own.
MakeRunner = Callable[[Join], Runner]

#: A shape, and the kinds of the arguments of its kernel.
_Key = tuple[Shape, Any]

_heat: Counter[Shape] = Counter()
#: The kernels that are compiled, or the error if that failed; None while it is under way.
_kernels: dict[_Key, Callable[..., tuple[int, int, int, int]] | Exception | None] = {}
#: Held while somebody asks for a kernel: rules of one shape may run side by side.
_asking = threading.Lock()


class Runners(Protocol):
    """Says what runs a join, for each batch of bindings anew."""

    def runner(self) -> MakeRunner: ...


class Generic:
    """The generic kernels run every join."""

    def runner(self) -> MakeRunner:
        return _itself


GENERIC = Generic()


class Quickest:
    """The quickest way there is by now to send bindings through a plan to its heads.

    A rule may prove hot, and its kernel be ready, in the middle of a run. `marks` says whether the kernel may put pairs
    among the known ones.
    """

    def __init__(self, join: Join, sink: HeadsOnly, marks: bool):
        self._join, self._sink, self._marks = join, sink, marks
        self._may_be_compiled = not sink.wide and all(table.n <= CACHED_ROWS for table in join.plan.tables[1:])
        #: The instances that are counted as work for rules of the shape.
        self._noted = sink.instances
        self._choose(sink.matrix)

    def _choose(self, matrix: str) -> None:
        """Look for a kernel for a kind of matrix."""
        self._matrix = matrix
        #: The shape of the plan, if rules of its shape may have a kernel.
        self._shape = shape_of(self._join.plan, matrix) if self._may_be_compiled else None
        #: Runs joins by the kernel, once it is ready.
        self._compiled: MakeRunner | None = None

    def runner(self) -> MakeRunner:
        if self._matrix != (matrix := self._sink.matrix):
            self.note()
            self._choose(matrix)
        if self._compiled is not None:
            return self._compiled
        self.note()
        if self._shape is None or _heat[self._shape] < HOT:
            return _itself
        kernel = _kernel(self._shape, Nest(self._join, self._sink, self._marks, self._matrix))
        if kernel is None:
            return _itself
        self._compiled = partial(Nest, sink=self._sink, marks=self._marks, matrix=self._matrix, kernel=kernel)
        return self._compiled

    def note(self) -> None:
        """Note how many instances were met since the last time."""
        if self._shape is not None:
            _heat[self._shape] += self._sink.instances - self._noted
            self._noted = self._sink.instances


def _itself(join: Join) -> Runner:
    return join


class Nest:
    """One run of a plan by a kernel of its own."""

    def __init__(
        self,
        join: Join,
        sink: HeadsOnly,
        marks: bool,
        matrix: str,
        kernel: Callable[..., tuple[int, int, int, int]] | None = None,
    ):
        self.join, self.sink, self.marks, self.matrix, self.kernel = join, sink, marks, matrix, kernel
        self.steps = [step for step in join.plan.steps if isinstance(step, AtomStep)]
        self.indexes = [None if step.filters else join.index(step) for step in self.steps]

    def made_of(self, B: Codes, width: int) -> Iterator[Heads]:
        assert self.kernel is not None, "a kernel that is compiled"
        head, came = self.join.plan.head, self.join.made
        came[0] += width
        made = np.empty((self.join.room(width), head.arity), head.rows.dtype)
        at = np.full(len(self.steps), -1, np.int64)
        i = 0
        while i < width:
            # The tables may have grown, and their arrays moved, since the last time round.
            i, found, met, bound = self.kernel(*self.arguments(i, at, width, B, made))
            self.join.tick(self.join.plan.rule)
            came[-1] += met
            self.join.tried += bound
            if met:  # who does not mark pairs does not enter them at once either, and the array is used again
                yield Heads(made[:found] if self.marks else made[:found].copy(), met, self.marks)

    def arguments(self, i: int, at: Codes, width: int, B: Codes, made: Any) -> tuple[Any, ...]:
        steps = tuple(map(self._arrays, self.steps, self.indexes))
        return i, at, width, B, steps, self.join.plan.constants, self.sink.known_pairs(self.matrix), self.marks, made

    def _arrays(self, step: AtomStep, index: ChainIndex | BlockIndex | None) -> tuple[Any, ...]:
        """Return what ARRAYS names."""
        table, truth = step.table, self.join.truths[step.place]
        if index is None:
            wanted = np.empty((1, table.arity), table.rows.dtype)
            return wanted, key_view(wanted), table.keys, table.slots, table.flags, truth, step.constants
        if isinstance(index, BlockIndex):
            return table.rows, index.slots, index.entries, index.pool, table.flags, truth, step.constants
        return table.rows, index.slots, index.following, table.flags, truth, step.constants


# -- compiling ---------------------------------------------------------------------------------------------------------


def _kernel(shape: Shape, nest: Nest) -> Callable[..., tuple[int, int, int, int]] | None:
    """Return the kernel for a run if it is ready; else see to it that it will be."""
    head = nest.join.plan.head
    made, B = np.empty((1, head.arity), head.rows.dtype), np.empty((shape.start, 1), np.int64)
    arguments = nest.arguments(0, np.empty(1, np.int64), 1, B, made)
    key = shape, jit.kind_of(arguments)
    with _asking:
        is_first = key not in _kernels
        if is_first:
            _kernels[key] = None
    if is_first:
        jit.compile_kernels()
        compiling = threading.Thread(target=_compile, args=(key, jit.types_of(arguments)), name=THREAD)
        compiling.start()
        if jit.NEVER_COMPILED:
            compiling.join()
    compiled = _kernels[key]
    if isinstance(compiled, Exception):
        raise compiled
    return compiled


def _compile(key: _Key, types: Any) -> None:
    try:
        made = _function(key[0])
        if not jit.NEVER_COMPILED:
            made.compile(tuple(types))
        _kernels[key] = made
    except Exception as error:  # raised where the kernel is asked for
        _kernels[key] = error


@cache
def _function(shape: Shape) -> Any:
    """Return the kernel of a shape, to be compiled for the types it is called with."""
    text = source_of(shape, "rule")
    # The name distinguishes kernels on disk: a kernel of an older source must not be loaded.
    own = hashlib.sha256((text + _helpers()).encode()).hexdigest()[:16]
    names: dict[str, Any] = {
        "np": np, "mix": hashing.mix, "place": hashing.place, "shift_of": hashing.shift_of,
        "find_row": hashing.find_row, "prefetch": jit.prefetch, "PATIENCE": hashing.PATIENCE,
        "cell_of": pairs.cell_of, "FULL": pairs.FULL, "__name__": __name__,
    }  # fmt: skip
    name = f"rule_{own}"
    exec(compile(source_of(shape, name), __file__, "exec"), names)
    return jit.kernel(names[name])


@cache
def _helpers() -> str:
    """Return the source of what the kernels call."""
    return "".join(map(inspect.getsource, (hashing, jit, pairs)))
