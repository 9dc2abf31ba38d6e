"""What users hold: a program, its facts, and all that follows from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from upheld.algebra.meter import Limits, Statistics, Watcher
from upheld.algebra.words import FactSet, derive
from upheld.columns import Row
from upheld.engines import facts_reader, open_engine
from upheld.errors import FactsError, Problem, UsageError, nearest, quote
from upheld.factfiles import Reader
from upheld.ingest import facts_of
from upheld.language.ast import Program
from upheld.language.compiling import compile_program
from upheld.language.core import Core, Fact, Predicate, Rule
from upheld.language.queries import compile_query
from upheld.language.reading import read_file, read_text
from upheld.language.stratification import Stratification, stratify
from upheld.maintain.rematerialise import rematerialise
from upheld.maintain.seminaive import seminaive
from upheld.relation import Relation

#: Facts as callers give them: for each relation rows, a data frame, an Arrow table, or the path of a file.
FactsGiven = Mapping[str, object]


@dataclass(frozen=True)
class Change:
    """What an update did to each relation: the facts, explicit or derived, that appeared and that disappeared."""

    inserted: dict[str, Relation]
    deleted: dict[str, Relation]
    #: Facts that were to be deleted but are not explicit, or to be inserted but are.
    ignored: dict[str, Relation]
    statistics: Statistics

    def __repr__(self) -> str:
        sizes = ((sign, r) for sign, rs in (("+", self.inserted), ("-", self.deleted)) for r in rs.values() if len(r))
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
        engine: str,
        limits: Limits | None,
        progress: ProgressWatcher | None = None,
    ):
        self._core, self._strata = core, strata
        self._engine = open_engine(engine, core, limits)
        if progress is not None:
            self._engine.meter.watcher = _told_of_strata(strata, progress)
        self._read = facts_reader(engine)
        self._explicit: FactSet = self._engine.named("E")
        self._facts: FactSet = self._engine.named("I")
        self.statistics = Statistics()

    def _materialise(self, facts: Iterable[tuple[str, Iterable[Row]]]) -> None:
        for predicate, rows in facts:
            self._explicit |= self._engine.load(predicate, rows)
        with self._engine.meter.run() as self.statistics:
            self._facts = seminaive(self._explicit, self._strata)

    # -- looking -------------------------------------------------------------------------------------------------------

    @property
    def relations(self) -> tuple[str, ...]:
        """The names of the relations of the program."""
        return tuple(p.name for p in self._visible())

    def __getitem__(self, name: str) -> Relation:
        """Return the facts of a relation, explicit and derived."""
        return self._relation(self._predicate(name), self._facts)

    def explicit(self, name: str) -> Relation:
        """Return the explicit facts of a relation."""
        return self._relation(self._predicate(name), self._explicit)

    def facts(self) -> set[Fact]:
        """Return all facts of the materialisation, as pairs of relation name and row."""
        return {(p.name, row) for p in self._visible() for row in self._facts.rows(p.name)}

    def query(self, text: str) -> Relation:
        """Return the bindings of the variables of a rule body under which it holds.

        >>> m = materialise("p(1). p(2). p(3).")
        >>> m.query("p(x), x > 1").to_set()
        {(2,), (3,)}
        """
        query = compile_query(text, self._core)
        E, I, engine = self._explicit, self._facts, self._engine
        made = [p for p in query.core.predicates.values() if p.name not in self._core.predicates]
        for predicate in made:
            engine.declare(predicate)
        answers = engine.named("query")
        try:
            with engine.meter.run():
                for stratum in stratify(query.core):
                    answers |= derive(stratum.rules, I | answers, I | answers)
            return self._relation(query.answer, answers)
        finally:
            engine.abandon(keep=(E, I))
            for predicate in made:
                engine.forget(predicate)

    def plans(self) -> str:
        """Return how the engine would match each rule: from all facts, and from new facts of each body atom.

        >>> m = materialise("path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z).", {"edge": [(1, 2)]})
        >>> print(m.plans().splitlines()[-1])
            join path(x, y) on column 2: about 1 rows for each
        """
        lines = []
        for stratum in self._strata:
            for rule in stratum.rules:
                lines.append(str(rule))
                lines += [f"  {line}" for line in self._engine.plans(rule)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{p.name}: {len(self._relation(p, self._facts))}" for p in self._visible())
        return f"<Materialisation {sizes}>"

    # -- changing ------------------------------------------------------------------------------------------------------

    def update(self, insert: FactsGiven | None = None, delete: FactsGiven | None = None) -> Change:
        """Delete and insert explicit facts, bring all that follows up to date, and return what changed.

        The new explicit facts are the old ones without those of `delete`, and with those of `insert`. An update that
        fails leaves everything as it was.
        """
        E, before = self._explicit, self._facts
        try:
            minus, plus = self._given(delete or {}), self._given(insert or {})
            with self._engine.meter.run() as statistics:
                explicit, facts = rematerialise(E, self._strata, (minus & E) - plus, plus - E)
            change = Change(
                inserted=self._by_relation(facts - before),
                deleted=self._by_relation(before - facts),
                ignored=self._by_relation((minus - E) | (plus & E)),
                statistics=statistics,
            )
            self._explicit, self._facts = explicit, facts
            return change
        finally:
            self._engine.abandon(keep=(self._explicit, self._facts))

    # -- inside --------------------------------------------------------------------------------------------------------

    def _visible(self) -> Iterator[Predicate]:
        return (p for p in self._core.predicates.values() if not p.hidden)

    def _predicate(self, name: str) -> Predicate:
        found = self._core.predicates.get(name)
        if found is None or found.hidden:
            raise UsageError(_unknown_relation(name, self.relations))
        return found

    def _relation(self, predicate: Predicate, facts: FactSet) -> Relation:
        return Relation(predicate.name, predicate.columns, predicate.types, facts.rows(predicate.name))

    def _by_relation(self, facts: FactSet) -> dict[str, Relation]:
        return {p.name: self._relation(p, facts) for p in self._visible()}

    def _given(self, facts: FactsGiven) -> FactSet:
        loaded = self._engine.named("given")
        for predicate, rows in _fitted(self._core, facts, self._read).items():
            loaded |= self._engine.load(predicate, rows)
        return loaded


def materialise(
    program: str | Path | Program,
    facts: FactsGiven | None = None,
    *,
    engine: str = "memory",
    limits: Limits | None = None,
    granular: bool = True,
    progress: ProgressWatcher | None = None,
) -> Materialisation:
    """Derive all that follows from the rules of a program and facts.

    `program` is the path of a `.dl` or `.dlog` file, or the text of a `.dl` program. `facts` gives for each relation
    rows, a pandas DataFrame, an Arrow table, or the path of a file. A program that declares no relations takes the
    types of its columns from the facts and from their use. `granular=False` asks for the coarsest stratification.
    `progress` is a function that is told now and then how far the work has come.

    >>> m = materialise('path(x, y) :- edge(x, y).', {"edge": [("a", "b")]})
    >>> m["path"].to_set()
    {('a', 'b')}
    """
    parsed = parse(program)
    given = facts or {}
    declared = {d.name for d in parsed.declarations}
    read = facts_reader(engine)
    inferred = {name: facts_of(name, data, read=read) for name, data in given.items() if name not in declared}
    core = compile_program(parsed, {name: types for name, (_, types) in inferred.items() if types}).core
    ready: dict[str, object] = {name: inferred[name][0] if name in inferred else data for name, data in given.items()}
    fitted = _fitted(core, ready, read).items()
    return materialise_core(core, fitted, engine=engine, limits=limits, granular=granular, progress=progress)


def materialise_core(
    core: Core,
    facts: Iterable[tuple[str, Iterable[Row]]],
    *,
    engine: str,
    limits: Limits | None = None,
    granular: bool = True,
    progress: ProgressWatcher | None = None,
) -> Materialisation:
    """Derive all that follows from the rules and facts of a program, and from more facts that fit their relations."""
    own: dict[str, list[Row]] = {}
    for predicate, row in core.facts:
        own.setdefault(predicate, []).append(row)
    materialisation = Materialisation(core, stratify(core, granular=granular), engine, limits, progress)
    materialisation._materialise([*facts, *own.items()])
    return materialisation


def _told_of_strata(strata: Stratification, progress: ProgressWatcher) -> Watcher:
    """Return a watcher that tells the stratum of the rule at work."""

    def tell(so_far: Statistics, rule: Rule | None) -> None:
        stratum = strata.level(rule.head) if rule is not None else 1
        progress(Progress(stratum, len(strata), so_far.rounds, so_far.facts, so_far.seconds))

    return tell


def parse(program: str | Path | Program) -> Program:
    """Return the program in a file (a path that ends in `.dl` or `.dlog`), or in a text of the `.dl` dialect."""
    if isinstance(program, Program):
        return program
    if isinstance(program, Path) or (program.endswith((".dl", ".dlog")) and "\n" not in program):
        return read_file(Path(program))
    return read_text(program)


def _fitted(core: Core, facts: FactsGiven, read: Reader) -> dict[str, Iterable[Row]]:
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


def _unknown_relation(name: str, known: tuple[str, ...] | list[str]) -> Problem:
    return Problem(
        "unknown-relation",
        f"unknown relation {quote(name)}",
        note=f"the relations are {', '.join(map(quote, known[:20])) or 'none'}",
        hint=nearest(name, known),
    )
