"""What users hold: a program, its facts, and all that follows from them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import or_
from pathlib import Path
from typing import overload

from upheld.algebra.interruptions import interrupted_once, uninterrupted
from upheld.algebra.meter import Limits, Statistics, Watcher, phase
from upheld.algebra.words import FactSet, derive, settle
from upheld.arrivals import Queue, follow, follow_async
from upheld.columns import Row
from upheld.engines import EngineChoice, chosen_engine, facts_reader, open_engine
from upheld.errors import FactsError, Problem, UsageError, nearest, quote
from upheld.explaining import Explainer, Explanation
from upheld.factfiles import Reader
from upheld.ingest import facts_of
from upheld.language.ast import Program
from upheld.language.compiling import compile_program
from upheld.language.core import Core, Fact, Predicate, Rule
from upheld.language.equality import Equality, Tested, tests_apart, with_equality
from upheld.language.hypertrees.deciding import Decision, check_mode, decompose_program
from upheld.language.hypertrees.drawing import decision_lines
from upheld.language.hypertrees.estimates import Table
from upheld.language.hypertrees.forecast import Forecast
from upheld.language.queries import compile_fact, compile_query
from upheld.language.reading import read_file, read_text
from upheld.language.stratification import Stratification, stratify
from upheld.maintain.algorithms import Algorithm, algorithm_named
from upheld.maintain.equality import Rewriting
from upheld.maintain.marking import Given, Outcome, make, merged
from upheld.maintain.state import State
from upheld.rdf.reading import read as read_rdf
from upheld.rdf.rulesets import RULESETS, rules
from upheld.relation import Relation
from upheld.store import Draft, Manifest, Store, digest

#: Facts as callers give them: for each relation rows, a data frame, an Arrow table, or the path of a file.
#: RDF files, or a folder of them, hold facts of `triple` and `quad`.
FactsGiven = Mapping[str, object] | str | Path | Sequence[str | Path]


#: The algorithms by which updates are made where equal constants are rewritten.
REWRITING = ("adaptive", "rematerialise")


class ByRelation(Mapping[str, Relation]):
    """Facts of each relation of a program; only relations with facts are kept, the others are made when asked for."""

    def __init__(self, predicates: Mapping[str, Predicate], rows: Mapping[str, Iterable[Row]]):
        self._predicates = predicates
        some = [predicates[name] for name in sorted(rows) if not predicates[name].hidden]
        self._some = {p.name: _relation(p, rows[p.name]) for p in some}

    def __getitem__(self, name: str) -> Relation:
        found = self._some.get(name)
        if found is not None:
            return found
        predicate = self._predicates.get(name)
        if predicate is None or predicate.hidden:
            raise UsageError(_unknown_relation(name, list(self)))
        return _relation(predicate, ())

    def __iter__(self) -> Iterator[str]:
        return (p.name for p in self._predicates.values() if not p.hidden)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def not_empty(self) -> list[Relation]:
        """Return the relations that have facts."""
        return [r for r in self._some.values() if len(r)]


@dataclass(frozen=True)
class Change:
    """What an update did to each relation: the facts, explicit or derived, that appeared and that disappeared."""

    inserted: ByRelation
    deleted: ByRelation
    #: Facts that were to be deleted but are not explicit, or to be inserted but are.
    ignored: ByRelation
    #: Explicit facts that were added, and that were taken away, whether or not they follow from others as well.
    asserted: ByRelation
    retracted: ByRelation
    statistics: Statistics
    #: Which updates of a stream it is the change of, counted from one: several if they were waiting and made as one.
    updates: tuple[int, ...] = ()

    def __repr__(self) -> str:
        sizes = ((sign, r) for sign, rs in (("+", self.inserted), ("-", self.deleted)) for r in rs.not_empty())
        return f"<Change {', '.join(f'{sign}{len(r)} {r.name}' for sign, r in sizes) or 'nothing'}>"


@dataclass(frozen=True)
class Progress:
    """How far a run has come: the stratum it works on, its rounds and facts so far, and the seconds they took."""

    stratum: int
    strata: int
    rounds: int
    facts: int
    seconds: float


#: Told of the progress of a run about ten times a second.
ProgressWatcher = Callable[[Progress], None]


class Materialisation:
    """All facts that follow from a program and explicit facts. `update` keeps them so.

    >>> m = materialise("path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z).", {"edge": [(1, 2), (2, 3)]})
    >>> m["path"].to_set() == {(1, 2), (2, 3), (1, 3)}
    True
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
        #: The classes of equal constants, where one constant stands for each.
        self._rewriting: Rewriting | None = None
        self._algorithm = self._algorithm_named(algorithm)
        self._engine = open_engine(engine, core, limits)
        self._read = facts_reader(engine)
        #: What tells the program from others where facts are saved, once it is known.
        self._digest: str | None = None
        self.statistics = Statistics()
        self._state: State

    def _materialise(
        self,
        facts: Iterable[tuple[str, Iterable[Row]]],
        without: Iterable[tuple[str, Iterable[Row]]],
        decompose: str,
        granular: bool,
        progress: ProgressWatcher | None,
    ) -> None:
        E: FactSet = self._engine.named("E")
        if self._equality == "rewrite":
            self._rewriting = Rewriting(self._core, self._strata, E, self._engine.named("I"))
        for predicate, rows in facts:
            E |= self._engine.load(predicate, rows)
        for predicate, rows in without:
            E -= self._engine.load(predicate, rows)
        with self._engine.meter.run() as self.statistics:
            if self._rewriting is None:
                self._decompose(E, decompose, granular)
            if progress is not None:
                self._engine.meter.watcher = _told_of_strata(self._strata, progress)
            if self._rewriting is not None:
                self._rewriting.materialise()
                self._state = State(E, self._rewriting.I, self._strata)
            else:
                self._state = self._algorithm.materialise(E, self._strata)

    def _decompose(self, E: FactSet, mode: str, granular: bool) -> None:
        """Take rules apart by what is known of the explicit facts. The nodes are relations of the program from now."""
        facts = sum(map(E.at_most, E.predicates()))
        decomposed = decompose_program(self._written, facts, lambda: _forecast(self._written, E), mode)
        self._decisions = decomposed.decisions
        if decomposed.core is not self._written:
            for name, predicate in decomposed.core.predicates.items():
                if name not in self._written.predicates:
                    self._engine.declare(predicate)
            self._core = decomposed.core
            self._strata = stratify(self._core, granular=granular)

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
        """Return the facts of a relation, explicit and derived."""
        return _relation(self._predicate(name), self._rows(name))

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the relations."""
        return iter(self.relations)

    def __contains__(self, name: object) -> bool:
        """Return whether there is a relation of this name."""
        return name in self.relations

    def explicit(self, name: str) -> Relation:
        """Return the explicit facts of a relation."""
        return _relation(self._predicate(name), self._state.E.rows(name))

    def facts(self) -> set[Fact]:
        """Return all facts of the materialisation, as pairs of relation name and row."""
        return {(p.name, row) for p in self._visible() for row in self._rows(p.name)}

    def representative(self, constant: str) -> str:
        """Return the constant that stands for one and all that equal it: itself, unless `equality` is `rewrite`.

        >>> rules = parse("PREFIX : <http://e/> [?x, owl:sameAs, ?y] :- [?x, :knownAs, ?y].", dialect="dlog")
        >>> known = [("<http://e/b>", "<http://e/knownAs>", "<http://e/a>")]
        >>> m = materialise(rules, {"triple": known}, equality="rewrite")
        >>> m.representative("<http://e/b>"), m.equals("<http://e/b>")
        ('<http://e/a>', ['<http://e/a>', '<http://e/b>'])
        """
        if self._rewriting is None:
            return constant
        return str(self._rewriting.pi.representatives([constant])[0])

    def equals(self, constant: str) -> list[str]:
        """Return the constants that equal one, itself among them, in the order in which they come to represent others.

        Where `equality` is `axioms` they are those that `owl:sameAs` says; where it is `off`, the constant alone.
        """
        if self._rewriting is not None:
            return [str(c) for c in self._rewriting.pi.class_of(constant)]
        if self._equality == "off":
            return [constant]
        equality = Equality()
        rows = self._state.I.rows(equality.predicate)
        found = {row[2] for row in rows if row[0] == constant and row[1] == equality.value}
        return [str(c) for c in sorted({constant, *found}, key=equality.order)]

    def unexpanded(self, name: str) -> Relation:
        """Return the facts of a relation as they are kept: with a representative for each class of equal constants."""
        return _relation(self._predicate(name), self._state.I.rows(name))

    def query(self, text: str) -> Relation:
        """Return the bindings of the variables of a rule body under which it holds.

        >>> m = materialise("p(1). p(2). p(3).")
        >>> m.query("p(x), x > 1").to_set()
        {(2,), (3,)}
        """
        query = compile_query(text, self._core)
        tested: list[Tested] = []
        if self._rewriting is not None:
            core, tested = tests_apart(query.core)
            query = replace(query, core=self._rewriting.represented(core))
        I, engine, name = self._state.I, self._engine, query.answer.name
        made = [p for p in query.core.predicates.values() if p.name not in self._core.predicates]
        for predicate in made:
            engine.declare(predicate)
        answers = engine.named("query")
        try:
            with engine.meter.run():
                for stratum in stratify(query.core):
                    answers |= derive(stratum.rules, I | answers, I | answers)
                if self._rewriting is None:
                    return _relation(query.answer, answers.rows(name))
                rows = self._rewriting.pi.expanded(answers, name)
                if tested:
                    rows = {*rows, *self._tested(tested, answers, name)}
            return _relation(query.answer, rows)
        finally:
            engine.abandon(keep=self._state.sets())
            for predicate in made:
                engine.forget(predicate)

    def _tested(self, tested: Sequence[Tested], bindings: FactSet, answer: str) -> Iterator[Row]:
        """Yield the answers of rules that compare or compute, by the constants that normal bindings stand for."""
        assert self._rewriting is not None, "tests apart from what is tested"
        for rule in tested:
            name = rule.bindings.name
            seen = self._engine.load(name, self._rewriting.pi.expanded(bindings, name))
            yield from settle(derive((rule.test,), seen, seen)).rows(answer)

    def explain(self, fact: str, row: object = None) -> Explanation:
        """Return why a fact holds, as its shortest proof, or why it does not. It is a text, or a relation and a row.

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
        if self._rewriting is not None:
            raise UsageError(
                Problem(
                    "rewrite-explains-nothing",
                    "facts are not explained where equal constants are rewritten",
                    note="what is kept are facts about representatives, and not by which equalities others follow",
                    hint="use `equality=axioms`: there equality has rules, and proofs show them",
                )
            )
        if row is None:
            goal = compile_fact(fact, self._core)
        else:
            goal = fact, next(iter(_fitted(self._core, {fact: [row]}, self._read)[fact]))
        E, I = self._state.E, self._state.I
        try:
            with self._engine.meter.run():
                return self._explainer.explain(goal, E, I)
        finally:
            self._engine.abandon(keep=self._state.sets())

    @cached_property
    def _explainer(self) -> Explainer:
        return Explainer(self._written)

    def plans(self) -> str:
        """Return how the engine would match each rule: from all facts, and from new facts of each body atom.

        Before that it tells of each cyclic rule whether it is decomposed, and why, and draws the tree of its nodes.

        >>> m = materialise("path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z).", {"edge": [(1, 2)]})
        >>> print(m.plans().splitlines()[-1])
            join path(x, y) on column 2: about 1 rows for each
        """
        lines = [line for decision in self._decisions for line in decision_lines(decision)]
        for stratum in self._strata:
            for rule in stratum.rules:
                lines.append(str(rule))
                lines += [f"  {line}" for line in self._engine.plans(rule)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{p.name}: {len(self[p.name])}" for p in self._visible())
        return f"<Materialisation {sizes}>"

    def save(self, folder: str | Path) -> int:
        """Write all facts into a folder, as the next version of what is kept there, and return its number.

        Until all is written the folder holds the version before, whatever happens. `restore` opens the last version.
        """
        if self._rewriting is not None:
            raise UsageError(_NOT_SAVED)
        return draft_of(self, Store.open(folder)).commit()

    # -- changing ------------------------------------------------------------------------------------------------------

    @property
    def algorithm(self) -> str:
        """The name of the algorithm that `update` uses unless it is given another."""
        return self._algorithm.name

    def update(
        self, insert: FactsGiven | None = None, delete: FactsGiven | None = None, *, algorithm: str | None = None
    ) -> Change:
        """Delete and insert explicit facts, bring all that follows up to date, and return what changed.

        The new explicit facts are the old ones without those of `delete`, and with those of `insert`. An update that
        fails leaves everything as it was. `algorithm` chooses another algorithm from now on; where that one relies on
        other bookkeeping, all is derived once more to begin it, which the statistics tell.
        """
        with interrupted_once():
            return self._update_or_abandon(lambda: [self._load(delete or {}, insert or {})], algorithm)

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

    def stream(
        self,
        updates: Iterable[object] | AsyncIterable[object],
        *,
        algorithm: str | None = None,
        look_ahead: bool = True,
        merge_waiting: int = 1,
    ) -> Iterator[Change] | AsyncIterator[Change]:
        """Make one update after the other, as they come, and yield the change of each; asynchronously if they come so.

        An update is an `upheld.Update`, or a dictionary with the facts to `insert` and to `delete`. While one is made,
        the next one is looked at if it has arrived, never waited for: what it undoes is then undone without a rule.
        `adaptive`, `bf-marking` and `dred-marking` do so; other algorithms make each update by itself. In a list the
        next update is always there; of an iterator this is not known, unless it has a method `ready` that tells, as
        `upheld.Arrivals` has. `merge_waiting` is how many updates that have arrived may be made as one;
        `Change.updates` tells which. An update that fails ends the stream, and leaves everything as it was before it.

        >>> m = materialise("path(x, y) :- edge(x, y).", {"edge": [(0, 1)]})
        >>> for change in m.stream([{"insert": {"edge": [(1, 2), (3, 4)]}}, {"delete": {"edge": [(3, 4)]}}]):
        ...     print(change.updates, change.inserted["path"].to_rows(), change.deleted["path"].to_rows())
        (1,) [(1, 2), (3, 4)] []
        (2,) [] [(3, 4)]
        """
        chosen = self._algorithm_named(algorithm).name if algorithm else None  # what is unknown is refused at once

        def make(given: list[Given], numbers: tuple[int, ...], ahead: Sequence[Given]) -> Change:
            with interrupted_once():
                return self._update_or_abandon(lambda: given, chosen, merged(ahead) if ahead else None, numbers)

        def load(delete: FactsGiven, insert: FactsGiven) -> Given:
            with self._engine.meter.run():  # settled: what is waiting must outlast whatever is done meanwhile
                waiting = self._load(delete, insert)
                return Given(settle(waiting.minus), settle(waiting.plus))

        queue = Queue(load, make, look_ahead, merge_waiting)
        return follow_async(queue, updates) if isinstance(updates, AsyncIterable) else follow(queue, updates)

    def _update_or_abandon(
        self,
        load: Callable[[], list[Given]],
        algorithm: str | None,
        ahead: Given | None = None,
        numbers: tuple[int, ...] = (),
    ) -> Change:
        """Make the updates that are given as one, or leave everything as it was."""
        engine, before = self._engine, self._algorithm
        chosen = self._algorithm_named(algorithm) if algorithm else before
        try:
            with engine.meter.run() as statistics:
                self._convert(chosen)
                E_minus, E_plus, ignored = self._net_effect(load())
                return self._make(E_minus, E_plus, ignored, statistics, ahead, numbers)
        except BaseException:
            self._algorithm = before
            engine.abandon(keep=self._state.sets())
            raise

    def _net_effect(self, updates: list[Given]) -> tuple[FactSet, FactSet, FactSet]:
        """Return the explicit facts that updates take away and add in all, and those that they need not."""
        E, together = self._state.E, updates.pop(0)  # taken from the list, as sets that nobody holds cost nothing
        ignored = settle((together.minus - E) | (together.plus & E))
        while updates:
            later = updates.pop(0)
            explicit = settle((((later.minus | later.plus) & E) - together.minus) | together.plus)
            ignored = settle(ignored | (later.minus - explicit) | (later.plus & explicit))
            together = merged([together, later])
        return settle((together.minus & E) - together.plus), settle(together.plus - E), ignored

    def _make(
        self,
        E_minus: FactSet,
        E_plus: FactSet,
        ignored: FactSet,
        statistics: Statistics,
        ahead: Given | None,
        updates: tuple[int, ...],
    ) -> Change:
        """Bring the state up to date, looking ahead to the next update if there is one, and return what changed."""
        state, before = self._state, self._state.marks
        with ExitStack() as at_the_end:
            try:
                with self._engine.transaction():
                    outcome = self._update(E_minus, E_plus, ahead)
                    deleted, inserted = self._changed(outcome)
                    asserted, retracted = self._by_relation(E_plus), self._by_relation(E_minus)
                    ignored_facts = self._by_relation(ignored)
                    change = Change(inserted, deleted, ignored_facts, asserted, retracted, statistics, updates)
                    if outcome.marks is not before:  # no interruption may come between these and the sets they speak of
                        at_the_end.enter_context(uninterrupted())
                        state.marks = outcome.marks
            except BaseException:
                state.marks = before
                raise
        return change

    def _update(self, E_minus: FactSet, E_plus: FactSet, ahead: Given | None) -> Outcome:
        update = self._algorithm.update
        if self._rewriting is not None:
            fresh = self._algorithm.name == "rematerialise"
            update = self._rewriting.rematerialise if fresh else self._rewriting.update
        return make(self._state, update, self._algorithm.marking, E_minus, E_plus, ahead)

    def _changed(self, outcome: Outcome) -> tuple[ByRelation, ByRelation]:
        """Return what has disappeared and appeared, in the constants that users know."""
        if self._rewriting is None:
            return self._by_relation(outcome.deleted), self._by_relation(outcome.inserted)
        deleted, inserted = self._rewriting.changed(outcome.deleted, outcome.inserted)
        return ByRelation(self._core.predicates, deleted), ByRelation(self._core.predicates, inserted)

    def _by_relation(self, facts: FactSet) -> ByRelation:
        return ByRelation(self._core.predicates, {name: facts.rows(name) for name in facts.predicates()})

    def _algorithm_named(self, name: str) -> Algorithm:
        """Return an algorithm that can be used here."""
        found = algorithm_named(name)
        if self._equality == "rewrite" and name not in REWRITING:
            raise UsageError(
                Problem(
                    "rewrite-algorithm",
                    f"{quote(name)} cannot maintain facts whose equal constants are rewritten",
                    note="with `equality=rewrite` updates are made by one algorithm, which goes by `adaptive`, or from "
                    "scratch by `rematerialise`",
                    hint="leave the algorithm out, or use `equality=axioms`",
                )
            )
        return replace(found, marking=None) if self._equality == "rewrite" else found

    def _convert(self, algorithm: Algorithm) -> None:
        """Begin the bookkeeping that an algorithm relies on, if it is not the one at hand."""
        if self._rewriting is not None:  # both algorithms there keep the same
            self._algorithm = algorithm
            return
        self._state = phase("conversion")(algorithm.convert)(self._state)
        statistics = self._engine.meter.statistics
        if instances := statistics.instances["conversion"]:
            books = " and ".join(algorithm.books)
            statistics.choices.append(f"began to keep {books} for {algorithm.name}, by {instances} rule instances")
        self._algorithm = algorithm

    # -- inside --------------------------------------------------------------------------------------------------------

    def _rows(self, name: str) -> Iterable[Row]:
        """Return the facts of a relation, in the constants that users know."""
        I = self._state.I
        return I.rows(name) if self._rewriting is None else self._rewriting.pi.expanded(I, name)

    def _visible(self) -> Iterator[Predicate]:
        return (p for p in self._core.predicates.values() if not p.hidden)

    def _predicate(self, name: str) -> Predicate:
        found = self._core.predicates.get(name)
        if found is None or found.hidden:
            raise UsageError(_unknown_relation(name, self.relations))
        return found

    def _load(self, delete: FactsGiven, insert: FactsGiven) -> Given:
        return Given(self._given(delete), self._given(insert))

    def _given(self, facts: FactsGiven) -> FactSet:
        fitted = _fitted(self._core, _by_name(facts), self._read)
        return reduce(or_, (self._engine.load(name, rows) for name, rows in fitted.items()), self._engine.nothing)


def materialise(
    program: str | Path | Program,
    facts: FactsGiven | None = None,
    *,
    engine: str | EngineChoice = "memory",
    algorithm: str = "adaptive",
    decompose: str = "auto",
    equality: str = "off",
    limits: Limits | None = None,
    granular: bool = True,
    progress: ProgressWatcher | None = None,
) -> Materialisation:
    """Derive all that follows from the rules of a program and facts.

    `program` is the path of a `.dl` or `.dlog` file, or the text of a `.dl` program. `facts` gives for each relation
    rows, a pandas DataFrame, an Arrow table, or the path of a file. A program that declares no relations takes the
    types of its columns from the facts and from their use. For a `.dlog` program `facts` may be the path of an RDF file
    or of a folder of them, or several paths. `algorithm` is how updates will be made: `adaptive`, or one
    of `ranked counting dred fbf bf dred-c bf-c rematerialise`, or for streams `dred-marking` or `bf-marking`.
    `decompose` says which cyclic rules are taken apart: those for which that pays by what is known of the facts
    (`auto`), none (`never`), or all that can be (`always`); the facts are the same. `granular=False` asks for the
    coarsest stratification. `equality` is how `owl:sameAs` of a `.dlog` program is treated: as any property (`off`), by
    rules that make it a congruence (`axioms`), or by keeping one representative of each class of equal constants
    (`rewrite`), which comes to the same facts in less time and memory. `engine` is `memory`, `reference`, `spark`, or
    an `upheld.SparkEngine` on your own session.
    `progress` is a function that is told now and then how far the work has come.

    >>> m = materialise('path(x, y) :- edge(x, y).', {"edge": [("a", "b")]})
    >>> m["path"].to_set()
    {('a', 'b')}
    """
    parsed = parse(program)
    given = _by_name(facts)
    declared = {d.name for d in parsed.declarations}
    read = facts_reader(engine)
    inferred = {name: facts_of(name, data, read=read) for name, data in given.items() if name not in declared}
    core = compile_program(parsed, {name: types for name, (_, types) in inferred.items() if types}).core
    ready: dict[str, object] = {name: inferred[name][0] if name in inferred else data for name, data in given.items()}
    fitted = _fitted(core, ready, read).items()
    return materialise_core(
        core,
        fitted,
        engine=engine,
        algorithm=algorithm,
        decompose=decompose,
        equality=equality,
        limits=limits,
        granular=granular,
        progress=progress,
    )


def draft_of(m: Materialisation, store: Store, change: Change | None = None) -> Draft:
    """Return the next version of a store in the making, with all facts of a materialisation.

    If the last version holds the facts as they were before the last update, it is enough to write its `change`.
    """
    m._digest = m._digest or digest(m._written)
    draft = store.begin(m._digest)
    if change is None:
        draft.relations.clear()
        for predicate in m._visible():
            draft.whole(predicate, m.explicit(predicate.name), m[predicate.name])
        return draft
    sides = change.inserted, change.deleted, change.asserted, change.retracted
    for name in dict.fromkeys(relation.name for side in sides for relation in side.not_empty()):
        predicate = m._predicate(name)
        # What Spark holds of a change is much: to write all facts there is then simpler, and no more for the driver.
        if draft.is_due(name) or any(side[name].held_frame() is not None for side in sides):
            draft.whole(predicate, m.explicit(name), m[name])
        else:
            draft.changed(predicate, *(side[name] for side in sides))
    return draft


def restore(
    program: str | Path | Program,
    folder: str | Path | Store,
    *,
    engine: str | EngineChoice = "memory",
    algorithm: str = "adaptive",
    decompose: str = "auto",
    equality: str = "off",
    limits: Limits | None = None,
    granular: bool = True,
    progress: ProgressWatcher | None = None,
) -> Materialisation:
    """Return the materialisation that was saved last in a folder, by this program, on whichever engine.

    Explicit facts are read, and what follows is derived again, with the bookkeeping of the algorithm: it costs what
    `materialise` costs. The arguments are those of `materialise`.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> m = materialise("q(x) :- p(x).", {"p": [1, 2]})
    >>> change = m.update(delete={"p": [1]})
    >>> m.save(folder)
    1
    >>> restore("q(x) :- p(x).", folder)["q"].to_set()
    {(2,)}
    """
    if equality == "rewrite":
        raise UsageError(_NOT_SAVED)
    store = folder if isinstance(folder, Store) else Store.open(folder)
    saved = store.last()
    core = compile_saved(program, saved)
    if digest(with_equality(core, equality)) != saved.program:
        raise UsageError(
            Problem(
                "other-program",
                f"version {saved.version} was made by another program",
                place=store.folder,
                note="a program is its relations, its rules and the facts it states",
                hint="use the program that made it, or materialise this one and save that in another folder",
            )
        )
    engine = chosen_engine(engine)
    read = facts_reader(engine)
    given: list[tuple[str, Iterable[Row]]] = []
    without: list[tuple[str, Iterable[Row]]] = []
    for name, relation in saved.relations.items():
        if not isinstance(engine, str):
            given.append((name, engine.saved(relation.types, *store.explicit_on_spark(name))))
            continue
        for side, tables in zip((given, without), store.explicit(name)):
            for table in tables:
                rows = facts_of(name, table, relation.types, (), read)[0] if relation.types else [()] * table.num_rows
                side.append((name, rows))
    m = materialise_core(
        # Facts that the program states are among those that were saved, unless an update has deleted them.
        replace(core, facts=frozenset()),
        given,
        without,
        engine=engine,
        algorithm=algorithm,
        decompose=decompose,
        equality=equality,
        limits=limits,
        granular=granular,
        progress=progress,
    )
    m._digest = saved.program
    wrong = [name for name, relation in saved.relations.items() if len(m[name]) != relation.sizes[1]]
    if wrong:
        sizes = f"{quote(wrong[0])} has {len(m[wrong[0]])} facts where {saved.relations[wrong[0]].sizes[1]} were saved"
        hint = "restore the folder from a copy, or save a materialisation again"
        raise FactsError(Problem("bad-state", sizes, place=store.folder, hint=hint))
    return m


def compile_saved(program: str | Path | Program, saved: Manifest) -> Core:
    """Return a program in core form; relations that it does not declare have the types that they were saved with."""
    parsed = parse(program)
    declared = {d.name for d in parsed.declarations}
    types = {name: relation.types for name, relation in saved.relations.items() if name not in declared}
    return compile_program(parsed, types).core


def materialise_core(
    core: Core,
    facts: Iterable[tuple[str, Iterable[Row]]],
    without: Iterable[tuple[str, Iterable[Row]]] = (),
    *,
    engine: str | EngineChoice,
    algorithm: str = "adaptive",
    decompose: str = "auto",
    equality: str = "off",
    limits: Limits | None = None,
    granular: bool = True,
    progress: ProgressWatcher | None = None,
) -> Materialisation:
    """Derive all that follows from the rules and facts of a program, and from more facts that fit their relations.

    Facts of `without` are left out.
    """
    own: dict[str, list[Row]] = {}
    for predicate, row in core.facts:
        own.setdefault(predicate, []).append(row)
    check_mode(decompose)
    core = with_equality(core, equality)
    if equality == "rewrite" and decompose == "always":
        raise UsageError(
            Problem(
                "rewrite-decomposes-nothing",
                "rules are not taken apart where equal constants are rewritten",
                hint="leave `decompose` out, or use `equality=axioms`",
            )
        )
    materialisation = Materialisation(core, stratify(core, granular=granular), engine, algorithm, limits, equality)
    materialisation._materialise([*facts, *own.items()], without, decompose, granular, progress)
    return materialisation


def _forecast(core: Core, E: FactSet) -> Forecast:
    """Return what is known of the relations of a program from its explicit facts."""
    return Forecast(core, lambda atom: Table(*E.profile(atom)))


def _told_of_strata(strata: Stratification, progress: ProgressWatcher) -> Watcher:
    """Return a watcher that tells the stratum of the rule at work."""

    def tell(so_far: Statistics, rule: Rule | None) -> None:
        stratum = strata.level(rule.head) if rule is not None else 1
        progress(Progress(stratum, len(strata), so_far.rounds, so_far.facts, so_far.seconds))

    return tell


def parse(program: str | Path | Program, *, dialect: str = "dl") -> Program:
    """Return the program in a file (a path that ends in `.dl` or `.dlog`), or in a text of a dialect.

    `rdfs` and `owl2rl` are the rule sets of these names.

    >>> rules = parse("PREFIX : <http://e/> [?y, :q, ?x] :- [?x, :p, ?y].", dialect="dlog")
    >>> m = materialise(rules, {"triple": [("<http://e/a>", "<http://e/p>", "<http://e/b>")]})
    >>> m.query("[?x, :q, ?y]").to_rows()
    [('<http://e/b>', '<http://e/a>')]
    """
    if isinstance(program, Program):
        return program
    if str(program) in RULESETS:
        return rules(str(program))
    if isinstance(program, Path) or (program.endswith((".dl", ".dlog")) and "\n" not in program):
        return read_file(Path(program))
    return read_text(program, dialect)


def _by_name(facts: FactsGiven | None) -> Mapping[str, object]:
    """Return facts for each relation; those of RDF files are for `triple` and `quad`."""
    if facts is None or isinstance(facts, Mapping):
        return facts or {}
    return read_rdf(*([facts] if isinstance(facts, str | os.PathLike) else facts))


def _fitted(core: Core, facts: Mapping[str, object], read: Reader) -> dict[str, Iterable[Row]]:
    """Return the rows given for each relation, checked against its columns."""
    problems: list[Problem] = []
    fitted: dict[str, Iterable[Row]] = {}
    for name, data in facts.items():
        predicate = core.predicates.get(name)
        if predicate is None or predicate.hidden:
            problems.append(_unknown_relation(name, [p.name for p in core.predicates.values() if not p.hidden]))
            continue
        try:
            fitted[name] = facts_of(name, data, predicate.types, predicate.columns, read)[0]
        except FactsError as e:
            problems.extend(e.problems)
    if problems:
        raise FactsError(problems)
    return fitted


def _relation(predicate: Predicate, rows: Iterable[Row]) -> Relation:
    return Relation(predicate.name, predicate.columns, predicate.types, rows)


_NOT_SAVED = Problem(
    "rewrite-not-saved",
    "a materialisation whose equal constants are rewritten can be neither saved nor restored",
    hint="save the explicit facts, from `m.explicit`, and materialise them again",
)


def _unknown_relation(name: str, known: tuple[str, ...] | list[str]) -> Problem:
    return Problem(
        "unknown-relation",
        f"unknown relation {quote(name)}",
        note=f"the relations are {', '.join(map(quote, known[:20])) or 'none'}",
        hint=nearest(str(name), known),
    )
