"""Rule instances as plans: joins of the body atoms, one column for each variable.

The order is that of the reference engine: what is given first, then each time the atom with the most bound columns, and
built-ins and negated atoms as soon as their variables are bound. Sets are joined as sets, so each instance comes once.

Where a built-in has no result, that is an error if the rest of the body holds. So a binding without a result passes the
built-in, is marked, and what depends on the result passes as well. An atom cannot be joined on a value that is not
there; if a rule asks for that, the bindings without a result are followed in a plan of their own, with every row of the
atom.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from upheld.algebra.instances import is_ready
from upheld.engines.spark.codes import SPARK_TYPES, Layout, literal
from upheld.engines.spark.cols import col, lit
from upheld.engines.spark.columnfunctors import check, either, evaluate, holds, is_partial
from upheld.engines.spark.nearby import Nearby, Step, can_step, is_near
from upheld.engines.spark.reducing import Placed, reduced
from upheld.engines.spark.sets import Local, Part, SparkSet, Term, bound, combine, is_large
from upheld.language.core import Atom, Builtin, Expression, Rule
from upheld.language.core_text import atom_text, builtin_text
from upheld.language.hypertrees.jointree import Tree, tree_of
from upheld.language.strata import Stratum
from upheld.language.syntax.ast import Constant, Variable

if TYPE_CHECKING:
    from upheld.engines.spark.engine import DataFrameEngine

#: The mark of a binding for which some built-in has no result.
BAD = "bad"


@dataclass(frozen=True, eq=False)
class Where:
    """Where atoms are matched: as `derive` has it."""

    P: SparkSet
    N: SparkSet
    X: SparkSet | None = None
    Y: SparkSet | None = None
    H: SparkSet | None = None
    own: tuple[Stratum, SparkSet] | None = None

    def place(self, rule: Rule, i: int) -> Term | None:
        """Return the facts that positive atom i of a rule is matched in."""
        facts = self.own[1] if self.own and i in self.own[0].own(rule) else self.P
        return facts.part(rule.positive[i].predicate)


@dataclass(frozen=True, eq=False)
class Found:
    """Instances of a rule: a plan with the columns of its variables, and `bad`, which marks those that are errors."""

    rule: Rule
    frame: DataFrame
    may_fail: bool = False
    #: Whether few are expected.
    small: bool = True
    #: Whether they still have to be counted as considered.
    new: bool = True
    #: What holds the rows that the plan reads, which would be given back otherwise.
    uses: object = None


@dataclass(frozen=True)
class _Bindings:
    """What has been joined so far."""

    frame: DataFrame | None = None
    bound: frozenset[str] = frozenset()
    #: The columns that mark bindings for which the value of a variable is missing.
    missing: Mapping[str, str] = field(default_factory=dict)
    #: All columns that mark bindings without a result.
    marks: tuple[str, ...] = ()
    failed: bool = False


class Matcher:
    """Plans for the rules of a program."""

    def __init__(self, engine: DataFrameEngine):
        self.engine = engine
        self._types: dict[Rule, dict[str, str]] = {}
        self._trees: dict[Rule, Tree | None] = {}

    # -- the queries of the paper --------------------------------------------------------------------------------------

    def found(self, rules: Sequence[Rule], where: Where) -> Iterator[Found | Nearby]:
        """Yield plans for the instances that `derive` speaks of; together they have each instance once.

        What few facts have a part in is found in the driver, where that can be done.
        """
        for found in self._found(rules, where):
            yield replace(found, uses=where) if isinstance(found, Found) else found.holding(where)

    def _found(self, rules: Sequence[Rule], where: Where) -> Iterator[Found | Nearby]:
        for rule in rules:
            self.check(rule)
            if where.H is not None:
                heads = where.H.part(rule.head.predicate)
                if heads is not None:
                    yield from self._deriving(rule, heads, where)
            elif where.X is None and where.Y is None:
                yield from self._body(rule, None, self._positive(rule, where), self._negated(rule, where))
            else:
                yield from self._by_positive(rule, where)
                yield from self._by_negated(rule, where)

    def _positive(self, rule: Rule, where: Where, outside: SparkSet | None = None, before: int | None = None) -> _Atoms:
        """Return the positive atoms with their places; those before a position outside of a set."""
        atoms: list[tuple[Atom, Term | None]] = []
        for i, atom in enumerate(rule.positive):
            place = where.place(rule, i)
            if outside is not None and (before is None or i < before):
                place = combine("-", place, outside.part(atom.predicate))
            atoms.append((atom, place))
        return atoms

    def _negated(self, rule: Rule, where: Where) -> _Atoms:
        return [(atom, where.N.part(atom.predicate)) for atom in rule.negative]

    def _by_positive(self, rule: Rule, where: Where) -> Iterator[Found | Nearby]:
        """Query (156): atom i is the first one in X."""
        X = where.X
        if X is None:
            return
        for i, atom in enumerate(rule.positive):
            first = combine("&", X.part(atom.predicate), where.place(rule, i))
            if first is not None:
                atoms = self._positive(rule, where, X, before=i)
                yield from self._body(rule, (atom, first), [*atoms[:i], *atoms[i + 1 :]], self._negated(rule, where))

    def _by_negated(self, rule: Rule, where: Where) -> Iterator[Found | Nearby]:
        """Query (157): no positive atom is in X, and negated atom i is the first one in Y."""
        Y = where.Y
        if Y is None:
            return
        for i, atom in enumerate(rule.negative):
            first = combine("-", Y.part(atom.predicate), where.N.part(atom.predicate))
            if first is not None:
                negated = self._negated(rule, where)
                before = [(a, Y.part(a.predicate)) for a, _ in negated[:i]]
                rest = [*negated[:i], *before, *negated[i + 1 :]]
                yield from self._body(rule, (atom, first), self._positive(rule, where, where.X), rest)

    def _deriving(self, rule: Rule, heads: Part, where: Where) -> Iterator[Found | Nearby]:
        """The instances whose heads are in a set."""
        near = self._nearby(
            rule,
            (rule.head, heads),
            self._positive(rule, where),
            self._negated(rule, where),
            lambda: self._deriving_planned(rule, heads, where),
        )
        if near is not None:
            yield near
        else:
            yield from self._deriving_planned(rule, heads, where)

    def _deriving_planned(self, rule: Rule, heads: Part, where: Where) -> Iterator[Found]:
        """The instances whose heads are in a set: from what the heads say of the variables of body atoms."""
        in_atoms = {v for atom in rule.positive for v in atom.variables()}
        frame = self._rows(rule.head, heads, rule)
        known = [v for v in dict.fromkeys(rule.head.variables()) if v in in_atoms]
        all_known = len(known) == len(set(rule.head.variables()))
        names = [_column(rule, v) for v in known]
        start = None
        if known:
            projected = frame if all_known else frame.select(*names).distinct()
            start = _Bindings(F.broadcast(projected) if isinstance(heads, Local) else projected, frozenset(known))
        elif all_known:  # a head without variables
            start = _Bindings(frame)
        for found in self._planned(
            rule, start, self._positive(rule, where), self._negated(rule, where), small=isinstance(heads, Local)
        ):
            if not all_known:
                on = [_column(rule, v) for v in dict.fromkeys(rule.head.variables())]
                whole = found.frame.filter(~col(BAD)).join(frame, on, "left_semi").select(*found.frame.columns)
                # A value that is missing is in no set, and an error all the same.
                found = replace(found, frame=whole.unionAll(found.frame.filter(BAD)) if found.may_fail else whole)
            yield found

    # -- bodies --------------------------------------------------------------------------------------------------------

    def _body(
        self, rule: Rule, first: tuple[Atom, Term] | None, atoms: _Atoms, negated: _Atoms
    ) -> Iterator[Found | Nearby]:
        if first is not None:
            near = self._nearby(rule, first, atoms, negated, lambda: self._planned(rule, first, atoms, negated))
            if near is not None:
                yield near
                return
        yield from self._planned(rule, first, atoms, negated)

    def _nearby(
        self,
        rule: Rule,
        first: tuple[Atom, Term],
        atoms: _Atoms,
        negated: _Atoms,
        planned: Callable[[], Iterator[Found]],
    ) -> Nearby | None:
        """Return instances that the driver can find, beginning with few facts; None if it cannot.

        Where a built-in may have no result, it cannot: whether that is an error depends on the rest of the body.
        """
        places = [(atom, place) for atom, place in atoms if isinstance(place, Part)]
        some = [(atom, place) for atom, place in negated if isinstance(place, Part)]
        unknown = len(places) < len(atoms) or len(some) < sum(place is not None for _, place in negated)
        if unknown or not is_near(first[1]) or not self._brings_little(first[1]) or any(map(is_partial, rule.builtins)):
            return None
        so_far = _Bindings(_NOWHERE, frozenset(first[0].variables()))  # type: ignore[arg-type]
        left, not_in, builtins = list[Placed](places), list[Placed](some), list(rule.builtins)
        steps: list[Step | Builtin] = []
        while left or not_in or builtins:
            step = self._next(so_far, left, not_in, builtins)
            if isinstance(step, Builtin):
                builtins.remove(step)
                steps.append(step)
                so_far = replace(so_far, bound=so_far.bound | set(step.variables()))
                continue
            atom, place = step
            assert isinstance(place, Part), "an atom that is matched nowhere"
            is_negated = any(step is placed for placed in not_in)
            looked_up = Step(atom, place, is_negated)
            if not can_step(looked_up, so_far.bound):
                return None
            steps.append(looked_up)
            (not_in if is_negated else left).remove(step)
            so_far = replace(so_far, bound=so_far.bound | set(atom.variables()))
        if not so_far.bound.issuperset(rule.variables()):
            return None
        return Nearby(rule, first, steps, planned)

    def _planned(
        self,
        rule: Rule,
        first: tuple[Atom, Term] | _Bindings | None,
        atoms: _Atoms,
        negated: _Atoms,
        small: bool = False,
    ) -> Iterator[Found]:
        places = [(atom, place) for atom, place in atoms if place is not None]
        if len(places) < len(atoms):
            return  # an atom without facts
        if (tree := self._tree(rule)) and not isinstance(first, _Bindings):
            if first is None:
                places = reduced(rule, tree, None, places)
            elif first[0] in rule.positive:
                first, *places = reduced(rule, tree, first, places)
        start = _Bindings()
        if isinstance(first, _Bindings):
            start = first
        elif first is not None:
            atom, term = first
            frame = self._rows(atom, term, rule)
            start = _Bindings(frame if is_large(term) else F.broadcast(frame), frozenset(atom.variables()))
            small = self._brings_little(term)
        if not isinstance(first, tuple):
            small = small or not any(is_large(place) for _, place in places)
        some = [(atom, place) for atom, place in negated if place is not None]
        for bindings in self._joined(rule, start, places, some, list(rule.builtins)):
            yield self._finished(rule, bindings, small)

    def _tree(self, rule: Rule) -> Tree | None:
        """Return a join tree of a rule over nodes of a decomposition, by which it is to be reduced."""
        if rule not in self._trees:
            over_nodes = any(self.engine.codecs[atom.predicate].predicate.hidden for atom in rule.positive)
            differ = len(set(rule.positive)) == len(rule.positive)
            self._trees[rule] = tree_of(rule) if over_nodes and differ else None
        return self._trees[rule]

    def _brings_little(self, given: Term) -> bool:
        """Return whether few instances are expected of some facts, however large the sets are they are joined with.

        A plan that has been run for few rows and has more is run again, so that a fact is taken to have two instances.
        """
        most = bound(given)
        return not is_large(given) and (most is None or 2 * most <= self.engine.tables.small)

    def _joined(
        self, rule: Rule, so_far: _Bindings, atoms: list[Placed], negated: list[Placed], builtins: list[Builtin]
    ) -> Iterator[_Bindings]:
        """Yield what is joined with all atoms and tests: once, and once for each value that cannot be joined on."""
        atoms, negated, builtins = list(atoms), list(negated), list(builtins)
        while atoms or negated or builtins:
            step = self._next(so_far, atoms, negated, builtins)
            match step:
                case Builtin():
                    builtins.remove(step)
                    variable = _bound_by(step, so_far.bound)
                    if variable is not None and is_partial(step) and _occurs(variable, atoms):
                        without = self._without_result(rule, so_far, step)
                        yield from self._joined(rule, without, atoms, negated, builtins)
                    so_far = self._with_builtin(rule, so_far, step, variable)
                case (atom, term) if any(step is placed for placed in negated):
                    negated.remove(step)
                    so_far = self._with_negated(rule, so_far, atom, term)
                case (atom, term):
                    atoms.remove(step)
                    so_far = self._with_atom(rule, so_far, atom, term)
        yield so_far

    def _next(
        self, so_far: _Bindings, atoms: list[Placed], negated: list[Placed], builtins: list[Builtin]
    ) -> Builtin | Placed:
        ready = [b for b in builtins if is_ready(b, so_far.bound)]
        for builtin in ready:
            variable = _bound_by(builtin, so_far.bound)
            if variable is None or not _occurs(variable, atoms):
                return builtin
        for placed in negated:
            if all(v in so_far.bound for v in placed[0].variables()):
                return placed
        connected = [a for a in atoms if so_far.frame is None or any(v in so_far.bound for v in a[0].variables())]
        if not connected and ready:
            return ready[0]
        assert connected or atoms, "an unsafe rule: nothing binds the variables that are left"
        return max(connected or atoms, key=lambda a: _bound_columns(a[0], so_far.bound))

    def _rows(self, atom: Atom, term: Term, rule: Rule) -> DataFrame:
        """Return the rows that match an atom, with the columns of its variables."""
        return self._selected(atom, term.frame(), rule, [])

    def _selected(self, atom: Atom, frame: DataFrame, rule: Rule, more: Sequence[Column]) -> DataFrame:
        codec = self.engine.codecs[atom.predicate]
        first: dict[str, str] = {}
        for name, type, t in zip(codec.layout.names, codec.types, codec.terms(atom), strict=True):
            if isinstance(t, Constant):
                frame = frame.filter(col(name) == literal(t.value, type))
            elif t.name in first:
                frame = frame.filter(col(name) == col(first[t.name]))
            else:
                first[t.name] = name
        columns = [*more, *(col(name).alias(_column(rule, v)) for v, name in first.items())]
        return frame.select(*(columns or [lit(0).alias("one")]))

    def _with_atom(self, rule: Rule, so_far: _Bindings, atom: Atom, term: Term) -> _Bindings:
        rows = self._rows(atom, term, rule)
        bound = so_far.bound | set(atom.variables())
        if so_far.frame is None:
            return replace(so_far, frame=rows, bound=bound)
        if isinstance(term, Local):
            rows = F.broadcast(rows)
        on = [_column(rule, v) for v in dict.fromkeys(atom.variables()) if v in so_far.bound]
        if on:
            joined = so_far.frame.join(rows, on)
        else:
            joined = so_far.frame.crossJoin(rows.drop("one"))
        return replace(so_far, frame=joined, bound=bound)

    def _with_negated(self, rule: Rule, so_far: _Bindings, atom: Atom, term: Term) -> _Bindings:
        frame = self._started(so_far)
        rows = self._rows(atom, term, rule)
        if isinstance(term, Local):
            rows = F.broadcast(rows)
        on = [_column(rule, v) for v in dict.fromkeys(atom.variables())]
        joined = frame.join(rows, on, "left_anti") if on else frame.join(rows, lit(True), "left_anti")
        return replace(so_far, frame=joined)

    def _with_builtin(self, rule: Rule, so_far: _Bindings, builtin: Builtin, variable: str | None) -> _Bindings:
        frame = self._started(so_far)
        columns = {v: col(_column(rule, v)) for v in so_far.bound}
        missing = [col(so_far.missing[v]) for v in builtin.variables() if v in so_far.missing]
        if variable is None:
            truth = holds(builtin, columns)
            undefined = either(truth.undefined, *missing)
            if undefined is None:
                return replace(so_far, frame=frame.filter(truth.value))
            mark = f"undefined{len(so_far.marks)}"
            frame = frame.withColumn(mark, undefined).filter(col(mark) | truth.value)
            return replace(so_far, frame=frame, marks=(*so_far.marks, mark))
        result = evaluate(_other_side(builtin, variable), columns)
        name = _column(rule, variable)
        type = self.types(rule)[variable]
        bound = so_far.bound | {variable}
        undefined = either(result.undefined, *missing)
        frame = frame.withColumn(name, result.value.cast(SPARK_TYPES[type]))
        if undefined is None:
            return replace(so_far, frame=frame, bound=bound)
        mark = f"undefined{len(so_far.marks)}"
        return replace(
            so_far,
            frame=frame.withColumn(mark, undefined),
            bound=bound,
            missing={**so_far.missing, variable: mark},
            marks=(*so_far.marks, mark),
        )

    def _without_result(self, rule: Rule, so_far: _Bindings, builtin: Builtin) -> _Bindings:
        """Return the bindings for which a built-in has no result."""
        frame = self._started(so_far)
        columns = {v: col(_column(rule, v)) for v in so_far.bound}
        variable = _bound_by(builtin, so_far.bound)
        assert variable is not None, "a test binds nothing"
        undefined = evaluate(_other_side(builtin, variable), columns).undefined
        assert undefined is not None, "a partial built-in that always has a result"
        return replace(so_far, frame=frame.filter(undefined), failed=True)

    def _started(self, so_far: _Bindings) -> DataFrame:
        return so_far.frame if so_far.frame is not None else self.engine.one_row()

    def _finished(self, rule: Rule, bindings: _Bindings, small: bool) -> Found:
        """Return instances with their variables in order, and marked as bad where some built-in has no result."""
        variables = [col(_column(rule, v)) for v in rule.variables()]
        bad = either(*(col(mark) for mark in bindings.marks))
        may_fail = bindings.failed or bad is not None
        mark: Column = lit(False)
        if bindings.failed:
            mark = lit(True)
        elif bad is not None:
            mark = bad
        return Found(rule, self._started(bindings).select(*variables, mark.alias(BAD)), may_fail, small)

    # -- what is known of the facts of an instance ---------------------------------------------------------------------

    def attached(
        self, frame: DataFrame, rule: Rule, atom: Atom, facts: DataFrame | None, column: Column, name: str
    ) -> DataFrame:
        """Return instances with a column of the facts that an atom was matched to; null where there is none."""
        if facts is None:
            return frame.withColumn(name, lit(None).cast("bigint"))
        rows = self._selected(atom, facts, rule, [column.alias(name)])
        on = [_column(rule, v) for v in dict.fromkeys(atom.variables())]
        return frame.join(rows, on, "left") if on else frame.join(rows, lit(True), "left")

    def with_membership(self, frame: DataFrame, rule: Rule, atom: Atom, facts: SparkSet, name: str) -> DataFrame:
        """Return instances with a column that is null where the fact of an atom is not in a set."""
        part = facts.part(atom.predicate)
        rows = part.frame() if part is not None else None
        return self.attached(frame, rule, atom, rows, lit(1).cast("bigint"), name)

    # -- what a rule is made of ----------------------------------------------------------------------------------------

    def check(self, rule: Rule) -> None:
        """Raise the error that names a built-in of a rule that Spark cannot evaluate."""
        if rule not in self._types:
            check(rule)
            self.types(rule)

    def types(self, rule: Rule) -> dict[str, str]:
        """Return the type of each variable of a rule."""
        if rule not in self._types:
            types: dict[str, str] = {}
            for atom in (*rule.positive, *rule.negative, rule.head):
                for t, type in zip(atom.terms, self.engine.codecs[atom.predicate].types, strict=False):
                    if isinstance(t, Variable):
                        types[t.name] = type
            for builtin in rule.builtins:
                for argument in builtin.arguments:
                    if isinstance(argument, Variable):
                        types.setdefault(argument.name, builtin.type)
            self._types[rule] = types
        return self._types[rule]

    def layout(self, rule: Rule) -> Layout:
        """Return the columns of the variables of a rule."""
        types = self.types(rule)
        names = tuple(_column(rule, v) for v in rule.variables())
        return Layout(names, tuple(SPARK_TYPES[types[v]] for v in rule.variables()))

    def arguments(self, rule: Rule, atom: Atom) -> list[Column]:
        """Return the arguments of an atom under each binding, with the names of its predicate's columns."""
        codec = self.engine.codecs[atom.predicate]
        return [
            (literal(t.value, type) if isinstance(t, Constant) else col(_column(rule, t.name))).alias(name)
            for name, type, t in zip(codec.layout.names, codec.types, codec.terms(atom), strict=True)
        ]

    def forget(self, predicate: str) -> None:
        for rule in [r for r in self._types if any(a.predicate == predicate for a in (r.head, *r.atoms))]:
            del self._types[rule]
            self._trees.pop(rule, None)

    def plan_lines(self, rule: Rule) -> Iterator[str]:
        """Yield lines that tell in which order a rule is joined: from all facts, and from new facts of each atom."""
        starts: list[tuple[str, Atom | None]] = [("all facts", None)]
        starts += [(f"new {atom_text(atom)}", atom) for atom in rule.positive]
        for title, first in starts:
            yield f"from {title}"
            so_far = _Bindings(bound=frozenset(first.variables()) if first else frozenset())
            atoms: list[Placed] = [(a, _NOWHERE) for a in rule.positive if a is not first]
            negated: list[Placed] = [(a, _NOWHERE) for a in rule.negative]
            builtins, started = list(rule.builtins), first is not None
            while atoms or negated or builtins:
                known = replace(so_far, frame=_NOWHERE if started else None)  # type: ignore[arg-type]
                step = self._next(known, atoms, negated, builtins)
                started = True
                if isinstance(step, Builtin):
                    builtins.remove(step)
                    binds = _bound_by(step, so_far.bound) is not None
                    yield f"  {'compute' if binds else 'keep where'} {builtin_text(step)}"
                    so_far = replace(so_far, bound=so_far.bound | set(step.variables()))
                elif any(step is placed for placed in negated):
                    negated.remove(step)
                    yield f"  keep where not {atom_text(step[0])}"
                else:
                    atoms.remove(step)
                    shared = any(v in so_far.bound for v in step[0].variables())
                    yield f"  {'join' if shared else 'with every'} {atom_text(step[0])}"
                    so_far = replace(so_far, bound=so_far.bound | set(step[0].variables()))


_Atoms = list[tuple[Atom, Term | None]]


class _Nowhere:
    """Stands for the facts of an atom where only the order of atoms is asked for."""

    def frame(self) -> DataFrame:
        raise AssertionError("no plan is made of an order")


_NOWHERE = _Nowhere()


def _column(rule: Rule, variable: str) -> str:
    """Return the name of the column of a variable; its own may not be one that Spark accepts."""
    return f"v{rule.variables().index(variable)}"


def _bound_by(builtin: Builtin, bound: frozenset[str]) -> str | None:
    """Return the variable that a ready built-in binds, if it does."""
    if builtin.operator == "=":
        for argument in builtin.arguments:
            if isinstance(argument, Variable) and argument.name not in bound:
                return argument.name
    return None


def _other_side(builtin: Builtin, variable: str) -> Expression:
    """Return what a variable alone on one side is equal to."""
    left, right = builtin.arguments
    return right if isinstance(left, Variable) and left.name == variable else left


def _occurs(variable: str, atoms: Sequence[Placed]) -> bool:
    return any(variable in atom.variables() for atom, _ in atoms)


def _bound_columns(atom: Atom, bound: frozenset[str]) -> int:
    return sum(isinstance(t, Constant) or t.name in bound for t in atom.terms)
