"""The ways to run a rule forwards from rows of one of its atoms: the first way of `WAYS` that applies is taken.

Two things are decided elsewhere. Rounds of ranked support in which few facts change are run many at a time by
`rounds.driver`, before any rule is run by itself. Whether some heads have a derivation is found backwards, by
`first_match`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from upheld.compiler.hypertrees.jointree import Tree
from upheld.engines.memory.joins.batch import Join, batches
from upheld.engines.memory.joins.bulk_copy import Copying
from upheld.engines.memory.joins.hot_rules import FEWEST_BINDINGS, GENERIC, Quickest, Runners
from upheld.engines.memory.joins.meet_in_middle import FEWEST_TO_MEET
from upheld.engines.memory.joins.semijoin import Reduced, Reduction, may_pay, pays, split
from upheld.engines.memory.joins.sinks import HeadsOnly
from upheld.engines.memory.joins.threads import chunks
from upheld.engines.memory.kernels.rows import CHUNK
from upheld.engines.memory.plans.plan import LOWEST, Literal, Plan
from upheld.engines.memory.sets.context import Context
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.table import Table
from upheld.language.ast import Variable
from upheld.language.core import Atom, Rule


class Run(Protocol):
    """The forward run that a delta belongs to."""

    @property
    def context(self) -> Context: ...

    def tree(self, rule: Rule) -> Tree | None:
        """Return a join tree of a rule, if it has one."""

    def others(self, delta: Delta) -> Mapping[int, Literal]:
        """Return the positive atoms beside the one of a delta, by position, with the places where they are matched."""


class Delta(NamedTuple):
    """Rows of an atom, and the join that begins with them.

    `kind` says how the atom was reached: from `all` of its facts, from changed facts (`via`) or, negated, `via not`.
    For rules that copy rows `copying` stands for the atoms of all of them.
    """

    run: Run
    join: Join
    table: Table
    rows: Rows
    #: The column of ranks, if the rows are ranked.
    rank: str | None
    atom: Atom | None = None
    kind: str = "via"
    position: int = 0
    copying: Copying | None = None

    @property
    def rule(self) -> Rule:
        return self.join.plan.rule


class Way(NamedTuple):
    """A way to run a rule, and whether it applies to a delta."""

    name: str
    applies: Callable[[Delta], bool]
    run: Callable[[Delta], None]


# -- bulk copies -------------------------------------------------------------------------------------------------------


def is_copied(delta: Delta) -> bool:
    """Several rules of one shape have a single body atom, and copy its rows."""
    return delta.copying is not None


def copy_in_bulk(delta: Delta) -> None:
    """Make the heads of all rules at once."""
    _, join, table, rows, rank, *_, copying = delta
    assert copying is not None, "rules that copy rows"
    for origins, B in copying.copies(rows):
        join.tick(copying.rules[0])
        if join.rank is not None:
            heights = table.column(rank)[origins] if rank is not None else np.full(len(origins), LOWEST, np.int64)
            B = np.vstack([B, heights])
        join.run(B, len(origins))


# -- semijoin reduction ------------------------------------------------------------------------------------------------


def may_be_reduced(delta: Delta) -> bool:
    """The rule is acyclic, and its join may make many more bindings than there are facts to look at."""
    return is_reducible(delta.run, delta.join.plan, len(delta.rows), delta.kind)


def is_reducible(run: Run, plan: Plan, rows: int, kind: str) -> bool:
    """Return whether the join of some rows may be reduced; if not, no join of fewer rows is either."""
    return may_pay(plan, rows) and kind != "via not" and run.tree(plan.rule) is not None


def reduce_if_it_pays(delta: Delta) -> None:
    """Try the join with some rows. If most bindings lead nowhere, leave out the facts that are part of no instance."""
    some, rest = split(delta.rows)
    run_in_batches(delta._replace(rows=some))
    if not pays(delta.join, len(rest)):
        run_delta(delta._replace(rows=rest), AFTER_TRIAL)
        return
    tree = delta.run.tree(delta.rule)
    assert tree is not None and delta.atom is not None, "an acyclic rule"
    reduction = Reduction(delta.join, tree, delta.atom, delta.position, delta.run.others(delta))
    rows, partners = reduction.reduce(rest)
    with delta.run.context.marked(partners) as truth:
        reduced = delta.join.within(Reduced(delta.join.truths, truth))
        run_delta(delta._replace(join=reduced, rows=rows), AFTER_TRIAL)
    delta.join.made[-1] += reduced.made[-1]
    delta.join.tried += reduced.bindings


# -- meeting in the middle ---------------------------------------------------------------------------------------------


def comes_in_runs(delta: Delta) -> bool:
    """Two atoms have one new variable between them, and many bindings may share the rows of one of them."""
    return delta.join.plan.runs_of is not None and len(delta.rows) >= FEWEST_TO_MEET


def run_in_runs(delta: Delta) -> None:
    """Sort the rows, so that bindings with the same key come together and can meet in the middle."""
    table, rows, atom = delta.table, delta.rows, delta.atom
    assert atom is not None, "rows of an atom"
    variable = Variable(delta.join.plan.runs_of or "")
    by_key = rows[np.argsort(table.rows[rows, atom.terms.index(variable)], kind="stable")]
    run_in_batches(delta._replace(rows=by_key))


# -- kernels of their own ----------------------------------------------------------------------------------------------


def may_be_compiled(delta: Delta) -> bool:
    """The bindings are worth a look at the kernels of hot rules, and only heads are wanted."""
    return len(delta.rows) >= FEWEST_BINDINGS and isinstance(delta.join.sink, HeadsOnly)


def run_compiled(delta: Delta) -> None:
    """Run the kernel of the rule once it is compiled, and batches until then or where they are as fast."""
    join, sink = delta.join, delta.join.sink
    assert isinstance(sink, HeadsOnly) and delta.atom is not None, "a sink of heads, and rows of an atom"
    way = Quickest(join, sink, marks=not pays_side_by_side(delta))
    rows = sink.in_order(delta.table, delta.rows, delta.atom)
    run_in_batches(delta._replace(rows=rows), way)
    way.note()


# -- batches -----------------------------------------------------------------------------------------------------------


#: Bindings that come of a batch, about and at most. Between batches a rule proves hot, or its kernel is ready.
MOST_BINDINGS = 16 * CHUNK


def always(delta: Delta) -> bool:
    """Every plan runs on batches."""
    return True


def pays_side_by_side(delta: Delta) -> bool:
    """The batches are worth sharing among threads."""
    return chunks.pays(delta.run.context.threads, delta.join.plan, len(delta.rows))


def run_in_batches(delta: Delta, runners: Runners = GENERIC) -> None:
    """Send batches of bindings through the steps of the plan."""
    join, table, rows, rank, atom = delta.join, delta.table, delta.rows, delta.rank, delta.atom
    assert atom is not None, "rows of an atom"
    if pays_side_by_side(delta):
        chunks.run_side_by_side(delta.run.context.threads, join, runners, table, rows, atom, rank)
        return
    size = partial(join.batch_size, MOST_BINDINGS)
    for B, width in batches(table, rows, atom, join.plan.start, rank, size):
        for piece in runners.runner()(join).made_of(B, width):
            join.sink.enter(piece)


WAYS = (
    Way("bulk copy", is_copied, copy_in_bulk),
    Way("semijoin reduction", may_be_reduced, reduce_if_it_pays),
    Way("meeting in the middle", comes_in_runs, run_in_runs),
    Way("kernel of its own", may_be_compiled, run_compiled),
    Way("batches", always, run_in_batches),
)

#: The ways for rows that are left after the trial of a semijoin reduction.
AFTER_TRIAL = WAYS[2:]


def run_delta(delta: Delta, ways: Sequence[Way] = WAYS) -> None:
    """Run a rule from some rows, in the first way that applies."""
    for way in ways:
        if way.applies(delta):
            way.run(delta)
            return
