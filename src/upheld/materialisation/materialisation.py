"""`Materialisation`: a program, its explicit facts, and all facts that follow from them."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self, SupportsIndex, overload
from weakref import WeakMethod

from upheld.algebra.engine import Engine, Freed, Remote
from upheld.algebra.sets import FactSet, Indexed, derive, settle
from upheld.arguments import ALGORITHM_OR_NONE, UPDATES, checked
from upheld.data import sql
from upheld.data.change import ByRelation, Change, relation_of, unknown_relation
from upheld.data.columns import Columns, Row
from upheld.data.relation import Relation, coded_columns, decoded
from upheld.data.sql import Parameters
from upheld.engines import EngineChoice, facts_reader, open_engine
from upheld.errors import Problem, UsageError, count, nearest, quote, warn
from upheld.explain import Explainer, Explanation
from upheld.ingest.by_relation import FactsGiven, by_name, fitted_facts
from upheld.language.core import Core, Fact, Predicate
from upheld.language.equality.equivalences import asking_for_classes
from upheld.language.growth import growing_rules
from upheld.language.hypertrees.deciding import Decision
from upheld.language.hypertrees.drawing import decision_lines
from upheld.language.queries import Query, compile_fact, compile_query
from upheld.language.strata import Stratification, stratify
from upheld.language.syntax.files import query_prefixes
from upheld.language.syntax.rdfox import PREFIXES
from upheld.language.values import Value
from upheld.maintain.aggregates import aggregates
from upheld.maintain.overlay import make
from upheld.maintain.registry import Algorithm
from upheld.maintain.update import Outcome, Requested, State, merged, net_effect
from upheld.materialisation.decomposition import decompose_for
from upheld.materialisation.lookup import find
from upheld.materialisation.preview import Previewed, end_preview
from upheld.materialisation.progress import ProgressWatcher, reporting
from upheld.materialisation.record import Record
from upheld.materialisation.replacement import check_replaced, difference
from upheld.materialisation.representation import Plain, representation_of
from upheld.materialisation.saved_bookkeeping import Reopened, can_keep, keep_books
from upheld.materialisation.saving import write_facts
from upheld.materialisation.snapshot import Snapshot
from upheld.materialisation.sparql import SparqlStore, refuse_rewriting, relations_of_triples
from upheld.materialisation.stream import Queue, follow, follow_async
from upheld.materialisation.views import History, Rows, Version, View, not_copied
from upheld.rdf.sparql import Solutions
from upheld.runtime.interruptions import interrupted_once
from upheld.runtime.limits import Limits
from upheld.runtime.statistics import Statistics
from upheld.runtime.turns import Turns
from upheld.store import Base, Draft, Store, check_program, digest

if TYPE_CHECKING:
    import pyarrow


class Materialisation:
    """All facts that follow from a program and explicit facts. `update` keeps them so.

    >>> m = materialise("path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z).", {"edge": [(1, 2), (2, 3)]})
    >>> m["path"].to_set() == {(1, 2), (2, 3), (1, 3)}
    True

    Any number of threads may use it. They take turns, first come, first served, and each finds what some update has
    left: see docs/how-to/use-threads.md.
    """

    def __init__(
        self,
        core: Core,
        strata: Stratification,
        engine: str | EngineChoice,
        algorithm: str,
        limits: Limits | None,
        equality: str,
    ):
        #: The program as its author knows it, and as it is evaluated: with some of its rules decomposed.
        self._written = self._core = core
        self._strata = strata
        self._decisions: tuple[Decision, ...] = ()
        self._equality = equality
        #: How the state holds the facts that users see.
        self._representation: Plain
        self._represented_as = representation_of(core, equality)
        self._algorithm = self._represented_as.algorithm(algorithm)
        self._chosen_engine = engine
        self._open(limits)
        self._read = facts_reader(engine)
        #: Digest of the program, which identifies it where facts are saved, once it is known.
        self._digest: str | None = None
        #: The version that it was restored from or saved as last.
        self._base: Base | None = None
        self.statistics = Statistics()
        self._state: State
        #: Whoever uses the engine waits for a turn.
        self._turns = Turns()
        self._history = History()
        #: The store that answers SPARQL, once there is one.
        self._sparql: SparqlStore | None = None
        #: The explicit facts, if the engine may lose them, and why its tasks are to be started again from these, if so.
        self._record: Record | None = None
        self._down: str | None = None
        if self._remote is not None:
            self._record, ready = Record(core), WeakMethod(self._be_ready)
            self._turns.prepare = lambda: (ready() or _nothing)()

    def _open(self, limits: Limits | None) -> None:
        engine = self._engine = open_engine(self._chosen_engine, self._written, limits)
        #: The engine as one whose facts may be lost, if it is one.
        self._remote = engine if isinstance(engine, Remote) else None
        written = self._written
        self._engine.meter.may_grow = lambda: any(growing_rules(stratify(written)))

    def _materialise(
        self,
        facts: Iterable[tuple[str, Iterable[Row]]],
        without: Iterable[tuple[str, Iterable[Row]]],
        decompose: str,
        stratification: str,
        progress: ProgressWatcher | None,
        reopened: Reopened | None = None,
    ) -> None:
        if self._record is not None:
            record = self._record
            facts = [(predicate, record.take(predicate, rows)) for predicate, rows in facts]
            without = [(predicate, record.leave_out(predicate, rows)) for predicate, rows in without]
        self._options = decompose, stratification
        self._derive(facts, without, progress, reopened)

    def _derive(
        self,
        facts: Iterable[tuple[str, Iterable[Row]]],
        without: Iterable[tuple[str, Iterable[Row]]] = (),
        progress: ProgressWatcher | None = None,
        reopened: Reopened | None = None,
    ) -> None:
        """Load explicit facts into the engine, which has none, and derive all that follows from them."""
        E: FactSet = self._engine.named("E")
        represented = self._represented_as(self._engine, self._core, self._strata, E, self._equality)
        self._representation = represented
        for predicate, rows in facts:
            E |= self._engine.load(predicate, rows)
        for predicate, rows in without:
            E -= self._engine.load(predicate, rows)
        with self._engine.meter.run() as self.statistics:
            if represented.decomposes:
                self._decompose(E, *self._options)
            if progress is not None:
                self._engine.meter.watcher = reporting(represented, self._strata, progress)
            self._state = represented.materialise(self._algorithm, self._strata, reopened)
        if reopened is not None and (reopened.then or reopened.now):
            with interrupted_once() as interruptions:
                self._update_or_abandon(lambda: [self._since(reopened)], None, interruptions)
            self._history = History()  # nobody has seen what was there before

    def _since(self, reopened: Reopened) -> Requested:
        """Return what has changed in the explicit facts since the version that was taken over."""
        then, now = self._engine.named("E then"), self._engine.named("E now")
        for name, rows in reopened.then:
            then |= self._engine.load(name, rows)
        for name, rows in reopened.now:
            now |= self._engine.load(name, rows)
        for name, rows in reopened.without:
            now -= self._engine.load(name, rows)
        return Requested(settle(then - now), settle(now - then))

    def _be_ready(self) -> None:
        """Start the tasks of the engine again if they have ended by themselves. For the beginning of a turn."""
        remote, record = self._remote, self._record
        assert remote is not None and record is not None, "an engine whose facts cannot be lost"
        if self._down is None and not remote.is_lost():
            return
        # Until all is there again: what fails below is tried again by whoever comes next.
        why = self._down = self._down or _LOST
        self._engine.close()
        self._open(self._engine.meter.limits)
        self._core, self._strata = self._written, stratify(self._written, self._options[1])
        self._derive(record.facts())
        self._down = None
        again = f"started its tasks again, from {count(len(record), 'explicit fact')} of version {self.version}"
        self.statistics.choices.append(f"{why}, and {again}")
        if why == _LOST:
            warn([Problem("tasks-started-again", f"the engine {why}, and {again}", hint=_LOOK)])

    def _decompose(self, E: FactSet, mode: str, stratification: str) -> None:
        """Decompose rules. The nodes of their decompositions are relations of the program from now on."""
        decomposed = decompose_for(self._written, E, mode)
        self._decisions = decomposed.decisions
        if decomposed.core is not self._written:
            for name, predicate in decomposed.core.predicates.items():
                if name not in self._written.predicates:
                    self._engine.declare(predicate)
            self._core = decomposed.core
            self._strata = stratify(self._core, stratification)

    # -- looking -------------------------------------------------------------------------------------------------------

    @property
    def relations(self) -> tuple[str, ...]:
        """The names of the relations of the program."""
        return tuple(p.name for p in self._visible())

    @property
    def prefixes(self) -> dict[str, str]:
        """The prefixes that a `.dlog` program declares, which queries may use without declaring them."""
        return dict(self._core.prefixes)

    def __getitem__(self, name: str) -> Relation:
        """Return the facts of a relation, explicit and derived. Later updates do not change the result.

        Args:
            name: Name of the relation.
        """
        predicate = self._predicate(name)
        if self._is_live(name):
            return self._live(predicate, self._history.now, explicit=False)
        with self._turns.look():
            return self._relation(predicate, self._rows(name))

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the relations."""
        return iter(self.relations)

    def __contains__(self, name: object) -> bool:
        """Return whether there is a relation of this name."""
        return name in self.relations

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.relations)

    def explicit(self, name: str) -> Relation:
        """Return the explicit facts of a relation. Later updates do not change the result.

        Args:
            name: Name of the relation.
        """
        predicate = self._predicate(name)
        if self._is_indexed:
            return self._live(predicate, self._history.now, explicit=True)
        with self._turns.look():
            return self._relation(predicate, self._state.E.rows(name))

    def facts(self) -> set[Fact]:
        """Return all facts of the materialisation, as pairs of relation name and row."""
        with self._turns.look():
            return {
                (p.name, row) for p in self._visible() for row in decoded(self._rows(p.name), coded_columns(p.types))
            }

    def representative(self, constant: str) -> str:
        """Return the representative of the class of a constant: the constant itself, unless `equality` is `rewrite`.

        Only constants of a `.dlog` program have other representatives.

        Args:
            constant: A term in N-Triples syntax.

        >>> rules = parse("PREFIX : <http://e/> [?x, owl:sameAs, ?y] :- [?x, :knownAs, ?y].", dialect="dlog")
        >>> known = [("<http://e/b>", "<http://e/knownAs>", "<http://e/a>")]
        >>> m = materialise(rules, {"triple": known}, equality="rewrite")
        >>> m.representative("<http://e/b>"), m.equals("<http://e/b>")
        ('<http://e/a>', ['<http://e/a>', '<http://e/b>'])
        """
        with self._turns.look():
            return self._representation.representative(constant)

    @checked()
    def equals(self, constant: Value, relation: str | None = None) -> list[Value]:
        """Return the constants equal to a constant, including itself, the representative first.

        With `equality="axioms"` these are the constants connected by `owl:sameAs`; with `off`, only the constant
        itself. For an `eqrel` relation of a `.dl` program, they are the equivalent values in ascending order, or none
        if the relation does not contain the value.

        Args:
            constant: A term in N-Triples syntax, or a value of the relation.
            relation: Name of an `eqrel` relation of a `.dl` program.

        >>> m = materialise(".decl e(x:number, y:number) eqrel  e(1, 2). e(2, 3). e(4, 4).", equality="rewrite")
        >>> m.equals(1, "e"), m.equals(5, "e")
        ([1, 2, 3], [])
        """
        if relation is not None:
            return self._equivalent(constant, relation)
        with self._turns.look():
            return self._representation.equals(self._state, constant)

    def _equivalent(self, value: Value, relation: str) -> list[Value]:
        if relation not in self._core.equivalences:
            raise UsageError(
                Problem(
                    "no-equality",
                    f"{quote(relation)} is not declared as an equivalence (`eqrel`)",
                    note=f"it declares {', '.join(map(quote, self._core.equivalences)) or 'none'}",
                    hint=nearest(relation, self._core.equivalences),
                )
            )
        value = next(iter(fitted_facts(self._core, {relation: [(value, value)]}, self._read)[relation]))[0]
        with self._turns.look():
            equivalent = self._representation.equivalent(self._state, relation, value)
        return sorted(equivalent, key=lambda v: (v != v, v))  # NaN comes last

    def unexpanded(self, name: str) -> Relation:
        """Return the stored facts of a relation, with one representative per class of equal constants.

        Args:
            name: Name of the relation.
        """
        with self._turns.look():
            return self._relation(self._predicate(name), self._shown().rows(name))

    @checked()
    def query(self, text: str) -> Relation:
        """Return the answers to a query: the bindings of its variables, one column per variable.

        Args:
            text: A rule body in the dialect of the program.

        >>> m = materialise("p(1). p(2). p(3).")
        >>> m.query("p(x), x > 1").to_set()
        {(2,), (3,)}
        """
        query = self._compile_query(text)
        with self._turns.work():
            return self._answer(query)

    @checked()
    def sql(self, text: str, parameters: Parameters | None = None) -> pyarrow.Table:
        """Return the answer to an SQL query over the relations, as an Arrow table. DuckDB evaluates it.

        All relations are read as they are now; only those that the query names are read. A relation without columns
        has a column `holds`.

        Args:
            text: A query in the SQL of DuckDB.
            parameters: Values for `?` in the query as a list, or for `$name` as a dictionary.

        >>> m = materialise(".decl p(x:number, y:symbol)", {"p": [(1, "a"), (2, "b"), (3, "b")]})
        >>> m.sql("select y, sum(x)::int as total from p where x > ? group by y order by y", [1]).to_pylist()
        [{'y': 'b', 'total': 5}]
        """
        return sql.answer(text, parameters, self.relations, self.snapshot().__getitem__)

    @checked()
    def sparql(self, text: str, *, format: str | None = None) -> Solutions | bool | Relation | str:
        """Return the answer to a query in SPARQL 1.1 over `triple` and, as named graphs, `quad`.

        `SELECT` returns `rdf.Solutions`, `ASK` a truth value, `CONSTRUCT` and `DESCRIBE` a relation of triples. The
        prefixes of the program are known. pyoxigraph evaluates the query, in a store that is made for the first query
        and brought up to date by the changes made since for each later one. It writes numbers, dates and times in
        their canonical form, and has no facts with a literal as subject.

        Args:
            text: A query in SPARQL 1.1.
            format: Return the answer as text: `csv`, `tsv`, `json` or `xml` for `SELECT` and `ASK`, `nt` or `ttl` for
                `CONSTRUCT` and `DESCRIBE`.

        >>> rules = parse("PREFIX : <http://e/> [?x, :above, ?y] :- [?y, :below, ?x].", dialect="dlog")
        >>> m = materialise(rules, {"triple": [("<http://e/a>", "<http://e/below>", "<http://e/b>")]})
        >>> m.sparql("SELECT ?x { ?x :above :a }").rows
        [('<http://e/b>',)]
        """
        prefixes = {**PREFIXES, **self.prefixes}
        relations_of_triples(self.relations)
        if self._equality == "rewrite":
            refuse_rewriting()
        with self._turns.look():
            if self._sparql is None or not self._sparql.is_whole:
                self._sparql = SparqlStore(self, self._history)
            return self._sparql.query(text, prefixes, format)

    def _compile_query(self, text: str) -> Query:
        query = compile_query(text, self._core)
        return replace(query, core=asking_for_classes(query.core, self._core))

    def _answer(self, query: Query) -> Relation:
        query, tested = self._representation.asked(query)
        I, engine, name = self._shown(), self._engine, query.answer.name
        made = [p for p in query.core.predicates.values() if p.name not in self._core.predicates]
        for predicate in made:
            engine.declare(predicate)
        answers = engine.named("query")
        try:
            with engine.meter.run():
                for stratum in stratify(query.core):
                    answers |= aggregates(engine, stratum, I | answers)
                    answers |= derive(stratum.rules, I | answers, I | answers)
                return self._relation(query.answer, self._representation.answers(answers, name, tested))
        finally:
            engine.abandon(keep=self._state.sets())
            for predicate in made:
                engine.forget(predicate)

    @checked()
    def explain(self, fact: str, row: object = None) -> Explanation:
        """Return an explanation of a fact: its shortest proof, or why it does not hold.

        With `equality="rewrite"` the proof need not be the shortest.

        Args:
            fact: The fact as text, or the name of its relation.
            row: The values of the fact, if `fact` is the name of a relation.

        >>> rules = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."
        >>> m = materialise(rules, {"edge": [(1, 2), (2, 3)]})
        >>> print(m.explain("path", (1, 3)))
        path(1, 3)  by <program>:1:27: path(x, z) :- path(x, y), edge(y, z).
          path(1, 2)  by <program>:1:1: path(x, y) :- edge(x, y).
            edge(1, 2)  explicit
          edge(2, 3)  explicit
        >>> m.explain("path(3, 1)").holds
        False
        """
        asked = self._compile_fact(fact, row)
        with self._turns.work():
            return self._explain(*asked)

    def _compile_fact(self, fact: str, row: object) -> tuple[Fact, dict[str, str]]:
        """Return a fact to explain, and the prefixes to explain it with."""
        prefixes = {**PREFIXES, **self.prefixes} if self._core.dialect == "dlog" else {}
        if row is None:
            return compile_fact(fact, self._core), query_prefixes(fact, self._core.dialect, prefixes)
        return (fact, next(iter(fitted_facts(self._core, {fact: [row]}, self._read)[fact]))), prefixes

    def _explain(self, goal: Fact, prefixes: Mapping[str, str]) -> Explanation:
        return replace(self._explained(goal), prefixes=prefixes)

    def _explained(self, goal: Fact) -> Explanation:
        try:
            with self._engine.meter.run():
                return self._representation.explain(self._explainer, self._written, self._state, goal)
        finally:
            self._engine.abandon(keep=self._state.sets())

    @cached_property
    def _explainer(self) -> Explainer:
        return Explainer(self._written.by_pairs or self._written)

    def plans(self) -> str:
        """Return how the engine would match each rule: from all facts, and from new facts of each body atom.

        It begins with each rule that may be decomposed: whether it is, why, and the tree of its nodes.

        >>> m = materialise("path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z).", {"edge": [(1, 2)]})
        >>> print(m.plans().splitlines()[-1])
            join path(x, y) on column 2: about 1 rows for each
        """
        lines = [line for decision in self._decisions for line in decision_lines(decision)]
        with self._turns.look():
            for stratum in self._strata:
                for rule in stratum.rules:
                    lines.append(str(rule))
                    lines += [f"  {line}" for line in self._engine.plans(rule)]
        return "\n".join(lines)

    @property
    def version(self) -> int:
        """The number of updates that have been made."""
        return self._history.now.number

    def snapshot(self) -> Snapshot:
        """Return a view of what the materialisation holds now, which stays as it is while updates go on.

        It costs next to nothing, and does not wait for other threads: relations are read when they are used. Where
        `equality` is `rewrite`, and on Spark, it waits for its turn and takes all relations as they are then.

        >>> m = materialise("q(x) :- p(x).", {"p": [1, 2]})
        >>> before = m.snapshot()
        >>> change = m.update(delete={"p": [1]})
        >>> len(before["q"]), len(m["q"])
        (2, 1)
        """
        version = self._history.now
        if self._is_indexed and all(map(self._is_live, self.relations)):
            facts, explicit = (
                {p.name: self._live(p, version, only) for p in self._visible()} for only in (False, True)
            )
            return Snapshot(self, version.number, facts, explicit)
        with self._turns.look():
            facts, explicit = ({name: of(name) for name in self.relations} for of in (self.__getitem__, self.explicit))
            return Snapshot(self, self.version, facts, explicit)

    def _copy_with(self, explicit: Iterable[tuple[str, Iterable[Row]]]) -> Materialisation:
        """Return a materialisation of the same program with other explicit facts, by the algorithm that keeps least."""
        limits = self._engine.meter.limits
        copy = Materialisation(
            self._written, stratify(self._written), self._chosen_engine, "rematerialise", limits, self._equality
        )
        copy._materialise(explicit, (), "never", "granular", None)
        return copy

    def __repr__(self) -> str:
        with self._turns.look():
            sizes = ", ".join(f"{p.name}: {len(self[p.name])}" for p in self._visible())
        return f"<Materialisation {sizes}>"

    def park(self) -> None:
        """End the tasks of an engine that keeps its facts in other processes until they are needed again.

        The next call starts them again: it loads the explicit facts, which this process keeps, and derives everything
        from them, which costs as much as `materialise`. With other engines it has no effect.

        >>> m = materialise("q(x) :- p(x).", {"p": [1, 2]})
        >>> m.park()
        >>> len(m["q"])
        2
        """
        if self._down is None and self._remote is not None:
            with self._turns.work():
                self._down = "was parked"
                self._engine.close()

    def close(self) -> None:
        """End the tasks of an engine that keeps its facts in other processes; otherwise it has no effect.

        A `with` block closes the materialisation at its end. Relations whose rows were read before stay as they are.

        >>> with materialise("q(x) :- p(x).", {"p": [1, 2]}) as m:
        ...     len(m["q"])
        2
        """
        self._turns.prepare = None
        with self._turns.work():
            self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise UsageError(not_copied("materialisation"))

    def save(self, folder: str | Path) -> int:
        """Write all facts and the bookkeeping to a folder as its next version, and return the version number.

        The save is atomic: until it is complete, the folder has the previous version. `restore` opens the last version.
        Saving fails if the folder belongs to another program, or if somebody else has saved a version since this
        materialisation was restored from the folder or saved there. Other threads wait until the save is complete.

        Args:
            folder: Folder of the saved state; created if it does not exist.
        """
        with self._turns.look():
            store = Store.open(folder)
            store.check_follows(self._base)
            if store.manifest is not None and store.manifest.program != self._program_digest():
                check_program(store.manifest, self._written, self._equality, store.folder)
            return draft_of(self, store).commit()

    def _bookkeeping_writer(self) -> Callable[[Draft], None] | None:
        """Return how to add the bookkeeping to a version; None if it cannot be saved."""
        if self._representation.saves_bookkeeping and can_keep(self._state):
            return lambda draft: keep_books(draft, self._core, self._state)
        return None

    def _program_digest(self) -> str:
        self._digest = self._digest or digest(self._written, self._equality)
        return self._digest

    # -- changing ------------------------------------------------------------------------------------------------------

    @property
    def algorithm(self) -> str:
        """The name of the algorithm that `update` uses by default."""
        return self._algorithm.name

    @checked(algorithm=ALGORITHM_OR_NONE)
    def update(
        self,
        insert: FactsGiven | None = None,
        delete: FactsGiven | None = None,
        *,
        replace: FactsGiven | None = None,
        algorithm: str | None = None,
    ) -> Change:
        """Delete and insert explicit facts, bring all derived facts up to date, and return the change.

        Deletions come first, so a fact in both `insert` and `delete` is explicit afterwards. An update that fails
        leaves everything as it was.

        Args:
            insert: Facts to insert, in the forms that `materialise` accepts.
            delete: Explicit facts to delete, in the same forms.
            replace: Snapshots of relations: all explicit facts that each of these relations has afterwards. The
                difference is computed, and only that is maintained.
            algorithm: Algorithm for this and later updates. If it needs other bookkeeping, everything is derived once
                more to build it, which the statistics report.
        """
        chosen = self._represented_as.algorithm(algorithm) if algorithm else None
        return self._update_to(insert, delete, replace, chosen)

    @checked()
    def preview(
        self,
        insert: FactsGiven | None = None,
        delete: FactsGiven | None = None,
        *,
        replace: FactsGiven | None = None,
    ) -> Change:
        """Return the change that `update` would make, and change nothing.

        It costs as much as the update. The facts are checked as for `update`.

        Args:
            insert: As for `update`.
            delete: As for `update`.
            replace: As for `update`.

        >>> m = materialise("q(x) :- p(x).", {"p": [1, 2]})
        >>> m.preview(delete={"p": [1]}), len(m["q"])
        (<Change -1 p, -1 q>, 2)
        """
        try:
            self._update_to(insert, delete, replace, None, end_preview)
        except Previewed as preview:
            return preview.change
        raise AssertionError("a preview that was committed")

    def _update_to(
        self,
        insert: FactsGiven | None,
        delete: FactsGiven | None,
        replace: FactsGiven | None,
        algorithm: Algorithm | None,
        before_commit: Callable[[Change], None] | None = None,
    ) -> Change:
        minus, plus, whole = self._fitted(delete), self._fitted(insert), self._fitted(replace)
        check_replaced(whole, minus, plus)
        with interrupted_once() as interruptions, self._turns.work():

            def load() -> list[Requested]:
                return [self._load(minus, plus), *([difference(self._state.E, whole)] if whole else [])]

            return self._update_or_abandon(load, algorithm, interruptions, before_commit=before_commit)

    def compact(self) -> Freed:
        """Free the memory of deleted facts, and return the number of rows, texts and bytes freed.

        Updates free memory gradually; call this after a large deletion to free all of it at once. It takes time
        proportional to all rows, and temporarily memory for a part of the largest table. Facts, relations returned
        earlier and bookkeeping do not change.

        >>> m = materialise("q(x) :- p(x).", {"p": [(str(i),) for i in range(1000)]})
        >>> change = m.update(delete={"p": [(str(i),) for i in range(10, 1000)]})
        >>> freed = m.compact()
        >>> freed.rows, freed.texts, len(m["q"]), len(change.deleted["q"])
        (1980, 990, 10, 990)
        """
        with interrupted_once(), self._turns.work():
            return self._engine.compact(keep=self._state.sets())

    @overload
    def stream(
        self,
        updates: Iterable[object],
        *,
        algorithm: str | None = ...,
        look_ahead: bool = ...,
        merge_waiting: int = ...,
    ) -> Iterator[Change]: ...

    @overload
    def stream(
        self,
        updates: AsyncIterable[object],
        *,
        algorithm: str | None = ...,
        look_ahead: bool = ...,
        merge_waiting: int = ...,
    ) -> AsyncIterator[Change]: ...

    @checked(algorithm=ALGORITHM_OR_NONE, updates=UPDATES)
    def stream(
        self,
        updates: Iterable[object] | AsyncIterable[object],
        *,
        algorithm: str | None = None,
        look_ahead: bool = True,
        merge_waiting: int = 1,
    ) -> Iterator[Change] | AsyncIterator[Change]:
        """Apply a stream of updates and yield the change of each; asynchronously for an asynchronous iterable.

        An update that fails is rolled back and ends the stream.

        Args:
            updates: Iterable of updates: each is an `upheld.Update`, or a dictionary with facts to `insert` and to
                `delete`.
            algorithm: Algorithm for these and later updates.
            look_ahead: Skip work that the next update would undo, if that has arrived. `adaptive`, `bf-marking` and
                `dred-marking` use it. In a list the next update has always arrived; for an iterator this is unknown
                unless it has a method `ready`, as `upheld.Arrivals` has.
            merge_waiting: Apply up to this many updates that have arrived as one; `Change.updates` has their numbers.

        >>> m = materialise("path(x, y) :- edge(x, y).", {"edge": [(0, 1)]})
        >>> for change in m.stream([{"insert": {"edge": [(1, 2), (3, 4)]}}, {"delete": {"edge": [(3, 4)]}}]):
        ...     print(change.updates, change.inserted["path"].to_rows(), change.deleted["path"].to_rows())
        (1,) [(1, 2), (3, 4)] []
        (2,) [] [(3, 4)]
        """
        chosen = self._represented_as.algorithm(algorithm) if algorithm else None  # what is unknown is refused at once

        def make(given: list[_Waiting], numbers: tuple[int, ...], ahead: Sequence[_Waiting]) -> Change:
            with interrupted_once() as interruptions, self._turns.work():
                seen = merged([self._loaded(waiting) for waiting in ahead]) if ahead else None
                updates = [self._loaded(given.pop(0)) for _ in range(len(given))]
                return self._update_or_abandon(lambda: updates, chosen, interruptions, seen, numbers)

        def load(delete: FactsGiven, insert: FactsGiven) -> _Waiting:
            waiting = _Waiting(self._fitted(delete), self._fitted(insert))
            with self._turns.work():
                self._loaded(waiting)
            return waiting

        queue = Queue(load, make, look_ahead, merge_waiting)
        return follow_async(queue, updates) if isinstance(updates, AsyncIterable) else follow(queue, updates)

    def _loaded(self, waiting: _Waiting) -> Requested:
        """Return an update that is waiting as sets of the engine; if that was started meanwhile, load it again."""
        if waiting.engine is not self._engine or waiting.loaded is None:
            with self._engine.meter.run():
                sets = self._load(waiting.delete, waiting.insert)
                # Settled: what is waiting must outlast whatever is done meanwhile.
                waiting.loaded = Requested(settle(sets.minus), settle(sets.plus))
            waiting.engine = self._engine
        return waiting.loaded

    def _update_or_abandon(
        self,
        load: Callable[[], list[Requested]],
        algorithm: Algorithm | None,
        interruptions: interrupted_once,
        ahead: Requested | None = None,
        numbers: tuple[int, ...] = (),
        before_commit: Callable[[Change], None] | None = None,
    ) -> Change:
        """Make the updates that are given as one, or leave everything as it was.

        `before_commit` may still refuse the change, by raising an error.
        """
        engine, before = self._engine, self._algorithm
        self._history.settle()
        try:
            engine.reclaim(keep=self._state.sets())  # not at the end: what is interrupted here has changed nothing yet
            with engine.meter.run() as statistics:
                self._convert(algorithm or before)
                E_minus, E_plus, ignored = net_effect(self._state.E, load())
                change, version = self._make(
                    E_minus, E_plus, ignored, statistics, interruptions, ahead, numbers, before_commit
                )
            self._acknowledge(change)
            self._history.advance(change, version)
            return change
        except BaseException:
            self._algorithm = before
            if self._remote is None or not self._remote.is_lost():
                engine.abandon(keep=self._state.sets())
            raise

    def _make(
        self,
        E_minus: FactSet,
        E_plus: FactSet,
        ignored: FactSet,
        statistics: Statistics,
        interruptions: interrupted_once,
        ahead: Requested | None,
        updates: tuple[int, ...],
        before_commit: Callable[[Change], None] | None,
    ) -> tuple[Change, Version]:
        """Bring the state up to date, looking ahead to the next update if there is one.

        Return what changed, and the version that it leads to.
        """
        state = self._state
        layer, marks, bookkeeping = state.layer, state.marks, state.bookkeeping
        try:
            with self._engine.transaction():
                outcome = self._update(E_minus, E_plus, ahead)
                deleted, inserted = self._changed(outcome)
                asserted, retracted = self._by_relation(E_plus), self._by_relation(E_minus)
                ignored_facts = self._by_relation(ignored)
                change = Change(inserted, deleted, ignored_facts, asserted, retracted, statistics, updates)
                if before_commit is not None:
                    before_commit(change)
                following = self._history.now.after(change)
                interruptions.too_late()  # no interruption may come between the sets and what speaks of them
                state.layer, state.marks = outcome.layer, outcome.marks
        except BaseException:
            state.layer, state.marks, state.bookkeeping = layer, marks, bookkeeping
            raise
        return change, following

    def _acknowledge(self, change: Change) -> None:
        """Enter the change of an update, which all tasks have made by now, into the record of explicit facts.

        The record is what counts: tasks that have made an update which could not be entered are given up.
        """
        if self._record is None:
            return
        try:
            self._record.log(change)
        except BaseException as error:
            assert self._remote is not None, "a record of facts that cannot be lost"
            self._remote.lose(f"an update could not be recorded: {error}")
            raise

    def _update(self, E_minus: FactSet, E_plus: FactSet, ahead: Requested | None) -> Outcome:
        update = self._representation.update(self._algorithm)
        return make(self._state, update, self._algorithm.look_ahead, E_minus, E_plus, ahead)

    def _changed(self, outcome: Outcome) -> tuple[ByRelation, ByRelation]:
        """Return the facts that disappeared and appeared, in the constants that users know."""
        less, more = map(self._facts_by_relation, self._representation.changed(self._state, outcome))
        return less, more

    def _by_relation(self, facts: FactSet) -> ByRelation:
        return self._facts_by_relation({name: facts.rows(name) for name in facts.predicates()})

    def _facts_by_relation(self, rows: Mapping[str, Iterable[Row]]) -> ByRelation:
        return ByRelation(self._core.predicates, rows)

    def _convert(self, algorithm: Algorithm) -> None:
        """Begin the bookkeeping that an algorithm relies on, if it is not the one at hand."""
        self._state = self._representation.convert(algorithm, self._state)
        statistics = self._engine.meter.statistics
        if instances := statistics.instances["conversion"]:
            kinds = " and ".join(algorithm.bookkeeping.kinds)
            statistics.choices.append(f"began to keep {kinds} for {algorithm.name}, by {instances} rule instances")
        self._algorithm = algorithm

    # -- inside --------------------------------------------------------------------------------------------------------

    def _rows(self, name: str) -> Iterable[Row]:
        """Return the facts of a relation, in the constants that users know."""
        return self._representation.rows(self._state, name)

    def _shown(self) -> FactSet:
        """Return the facts that are there, or those that stand for them."""
        return self._representation.shown(self._state)

    def _visible(self) -> Iterator[Predicate]:
        return (p for p in self._core.predicates.values() if not p.hidden)

    def _predicate(self, name: str) -> Predicate:
        predicate = self._core.predicates.get(name) if isinstance(name, str) else None
        if predicate is None or predicate.hidden:
            raise UsageError(unknown_relation(name, self.relations))
        return predicate

    @cached_property
    def _is_indexed(self) -> bool:
        return isinstance(self._state.E, Indexed)

    def _is_live(self, name: str) -> bool:
        """Return whether the facts of a relation are those that users know, in a set with an index."""
        return self._representation.is_live(name) and self._is_indexed

    def _live(self, predicate: Predicate, version: Version, explicit: bool) -> Relation:
        view = View(self, self._history, self._turns, version, predicate.name, explicit)
        return Relation.live(predicate.name, predicate.columns, predicate.types, view)

    def _facts_now(self, explicit: bool) -> FactSet:
        return self._state.E if explicit else self._state.I

    def _count_now(self, name: str, explicit: bool) -> int:
        return self._facts_now(explicit).count(name)

    def _has_now(self, name: str, explicit: bool, row: Sequence[object]) -> bool:
        facts = self._facts_now(explicit)
        assert isinstance(facts, Indexed), "a relation that is live where facts have no index"
        return facts.has(name, row)

    def _find_now(self, name: str, explicit: bool, values: Mapping[int, Value]) -> Iterable[Row]:
        return find(self._engine, self._core.predicates[name], self._facts_now(explicit), self._state.sets(), values)

    def _rows_now(self, name: str, explicit: bool, without: Rows = (), more: Rows = ()) -> Columns | frozenset[Row]:
        facts = self._facts_now(explicit)
        try:
            if len(without) or len(more):
                facts = (facts - self._engine.load(name, without)) | self._engine.load(name, more)
            rows = facts.rows(name)
            return rows if isinstance(rows, Columns) else frozenset(rows)
        except BaseException:
            self._engine.abandon(keep=self._state.sets())
            raise

    def _relation(self, predicate: Predicate, rows: Iterable[Row]) -> Relation:
        return relation_of(predicate, rows)

    def _fitted(self, facts: FactsGiven | None) -> Mapping[str, Iterable[Row]]:
        return fitted_facts(self._core, by_name(facts), self._read)

    def _load(self, delete: Mapping[str, Iterable[Row]], insert: Mapping[str, Iterable[Row]]) -> Requested:
        return Requested(self._engine.load_all(delete), self._engine.load_all(insert))


def _nothing() -> None:
    """Stand for a method of what is gone."""


_LOST = "has lost a task"
_LOOK = "look at the log of its executor for the reason: a process was stopped, or ran out of memory"


@dataclass
class _Waiting:
    """An update of a stream that waits: its facts, and the sets of these in an engine."""

    delete: Mapping[str, Iterable[Row]]
    insert: Mapping[str, Iterable[Row]]
    engine: Engine | None = None
    loaded: Requested | None = None


def draft_of(m: Materialisation, store: Store, change: Change | None = None) -> Draft:
    """Return the next version of a store in the making, with all facts of a materialisation.

    If the last version holds the facts as they were before the last update, it is enough to write its `change`.
    """
    draft = Draft.begin(store, m._program_digest())
    draft.when_in_place = lambda base: setattr(m, "_base", base)
    with m._turns.look(), draft:
        write_facts(draft, {p.name: p for p in m._visible()}, m, change, m._bookkeeping_writer())
    return draft
