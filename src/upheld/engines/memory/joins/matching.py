"""Which instances rules have: from all facts, from changed facts forwards, or from heads backwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from upheld.algebra.meter import Reports
from upheld.base.errors import count
from upheld.compiler.hypertrees.jointree import Tree, tree_of
from upheld.compiler.strata import Stratum
from upheld.engines.memory.bytecode.encoder import Start
from upheld.engines.memory.joins.batch import ROW, FunctionSink, Join, Sink, batches
from upheld.engines.memory.joins.bulk_copy import Copies, Together, forward_copies
from upheld.engines.memory.joins.few_facts import LEAST_ATOMS, MOST_FACTS, MOST_PAIRS, FewFacts, Taker, Task
from upheld.engines.memory.joins.forwards import Forwards, MakeSink, no_sink
from upheld.engines.memory.joins.threads.rule_groups import FEWEST_FACTS, Job, have_several_heads, run_turn, turns
from upheld.engines.memory.plans.delta_index import DeltaIndex, Occurrence
from upheld.engines.memory.plans.plan import AtomStep, ChoiceStep, Literal, Place, Plan, Planner, Step
from upheld.engines.memory.plans.where import Where
from upheld.engines.memory.sets.collected import Collected, never_counted
from upheld.engines.memory.sets.context import Context
from upheld.engines.memory.sets.expressions import MemorySet
from upheld.engines.memory.sets.truth_tables import selected
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Table
from upheld.language.ast import Variable
from upheld.language.core import Atom, Predicate, Rule
from upheld.language.core_text import atom_text, builtin_text

T = TypeVar("T")

#: The atoms by which rules are found, by kind.
_ATOMS: dict[str, Callable[[Rule], Sequence[Atom]]] = {
    "positive": lambda rule: rule.positive,
    "negated": lambda rule: rule.negative,
    "heads": lambda rule: (rule.head,),
}


class Matcher:
    """Finds the instances of rules. Plans and indexes from atoms to rules are made once and kept."""

    def __init__(self, context: Context):
        self.context = context
        self.planner = Planner(context.tables, context.parts, context.codec)
        self._plans: dict[Rule, dict[tuple[object, ...], Plan]] = {}
        self._delta_indexes: dict[tuple[int, str], tuple[Sequence[Rule], DeltaIndex]] = {}
        self._together: dict[tuple[object, ...], tuple[Sequence[Rule], Together]] = {}
        self._variable_types: dict[Rule, dict[str, str]] = {}
        self._trees: dict[Rule, Tree | None] = {}
        self.few = FewFacts(context)
        #: Counts how often plans were given up. Whoever keeps plans elsewhere gives them up as well.
        self.edition = 0

    def forget(self, predicate: Predicate) -> None:
        """Give up what was kept for the rules that derive a predicate."""
        self.forget_rules([rule for rule in self._plans if rule.head.predicate == predicate.name])

    def forget_rules(self, rules: Iterable[Rule]) -> None:
        """Give up what was kept for some rules."""
        for rule in rules:
            self._plans.pop(rule, None)
            self._variable_types.pop(rule, None)
            self._trees.pop(rule, None)
        self._forget_atoms()

    def forget_plans(self) -> None:
        """Forget everything that contains codes of constants."""
        self._plans.clear()
        self._forget_atoms()
        self.context.placing.clear()
        for parts in self.context.parts.values():
            parts.clear()
        self.context.codec.has_late_constants = False

    def _forget_atoms(self) -> None:
        self.edition += 1
        self._delta_indexes.clear()
        self._together.clear()
        self.few = FewFacts(self.context)  # written plans go with the indexes that know them
        self.planner.forget_terms()

    def forwards(
        self,
        rules: Sequence[Rule],
        where: Where,
        sink: MakeSink,
        *,
        ranked: tuple[str, Stratum] | None = None,
        whole: bool = False,
        with_rows: bool = False,
        few: Taker | None = None,
        beside: Collected | None = None,
        joined: Callable[[Join], None] | None = None,
    ) -> None:
        """Send the bindings of all instances that `derive` speaks of to the sinks of their plans.

        With `ranked`, a column and a stratum, bindings carry the highest rank that a fact of the stratum has. With
        `whole`, they have all variables of the rule, and `with_rows`, as `row_of`, the rows of positive atoms that are
        not looked up by all their columns. Instances of rules that few facts concern go to `few` instead. With
        `beside`, sinks only enter heads into that, and rules with different heads may run side by side. Each run of a
        plan that has ended goes to `joined`.
        """
        run = Forwards(self, where, sink, ranked, whole, with_rows, joined)
        if where.via is None and where.via_not is None:
            if beside is not None and have_several_heads(rules):
                self._run_in_turns(rules, lambda rule: rule, run.job_from_all, beside)
            else:
                for rule in rules:
                    run.from_all(rule)
            return
        for kind, changed, run_from in (
            ("positive", where.via, run.from_positive),
            ("negated", where.via_not, run.from_negated),
        ):
            if changed is None:
                continue
            alone = rules
            if kind == "positive" and run.may_copy:
                together = self.together(rules, forward_copies, run.ranked_in)
                alone = together.others
                for table, rows in changed.of_tables(changed.tables_of(together.by_table)).items():
                    for copying, is_ranked in together.by_table[table.name]:
                        run.from_copied(copying, rows, is_ranked)
            index = self.delta_index(alone, kind)
            facts = list(changed.of_tables(changed.tables_of(index.predicates)).items())
            atoms = self._run_few(run, kind, index, facts, few)
            are_many = sum(len(rows) for _, rows in facts) >= FEWEST_FACTS
            if beside is not None and are_many and have_several_heads(alone):
                self._run_in_turns(atoms, lambda atom: atom[0].rule, partial(run.job_from, kind), beside)
            else:
                for occurrence, table, mine in atoms:
                    run_from(occurrence.rule, occurrence.position, table, mine)

    def _run_in_turns(
        self, items: Iterable[T], rule_of: Callable[[T], Rule], job_of: Callable[[T], Job], collected: Collected
    ) -> None:
        """Run rules turn by turn. The jobs of a turn are made when it comes: their plans depend on what is there."""
        for turn in turns(items, rule_of):
            jobs = [job_of(item) for item in turn]
            collected.expect(job.plan.head for job in jobs)
            run_turn(self.context.threads, self.context.meter, jobs)

    def _run_few(
        self, run: Forwards, kind: str, index: DeltaIndex, facts: list[tuple[Table, Rows]], taker: Taker | None
    ) -> Iterable[tuple[Occurrence, Table, Rows]]:
        """Run the rules that few facts concern in one call, and return the atoms of rules that are left."""
        atoms = ((o, table, mine) for table, rows in facts for o, mine in index.concerned(table, rows))
        if taker is None or run.where.own is not None or sum(len(rows) for _, rows in facts) > MOST_FACTS:
            return atoms
        concerned = list(atoms)
        if len(concerned) < LEAST_ATOMS:
            return concerned
        left, tasks, done = [], [], []
        of_kind, start = (kind, run.ranked_in), run.starting[kind]
        for occurrence, table, mine in concerned:
            written = self.few.written(occurrence, of_kind, start)
            if written is None:
                left.append((occurrence, table, mine))
                continue
            done.append((occurrence, table, mine))
            tasks.append(Task(written, table, mine))
        if not tasks:
            return left
        if kind == "negated":  # no instance has an atom that was in N before
            outside = ~run.where[Place.N]
            tasks = [Task(task.written, task.table, selected(task.table, task.rows, outside)) for task in tasks]
        are_few = sum(len(task.rows) for task in tasks) <= MOST_PAIRS
        instances = self.few.find(tasks, run.where, taker.columns) if are_few else None
        if instances is None:
            return left + done
        taker.take(instances)
        return left

    def starts(
        self, s: Stratum, where: Where, ranked: tuple[str, Stratum] | None, *, whole: bool = False
    ) -> list[Start]:
        """Return the plans that `forwards` follows from changed facts of a stratum to what its own rules derive."""
        run = Forwards(self, where, no_sink, ranked, whole, False)
        return [run.start(rule, i) for rule in s.recursive for i in s.own(rule)]

    def start(
        self, rule: Rule, position: int, is_negated: bool, where: Where, ranked: tuple[str, Stratum] | None
    ) -> Start:
        """Return the plan that `forwards` follows from changed facts of one atom of a rule."""
        run = Forwards(self, where, no_sink, ranked, False, False)
        return run.start_negated(rule, position) if is_negated else run.start(rule, position)

    def backwards(
        self,
        rule: Rule,
        table: Table,
        rows: Rows,
        where: Where,
        needed: Sequence[str],
        take: Callable[[Codes, int], None],
    ) -> None:
        """Take bindings under which a rule derives some of the rows, which have the constants of its head."""
        if not len(rows):
            return
        plan, variables = self.backward_plan(rule, needed)
        order = [plan.last.index(v) for v in needed]

        def taken(B: Codes, width: int) -> None:
            self.context.meter.instances(rule, width)
            take(B[order], width)

        join = self.join(plan, where, FunctionSink(taken))
        for B, width in batches(table, rows, rule.head, variables):
            join.run(B, width)

    def backward_plan(self, rule: Rule, needed: Sequence[str]) -> tuple[Plan, tuple[str, ...]]:
        """Return a plan that begins with the variables of the head and the row, and those variables."""
        variables = (*dict.fromkeys(rule.head.variables()), ROW)
        return self.plan(rule, ("backwards", tuple(needed)), variables, lambda: _everything(rule), needed), variables

    def find(self, atom: Atom, variables: tuple[str, ...], B: Codes) -> Rows:
        """Return the rows that an atom is under each of a batch of bindings; they must be there."""
        rows = self.find_all(atom, variables, B)
        if (rows < 0).any():
            raise never_counted(atom.predicate)
        return rows

    def find_all(self, atom: Atom, variables: tuple[str, ...], B: Codes) -> Rows:
        """Return the rows that an atom is under each of a batch of bindings, or -1."""
        terms, constants = self.planner.kept_terms(atom, variables)
        return self.context.tables[atom.predicate].find(B, B.shape[1], terms, constants)

    def derivable_from(self, occurrence: Occurrence) -> Start:
        """Return a plan that looks for derivations of heads by a rule."""
        rule = occurrence.rule
        variables = tuple(dict.fromkeys(rule.head.variables()))
        plan = self.plan(rule, ("derivable",), variables, lambda: _everything(rule))
        return Start(plan, rule.head, None, False)

    # -- plans ---------------------------------------------------------------------------------------------------------

    def plan_texts(self, rule: Rule) -> Iterator[str]:
        """Yield the plans of a rule as lines of text: from all facts, and from new facts of each body atom."""
        yield from plan_lines("all facts", self.planner.plan(rule, (), _everything(rule)))
        for i, atom in enumerate(rule.positive):
            others = [Literal(a, Place.P) for k, a in enumerate(rule.positive) if k != i]
            others += [Literal(a, Place.N) for a in rule.negative]
            plan = self.planner.plan(rule, tuple(dict.fromkeys(atom.variables())), others)
            yield from plan_lines(f"new {atom_text(atom)}", plan)

    def plan(
        self,
        rule: Rule,
        kind: tuple[object, ...],
        start: tuple[str, ...],
        literals: Callable[[], list[Literal]],
        needed: Sequence[str] | None = None,
    ) -> Plan:
        """Return the plan of a kind for a rule, made anew if the tables have changed much."""
        plans = self._plans.setdefault(rule, {})
        plan = plans.get(kind)
        if plan is None or plan.is_stale():
            plan = plans[kind] = self.planner.plan(rule, start, literals(), needed)
        return plan

    def join(
        self, plan: Plan, where: Where, sink: Sink, rank: str | None = None, reports: Reports | None = None
    ) -> Join:
        """Return a run of a plan."""
        types = self.variable_types(plan.rule)
        look, listing = (reports or self.context.meter).look, where.rows
        return Join(plan, where, self.planner, types, sink, look, listing, rank)

    def tree(self, rule: Rule) -> Tree | None:
        """Return a join tree of a rule, if it has one."""
        if rule not in self._trees:
            self._trees[rule] = tree_of(rule)
        return self._trees[rule]

    def look_at(self, rules: Sequence[Rule], kind: str, facts: MemorySet) -> bool:
        """Return whether some rule may look at facts of a set, as far as is known without work."""
        if facts.is_void():
            return False
        index = self.delta_index(rules, kind)
        return bool(index.predicates) and (facts.has_work() or bool(facts.tables_of(index.predicates)))

    def together(self, rules: Sequence[Rule], copies: Copies, ranked_in: Stratum | None = None) -> Together:
        """Return which of some rules copy rows together; apart from the others those that copy ranked ones."""
        key = (id(rules), copies, ranked_in)
        cached = self._together.get(key)
        if cached is None or cached[0] is not rules:

            def apart(rule: Rule) -> bool:
                return ranked_in is not None and bool(ranked_in.own(rule))

            cached = self._together[key] = (
                rules,
                Together(rules, copies, apart, self.context.tables, self.context.codec),
            )
        return cached[1]

    def delta_index(self, rules: Sequence[Rule], kind: str) -> DeltaIndex:
        cached = self._delta_indexes.get((id(rules), kind))
        if cached is None or cached[0] is not rules:
            made = DeltaIndex(rules, self.context.codec, _ATOMS[kind])
            cached = self._delta_indexes[id(rules), kind] = (rules, made)
        return cached[1]

    def variable_types(self, rule: Rule) -> dict[str, str]:
        """Return the types of the variables of a rule."""
        types = self._variable_types.get(rule)
        if types is None:
            types = {}
            for atom in (*rule.positive, *rule.negative, rule.head):
                for term, type in zip(atom.terms, self.context.tables[atom.predicate].types, strict=True):
                    if isinstance(term, Variable):
                        types[term.name] = type
            for builtin in rule.builtins:
                for argument in builtin.arguments:
                    if isinstance(argument, Variable):
                        types.setdefault(argument.name, builtin.type)
            self._variable_types[rule] = types
        return types


def _everything(rule: Rule) -> list[Literal]:
    return [Literal(a, Place.P) for a in rule.positive] + [Literal(a, Place.N) for a in rule.negative]


def plan_lines(start: str, plan: Plan) -> Iterator[str]:
    """Yield a line for where a plan begins, and one for each of its steps."""
    yield f"from {start}"
    for step in plan.steps:
        yield f"  {_step(step)}"


def _step(step: Step) -> str:
    if isinstance(step, ChoiceStep):
        return " or ".join(f"{_step(join)}, {_step(check)}" for join, check in step.ways)
    if not isinstance(step, AtomStep):
        text = builtin_text(step.builtin)
        return f"compute {text}" if step.binds else f"keep where {text}"
    atom = atom_text(step.atom)
    if step.negated:
        return f"keep where not {atom}"
    if step.filters:
        return f"keep where {atom}"
    if not step.known:
        return f"with every {atom}: {count(step.source.n, 'row')}"
    columns = ", ".join(str(c + 1) for c in step.known)
    return f"join {atom} on column {columns}: about {step.fan_out:.3g} rows for each"
