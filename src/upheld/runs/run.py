"""Running a program as its directives say: read its inputs, derive what follows, write its outputs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

from upheld.base.dataclass import dataclass
from upheld.base.errors import (
    FactsError,
    Problem,
    ProgramError,
    UpheldError,
    UsageError,
    count,
    is_path,
    quote,
    require,
    warn,
)
from upheld.base.limits import Limits, limited
from upheld.base.threads import Threads
from upheld.compiler.compile import Compiled
from upheld.compiler.lints.programs import lint, some, without_facts
from upheld.engines import chosen_engine, chosen_threads, facts_reader, facts_writer
from upheld.facts.columns import Row
from upheld.facts.files import Format, Output, Reader, Writer, facts_text, input_rows, stdout_text, write_all
from upheld.facts.files.side_by_side import read_side_by_side
from upheld.facts.rdf.formats import format_of, is_rdf
from upheld.facts.rdf.reading import read as read_rdf
from upheld.facts.rdf.writing import Written, prepared, statements_text
from upheld.language.ast import Directive, Program
from upheld.language.core import Core
from upheld.language.syntax.confinement import outside
from upheld.language.terms.vocabulary import QUAD, TRIPLE
from upheld.materialisation.build import check_options, materialise_core, restore
from upheld.materialisation.constraints import violated
from upheld.materialisation.materialisation import Materialisation
from upheld.materialisation.persistence.record import open_state
from upheld.materialisation.programs import parse
from upheld.materialisation.progress import ProgressGiven
from upheld.runs.directives import compile_with_formats

#: Maximum number of violations that a run reports individually.
VIOLATIONS_SHOWN = 5


@dataclass(frozen=True)
class Run:
    """The result of a run: the materialisation, the text to print, and warnings about the program.

    `version` is the last version of its state, if it has one.
    """

    materialisation: Materialisation
    printed: str
    warnings: tuple[Problem, ...]
    version: int | None = None


@limited
def run(
    program: str | Path | Program,
    facts: str | Path | None = None,
    output: str | Path = ".",
    *,
    engine: str = "memory",
    decompose: str = "auto",
    equality: str = "off",
    limits: Limits | None = None,
    threads: int | None = None,
    progress: ProgressGiven = None,
    confined: bool = False,
    profile: str | Path | None = None,
    on_violation: str | None = None,
    state: str | Path | None = None,
    edited: bool = False,
    feed: bool = False,
) -> Run:
    """Materialise a program over its facts files and write its outputs, as `souffle -F facts -D output program` does.

    Outputs are written after everything has been derived: an error leaves existing files as they were.

    Args:
        program: As for `materialise`.
        facts: Folder of the facts files; by default the current one. For a `.dlog` program, an RDF file or a folder of
            RDF files.
        output: Folder for the outputs, or `-` to return them as text; by default the current one. For a `.dlog`
            program, an RDF file for all triples.
        engine: As for `materialise`.
        decompose: As for `materialise`.
        equality: As for `materialise`.
        limits: As for `materialise`.
        threads: As for `materialise`.
        progress: As for `materialise`.
        confined: For programs you do not trust: refuse `.include` outside the program's folder, `.input` outside
            `facts`, and `.output` outside `output`.
        profile: File for a page of HTML that shows where time went, as `Materialisation.profile` returns it.
        on_violation: As for `materialise`. Violations that are reported are warnings of the run.
        state: Folder of a saved state. If it has a version, that is opened and facts files are not read. The new state
            is saved there as the next version, before outputs are written.
        edited: Accept a program that differs from the one that saved `state`, as for `restore`.
        feed: Have `state` keep a feed from now on, as by `Materialisation.save`.
    """
    check_paths(output, facts=facts, profile=profile, state=state)
    require(isinstance(edited, bool), "edited", "True or False", edited)
    check_feed(feed, state)
    job = Job.of(program, engine, decompose, equality, confined, on_violation, threads)
    job.check_output(output)
    check_profile(profile)
    algorithm = "rematerialise" if state is None else "adaptive"  # nothing will be updated unless it is saved
    with job.opened(facts, algorithm=algorithm, limits=limits, progress=progress, state=state, edited=edited) as m:
        version = job.saved(m, state, feed)
        done = replace(job.write(m, output, facts), version=version)
        if profile is not None:
            m.profile().save(profile)
    return replace(done, warnings=(*some([*job.lints, *without_facts(job.program, ())]), *done.warnings))


@limited
def load(
    program: str | Path | Program,
    facts: str | Path | None = None,
    *,
    engine: str = "memory",
    algorithm: str = "adaptive",
    decompose: str = "auto",
    equality: str = "off",
    limits: Limits | None = None,
    threads: int | None = None,
    progress: ProgressGiven = None,
    confined: bool = False,
    on_violation: str | None = None,
) -> Materialisation:
    """Return the materialisation of a program over the facts files of its `.input` directives. Nothing is written.

    Args:
        program: As for `materialise`.
        facts: As for `run`.
        engine: As for `materialise`.
        algorithm: As for `materialise`.
        decompose: As for `materialise`.
        equality: As for `materialise`.
        limits: As for `materialise`.
        threads: As for `materialise`.
        progress: As for `materialise`.
        confined: As for `run`.
        on_violation: As for `materialise`.
    """
    check_paths(facts=facts)
    check_options(engine, algorithm, decompose, equality, threads, "granular", progress, on_violation)
    job = Job.of(program, engine, decompose, equality, confined, on_violation, threads)
    warn(some([*job.lints, *without_facts(job.program, ())]))
    return job.materialise(facts, algorithm=algorithm, limits=limits, progress=progress)


@dataclass(frozen=True)
class Job:
    """A valid program whose directives have valid options, and how it is to be run."""

    program: Program
    compiled: Compiled
    formats: Mapping[Directive, Format]
    engine: str
    decompose: str
    equality: str
    #: Whether the paths that the program names must stay within their folders.
    confined: bool = False
    #: Whether violations of constraints are refused or reported; None for the default of the dialect.
    on_violation: str | None = None
    #: The number of threads of the memory engine; None for as many as there are cores.
    threads: int | None = None

    @classmethod
    def of(
        cls,
        program: str | Path | Program,
        engine: str,
        decompose: str,
        equality: str,
        confined: bool = False,
        on_violation: str | None = None,
        threads: int | None = None,
    ) -> Job:
        parsed = parse(program, confined=confined)
        # RDF files may hold triples and quads that no rule speaks of.
        known = {TRIPLE: ("term",) * 3, QUAD: ("term",) * 4} if parsed.dialect == "dlog" else None
        compiled, formats = compile_with_formats(parsed, known)
        return cls(parsed, compiled, formats, engine, decompose, equality, confined, on_violation, threads)

    @property
    def lints(self) -> list[Problem]:
        """Warnings of what the program says, whatever the facts are."""
        return list(lint(self.program))

    @property
    def chosen_threads(self) -> Threads:
        """The threads that the engine uses, and that read and write files for it."""
        return chosen_threads(self.engine, self.threads)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The relations with an `.output` directive, each once."""
        return tuple(dict.fromkeys(d.relation for d in self.compiled.core.directives if d.kind == "output"))

    @property
    def standard_input(self) -> str | None:
        """The relation that is read from standard input, if there is one."""
        return next((d.relation for d, format in self.formats.items() if format.io == "stdin"), None)

    def opened(
        self,
        facts: str | Path | None,
        *,
        algorithm: str,
        limits: Limits | None,
        progress: ProgressGiven,
        state: str | Path | None,
        edited: bool,
    ) -> Materialisation:
        """Return the materialisation saved in a folder; that of the facts files if there is none."""
        if state is None or open_state(chosen_engine(self.engine), state).manifest is None:
            return self.materialise(facts, algorithm=algorithm, limits=limits, progress=progress)
        return restore(
            self.program,
            state,
            engine=self.engine,
            algorithm=algorithm,
            decompose=self.decompose,
            equality=self.equality,
            limits=limits,
            threads=self.threads,
            progress=progress,
            edited=edited,
            on_violation=self.on_violation,
        )

    def saved(self, m: Materialisation, state: str | Path | None, feed: bool = False) -> int | None:
        """Save a materialisation that was updated in a folder, and return the last version there.

        It is also saved if the state is to begin a `feed`.
        """
        if state is None:
            return None
        last = open_state(chosen_engine(self.engine), state).manifest
        begins = feed and (last is None or last.feed is None)
        return m.save(state, feed=feed or None) if m.version or last is None or begins else last.version

    def materialise(
        self,
        facts: str | Path | None = None,
        *,
        algorithm: str = "adaptive",
        limits: Limits | None = None,
        progress: ProgressGiven = None,
    ) -> Materialisation:
        """Return what follows from the program and the facts files that it reads from a folder, or RDF files."""
        core = self.compiled.core
        self._check_confined("input", Path(facts or "."))
        given: Iterable[tuple[str, Iterable[Row]]]
        if self.is_rdf:
            given = read_rdf(facts).items() if facts is not None else ()
        else:
            threads = self.chosen_threads
            given = _read_inputs(core, self.formats, Path(facts or "."), facts_reader(self.engine, threads), threads)
        return materialise_core(
            core,
            given,
            engine=self.engine,
            algorithm=algorithm,
            decompose=self.decompose,
            equality=self.equality,
            limits=limits,
            threads=self.threads,
            progress=progress,
            on_violation=self.on_violation,
        )

    @property
    def is_rdf(self) -> bool:
        """Whether the program is one over triples, which come from RDF files and go to them."""
        return self.compiled.core.dialect == "dlog"

    def _check_confined(self, kind: str, folder: Path) -> None:
        """Refuse directives whose files are not in a folder, if the job is confined."""
        if self.confined:
            named = [d for d in self.compiled.core.directives if d.kind == kind and self.formats[d].has_file]
            found = [outside(folder / self.formats[d].filename, folder, d.span) for d in named]
            problems = [problem for problem in found if problem is not None]
            if problems:
                raise ProgramError(problems)

    def check_output(self, output: str | Path) -> None:
        """Refuse an output that cannot be written, before the work rather than after it."""
        if str(output) != "-":
            self._check_confined("output", Path(output))
        if self.is_rdf and is_rdf(Path(output)):
            format_of(Path(output), to_write=True)
            check_folder(Path(output).parent)
        else:
            check_folder(output)

    def write(
        self, m: Materialisation, output: str | Path, facts: str | Path | None = None, *, changes: bool = False
    ) -> Run:
        """Write what the directives ask for: all of it, or, if that cannot be done, nothing.

        `facts` is where the facts came from, and `changes` whether changes have been written elsewhere.
        """
        outputs = self._triples(m, output) if self.is_rdf else self._relations(m, output)
        warnings = [*self.compiled.warnings, *outputs.warnings, *_violated(m)]
        warnings += self._among_facts(outputs.files, facts)
        if not outputs.files and outputs.printed is None and not changes:
            warnings.append(_no_output(self.compiled.core))
        done = Run(m, outputs.printed or "", tuple(warnings))
        write_all(
            outputs.files, outputs.to_text, self.chosen_threads
        )  # last: what is interrupted before here has written nothing
        return done

    def _relations(self, m: Materialisation, output: str | Path) -> _Outputs:
        """Return what `.output` and `.printsize` ask for."""
        to_text = facts_writer(self.engine, self.chosen_threads)
        printed: list[str] = []
        files: list[Output] = []
        for directive in self.compiled.core.directives:
            relation = m[directive.relation]
            if directive.kind == "printsize":
                printed.append(f"{directive.relation}\t{len(relation)}\n")
            elif directive.kind == "output":
                format = self.formats[directive]
                if format.io == "stdout" or str(output) == "-":
                    printed.append(stdout_text(relation, relation.stored_types, format, to_text))
                else:
                    _ = relation.unordered  # read here: the threads that write files do not get a turn of this one
                    files.append(Output(Path(output) / format.filename, relation, relation.stored_types, format))
        return _Outputs("".join(printed) if printed else None, files, to_text)

    def _triples(self, m: Materialisation, output: str | Path) -> _Outputs:
        """Return all triples and quads, for a file or to print, and what is odd about them."""
        outputs, written = _Outputs(), Written(0, 0)
        if str(output) == "-":
            text, written = statements_text(m[TRIPLE], m[QUAD])
            outputs = _Outputs(text)
        elif is_rdf(Path(output)):
            file, to_text, written = prepared(output, m[TRIPLE], m[QUAD], m.prefixes)
            outputs = _Outputs(None, [file], to_text)
        left_out = [_left_out(written)] if written.left_out else []
        return replace(outputs, warnings=(*left_out, *_violations(m)))

    def _among_facts(self, files: Sequence[Output], facts: str | Path | None) -> Iterator[Problem]:
        """Yield a warning for each output that the next run with the same arguments reads as facts."""
        for file in files:
            if self.reads(file.path, facts):
                yield _read_next_time(file.path)

    def reads(self, path: Path, facts: str | Path | None) -> bool:
        """Return whether a run with these facts reads this file, or will once it is there."""
        file = os.path.realpath(path)
        if self.is_rdf:
            there = {file, os.path.dirname(file)} if is_rdf(path) else {file}
            return facts is not None and os.path.realpath(facts) in there
        return file in self._files("input", facts or ".")

    def writes(self, path: Path, output: str | Path) -> bool:
        """Return whether a run with this output writes this file."""
        named = {os.path.realpath(output)} if self.is_rdf else self._files("output", output)
        return str(output) != "-" and os.path.realpath(path) in named

    def _files(self, kind: str, folder: str | Path) -> set[str]:
        formats = (self.formats[d] for d in self.compiled.core.directives if d.kind == kind)
        return {os.path.realpath(Path(folder) / format.filename) for format in formats if format.has_file}


@dataclass(frozen=True)
class _Outputs:
    """Outputs of a run: a text to print, None if nothing is to be printed, and files."""

    printed: str | None = None
    files: Sequence[Output] = ()
    to_text: Writer = facts_text
    warnings: tuple[Problem, ...] = ()


def _violated(m: Materialisation) -> Iterator[Problem]:
    """Yield a warning for each constraint of a `.dl` program that is violated."""
    for name, relation in m.violations().items():
        if name not in m.relations:
            yield violated(m._written, relation)


def _violations(m: Materialisation) -> Iterator[Problem]:
    """Yield what the rule sets have found inconsistent."""
    if "violation" not in m.relations or m["violation"].types != ("term",) * 4:
        return
    found = m["violation"]
    for rule, *triple in islice(found, VIOLATIONS_SHOWN):
        message = f"by rule {str(rule)[1:-1]}, this cannot hold beside other facts: {' '.join(map(str, triple))}"
        yield Problem("violation", message, severity="warning")
    if len(found) > VIOLATIONS_SHOWN:
        more = f"{len(found) - VIOLATIONS_SHOWN} more facts cannot hold beside others"
        yield Problem(
            "violation",
            more,
            hint="`upheld query` shows all of them: `violation(?rule, ?s, ?p, ?o)`",
            severity="warning",
        )


def _left_out(written: Written) -> Problem:
    note = "rules may derive triples with a literal as subject, or a blank node as property, which RDF does not allow"
    message = f"{count(written.left_out, 'derived triple')} left out because not valid RDF"
    return Problem("left-out", message, note=note, severity="warning")


def _read_next_time(path: Path) -> Problem:
    return Problem(
        "output-among-facts",
        "this output is in the folder that facts are read from",
        place=str(path),
        note="the next run would read these facts as explicit ones, which hold whatever the rules say",
        hint="write it to another folder with `-D`",
        severity="warning",
    )


def _no_output(core: Core) -> Problem:
    if core.dialect == "dlog":
        note = "programs of the `.dlog` dialect do not name their outputs"
        hint = "name a file for all triples with `-D`, such as `-D out.nt`, or print them with `-D -`"
    else:
        note = "a program writes the relations of `.output` and prints the sizes of `.printsize`"
        hint = "name a relation, as in `.output path`"
    return Problem(
        "no-output", "the program has no outputs, so nothing was written", note=note, hint=hint, severity="warning"
    )


def check_folder(output: str | Path) -> None:
    """Refuse an output folder that is not there, before the work rather than after it."""
    if str(output) != "-" and not Path(output).is_dir():
        message = f"there is no folder {quote(output)} to write to"
        hint = "create the folder, or name another one"
        raise FactsError(Problem("missing-file", message, place=str(output), hint=hint))


def check_feed(feed: bool, state: str | Path | None) -> None:
    """Refuse a feed without a state that could keep it."""
    if feed and state is None:
        hint = "name the folder of a saved state as `state`"
        raise UsageError(Problem("bad-argument", "`feed` needs a `state`, which keeps it", hint=hint))


def check_paths(output: object = ".", **others: object) -> None:
    """Refuse arguments that are not paths; all but `output` may be None."""
    require(is_path(output), "output", "a path", output)
    for name, path in others.items():
        require(path is None or is_path(path), name, "a path, or None", path)


def check_profile(path: str | Path | None) -> None:
    """Refuse a file for a profile that cannot be written, before the work rather than after it."""
    if path is not None:
        check_folder(Path(path).parent)


def _read_inputs(
    core: Core, formats: Mapping[Directive, Format], folder: Path, read: Reader, threads: Threads
) -> list[tuple[str, Iterable[Row]]]:
    def rows(directive: Directive) -> Iterable[Row] | UpheldError:
        try:
            return input_rows(folder, core.predicates[directive.relation].types, formats[directive], read)
        except UpheldError as e:
            return e

    inputs = [directive for directive in core.directives if directive.kind == "input"]
    paths = [folder / formats[d].filename if formats[d].has_file else None for d in inputs]
    read_rows = read_side_by_side(threads, [(path, partial(rows, d)) for path, d in zip(paths, inputs, strict=True)])
    result: list[tuple[str, Iterable[Row]]] = []
    problems: list[Problem] = []
    failed: type[UpheldError] = UpheldError
    for directive, one in zip(inputs, read_rows, strict=True):
        if isinstance(one, UpheldError):
            failed = type(one)
            problems.extend(one.problems)
        else:
            result.append((directive.relation, one))
    if problems:
        raise failed(list(dict.fromkeys(problems)))  # a folder that is missing is one problem for all its files
    return result
