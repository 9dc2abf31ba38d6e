"""`Project`: a program with its folders, where its directives find facts files, outputs go and its state is saved."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from upheld.base.errors import Problem, ProgramError, UpheldError, check_folder, count, is_path, require, warn
from upheld.base.limits import limited
from upheld.base.threads import Threads
from upheld.compiler.lints.programs import lint, some, without_facts
from upheld.engines import EngineChoice, chosen_engine, chosen_threads, facts_reader, facts_writer
from upheld.facts.columns import Row
from upheld.facts.files.formats import Format
from upheld.facts.files.jsonfiles import json_rows
from upheld.facts.files.reading import Reader, read_bytes
from upheld.facts.files.side_by_side import read_side_by_side
from upheld.facts.files.writing import Output, Writer, facts_text, stdout_text, write_all
from upheld.facts.rdf.formats import format_of, is_rdf
from upheld.facts.rdf.reading import read as read_rdf
from upheld.facts.rdf.writing import prepared, statements_text
from upheld.language.ast import Directive, Program
from upheld.language.core import Predicate
from upheld.language.syntax.files import outside
from upheld.language.terms.vocabulary import QUAD, TRIPLE
from upheld.materialisation.build import check_options, materialise_core, restore
from upheld.materialisation.constraints import violated
from upheld.materialisation.directives import compile_with_formats
from upheld.materialisation.materialisation import Materialisation
from upheld.materialisation.persistence.record import open_state
from upheld.materialisation.programs import parse

if TYPE_CHECKING:
    from upheld.facts.updatefiles import Update

#: Maximum number of violations that are reported individually.
VIOLATIONS_SHOWN = 5


class Project:
    """A program with its folders: of the facts files and outputs that its directives name, and of its saved state.

    It is made before any work: mistakes in the program and its directives are raised at once, and so is an output that
    cannot be written.

    Args:
        program: As for `materialise`.
        facts: Folder of the facts files; by default the current one. For a `.dlog` program, an RDF file or a folder of
            RDF files.
        output: Folder for the outputs, or `-` to return them as text. For a `.dlog` program, an RDF file for all
            triples.
        state: Folder of the saved state, if there is to be one.
        confined: For programs you do not trust: refuse `.include` outside the program's folder, `.input` outside
            `facts`, and `.output` outside `output`.

    >>> import tempfile
    >>> project = Project("p(1). q(x) :- p(x). .output q", output="-", state=tempfile.mkdtemp())
    >>> with project.load() as m:
    ...     print(project.save(m), project.write(m)[0])
    1 ---------------
    q
    ===============
    1
    ===============
    <BLANKLINE>
    """

    def __init__(
        self,
        program: str | Path | Program,
        facts: str | Path | None = None,
        output: str | Path = ".",
        *,
        state: str | Path | None = None,
        confined: bool = False,
    ):
        require(is_path(output), "output", "a path", output)
        for name, folder in (("facts", facts), ("state", state)):
            require(folder is None or is_path(folder), name, "a path, or None", folder)
        self.program = parse(program, confined=confined)
        # RDF files may hold triples and quads that no rule speaks of.
        known = {TRIPLE: ("term",) * 3, QUAD: ("term",) * 4} if self._is_rdf else None
        self._compiled, self._formats = compile_with_formats(self.program, known)
        self._facts, self._output, self._state, self._confined = facts, Path(output), state, confined
        if self._is_rdf and is_rdf(self._output):
            format_of(self._output, to_write=True)
            check_folder(self._output.parent)
        elif not self._is_printed:
            self._check_confined("output", self._output)
            check_folder(output)

    @property
    def _is_rdf(self) -> bool:
        """Whether the program is one over triples, which come from RDF files and go to them."""
        return self.program.dialect == "dlog"

    @property
    def _is_printed(self) -> bool:
        return str(self._output) == "-"

    @property
    def _predicates(self) -> dict[str, Predicate]:
        return {p.name: p for p in self._compiled.core.predicates.values() if not p.hidden}

    @property
    def relations(self) -> tuple[str, ...]:
        """The names of the relations of the program."""
        return tuple(self._predicates)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The relations with an `.output` directive, each once."""
        return tuple(dict.fromkeys(d.relation for d in self._compiled.core.directives if d.kind == "output"))

    @property
    def standard_input(self) -> str | None:
        """The relation that is read from standard input, if there is one."""
        return next((d.relation for d, format in self._formats.items() if format.io == "stdin"), None)

    def lint(self, *, updated: bool = False) -> list[Problem]:
        """Return warnings of what the program says, whatever the facts are.

        Args:
            updated: Whether updates will bring facts of relations that have none in files.
        """
        return some([*lint(self.program), *(() if updated else without_facts(self.program, ()))])

    @limited
    def load(
        self, *, engine: str | EngineChoice = "memory", threads: int | None = None, edited: bool = False, **options: Any
    ) -> Materialisation:
        """Return the materialisation that is saved in `state`; if there is none, that of the facts files.

        Args:
            engine: As for `materialise`.
            threads: As for `materialise`.
            edited: Accept a program that differs from the one that saved `state`, as for `restore`.
            options: As for `materialise`.
        """
        check_options(engine, threads=threads, **{k: v for k, v in options.items() if k != "limits"})
        require(isinstance(edited, bool), "edited", "True or False", edited)
        if self._state is not None and open_state(chosen_engine(engine), self._state).manifest is not None:
            return restore(self.program, self._state, engine=engine, threads=threads, edited=edited, **options)
        folder = Path(self._facts or ".")
        self._check_confined("input", folder)
        rows: Iterable[tuple[str, Iterable[Row]]] = ()
        if not self._is_rdf:
            chosen = chosen_threads(engine, threads)
            rows = self._read_inputs(folder, facts_reader(engine, chosen), chosen)
        elif self._facts is not None:
            rows = read_rdf(self._facts).items()
        return materialise_core(self._compiled.core, rows, engine=engine, threads=threads, **options)

    def save(self, m: Materialisation, *, feed: bool = False) -> int | None:
        """Save a materialisation in `state` if it was updated or is to begin a feed, and return the last version there.

        Without `state` nothing is saved, and there is no version.

        Args:
            m: The materialisation that `load` has returned.
            feed: Have the state keep a feed from now on, as by `Materialisation.save`.
        """
        if self._state is None:
            return None
        last = open_state(chosen_engine(m._chosen_engine), self._state).manifest
        if last is not None and not m.version and (last.feed is not None or not feed):
            return last.version
        return m.save(self._state, feed=feed or None)

    def write(self, m: Materialisation) -> tuple[str, list[Problem]]:
        """Write what the directives ask for: all of it, or, if that cannot be done, nothing.

        It returns the text that is to be printed, and warnings of what was written and of violated constraints.

        Args:
            m: The materialisation that `load` has returned.
        """
        printed: list[str] = []
        files: list[Output] = []
        warnings = list(self._compiled.warnings)
        to_text: Writer
        if self._is_rdf:
            to_text = self._triples(m, printed, files, warnings)
            warnings += _violations(m)
        else:
            to_text = facts_writer(m._chosen_engine, m._threads)
            self._relations(m, printed, files, to_text)
        warnings += (violated(m._written, r) for name, r in m.violations().items() if name not in m.relations)
        warnings += (_read_next_time(file.path) for file in files if self.reads(file.path))
        if not files and not printed:
            warnings.append(_no_output(self._is_rdf))
        text = "".join(printed)
        write_all(files, to_text, m._threads)  # last: what is interrupted before here has written nothing
        return text, warnings

    def _relations(self, m: Materialisation, printed: list[str], files: list[Output], to_text: Writer) -> None:
        """Add what `.output` and `.printsize` ask for to the texts to print and the files to write."""
        for directive in self._compiled.core.directives:
            relation = m[directive.relation]
            if directive.kind == "printsize":
                printed.append(f"{directive.relation}\t{len(relation)}\n")
            elif directive.kind == "output":
                format = self._formats[directive]
                if format.io == "stdout" or self._is_printed:
                    printed.append(stdout_text(relation, relation.stored_types, format, to_text))
                else:
                    _ = relation.unordered  # read here: the threads that write files do not get a turn of this one
                    files.append(Output(self._output / format.filename, relation, relation.stored_types, format))

    def _triples(self, m: Materialisation, printed: list[str], files: list[Output], warnings: list[Problem]) -> Writer:
        """Add all triples and quads to the texts to print or the files to write; return what makes texts of files."""
        to_text: Writer = facts_text
        if self._is_printed:
            text, written = statements_text(m[TRIPLE], m[QUAD])
            printed.append(text)
        elif is_rdf(self._output):
            file, to_text, written = prepared(self._output, m[TRIPLE], m[QUAD], m.prefixes)
            files.append(file)
        else:
            return to_text
        if written.left_out:
            warnings.append(_left_out(written.left_out))
        return to_text

    def reads(self, path: str | Path) -> bool:
        """Return whether `load` reads a file, or will once it is there.

        Args:
            path: Path of the file.
        """
        file = os.path.realpath(path)
        if self._is_rdf:
            there = {file, os.path.dirname(file)} if is_rdf(Path(path)) else {file}
            return self._facts is not None and os.path.realpath(self._facts) in there
        return file in self._files("input", Path(self._facts or "."))

    def writes(self, path: str | Path) -> bool:
        """Return whether `write` writes a file.

        Args:
            path: Path of the file.
        """
        named = {os.path.realpath(self._output)} if self._is_rdf else self._files("output", self._output)
        return not self._is_printed and os.path.realpath(path) in named

    def _files(self, kind: str, folder: Path) -> set[str]:
        formats = (self._formats[d] for d in self._compiled.core.directives if d.kind == kind)
        return {os.path.realpath(folder / format.filename) for format in formats if format.has_file}

    def _check_confined(self, kind: str, folder: Path) -> None:
        """Refuse directives whose files are not in a folder, if the project is confined."""
        if self._confined:
            named = [d for d in self._compiled.core.directives if d.kind == kind and self._formats[d].has_file]
            files = [(folder / self._formats[d].filename, d.span) for d in named]
            if problems := [p for path, span in files if (p := outside(path, folder, span)) is not None]:
                raise ProgramError(problems)

    def _read_inputs(self, folder: Path, read: Reader, threads: Threads) -> list[tuple[str, Iterable[Row]]]:
        def rows(directive: Directive) -> Iterable[Row] | UpheldError:
            types = self._compiled.core.predicates[directive.relation].types
            try:
                return input_rows(folder, types, self._formats[directive], read)
            except UpheldError as e:
                return e

        inputs = [directive for directive in self._compiled.core.directives if directive.kind == "input"]
        formats = [self._formats[directive] for directive in inputs]
        paths = [folder / format.filename if format.has_file else None for format in formats]
        read_rows = read_side_by_side(
            threads, [(path, partial(rows, d)) for path, d in zip(paths, inputs, strict=True)]
        )
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


@limited
def load(
    program: str | Path | Program, facts: str | Path | None = None, *, confined: bool = False, **options: Any
) -> Materialisation:
    """Return the materialisation of a program over the facts files of its `.input` directives. Nothing is written.

    Args:
        program: As for `materialise`.
        facts: As for `Project`.
        confined: As for `Project`.
        options: As for `materialise`.
    """
    project = Project(program, facts, "-", confined=confined)
    warn(project.lint())
    return project.load(**options)


def _violations(m: Materialisation) -> Iterator[Problem]:
    """Yield what the rule sets have found inconsistent."""
    if "violation" not in m.relations or m["violation"].types != ("term",) * 4:
        return
    violations = m["violation"]
    for rule, *triple in islice(violations, VIOLATIONS_SHOWN):
        message = f"by rule {str(rule)[1:-1]}, this cannot hold beside other facts: {' '.join(map(str, triple))}"
        yield Problem("violation", message, severity="warning")
    if len(violations) > VIOLATIONS_SHOWN:
        more = f"{len(violations) - VIOLATIONS_SHOWN} more facts cannot hold beside others"
        yield Problem(
            "violation",
            more,
            hint="`upheld query` shows all of them: `violation(?rule, ?s, ?p, ?o)`",
            severity="warning",
        )


def _left_out(triples: int) -> Problem:
    note = "rules may derive triples with a literal as subject, or a blank node as property, which RDF does not allow"
    message = f"{count(triples, 'derived triple')} left out because not valid RDF"
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


def _no_output(is_rdf: bool) -> Problem:
    if is_rdf:
        note = "programs of the `.dlog` dialect do not name their outputs"
        hint = "name a file for all triples with `-D`, such as `-D out.nt`, or print them with `-D -`"
    else:
        note = "a program writes the relations of `.output` and prints the sizes of `.printsize`"
        hint = "name a relation, as in `.output path`"
    return Problem(
        "no-output", "the program has no outputs, so nothing was written", note=note, hint=hint, severity="warning"
    )


#: The place of standard input in messages.
STANDARD_INPUT = Path("<stdin>")


def input_rows(folder: Path, types: Sequence[str], format: Format, read: Reader) -> Iterable[Row]:
    """Return the facts of a directive. Its file is in `folder`; `read` parses a text with a row on each line."""
    path = folder / format.filename
    match format.io:
        case "stdin":
            return read(sys.stdin.buffer.read(), STANDARD_INPUT, types, format)
        case "jsonfile":
            return json_rows(read_bytes(path), path, types, format)
        case "sqlite":
            # Most programs use no database, and start faster without the module.
            from upheld.facts.files.databases import table_rows

            return table_rows(path, types, format)
        case _:
            return read(read_bytes(path), path, types, format)


def read_updates(updates: object, m: Materialisation | Project) -> Iterator[Update]:
    """Yield the transactions of an update file, with facts that fit the relations of a materialisation.

    Files are read lazily. An error reports everything that is wrong in the rest of the file.

    Args:
        updates: Path of a text file, of a `.csv`, `.tsv` or `.parquet` table, or of a folder with a table per relation;
            `-` for text on standard input; a pandas DataFrame, an Arrow table, or a dictionary of tables by relation.
        m: The materialisation that the updates are for, or the project that it will be loaded from.

    >>> import pandas, upheld
    >>> rules = ".decl edge(x:symbol, y:symbol) .decl path(x:symbol, y:symbol) path(x, y) :- edge(x, y)."
    >>> m = upheld.materialise(rules, {"edge": [("a", "b")]})
    >>> table = pandas.DataFrame({"operation": ["+", "-"], "commit": [1, 2], "x": ["b", "a"], "y": ["c", "b"]})
    >>> for update in upheld.read_updates({"edge": table}, m):
    ...     change = m.update(insert=update.insert, delete=update.delete, replace=update.replace)
    ...     print(update, change.inserted["path"].to_rows(), change.deleted["path"].to_rows())
    <Update 1: +1 edge> [('b', 'c')] []
    <Update 2: -1 edge> [] [('a', 'b')]
    """
    from upheld.facts.updatefiles import updates_of

    if isinstance(m, Project):
        return updates_of(updates, m._predicates)
    require(isinstance(m, Materialisation), "m", "an `upheld.Materialisation`, or an `upheld.Project`", m)
    relations = (m[name] for name in m.relations)
    return updates_of(updates, {r.name: Predicate(r.name, r.columns, r.stored_types) for r in relations})
