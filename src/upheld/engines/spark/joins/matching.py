"""Which instances rules have in all partitions: bindings go through the legs of all rules together.

Each task matches what it has in its own tables, by the plans and kernels of the memory engine. Between two legs all
bindings travel in one exchange, and so do the results of the last legs: heads, or whole instances, to the homes of
heads. The numbers for the meter go along, and so does whether a built-in had no result, and whether a task has work to
share (`sharing`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from upheld.algebra.instances import undefined
from upheld.algebra.sets import Own
from upheld.engines.memory.codegen.hot_rules import FEWEST_BINDINGS, quickest
from upheld.engines.memory.counters.bags import Group
from upheld.engines.memory.joins.batch import CHUNK, FunctionSink, Join, Sink
from upheld.engines.memory.joins.matching import Where, batches
from upheld.engines.memory.joins.sinks import HeadSink
from upheld.engines.memory.kernels import rows as row_kernels
from upheld.engines.memory.plans.plan import HEIGHT, AtomStep, BuiltinStep, Place, Plan
from upheld.engines.memory.sets.truth_tables import selected
from upheld.engines.memory.storage.codec import Codes, is_text
from upheld.engines.memory.storage.partitions import Part
from upheld.engines.memory.storage.table import Rows, Table
from upheld.engines.spark.codec import replaced
from upheld.engines.spark.context import Context
from upheld.engines.spark.joins import sharing
from upheld.engines.spark.joins.arrivals import Arrivals, HomeTally
from upheld.engines.spark.joins.plans import EVERYWHERE, Kind, Leg, Pipeline, pipeline, rest_of
from upheld.engines.spark.owners import Values
from upheld.engines.spark.sets.sets import Bound, PartitionedSet
from upheld.engines.spark.tasks.wire import Outbox
from upheld.errors import EvaluationError
from upheld.language.core import Apply, Predicate, Rule
from upheld.language.core_text import atom_text
from upheld.language.strata import Stratum
from upheld.language.syntax.ast import Constant, Variable

#: A variable that carries the number of a binding; no dialect lets a user write it.
_NUMBER = "$number"

#: Bindings that a task numbers at most.
_MOST_NUMBERED = 1 << 40


class Sets(NamedTuple):
    """The sets that bodies are matched in, as `derive` is given them."""

    P: PartitionedSet
    N: PartitionedSet
    via: PartitionedSet | None = None
    via_not: PartitionedSet | None = None
    own: tuple[Stratum, PartitionedSet] | None = None

    def completed(self) -> Sets:
        """Return the sets with their copies."""
        own = None if self.own is None else (self.own[0], self.own[1].completed())
        via = None if self.via is None else self.via.completed()
        via_not = None if self.via_not is None else self.via_not.completed()
        return Sets(self.P.completed(), self.N.completed(), via, via_not, own)

    def where(self, context: Context) -> Where:
        own = None if self.own is None else Own(self.own[0], self.own[1].local)
        return Where(
            context.memory,
            self.P.local,
            self.N.local,
            None if self.via is None else self.via.local,
            None if self.via_not is None else self.via_not.local,
            own,
        )

    def bounds(self) -> tuple[Bound | None, ...]:
        """Return the bounds of all sets: together with the rules they say what can be derived at all."""
        sets = self.P, self.via, self.via_not, self.own[1] if self.own else None
        return tuple(None if s is None else s.bound for s in sets)


class Reach(NamedTuple):
    """The predicates that rules may derive, by the bounds of sets, and the legs of the longest pipeline.

    `new_texts` is whether built-ins may make texts that no task knows.
    """

    heads: Bound
    legs: int
    new_texts: bool


class Results(NamedTuple):
    """The parcels that have come to the homes of heads, and the number of instances in all tasks."""

    came: Outbox
    instances: int


#: Puts the results of a plan into an outbox, given the number of its rule and a batch of bindings.
End = Callable[[int, Plan, Codes, int, Outbox], None]

#: Reaches that are cached.
_MOST_REACHES = 4096

#: A pipeline by the number of its rule, and from where it is matched.
Key = tuple[int, str, int]

_NO_RESULTS = Results([], 0)


class Matching:
    """Finds the instances of rules. Pipelines are made once and kept."""

    def __init__(self, context: Context):
        self.context = context
        self._pipelines: dict[tuple[Rule, Kind], Pipeline] = {}
        self._numbers: dict[int, tuple[Sequence[Rule], dict[Rule, int]]] = {}
        self._reaches: dict[tuple[Any, ...], tuple[Sequence[Rule], Reach]] = {}
        self._text_makers: dict[Rule, bool] = {}
        self._expansions: dict[Leg, sharing.Expansion | None] = {}

    def forget(self, predicate: Predicate) -> None:
        """Give up everything that is cached for the rules that derive a predicate."""
        self.forget_rules({rule for rule, _ in self._pipelines if rule.head.predicate == predicate.name})

    def forget_rules(self, rules: Collection[Rule]) -> None:
        """Give up everything that is cached for some rules."""
        for key in [key for key in self._pipelines if key[0] in rules]:
            del self._pipelines[key]
        self._numbers.clear()
        self._reaches.clear()
        self._expansions.clear()
        self._text_makers.clear()
        self.context.known_rules.difference_update(rules)

    def pipeline(self, rule: Rule, kind: Kind) -> Pipeline:
        mine = self._pipelines.get((rule, kind))
        if mine is None:
            mine = self._pipelines[rule, kind] = pipeline(rule, kind, self.context.views, HEIGHT)
        return mine

    def expansion(self, leg: Leg) -> sharing.Expansion | None:
        """Return how tasks may share the work of a leg."""
        if leg not in self._expansions:
            self._expansions[leg] = sharing.expansion_of(leg, self.context.views)
        return self._expansions[leg]

    def number_of(self, rules: Sequence[Rule]) -> dict[Rule, int]:
        """Return the numbers by which tasks name the rules of a list."""
        cached = self._numbers.get(id(rules))
        if cached is None or cached[0] is not rules:
            self.context.know(rules)
            cached = self._numbers[id(rules)] = rules, {rule: k for k, rule in enumerate(rules)}
        return cached[1]

    def reach(self, rules: Sequence[Rule], sets: Sets, heads: Bound | None, kind: Kind) -> Reach:
        """Return the reach of rules: the same in all tasks, because bounds are."""
        key = (id(rules), sets.bounds(), heads, kind)
        cached = self._reaches.get(key)
        if cached is None or cached[0] is not rules:
            self.number_of(rules)
            if len(self._reaches) > _MOST_REACHES:
                self._reaches.clear()
            cached = self._reaches[key] = rules, self._reach(rules, sets, heads, kind)
        return cached[1]

    def _reach(self, rules: Sequence[Rule], sets: Sets, heads: Bound | None, kind: Kind) -> Reach:
        derived: set[str] = set()
        legs, new_texts = 0, False
        for rule in rules:
            bounds = [sets.P.bound] * len(rule.positive)
            if sets.own is not None:
                for i in sets.own[0].own(rule):
                    bounds[i] = sets.own[1].bound
            if all(atom.predicate in bound for atom, bound in zip(rule.positive, bounds, strict=True)):
                for begin, position in _beginnings(rule, sets, heads):
                    derived.add(rule.head.predicate)
                    mine = self.pipeline(rule, kind._replace(begin=begin, position=position))
                    legs, new_texts = max(legs, len(mine.legs)), new_texts or self._makes_texts(rule)
        return Reach(frozenset(derived), legs, new_texts)

    def forwards(
        self,
        operator: str,
        rules: Sequence[Rule],
        sets: Sets,
        kind: Kind,
        end: End,
        rank: str | None = None,
        arrivals: Arrivals | None = None,
    ) -> Results:
        """Find the instances that `derive` speaks of, from all facts or from changed ones.

        `rank` is the column of ranks, for bindings that carry the highest of their facts. `arrivals` takes heads.
        """
        reach = self.reach(rules, sets, None, kind)
        if not reach.heads:
            return _NO_RESULTS
        sets = sets.completed()
        with (where := sets.where(self.context)), arrivals.taking() if arrivals else nullcontext():
            run = _Run(self, rules, where, kind, end, reach, rank, arrivals)
            if sets.via is None and sets.via_not is None:
                for k, rule in enumerate(rules):
                    run.from_all(k, self.pipeline(rule, kind._replace(begin="all")))
            if sets.via is not None:
                run.from_changed("via", "positive", sets.via)
            if sets.via_not is not None:
                run.from_changed("via not", "negated", sets.via_not)
            return run.finish(operator)

    def backwards(
        self,
        operator: str,
        rules: Sequence[Rule],
        H: PartitionedSet,
        sets: Sets,
        kind: Kind,
        end: End,
        *,
        considered: bool = True,
        arrivals: Arrivals | None = None,
    ) -> Results:
        """Find the instances with heads in a set. If they are not considered, the meter does not count them.

        `arrivals` takes heads.
        """
        reach = self.reach(rules, sets, H.bound, kind)
        if not reach.heads:
            return _NO_RESULTS
        sets = sets.completed()
        rows = H.here()
        with (where := sets.where(self.context)), arrivals.taking() if arrivals else nullcontext():
            run = _Run(self, rules, where, kind, end, reach, arrivals=arrivals)
            run.from_heads(rows)
            return run.finish(operator, considered)

    # -- what comes out at the end -------------------------------------------------------------------------------------

    def plan_texts(self, rule: Rule) -> Iterator[str]:
        """Yield lines that show the legs of a rule: from all facts, and from new facts of each body atom."""
        kinds = [("all facts", Kind("all"))]
        kinds += [(f"new {atom_text(a)}", Kind("via", i)) for i, a in enumerate(rule.positive)]
        for title, kind in kinds:
            yield f"from {title}:"
            for number, leg in enumerate(self.pipeline(rule, kind).legs, 1):
                where = "there" if leg.route is None else f"at {leg.route.key}"
                matched = [("!" if x.negated else "") + atom_text(x.atom) for x in leg.literals]
                yield f"  leg {number}, {where}: {', '.join(matched) or 'nothing to match'}"

    def heads(self, _: int, plan: Plan, B: Codes, width: int, outbox: Outbox) -> None:
        """Send heads home."""
        self.context.home_of(outbox, plan.head.name, _head_codes(plan, B, width))

    def ranked_heads(self, _: int, plan: Plan, B: Codes, width: int, outbox: Outbox) -> None:
        """Send heads home, each with the height of its body."""
        self.context.home_of(outbox, plan.head.name, _head_codes(plan, B, width), B[plan.last.index(HEIGHT)])

    def instances(self, k: int, plan: Plan, B: Codes, width: int, outbox: Outbox) -> None:
        """Send instances to the homes of their heads: the values of all variables, a row for each instance."""
        rule, owners = plan.rule, self.context.owners
        codes = B[[plan.last.index(v) for v in rule.variables()]].T
        first = rule.head.terms[0] if rule.head.terms else None
        if first is None or isinstance(first, Constant):
            task = owners.of_name(rule.head.predicate) if first is None else self._owner(first)
            outbox[task].append((k, codes))
            return
        for task, places in owners.split(owners.of(B[plan.last.index(first.name)])):
            outbox[task].append((k, codes[places]))

    def _owner(self, constant: Constant) -> int:
        return self.context.owners.of_one(self.context.codec.encode_one(constant.value, constant.type))

    def instances_of(self, rules: Sequence[Rule], results: Results) -> list[Group]:
        """Return the instances that have come, by rule."""
        by_rule: dict[int, list[Codes]] = {}
        for parcels in results.came:
            for k, codes in parcels:
                by_rule.setdefault(k, []).append(codes.T)
        return [Group(rules[k], np.concatenate(parts, axis=1)) for k, parts in sorted(by_rule.items())]

    def _makes_texts(self, rule: Rule) -> bool:
        """Return whether built-ins of a rule may make texts that no task knows."""
        makes = self._text_makers.get(rule)
        if makes is None:
            arguments = (a for b in rule.builtins if b.operator == "=" and is_text(b.type) for a in b.arguments)
            makes = self._text_makers[rule] = any(isinstance(a, Apply) for a in arguments)
        return makes


class _Doomed(NamedTuple):
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


class _LegJoin(Join):
    """A join that puts bindings aside for which a built-in has no result: other legs may not match them."""

    doom: Callable[[BuiltinStep, Codes, list[str]], None]

    def _refuse_undefined(self, at: int, step: BuiltinStep, B: Codes, reasons: Mapping[int, str]) -> None:
        which = sorted(reasons)
        self.doom(step, B[:, which], [reasons[i] for i in which])


class _Leaving:
    """Sends the heads of a plan home."""

    def __init__(self, run: _Run, k: int, plan: Plan, wide: bool):
        self._take, self._plan, self._dtype = partial(run.take_heads, k, plan), plan, np.int64 if wide else np.int32

    def take(self, B: Codes, width: int) -> None:
        self._take(_head_codes(self._plan, B, width))

    def take_joined(self, B: Codes, step: AtomStep, parents: Rows, matches: Rows, count: int) -> None:
        """Make heads of bindings and the rows they are joined with, with no batch in between."""
        plan = self._plan
        codes = np.empty((count, plan.head.arity), self._dtype)
        joined = parents, step.table.rows, matches, count, plan.joined_terms, plan.constants, codes
        row_kernels.make_joined_rows(B, *joined)
        self._take(codes)


class _Run:
    """One run: bindings by pipeline, and what has come out so far."""

    def __init__(
        self,
        matching: Matching,
        rules: Sequence[Rule],
        where: Where,
        kind: Kind,
        end: End,
        reach: Reach,
        rank: str | None = None,
        arrivals: Arrivals | None = None,
    ):
        self.matching, self.rules, self.where, self.kind, self.rank = matching, rules, where, kind, rank
        # Nothing here refers back to the run: it must go when it is done, because expressions that somebody still holds
        # are listed before one of their sets changes.
        self.end, self.reach, self.arrivals = end, reach, arrivals
        self.context = matching.context
        self.matcher = self.context.matcher
        self.outbox = self.context.outbox()
        self.considered: Counter[int] = Counter()
        self.doomed: list[_Doomed] = []
        self.is_judging = False
        #: Bindings after a leg, in the order of the variables that the leg needs.
        self.waiting: dict[Key, list[Codes]] = {}
        #: Bindings after last legs, if they may have texts that are new.
        self.ended: list[tuple[int, Plan, Codes]] = []
        self.extra: dict[Key, Pipeline] = {}
        #: By pipeline, leg and value: bindings that tasks are to share, and the facts that they go with.
        self.aside: dict[tuple[Key, int, int], list[Codes]] = defaultdict(list)
        self.facts_of: dict[tuple[Key, int, int], Codes] = {}

    # -- beginnings ----------------------------------------------------------------------------------------------------

    def from_changed(self, begin: str, atoms: str, changed: PartitionedSet) -> None:
        """Begin with the facts of a set, at each atom of a rule that they match."""
        index, numbers = self.matcher.delta_index(self.rules, atoms), self.matching.number_of(self.rules)
        for table in changed.local.tables_of(index.predicates):
            for occurrence, rows in index.concerned(table, changed.local.of(table)):
                rule, i = occurrence.rule, occurrence.position
                mine = self.matching.pipeline(rule, self.kind._replace(begin=begin, position=i))
                if begin == "via":
                    own = self.where.stratum is not None and i in self.where.stratum.own(rule)
                    rows = selected(table, rows, self.where[Place.OWN if own else Place.P])
                else:
                    rows = selected(table, rows, ~self.where[Place.N])
                stratum = self.kind.ranked_in
                ranked = begin == "via" and stratum is not None and i in stratum.own(rule)
                self._begin((numbers[rule], begin, i), mine, table, rows, ranked)

    def from_heads(self, heads: Mapping[Table, Rows]) -> None:
        index, numbers = self.matcher.delta_index(self.rules, "heads"), self.matching.number_of(self.rules)
        for table, rows in heads.items():
            for occurrence, some in index.concerned(table, rows):
                mine = self.matching.pipeline(occurrence.rule, self.kind)
                self._begin((numbers[occurrence.rule], "heads", 0), mine, table, some, False)  # which are at home

    def from_all(self, k: int, mine: Pipeline) -> None:
        """Begin with all facts of the first atom that are at home here; without atoms, with nothing in one task."""
        key, atom = (k, "all", 0), mine.atom
        if atom is None:
            if self.context.wire.me == 0:
                self._leg(key, mine, 0, [np.full((len(mine.start), 1), _LOWEST, np.int64)])
            return
        i = mine.rule.positive.index(atom)
        own = self.where.stratum is not None and i in self.where.stratum.own(mine.rule)
        table = self.context.local.tables[atom.predicate]
        rows = self.where.rows(self.matcher.planner.source(atom), Place.OWN if own else Place.P)
        for column, term in enumerate(atom.terms):
            if isinstance(term, Constant):
                rows = rows[table.rows[rows, column] == self.context.codec.encode_one(term.value, term.type)]
        stratum = self.kind.ranked_in
        ranked = stratum is not None and i in stratum.own(mine.rule)
        self._begin(key, mine, table, rows, ranked)

    def _begin(self, key: Key, mine: Pipeline, table: Table, rows: Rows, ranked: bool) -> None:
        """Begin with the rows of some that this task owns by the column of a pipeline."""
        assert mine.atom is not None, "a pipeline that begins with rows"
        if mine.column is not None:
            rows = self.context.owners.owned(table, rows, mine.column)
        if len(rows):
            bindings = batches(table, rows, mine.atom, mine.start, self.rank if ranked else None)
            self._leg(key, mine, 0, (B for B, _ in bindings), table, len(rows))

    # -- legs ----------------------------------------------------------------------------------------------------------

    def _leg(
        self,
        key: Key,
        mine: Pipeline,
        j: int,
        bindings: Iterable[Codes],
        start: Table | None = None,
        work: int = 0,
    ) -> None:
        """Send bindings through a leg; they begin with `work` rows of a table, or have come from other tasks."""
        leg = mine.legs[j]
        if self.context.wire.parts > 1 and not self.reach.new_texts and not self.is_judging:
            expansion = self.matching.expansion(leg)
            if expansion is not None:
                bindings = self._put_aside(key, mine, j, expansion, bindings)
        self._match(key, mine, j, leg, bindings, start, work)

    def _match(
        self,
        key: Key,
        mine: Pipeline,
        j: int,
        leg: Leg,
        bindings: Iterable[Codes],
        start: Table | None = None,
        work: int = 0,
        *,
        is_shared: bool = False,
    ) -> None:
        """Match what is in a leg, or what is left of it if bindings are shared."""
        rule = mine.rule
        plan = leg.plan(self.matcher.planner, rule)
        sink = self._sink(key, mine, j, plan, start, work, stays=mine.stays and not is_shared)
        planner, types, look = self.matcher.planner, self.matcher.variable_types(rule), self.context.meter.look
        # Bindings that went to the owner of a constant find all facts with it there, and those of replicated relations
        # are everywhere.
        listing = self._at_home if leg.route is EVERYWHERE else self.where.rows
        join = _LegJoin(plan, self.where, planner, types, sink, look, listing, self.rank)

        def doom(step: BuiltinStep, B: Codes, reasons: list[str]) -> None:
            number = next(n for n, builtin in enumerate(rule.builtins) if builtin is step.builtin)
            self.doomed.append(_Doomed(key, j, number, step.before, B, reasons))

        join.doom = doom
        is_hot = isinstance(sink, HeadSink) and work >= FEWEST_BINDINGS
        run = quickest(join, sink) if isinstance(sink, HeadSink) and is_hot else join.run
        for B in bindings:
            for begin in range(0, B.shape[1], CHUNK):
                some = B if B.shape[1] <= CHUNK else np.ascontiguousarray(B[:, begin : begin + CHUNK])
                run(some, some.shape[1])
        if isinstance(sink, HeadSink | HomeTally):
            self.considered[key[0]] += sink.instances

    def _put_aside(
        self, key: Key, mine: Pipeline, j: int, expansion: sharing.Expansion, bindings: Iterable[Codes]
    ) -> Iterator[Codes]:
        """Yield bindings without those that tasks are to share."""
        at = mine.legs[j].start.index(expansion.variable)
        for B in bindings:
            for value in sharing.frequent(B[at]) if B.shape[1] >= sharing.FEWEST else ():
                if (key, j, value) not in self.facts_of:
                    self.facts_of[key, j, value] = self._facts_with(mine.rule, expansion.facts, value)
                has_it = B[at] == value
                size = self.facts_of[key, j, value].shape[1]
                if sharing.is_worth_it(int(has_it.sum()), size, self.context.wire.parts):
                    self.aside[key, j, value].append(B[:, has_it])
                    B = np.ascontiguousarray(B[:, ~has_it])
            yield B

    def _facts_with(self, rule: Rule, leg: Leg, value: int) -> Codes:
        """Return the facts that one value finds in a leg: the variables that they bind, a row for each."""
        parts: list[Codes] = []
        plan = leg.plan(self.matcher.planner, rule)
        assert leg.needed is not None, "a leg with variables at the end"
        rows = [plan.last.index(v) for v in leg.needed]
        sink = FunctionSink(lambda B, width: parts.append(B[rows, :width]))
        planner, types, look = self.matcher.planner, self.matcher.variable_types(rule), self.context.meter.look
        one = np.array([[value], *[[_LOWEST]] * (len(leg.start) - 1)], np.int64)
        Join(plan, self.where, planner, types, sink, look, self.where.rows, self.rank).run(one, 1)
        return np.concatenate(parts, axis=1) if parts else np.empty((len(rows), 0), np.int64)

    def _sink(
        self, key: Key, mine: Pipeline, j: int, plan: Plan, start: Table | None, work: int, *, stays: bool
    ) -> Sink:
        """Return what takes the bindings at the end of a leg. If they stay, heads are at home here."""
        leg, last = mine.legs[j], j + 1 == len(mine.legs)
        home = leg.home
        if leg.spread is not None and not self.context.views.has_copies(leg.spread):
            home = None  # all facts that were met are at home
        if last and home is None and not self.reach.new_texts and not self.is_judging:
            if self.arrivals is not None and (stays or self.context.wire.parts == 1):
                return self.arrivals.sink(plan, start, work)
            if self.arrivals is not None and self.arrivals.makes_distinct(mine.rule):
                return self.arrivals.departing_sink(plan, start, work)
            if self.end == self.matching.heads:
                return _Leaving(self, key[0], plan, start is None or plan.has_wide_values(start))

        def take(B: Codes, width: int) -> None:
            if home is not None:
                B = np.ascontiguousarray(B[:, self._is_mine(B[plan.last.index(home)])])
            if last and self.reach.new_texts:
                self.ended.append((key[0], plan, B))
            elif last:
                self.take_result(key[0], plan, B, B.shape[1])
            else:
                assert leg.needed is not None, "a leg that others follow"
                self.waiting.setdefault(key, []).append(B[[plan.last.index(v) for v in leg.needed]])

        return FunctionSink(take)

    def _is_mine(self, values: Codes) -> npt.NDArray[np.bool_]:
        return self.context.owners.of(values) == self.context.wire.me

    def take_result(self, k: int, plan: Plan, B: Codes, width: int) -> None:
        """Put what comes of bindings at the end of a rule into the outbox."""
        if width:
            self.considered[k] += width
            self.end(k, plan, B, width, self.outbox)

    def take_heads(self, k: int, plan: Plan, codes: Values) -> None:
        """Put heads of a rule into the outbox."""
        self.considered[k] += len(codes)
        self.context.home_of(self.outbox, plan.head.name, codes)

    def _at_home(self, source: Table | Part, place: Place) -> Rows:
        """Return the rows of a set that are at home here: elsewhere other tasks list the others."""
        table = source.table if isinstance(source, Part) else source
        return self.context.owners.at_home(table, self.where.rows(source, place))

    def _pipeline(self, key: Key) -> Pipeline:
        if key in self.extra:
            return self.extra[key]
        k, begin, position = key
        return self.matching.pipeline(self.rules[k], self.kind._replace(begin=begin, position=position))

    def _agree_on_texts(self, j: int) -> None:
        """Replace the codes of new texts in bindings that are to travel to leg j, or at the end."""
        agreed = self.context.agree_on_texts()
        if len(agreed):
            for key, parts in self.waiting.items():
                mine = self._pipeline(key)
                self.waiting[key] = [self._replaced(mine.rule, mine.legs[j].start, B, agreed) for B in parts]
            self.ended = [(k, plan, self._replaced(plan.rule, plan.last, B, agreed)) for k, plan, B in self.ended]
            self.doomed = [
                d._replace(B=self._replaced(self._pipeline(d.key).rule, d.variables, d.B, agreed)) for d in self.doomed
            ]

    def _replaced(self, rule: Rule, variables: Sequence[str], B: Codes, agreed: Codes) -> Codes:
        types = self.matcher.variable_types(rule)
        rows = [
            replaced(b, agreed) if is_text(types.get(v, "number")) else b for v, b in zip(variables, B, strict=True)
        ]
        return np.stack(rows) if rows else B

    def _travel(self, operator: str, j: int) -> None:
        """Send the bindings that wait for leg j on their way, and go on with those that come."""
        if self.reach.new_texts:
            self._agree_on_texts(j)
        outbox = self.context.outbox()
        arrived: dict[Key, list[Codes]] = defaultdict(list)
        for key, parts in self.waiting.items():
            leg = self._pipeline(key).legs[j]
            if leg.route is None:
                arrived[key] = parts
            else:
                self._route(outbox, key, leg, parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1))
        self.waiting = {}
        came, _ = self.context.wire.exchange(operator, outbox)
        for parcels in came:
            for key, B in parcels:
                arrived[key].append(B)
        for key, parts in arrived.items():
            self._leg(key, self._pipeline(key), j, parts)

    def _route(self, outbox: Outbox, key: Key, leg: Leg, B: Codes) -> None:
        assert leg.route is not None, "bindings that stay"
        owners, term = self.context.owners, leg.route.term
        if leg.route is EVERYWHERE:
            for box in outbox[: owners.parts]:
                box.append((key, B))
        elif isinstance(term, Variable):
            for task, places in owners.split(owners.of(B[leg.start.index(term.name)])):
                outbox[task].append((key, B[:, places]))
        elif term is not None:
            outbox[self.matching._owner(term)].append((key, B))
        else:
            assert leg.route.predicate is not None, "a target that is nowhere"
            outbox[owners.of_name(leg.route.predicate)].append((key, B))

    def finish(self, operator: str, considered: bool = True) -> Results:
        """Send bindings through all further legs, and results home."""
        for j in range(1, self.reach.legs):
            self._travel("bindings", j)
        if self.reach.new_texts:
            self._agree_on_texts(self.reach.legs)
            for k, plan, B in self.ended:
                self.take_result(k, plan, B, B.shape[1])
            self.ended = []
        came, counts, is_doomed, is_shared = self._send_results(operator)
        while is_shared:
            self._share()
            more, further, are_doomed, is_shared = self._send_results(operator)
            came = [[*first, *then] for first, then in zip(came, more, strict=True)]
            counts, is_doomed = counts + further, is_doomed or are_doomed
        if is_doomed:
            self._judge()
        if self.arrivals is not None:
            self.arrivals.take(came)
        if considered:
            for k, count in sorted(counts.items()):
                self.context.meter.instances(self.rules[k], count)
        return Results(came, counts.total())

    def _send_results(self, operator: str) -> tuple[Outbox, Counter[int], bool, bool]:
        """Send results home; return those that come, and of all tasks the instances, and whether some are doomed.

        At last, it returns whether a task has work to share.
        """
        if self.arrivals is not None:
            self.arrivals.depart(self.outbox)
        note = self.considered, bool(self.doomed), bool(self.aside)
        came, notes = self.context.wire.exchange(operator, self.outbox, note)
        self.outbox, self.considered = self.context.outbox(), Counter()
        counts: Counter[int] = sum((counts for counts, _, _ in notes), Counter())
        return came, counts, any(doomed for _, doomed, _ in notes), any(aside for _, _, aside in notes)

    def _share(self) -> None:
        """Deal out the work that tasks have put aside, do this task's part, and send it through all further legs."""
        outbox = self.context.outbox()
        for (key, j, value), parts in self.aside.items():
            sides = np.concatenate(parts, axis=1), self.facts_of[key, j, value]
            for task, (bindings, facts) in enumerate(sharing.dealt(*sides, self.context.wire.parts)):
                outbox[task].append((key, j, bindings, facts))
        self.aside.clear()
        came, _ = self.context.wire.exchange("shared work", outbox)
        for leg in range(self.reach.legs):
            if leg:
                self._travel("bindings", leg)
            for key, j, bindings, facts in (parcel for parcels in came for parcel in parcels):
                if j == leg:
                    mine = self._pipeline(key)
                    expansion = self.matching.expansion(mine.legs[j])
                    assert expansion is not None, "a leg that tasks share"
                    some = sharing.pairs(expansion, bindings, facts)
                    self._match(key, mine, j, expansion.rest, some, is_shared=True)

    # -- built-ins without a result ------------------------------------------------------------------------------------

    def _judge(self) -> None:
        """Raise the error of a built-in without a result, if the rest of the body holds under one of its bindings.

        Whether a rule fails may not depend on the order in which its body is matched, so the rest is matched without
        the value that is missing.
        """
        wire, me = self.context.wire, self.context.wire.me
        doomed, survivors, first = self.doomed, list[int](), me * _MOST_NUMBERED
        self.doomed = []
        for d in doomed:  # each binding gets a number, by which it is known from now on
            places = [i for i, v in enumerate(d.variables) if v != HEIGHT]
            numbers = first + np.arange(len(d.reasons))
            first += len(d.reasons)
            variables = (*(d.variables[i] for i in places), _NUMBER)
            self.doomed.append(d._replace(variables=variables, B=np.vstack([d.B[places], numbers[None]])))
        self.reach = self.reach._replace(new_texts=False)  # only the number of a binding goes on
        self.is_judging = True  # and to nobody who takes heads
        self.end = lambda _, plan, B, *__: survivors.append(int(B[plan.last.index(_NUMBER)].min()))
        # The rest of a body may have further built-ins without a result, which are left out in turn.
        for turn in count():
            left, self.doomed = self.doomed, []
            _, notes = wire.exchange("built-ins without a result", None, {d.kind for d in left})
            kinds = sorted(set().union(*notes))
            if not kinds:
                break
            keys = {kind: (n, "rest", turn) for n, kind in enumerate(kinds)}
            rests = {keys[kind]: self._rest(*kind) for kind in kinds}
            self.extra.update(rests)
            for d in left:
                self._leg(keys[d.kind], rests[keys[d.kind]], 0, [d.B])
            for j in range(1, max(len(rest.legs) for rest in rests.values())):
                self._travel("the rest of a body", j)
        _, notes = wire.exchange("bindings that fail", None, min(survivors, default=None))
        failed = [note for note in notes if note is not None]
        if not failed:
            return
        task, number = divmod(min(failed), _MOST_NUMBERED)
        mine_failed = self._error(doomed, number) if task == me else None
        _, notes = wire.exchange("the error", None, mine_failed and mine_failed.problems)
        raise EvaluationError(notes[task])

    def _rest(self, key: Key, leg: int, builtin: int, variables: tuple[str, ...]) -> Pipeline:
        """Return what is left of a body, from a leg on, without a built-in."""
        mine = self._pipeline(key)
        literals = [x._replace(ranked=False) for later in mine.legs[leg:] for x in later.literals]
        without = mine.rule.builtins[builtin]
        builtins = [b for later in mine.legs[leg:] for b in later.builtins if b is not without]
        return rest_of(mine.rule, variables, literals, builtins, self.context.views, (_NUMBER,))

    def _error(self, doomed: list[_Doomed], number: int) -> EvaluationError:
        for d in doomed:
            if number < len(d.reasons):
                rule = self._pipeline(d.key).rule
                types = self.matcher.variable_types(rule)
                values = {
                    name: self.context.codec.decode(column[number : number + 1], types[name])[0]
                    for name, column in zip(d.variables, d.B, strict=True)
                    if name in types
                }
                return undefined(rule, d.reasons[number], values)
            number -= len(d.reasons)
        raise AssertionError("a binding without a number")


_LOWEST = np.iinfo(np.int64).min


def _beginnings(rule: Rule, sets: Sets, heads: Bound | None) -> Iterator[tuple[str, int]]:
    """Yield from where a rule may be matched, by the bounds of sets."""
    if heads is not None:
        if rule.head.predicate in heads:
            yield "heads", 0
        return
    if sets.via is None and sets.via_not is None:
        yield "all", 0
    for begin, atoms, changed in (("via", rule.positive, sets.via), ("via not", rule.negative, sets.via_not)):
        if changed is not None:
            yield from ((begin, i) for i, atom in enumerate(atoms) if atom.predicate in changed.bound)


def _head_codes(plan: Plan, B: Codes, width: int) -> Values:
    """Return the heads of bindings, a row for each: as wide as values may be."""
    values = [B[t] for t in plan.terms.tolist() if t >= 0]
    narrow = not len(plan.constants) and all(v.max() <= _WIDEST and v.min() >= -_WIDEST for v in values)
    codes = np.empty((width, plan.head.arity), plan.head.rows.dtype if narrow else np.int64)
    row_kernels.make_rows(B, width, plan.terms, plan.constants, codes)
    return codes


#: The largest value of 32 bits.
_WIDEST = (1 << 31) - 1
