"""How a materialisation is read: its relations, answers to queries, explanations and plans."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

from upheld.algebra.engine import Engine
from upheld.algebra.sets import FactSet, Indexed, derive
from upheld.base.errors import Problem, UsageError, is_whole, nearest, quote, require
from upheld.base.pages import Plans, table
from upheld.base.threads import Threads
from upheld.base.turns import Turns
from upheld.compiler.equality.equivalences import asking_for_classes
from upheld.compiler.hypertrees.jointree import decision_lines
from upheld.compiler.strata import Stratification, stratify
from upheld.engines import EngineChoice
from upheld.facts import sql
from upheld.facts.change import relation_of, unknown_relation
from upheld.facts.columns import Columns, Row
from upheld.facts.files.reading import Reader
from upheld.facts.ingest.by_relation import fitted_facts
from upheld.facts.relation import Relation, coded_columns, decoded
from upheld.facts.sql import Parameters
from upheld.language.core import Core, Fact, Predicate
from upheld.language.syntax.files import query_prefixes
from upheld.language.terms.iris import shortened
from upheld.language.terms.vocabulary import PREFIXES
from upheld.language.values import Value
from upheld.maintain.aggregates import aggregates
from upheld.maintain.update import State
from upheld.materialisation.constraints import violations_among
from upheld.materialisation.representation import Plain
from upheld.materialisation.updates.sources import Sources
from upheld.materialisation.versions.snapshot import Snapshot
from upheld.materialisation.versions.sparql import SparqlStore, relations_of_triples
from upheld.materialisation.versions.views import History, Rows, Version, View, find

if TYPE_CHECKING:
    import pyarrow

    from upheld.compiler.hypertrees.modes import Decision
    from upheld.compiler.queries import Query
    from upheld.explain import Explainer, Explanation, ProofStep
    from upheld.rdf.sparql import Solutions

#: The form of the parameters of a query, for messages.
BY_NAME = "a dictionary of values by name, or None"


class Reading(ABC):
    """The methods of `Materialisation` that read. Its methods that change it are in `materialisation`."""

    _written: Core
    _core: Core
    _strata: Stratification
    _decisions: tuple[Decision, ...]
    _representation: Plain
    _engine: Engine
    _read: Reader
    _threads: Threads
    _state: State
    _turns: Turns
    _history: History
    _sources: Sources
    _sparql: SparqlStore | None

    @property
    def relations(self) -> tuple[str, ...]:
        """The names of the relations of the program."""
        return tuple(p.name for p in self._visible())

    @property
    def prefixes(self) -> dict[str, str]:
        """The prefixes that a `.dlog` program declares, which queries may use without declaring them."""
        return dict(self._core.prefixes)

    def short(self, text: str) -> str:
        """Return a text with the prefixes of a `.dlog` program for the IRIs in it.

        Args:
            text: A term in N-Triples syntax, or a text with such terms.

        >>> m = materialise(parse("PREFIX e: <http://e/> [?x, a, e:C] :- [?x, e:p, ?y].", dialect="dlog"))
        >>> m.short("<http://e/a>")
        'e:a'
        """
        require(isinstance(text, str), "text", "a string", text)
        return shortened(text, {**PREFIXES, **self.prefixes}) if self._core.dialect == "dlog" else text

    def __getitem__(self, name: str) -> Relation:
        """Return the facts of a relation, explicit and derived. Later updates do not change the result.

        Args:
            name: Name of the relation.
        """
        predicate = self._predicate(name)
        if self._is_live(name):
            return self._live(predicate, self._history.seen, explicit=False)
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

    def _repr_html_(self) -> str:
        rows = [(name, len(self[name]), len(self.explicit(name))) for name in self.relations]
        return table(("relation", "facts", "explicit"), rows)

    def explicit(self, name: str) -> Relation:
        """Return the explicit facts of a relation. Later updates do not change the result.

        Args:
            name: Name of the relation.
        """
        predicate = self._predicate(name)
        if self._is_indexed:
            return self._live(predicate, self._history.seen, explicit=True)
        with self._turns.look():
            return self._relation(predicate, self._state.E.rows(name))

    def violations(self) -> dict[str, Relation]:
        """Return what violates constraints now: for each violated constraint, the bindings of its variables.

        The columns of each relation are variables of the constraint. `explain` with the name of a constraint and a row
        returns the proof. Violations of a `.dlog` program are the facts of `violation`.

        >>> m = materialise(".decl n(x:number) .constraint positive :- n(x), x < 0.", {"n": [1]})
        >>> change = m.update(insert={"n": [-5]}, on_violation="report")
        >>> m.violations()
        {'positive': <Relation positive(x:number), 1 row: (-5,)>}
        """
        with self._turns.look():
            return violations_among(self._written, {name: self._rows(name) for name in self._written.constraints})

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
            require(isinstance(relation, str), "relation", "the name of a relation, or None", relation)
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

    def query(self, text: str, parameters: Mapping[str, Value] | None = None, *, limit: int | None = None) -> Relation:
        """Return the answers to a query: the bindings of its variables, one column per variable.

        Args:
            text: A rule body in the dialect of the program.
            parameters: Values of variables of the query, which are not columns of the answers then.
            limit: Maximum number of answers: the first ones in ascending order.

        >>> m = materialise("p(1). p(2). p(3).")
        >>> m.query("p(x), x > 1").to_set()
        {(2,), (3,)}
        >>> m.query("p(x), x > least", {"least": 0}, limit=2).to_rows()
        [(1,), (2,)]
        """
        require(limit is None or is_whole(limit), "limit", "a whole number of at least 0, or None", limit)
        query = self._compile_query(text, parameters)
        with self._turns.work():
            answers = self._answer(query)
        return answers if limit is None else answers.head(limit)

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

    def sparql(
        self, text: str, parameters: Mapping[str, object] | None = None, *, format: str | None = None
    ) -> Solutions | bool | Relation | str:
        """Return the answer to a query in SPARQL 1.1 over `triple` and, as named graphs, `quad`.

        `SELECT` returns `rdf.Solutions`, `ASK` a truth value, `CONSTRUCT` and `DESCRIBE` a relation of triples. The
        prefixes of the program are known. pyoxigraph evaluates the query, in a store that is made for the first query
        and brought up to date by the changes made since for each later one. It writes numbers, dates and times in
        their canonical form, and has no facts with a literal as subject. With `equality="rewrite"` it has the triples
        of all equal constants, and takes memory for them. Limits of time and memory are checked before the first answer
        and for each thousand answers.

        Args:
            text: A query in SPARQL 1.1. `SERVICE` is refused.
            parameters: Values of variables that the query selects: terms in N-Triples syntax, or numbers.
            format: Return the answer as text: `csv`, `tsv`, `json` or `xml` for `SELECT` and `ASK`, `nt` or `ttl` for
                `CONSTRUCT` and `DESCRIBE`.

        >>> rules = parse("PREFIX : <http://e/> [?x, :above, ?y] :- [?y, :below, ?x].", dialect="dlog")
        >>> m = materialise(rules, {"triple": [("<http://e/a>", "<http://e/below>", "<http://e/b>")]})
        >>> m.sparql("SELECT ?x { ?x :above :a }").rows
        [('<http://e/b>',)]
        """
        require(isinstance(text, str), "text", "a string", text)
        require(isinstance(format, str | None), "format", "the name of a format, or None", format)
        require(isinstance(parameters, Mapping | None), "parameters", BY_NAME, parameters)
        prefixes = {**PREFIXES, **self.prefixes}
        relations_of_triples(self.relations)
        with self._turns.look(), self._engine.meter.run():
            if self._sparql is None or not self._sparql.is_whole:
                self._sparql = SparqlStore(self, self._history)
            return self._sparql.query(text, prefixes, format, parameters, self._engine.meter.look)

    def _compile_query(
        self, text: str, parameters: Mapping[str, Value] | None = None, *, parameter: str = "text"
    ) -> Query:
        from upheld.compiler.queries import compile_query

        require(isinstance(text, str), parameter, "a string", text)
        require(isinstance(parameters, Mapping | None), "parameters", BY_NAME, parameters)
        query = compile_query(text, self._core, parameters)
        return replace(query, core=asking_for_classes(query.core, self._core))

    def _answer(self, query: Query) -> Relation:
        query, tested = self._representation.asked(query)
        I, engine, name = self._shown(), self._engine, query.answer.name
        with self._declared(query):
            answers = engine.named("query")
            with engine.meter.run():
                for stratum in stratify(query.core):
                    answers |= aggregates(engine, stratum, I | answers)
                    answers |= derive(stratum.rules, I | answers, I | answers)
                return self._relation(query.answer, self._representation.answers(answers, name, tested))

    @contextmanager
    def _declared(self, query: Query) -> Iterator[None]:
        """Declare the relations of a query, and forget them and all sets of the query at the end."""
        engine = self._engine
        new = [p for p in query.core.predicates.values() if p.name not in self._core.predicates]
        for predicate in new:
            engine.declare(predicate)
        try:
            yield
        finally:
            engine.abandon(keep=self._state.sets())
            for predicate in new:
                engine.forget(predicate)

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
        from upheld.compiler.queries import compile_fact

        require(isinstance(fact, str), "fact", "a string", fact)
        prefixes = {**PREFIXES, **self.prefixes} if self._core.dialect == "dlog" else {}
        if row is None:
            return compile_fact(fact, self._core), query_prefixes(fact, self._core.dialect, prefixes)
        core = self._core
        if (constraint := core.constraints.get(fact)) is not None:
            core = replace(core, predicates={fact: replace(constraint, hidden=False)})
        return (fact, next(iter(fitted_facts(core, {fact: [row]}, self._read)[fact]))), prefixes

    def _explain(self, goal: Fact, prefixes: Mapping[str, str]) -> Explanation:
        explanation = self._explained(goal)
        if self._sources and explanation.proof is not None:
            steps = tuple(self._with_sources(step) for step in explanation.proof.steps)
            explanation = replace(explanation, proof=replace(explanation.proof, steps=steps))
        return replace(explanation, prefixes=prefixes)

    def _with_sources(self, step: ProofStep) -> ProofStep:
        """Return a step of a proof with the sources of its fact, if that is explicit."""
        claims = self._sources.of(step.fact) if step.explicit else ()
        return replace(step, sources=tuple(sorted(claims, key=lambda s: (s is None, s)))) if claims else step

    def _explained(self, goal: Fact) -> Explanation:
        try:
            with self._engine.meter.run():
                return self._representation.explain(self._explainer, self._written, self._state, goal)
        finally:
            self._engine.abandon(keep=self._state.sets())

    @cached_property
    def _explainer(self) -> Explainer:
        from upheld.explain import Explainer

        return Explainer(self._written.by_pairs or self._written)

    def plans(self, query: str | None = None, parameters: Mapping[str, Value] | None = None) -> Plans:
        """Return how the engine would match each rule: from all facts, and from new facts of each body atom.

        It begins with each rule that may be decomposed: whether it is, why, and the tree of its nodes.

        Args:
            query: A rule body, to return the plans of this query instead.
            parameters: Values of variables of the query.

        >>> m = materialise("path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z).", {"edge": [(1, 2)]})
        >>> print(m.plans().splitlines()[-1])
            join path(x, y) on column 2: about 1 rows for each
        >>> print(m.plans("path(x, y), edge(y, 2)").splitlines()[1])
          from all facts
        """
        if query is not None:
            return self._plans_of(self._compile_query(query, parameters, parameter="query"))
        lines = [line for decision in self._decisions for line in decision_lines(decision)]
        with self._turns.look():
            return Plans("\n".join([*lines, *self._plan_lines(self._strata)]))

    def _plans_of(self, query: Query) -> Plans:
        query, _ = self._representation.asked(query)
        with self._turns.work(), self._declared(query):
            return Plans("\n".join(self._plan_lines(stratify(query.core))))

    def _plan_lines(self, strata: Stratification) -> Iterator[str]:
        for rule in (rule for stratum in strata for rule in stratum.rules):
            yield str(rule)
            yield from (f"  {line}" for line in self._engine.plans(rule))

    @property
    def version(self) -> int:
        """The number of updates that have been made."""
        return self._history.seen.number

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
        version = self._history.seen
        if self._is_indexed and all(map(self._is_live, self.relations)):
            visible = [p for p in version.core.predicates.values() if not p.hidden]
            facts, explicit = ({p.name: self._live(p, version, only) for p in visible} for only in (False, True))
            return Snapshot(self, version.core, version.number, facts, explicit)
        with self._turns.look():
            facts, explicit = ({name: of(name) for name in self.relations} for of in (self.__getitem__, self.explicit))
            return Snapshot(self, self._written, self.version, facts, explicit)

    @abstractmethod
    def _copy_with(
        self,
        explicit: Iterable[tuple[str, Iterable[Row]]],
        engine: str | EngineChoice | None = None,
        core: Core | None = None,
        algorithm: str = "rematerialise",
    ) -> Self:
        """Return a materialisation with other explicit facts, by default by the algorithm that keeps least.

        Its program is that of the core, by default the program that there is now.
        """

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
