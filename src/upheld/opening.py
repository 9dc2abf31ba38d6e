"""Ways to come by a materialisation: derive it from a program and facts, or restore one that was saved."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from upheld.algebra.meter import Limits
from upheld.columns import Row
from upheld.engines import EngineChoice, chosen_engine, facts_reader
from upheld.errors import FactsError, Problem, UsageError, quote
from upheld.ingest import facts_of
from upheld.language.ast import Program
from upheld.language.compiling import compile_program
from upheld.language.core import Core
from upheld.language.equality import with_equality
from upheld.language.hypertrees.deciding import check_mode
from upheld.language.rdfox import COLUMNS
from upheld.language.reading import read_file, read_text
from upheld.language.stratification import stratify
from upheld.loading import FactsGiven, by_name, fitted_facts
from upheld.materialisation import Materialisation, ProgressWatcher
from upheld.rdf.rulesets import RULESETS, rules
from upheld.store import Manifest, Store, digest


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
    given = by_name(facts)
    declared = {d.name for d in parsed.declarations}
    read = facts_reader(engine)
    inferred = {name: facts_of(name, data, read=read) for name, data in given.items() if name not in declared}
    types = {name: types for name, (_, types) in inferred.items() if types}
    if parsed.dialect == "dlog":  # where triples are known, though none be given
        types |= {name: ("term",) * len(columns) for name, columns in COLUMNS.items() if name in given.keys() - types}
    core = compile_program(parsed, types).core
    ready: dict[str, object] = {name: inferred[name][0] if name in inferred else data for name, data in given.items()}
    fitted = fitted_facts(core, ready, read).items()
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
    store = folder if isinstance(folder, Store) else Store.open(folder)
    saved = store.last()
    core = compile_saved(program, saved)
    if digest(with_equality(core, equality), equality) != saved.program:
        raise UsageError(
            Problem(
                "other-program",
                f"version {saved.version} was made by another program",
                place=store.folder,
                note="a program is its relations, its rules, the facts it states, and how equality is treated",
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
