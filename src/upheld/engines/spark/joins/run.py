"""One run of rules: bindings go through the legs of their pipelines, and results go to the homes of heads."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from upheld.engines.memory.joins.batch import CHUNK, FunctionSink, Join, Sink, batches
from upheld.engines.memory.joins.hot_rules import FEWEST_BINDINGS, GENERIC, Quickest, Runners
from upheld.engines.memory.joins.sinks import HeadSink
from upheld.engines.memory.plans.plan import BuiltinStep, Place, Plan
from upheld.engines.memory.plans.where import Where
from upheld.engines.memory.sets.truth_tables import selected
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.codec import Codes, is_text
from upheld.engines.memory.storage.partitions import Part
from upheld.engines.memory.storage.table import Table
from upheld.engines.spark.codec import replaced
from upheld.engines.spark.context import Context
from upheld.engines.spark.joins import sharing
from upheld.engines.spark.joins.arrivals import Arrivals, HomeTally
from upheld.engines.spark.joins.pipelines import Key, Pipelines
from upheld.engines.spark.joins.plans import EVERYWHERE, Kind, Leg, Pipeline
from upheld.engines.spark.joins.reach import Reach
from upheld.engines.spark.joins.results import End, Leaving, Results, heads, owner_of
from upheld.engines.spark.joins.undefined import Doomed, LegJoin, judge
from upheld.engines.spark.owners import Values
from upheld.engines.spark.sets.sets import PartitionedSet
from upheld.engines.spark.tasks.wire import Outbox
from upheld.language.ast import Constant, Variable
from upheld.language.core import Rule


class Run:
    """One run: bindings by pipeline, and what has come out so far."""

    def __init__(
        self,
        pipelines: Pipelines,
        rules: Sequence[Rule],
        where: Where,
        kind: Kind,
        end: End,
        reach: Reach,
        rank: str | None = None,
        arrivals: Arrivals | None = None,
    ):
        self.pipelines, self.rules, self.where, self.kind, self.rank = pipelines, rules, where, kind, rank
        # Nothing here refers back to the run: it must go when it is done, because expressions that somebody still holds
        # are listed before one of their sets changes.
        self.end, self.reach, self.arrivals = end, reach, arrivals
        self.context = pipelines.context
        self.matcher = self.context.matcher
        self.outbox = self.context.outbox()
        self.considered: Counter[int] = Counter()
        self.doomed: list[Doomed] = []
        self.is_judging = False
        #: Bindings after a leg, in the order of the variables that the leg needs.
        self.waiting: dict[Key, list[Codes]] = {}
        #: Bindings after last legs, if they may have texts that are new.
        self.ended: list[tuple[int, Plan, Codes]] = []
        self.extra: dict[Key, Pipeline] = {}
        self.shared = SharedWork(self.context, where, rank)

    # -- beginnings ----------------------------------------------------------------------------------------------------

    def from_changed(self, begin: str, atoms: str, changed: PartitionedSet) -> None:
        """Begin with the facts of a set, at each atom of a rule that they match."""
        index, numbers = self.matcher.delta_index(self.rules, atoms), self.pipelines.number_of(self.rules)
        for table in changed.local.tables_of(index.predicates):
            for occurrence, rows in index.concerned(table, changed.local.of(table)):
                rule, i = occurrence.rule, occurrence.position
                mine = self.pipelines.pipeline(rule, self.kind._replace(begin=begin, position=i))
                if begin == "via":
                    own = self.where.stratum is not None and i in self.where.stratum.own(rule)
                    rows = selected(table, rows, self.where[Place.OWN if own else Place.P])
                else:
                    rows = selected(table, rows, ~self.where[Place.N])
                stratum = self.kind.ranked_in
                ranked = begin == "via" and stratum is not None and i in stratum.own(rule)
                self._begin((numbers[rule], begin, i), mine, table, rows, ranked)

    def from_heads(self, rows_of: Mapping[Table, Rows]) -> None:
        index, numbers = self.matcher.delta_index(self.rules, "heads"), self.pipelines.number_of(self.rules)
        for table, rows in rows_of.items():
            for occurrence, some in index.concerned(table, rows):
                mine = self.pipelines.pipeline(occurrence.rule, self.kind)
                self._begin((numbers[occurrence.rule], "heads", 0), mine, table, some, False)  # which are at home

    def from_all(self, k: int, mine: Pipeline) -> None:
        """Begin with all facts of the first atom that are at home here; without atoms, with nothing in one task."""
        key, atom = (k, "all", 0), mine.atom
        if atom is None:
            if self.context.wire.me == 0:
                self.leg(key, mine, 0, [np.full((len(mine.start), 1), LOWEST, np.int64)])
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
            self.leg(key, mine, 0, (B for B, _ in bindings), table, len(rows))

    # -- legs ----------------------------------------------------------------------------------------------------------

    def leg(
        self, key: Key, mine: Pipeline, j: int, bindings: Iterable[Codes], start: Table | None = None, work: int = 0
    ) -> None:
        """Send bindings through a leg; they begin with `work` rows of a table, or have come from other tasks."""
        leg = mine.legs[j]
        if self.context.wire.parts > 1 and not self.reach.new_texts and not self.is_judging:
            expansion = self.pipelines.expansion(leg)
            if expansion is not None:
                bindings = self.shared.put_aside(key, mine, j, expansion, bindings)
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
        join = LegJoin(plan, self.where, planner, types, sink, look, listing, self.rank)

        def doom(step: BuiltinStep, B: Codes, reasons: list[str]) -> None:
            number = next(n for n, builtin in enumerate(rule.builtins) if builtin is step.builtin)
            self.doomed.append(Doomed(key, j, number, step.before, B, reasons))

        join.doom = doom
        may_be_hot = isinstance(sink, HeadSink) and work >= FEWEST_BINDINGS
        quickest = Quickest(join, sink, marks=True) if isinstance(sink, HeadSink) and may_be_hot else None
        runners: Runners = quickest or GENERIC
        for B in bindings:
            for begin in range(0, B.shape[1], CHUNK):
                some = B if B.shape[1] <= CHUNK else np.ascontiguousarray(B[:, begin : begin + CHUNK])
                for piece in runners.runner()(join).made_of(some, some.shape[1]):
                    sink.enter(piece)
        if quickest is not None:
            quickest.note()
        if isinstance(sink, HeadSink | HomeTally):
            self.considered[key[0]] += sink.instances

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
            if self.end is heads:
                wide = start is None or plan.has_wide_values(start)
                return Leaving(plan, wide, partial(self.take_heads, key[0], plan))

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
            self.end(self.context, k, plan, B, width, self.outbox)

    def take_heads(self, k: int, plan: Plan, codes: Values) -> None:
        """Put heads of a rule into the outbox."""
        self.considered[k] += len(codes)
        self.context.home_of(self.outbox, plan.head.name, codes)

    def _at_home(self, source: Table | Part, place: Place) -> Rows:
        """Return the rows of a set that are at home here: elsewhere other tasks list the others."""
        table = source.table if isinstance(source, Part) else source
        return self.context.owners.at_home(table, self.where.rows(source, place))

    def pipeline_of(self, key: Key) -> Pipeline:
        """Return the pipeline of a rule, or one that no rule has."""
        if key in self.extra:
            return self.extra[key]
        k, begin, position = key
        return self.pipelines.pipeline(self.rules[k], self.kind._replace(begin=begin, position=position))

    def _agree_on_texts(self, j: int) -> None:
        """Replace the codes of new texts in bindings that are to travel to leg j, or at the end."""
        agreed = self.context.agree_on_texts()
        if len(agreed):
            for key, parts in self.waiting.items():
                mine = self.pipeline_of(key)
                self.waiting[key] = [self._replaced(mine.rule, mine.legs[j].start, B, agreed) for B in parts]
            self.ended = [(k, plan, self._replaced(plan.rule, plan.last, B, agreed)) for k, plan, B in self.ended]
            self.doomed = [
                d._replace(B=self._replaced(self.pipeline_of(d.key).rule, d.variables, d.B, agreed))
                for d in self.doomed
            ]

    def _replaced(self, rule: Rule, variables: Sequence[str], B: Codes, agreed: Codes) -> Codes:
        types = self.matcher.variable_types(rule)
        rows = [
            replaced(b, agreed) if is_text(types.get(v, "number")) else b for v, b in zip(variables, B, strict=True)
        ]
        return np.stack(rows) if rows else B

    def travel(self, operator: str, j: int) -> None:
        """Send the bindings that wait for leg j on their way, and go on with those that come."""
        if self.reach.new_texts:
            self._agree_on_texts(j)
        outbox = self.context.outbox()
        arrived: dict[Key, list[Codes]] = defaultdict(list)
        for key, parts in self.waiting.items():
            leg = self.pipeline_of(key).legs[j]
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
            self.leg(key, self.pipeline_of(key), j, parts)

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
            outbox[owner_of(self.context, term)].append((key, B))
        else:
            assert leg.route.predicate is not None, "a target that is nowhere"
            outbox[owners.of_name(leg.route.predicate)].append((key, B))

    def finish(self, operator: str, considered: bool = True) -> Results:
        """Send bindings through all further legs, and results home."""
        for j in range(1, self.reach.legs):
            self.travel("bindings", j)
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
            judge(self)
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
        note = self.considered, bool(self.doomed), bool(self.shared)
        came, notes = self.context.wire.exchange(operator, self.outbox, note)
        self.outbox, self.considered = self.context.outbox(), Counter()
        counts: Counter[int] = sum((counts for counts, _, _ in notes), Counter())
        return came, counts, any(doomed for _, doomed, _ in notes), any(aside for _, _, aside in notes)

    def _share(self) -> None:
        """Deal out the work that tasks have put aside, do this task's part, and send it through all further legs."""
        outbox = self.context.outbox()
        self.shared.deal(outbox)
        came, _ = self.context.wire.exchange("shared work", outbox)
        for leg in range(self.reach.legs):
            if leg:
                self.travel("bindings", leg)
            for key, j, bindings, facts in (parcel for parcels in came for parcel in parcels):
                if j == leg:
                    mine = self.pipeline_of(key)
                    expansion = self.pipelines.expansion(mine.legs[j])
                    assert expansion is not None, "a leg that tasks share"
                    some = sharing.pairs(expansion, bindings, facts)
                    self._match(key, mine, j, expansion.rest, some, is_shared=True)


#: The value of a variable that nothing is bound to yet.
LOWEST = np.iinfo(np.int64).min


class SharedWork:
    """The work that this task has put aside, by pipeline, leg and value."""

    def __init__(self, context: Context, where: Where, rank: str | None):
        self._context, self._where, self._rank = context, where, rank
        self._bindings: dict[tuple[Key, int, int], list[Codes]] = defaultdict(list)
        #: The facts that bindings go with.
        self._facts: dict[tuple[Key, int, int], Codes] = {}

    def __bool__(self) -> bool:
        return bool(self._bindings)

    def put_aside(
        self, key: Key, mine: Pipeline, j: int, expansion: sharing.Expansion, bindings: Iterable[Codes]
    ) -> Iterator[Codes]:
        """Yield bindings without those that tasks are to share."""
        at = mine.legs[j].start.index(expansion.variable)
        for B in bindings:
            for value in sharing.frequent(B[at]) if B.shape[1] >= sharing.FEWEST else ():
                if (key, j, value) not in self._facts:
                    self._facts[key, j, value] = self._facts_with(mine.rule, expansion.facts, value)
                has_it = B[at] == value
                size = self._facts[key, j, value].shape[1]
                if sharing.is_worth_it(int(has_it.sum()), size, self._context.wire.parts):
                    self._bindings[key, j, value].append(B[:, has_it])
                    B = np.ascontiguousarray(B[:, ~has_it])
            yield B

    def _facts_with(self, rule: Rule, leg: Leg, value: int) -> Codes:
        """Return the facts that one value finds in a leg: the variables that they bind, a row for each."""
        parts: list[Codes] = []
        matcher, look = self._context.matcher, self._context.meter.look
        plan = leg.plan(matcher.planner, rule)
        assert leg.needed is not None, "a leg with variables at the end"
        rows = [plan.last.index(v) for v in leg.needed]
        sink = FunctionSink(lambda B, width: parts.append(B[rows, :width]))
        planner, types, look = (
            self._context.matcher.planner,
            self._context.matcher.variable_types(rule),
            self._context.meter.look,
        )
        one = np.array([[value], *[[LOWEST]] * (len(leg.start) - 1)], np.int64)
        Join(plan, self._where, planner, types, sink, look, self._where.rows, self._rank).run(one, 1)
        return np.concatenate(parts, axis=1) if parts else np.empty((len(rows), 0), np.int64)

    def deal(self, outbox: Outbox) -> None:
        """Deal out all that was put aside: the larger side in parts, and the smaller one to each task whole."""
        for (key, j, value), parts in self._bindings.items():
            sides = np.concatenate(parts, axis=1), self._facts[key, j, value]
            for task, (bindings, facts) in enumerate(sharing.dealt(*sides, self._context.wire.parts)):
                outbox[task].append((key, j, bindings, facts))
        self._bindings.clear()
