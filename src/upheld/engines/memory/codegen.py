"""The source of kernels of their own: all joins of a plan, and the making of its heads, as one nest of loops.

It depends on the shape of a plan alone, not on the names in its rule, so that rules of one shape share a kernel.
"""

from __future__ import annotations

from typing import NamedTuple

from upheld.engines.memory.plans.plan import AtomStep, Plan
from upheld.engines.memory.storage.block_index import BlockIndex

#: The arguments of a kernel for a step, by its kind, in the order of `arguments_of`.
ARRAYS = {
    "chain": ("rows", "slots", "following", "flags", "truth", "constants"),
    "block": ("rows", "slots", "entries", "pool", "flags", "truth", "constants"),
    "there": ("wanted", "wanted_key", "keys", "slots", "flags", "truth", "constants"),
    "not there": ("wanted", "wanted_key", "keys", "slots", "flags", "truth", "constants"),
}

#: The arguments of a kernel for known pairs, by the kind of matrix that has them: of bits, or of cells in which
#: instances are counted, in one piece or in squares.
MATRICES = {
    "bits": ("words", "pairs_width", "pairs_height"),
    "squares": ("words", "pairs_width", "pairs_height", "places"),
    "counts": ("cells", "counts", "pairs_width", "pairs_height"),
    "counts in squares": ("cells", "counts", "pairs_width", "pairs_height", "places"),
}


class StepShape(NamedTuple):
    """The parameters of the code of a step. Its kind is the kind of index it follows, or a test that a row exists."""

    kind: str
    known: tuple[int, ...]
    terms: tuple[int, ...]
    equal: tuple[tuple[int, int], ...]
    kept: tuple[int, ...]
    added: tuple[int, ...]

    @property
    def loops(self) -> bool:
        return self.kind in ("chain", "block")


class Shape(NamedTuple):
    """The parameters of the source of a kernel: the number of variables it begins with, its steps, and its head.

    Instances with known pairs are left out, or counted: `matrix` is the kind of matrix that has these.
    """

    start: int
    steps: tuple[StepShape, ...]
    head: tuple[int, ...]
    matrix: str


def shape_of(plan: Plan, matrix: str) -> Shape | None:
    """Return the shape of a plan, or None for plans that the generic kernels serve alone."""
    steps = []
    for step in plan.steps:
        if not isinstance(step, AtomStep) or step.ranked or not step.known:
            return None
        kept = tuple(step.kept.tolist())
        if step.filters:
            kind = "not there" if step.negated else "there"
            kept = tuple(range(len(step.variables)))
        else:
            kind = "block" if isinstance(step.source.index(step.known), BlockIndex) else "chain"
        equal = tuple((first, repeated) for first, repeated in step.equal.tolist())
        steps.append(StepShape(kind, step.known, tuple(step.terms.tolist()), equal, kept, tuple(step.added.tolist())))
    return Shape(len(plan.start), tuple(steps), tuple(plan.terms.tolist()), matrix) if steps else None


def source_of(shape: Shape, name: str) -> str:
    """Return the source of the kernel of a shape, as a function of this name.

        i       the binding to go on with
        at      for each loop where to go on in it, -1 for its beginning
        B       bindings of the first variables, `width` of them
        steps   for each step what ARRAYS says
        known   head pairs that need not be made, as MATRICES says
        marks   whether pairs that are made become so, which is for one thread alone
        made    takes the head rows

    It returns the binding to go on with, how many rows it made, and how many instances it met. It comes back when
    `made` is full, or when it has looked at very many rows in vain.
    """
    return _Writer(shape).source(name)


#: How many bindings ahead of the one at hand the slots, and then the rows, of the first loop are asked for.
_FAR, _NEAR = 12, 6


class _Writer:
    """Writes lines of source, each as deep as it stands."""

    def __init__(self, shape: Shape):
        self.shape = shape
        self.lines: list[str] = []
        self.depth = 0
        #: For each loop that is open, what says where it stands.
        self.cursors: list[str] = []
        #: The steps whose bindings are counted on the way to this line.
        self.counted = 0

    def write(self, *lines: str) -> None:
        """Write lines; what follows one that ends with a colon stands deeper."""
        for line in lines:
            self.lines.append("    " * self.depth + line)
            self.depth += line.endswith(":")

    def write_block(self, *lines: str) -> None:
        """Write lines that end the blocks they open."""
        depth = self.depth
        self.write(*lines)
        self.depth = depth

    def source(self, name: str) -> str:
        shape = self.shape
        self.write(f"def {name}(i, at, width, B, steps, constants, known, marks, made):")
        self.write(f"{', '.join(MATRICES[shape.matrix])} = known")
        for k, step in enumerate(shape.steps):
            self.write(f"{', '.join(f'{array}{k}' for array in ARRAYS[step.kind])} = steps[{k}]")
            self.write(f"mask{k}, shift{k} = len(slots{k}) - 1, shift_of(len(slots{k}))")
            if step.loops:
                self.write(f"at{k} = at[{k}]")
        self.write("found, met, bound, tried, limit = 0, 0, 0, 0, len(made)", "while i < width:")
        body = self.depth
        self._ask_ahead()
        held = [f"start{k}" for k in range(shape.start)]
        self.write(*(f"{name} = B[{k}, i]" for k, name in enumerate(held)))
        for k, step in enumerate(shape.steps):
            values = _values(step, k, held)
            if step.loops:
                self._chain(k, step, values) if step.kind == "chain" else self._block(k, step, values)
                held = self._match(k, step, held)
            else:
                self._look_up(k, step, values)
            if k + 1 < len(shape.steps):  # the bindings of the last step are the instances met
                self.write("bound += 1")
                self.counted += 1
        self._head(held)
        self.depth = body
        self.write("i += 1")
        self.depth = body - 1
        self.write("return i, found, met, bound")
        return "\n".join(self.lines) + "\n"

    def _ask_ahead(self) -> None:
        """Ask for what the first loop will look at, so that cache misses overlap."""
        step = self.shape.steps[0]
        if step.kind != "chain":
            return
        for ahead in (_FAR, _NEAR):
            values = _values(step, 0, [f"B[{k}, i + {ahead}]" for k in range(self.shape.start)])
            asked = (
                ["prefetch(slots0, p)"]
                if ahead == _FAR
                else ["newest = slots0[p]", "if newest >= 0:"]
                + [f"prefetch({array}, newest)" for array in ("rows0", "following0", "flags0")]
            )
            self.write_block(f"if i + {ahead} < width:", f"p = place({_hash(values)}, shift0)", *asked)

    def _look_up(self, k: int, step: StepShape, values: list[str]) -> None:
        self.write(*(f"wanted{k}[0, {c}] = {value}" for c, value in enumerate(values)))
        # A value too wide for the table is in none of its rows, but its low half may be.
        fits = "".join(f" and wanted{k}[0, {c}] == {value}" for c, value in enumerate(values))
        self.write(
            f"r{k} = find_row(wanted_key{k}, keys{k}, slots{k}, mask{k}, shift{k}) if True{fits} else np.int64(-1)",
            f"if r{k} >= 0 and truth{k}[flags{k}[r{k}]]:"
            if step.kind == "there"
            else f"if r{k} < 0 or not truth{k}[flags{k}[r{k}]]:",
        )

    def _chain(self, k: int, step: StepShape, values: list[str]) -> None:
        """Open a loop over the rows of a key: the newest one, and from each the next older one."""
        self.write_block(f"if at{k} >= 0:", f"on{k} = at{k}", f"at{k} = np.int64(-1)")
        self.write("else:", f"p = place({_hash(values)}, shift{k})", f"on{k} = np.int64(slots{k}[p])")
        other = f"while on{k} >= 0 and not ({_same(k, step, values, f'on{k}')}):"
        self.write_block(other, f"p = (p + 1) & mask{k}", f"on{k} = np.int64(slots{k}[p])")
        self.depth -= 1
        self.write(f"while on{k} >= 0:", f"r{k} = on{k}", f"on{k} = np.int64(following{k}[r{k}])")
        self.cursors.append(f"r{k}")

    def _block(self, k: int, step: StepShape, values: list[str]) -> None:
        """Open a loop over the rows of a key: its block of row numbers in the pool."""
        self.write(f"h = {_hash(values)}", f"p = place(h, shift{k})", f"key = slots{k}[p]", "while key >= 0:")
        self.write(f"other = pool{k}[entries{k}[key, 0]]")
        self.write_block(f"if np.uint64(entries{k}[key, 3]) == h and {_same(k, step, values, 'other')}:", "break")
        self.write(f"p = (p + 1) & mask{k}", f"key = slots{k}[p]")
        self.depth -= 1
        self.write(
            f"first{k} = entries{k}[key, 0] if key >= 0 else np.int64(0)",
            f"length{k} = entries{k}[key, 1] if key >= 0 else np.int64(0)",
            f"begin{k} = max(at{k}, np.int64(0))",
            f"at{k} = np.int64(-1)",
            f"for n{k} in range(begin{k}, length{k}):",
            f"r{k} = np.int64(pool{k}[first{k} + n{k}])",
        )
        self.cursors.append(f"n{k}")

    def _match(self, k: int, step: StepShape, held: list[str]) -> list[str]:
        """Go on with rows of the set that repeat values where variables repeat; return what bindings are then."""
        self._come_back_if("tried > PATIENCE")
        repeated = "".join(f" and rows{k}[r{k}, {a}] == rows{k}[r{k}, {b}]" for a, b in step.equal)
        self.write("tried += 1", f"if truth{k}[flags{k}[r{k}]]{repeated}:")
        added = {column: f"value{k}_{column}" for column in step.added}
        self.write(*(f"{name} = np.int64(rows{k}[r{k}, {column}])" for column, name in added.items()))
        return [held[t] for t in step.kept] + list(added.values())

    def _come_back_if(self, condition: str) -> None:
        """Return, to go on later with the very row that each open loop is at. Bindings up to there come again."""
        loops = [k for k, step in enumerate(self.shape.steps) if step.loops]
        standing = dict(zip(loops, self.cursors, strict=False))
        places = [f"at[{k}] = {standing.get(k, -1)}" for k in loops]
        self.write_block(f"if {condition}:", *places, f"return i, found, met, bound - {self.counted}")

    def _head(self, held: list[str]) -> None:
        values = [held[t] if t >= 0 else f"constants[{-1 - t}]" for t in self.shape.head]
        self._come_back_if("found == limit")
        self.write("met += 1")
        if len(values) == 2:
            self._pair(*values)
        self.write(*(f"made[found, {c}] = {value}" for c, value in enumerate(values)), "found += 1")

    def _pair(self, x: str, y: str) -> None:
        """Go on with a pair that is not known."""
        known = (
            (
                "counted = np.int64(counts[cell])",
                # A pair that this thread has not met may be known; full cells are emptied by whoever takes the heads.
                "counted = np.int64(cells[cell] > 0) if counted == 0 else counted",
                "new = counted == 0 or counted == FULL",
                "if not new:",
                "counts[cell] = np.uint8(counted + 1)",
            )
            if "counts" in MATRICES[self.shape.matrix]
            else (
                "bit = np.uint64(1) << np.uint64(cell & 63)",
                "word = words[cell >> 6]",
                "new = word & bit == 0",
                "if new and marks:",
                "words[cell >> 6] = word | bit",
            )
        )
        self.write("new = True")
        if "places" in MATRICES[self.shape.matrix]:
            self.write(f"cell = cell_of({x}, {y}, pairs_width, pairs_height, places)")
            self.write_block("if cell >= 0:", *known)
        else:
            self.write_block(
                f"if 0 <= {x} < pairs_width and 0 <= {y} < pairs_height:", f"cell = {x} * pairs_height + {y}", *known
            )
        self.write("if new:")


def _values(step: StepShape, k: int, held: list[str]) -> list[str]:
    """Return where the values of the known columns of a step come from."""
    return [held[t] if t >= 0 else f"constants{k}[{-1 - t}]" for t in step.terms]


def _hash(values: list[str]) -> str:
    text = "np.uint64(0)"
    for value in values:
        text = f"mix({text}, {value})"
    return text


def _same(k: int, step: StepShape, values: list[str], row: str) -> str:
    return " and ".join(f"rows{k}[{row}, {c}] == {value}" for c, value in zip(step.known, values, strict=True))
