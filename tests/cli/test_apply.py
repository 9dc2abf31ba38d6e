"""`upheld apply`: outputs, changes after each transaction, verification, and what may fail."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from contextlib import nullcontext
from importlib import import_module
from io import FileIO, StringIO
from pathlib import Path
from random import Random

import pandas
import pytest

import upheld
from tests.helpers.programs.strategies import Case, FactsGiven, random_case, random_typed_case
from upheld.cli import main
from upheld.engines import ENGINES
from upheld.facts.updatefiles import transaction_text
from upheld.maintain.registry import ALGORITHMS

RULES = """\
.decl edge(x:symbol, y:symbol)
.decl path(x:symbol, y:symbol)
.input edge
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
UPDATES = """\
+edge("c", "d").
-edge("a", "b").
commit.
commit.
+edge("a", "b").
commit.
"""
CHANGES = """\
-path("a", "b").
-path("a", "c").
+path("b", "d").
+path("c", "d").
commit.
commit.
+path("a", "b").
+path("a", "c").
+path("a", "d").
commit.
"""
PATHS = "a\tb\na\tc\na\td\nb\tc\nb\td\nc\td\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """A folder to work in, with a program, facts, updates and a folder for outputs."""
    monkeypatch.chdir(tmp_path)
    Path("rules.dl").write_text(RULES)
    Path("edge.facts").write_text("a\tb\nb\tc\n")
    Path("updates").write_text(UPDATES)
    Path("out").mkdir()
    return tmp_path


def apply(*arguments: str) -> int:
    return main(["apply", "rules.dl", "--updates", "updates", "-D", "out", *arguments])


def outputs() -> dict[str, str]:
    return {path.name: path.read_text() for path in Path("out").iterdir()}


# -- what comes out ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_outputs_and_changes(engine, algorithm, capsys):
    """Outputs are those after the last transaction; changes are told for each of them."""
    assert apply("--changes", "changes", "--engine", engine, "--algorithm", algorithm, "--verify") == 0
    assert outputs() == {"path.csv": PATHS}
    assert Path("changes").read_text() == CHANGES
    assert capsys.readouterr() == ("", "")


def test_print_changes(capsys):
    """With `-` they are printed as they come, and nothing else is printed there."""
    assert apply("--changes", "-") == 0
    assert capsys.readouterr() == (CHANGES, "")
    Path("rules.dl").write_text(RULES + ".printsize path\n")
    assert main(["apply", "rules.dl", "--updates", "updates", "-D", "-", "--changes", "-"]) == 0
    printed = capsys.readouterr()
    assert printed.out == CHANGES
    assert printed.err == f"---------------\npath\n===============\n{PATHS}===============\npath\t6\n"
    assert main(["apply", "rules.dl", "--updates", "updates", "-D", "-", "--changes", "changes"]) == 0
    assert capsys.readouterr().out == printed.err


def test_without_changes(capsys):
    assert apply() == 0
    assert outputs() == {"path.csv": PATHS}
    assert sorted(os.listdir()) == ["edge.facts", "out", "rules.dl", "updates"]


def test_tables(capsys):
    """The same updates as a table, and as a folder with a table for each relation."""
    table = "commit,op,x,y\n1,+,c,d\n1,-,a,b\n2,+,a,b\n"
    Path("edge.csv").write_text(table)
    Path("tables").mkdir()
    Path("tables/edge.csv").write_text(table)
    for updates in ("edge.csv", "tables"):
        assert main(["apply", "rules.dl", "--updates", updates, "-D", "out", "--changes", "-"]) == 0
        assert capsys.readouterr().out == CHANGES.replace("commit.\ncommit.\n", "commit.\n")
        assert outputs() == {"path.csv": PATHS}


def test_standard_input():
    """A pipe is read as it comes."""
    command = [sys.executable, "-m", "upheld", "apply", "rules.dl", "--updates", "-", "-D", "out", "--changes", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        assert process.stdin and process.stdout
        first, *rest = UPDATES.split("commit.\n")
        process.stdin.write(f"{first}commit.\n")
        process.stdin.flush()
        lines = [process.stdout.readline() for _ in range(5)]
        assert "".join(lines) == CHANGES[: len("".join(lines))]
        assert lines[-1] == "commit.\n"
        process.stdin.write("commit.\n".join(rest))
        process.stdin.close()
        assert "".join(lines) + process.stdout.read() == CHANGES
        assert process.wait(timeout=300) == 0
    assert outputs() == {"path.csv": PATHS}


def test_a_program_without_outputs_shows_changes_of_all_relations(capsys):
    Path("rules.dl").write_text(RULES.replace(".output path\n", ""))
    assert apply("--changes", "-") == 0
    printed = capsys.readouterr()
    assert printed.out.startswith('-edge("a", "b").\n-path("a", "b").\n-path("a", "c").\n+edge("c", "d").\n')
    assert printed.err == ""
    assert apply() == 0
    assert "[no-output]" in capsys.readouterr().err


def test_triples(capsys):
    """Changes of a `.dlog` program are facts of that dialect."""
    Path("rules.dlog").write_text("PREFIX : <http://ex/>\n[?y, :knows, ?x] :- [?x, :knows, ?y] .\n")
    Path("updates").write_text("PREFIX e: <http://ex/>\n+[e:a, e:knows, e:b].\ncommit.\n-e:knows[e:a, e:b].\ncommit.\n")
    assert main(["apply", "rules.dlog", "--updates", "updates", "--changes", "changes"]) == 0
    text = Path("changes").read_text()
    assert text.splitlines()[:3] == [
        "+[<http://ex/a>, <http://ex/knows>, <http://ex/b>].",
        "+[<http://ex/b>, <http://ex/knows>, <http://ex/a>].",
        "commit.",
    ]
    assert main(["apply", "rules.dlog", "--updates", "changes", "--changes", "again"]) == 0
    assert Path("again").read_text() == text


def test_warnings_and_sizes(capsys):
    Path("rules.dl").write_text(RULES + ".decl odd(x:number)\n.printsize path\n")
    assert apply() == 0
    printed = capsys.readouterr()
    assert printed.out == "path\t6\n"
    assert "[unused-relation]" in printed.err


# -- from Python ------------------------------------------------------------------------------------------------------


def test_the_same_from_python():
    """Tables in memory, changes to a stream, outputs and a saved state."""
    table = pandas.DataFrame({"op": ["+", "-", "+"], "commit": [1, 1, 2], "x": ["c", "a", "a"], "y": ["d", "b", "b"]})
    project = upheld.Project("rules.dl", output="out", state="state")
    stream = StringIO()
    with project.load() as m, upheld.ChangeFile(stream, project.outputs) as changes:
        for update in upheld.read_updates({"edge": table}, project):
            changes.write(m.update(update.insert, update.delete))
        assert (project.save(m), project.write(m)) == (1, ("", []))
    assert stream.getvalue() == CHANGES.replace("commit.\ncommit.\n", "commit.\n")
    assert not stream.closed
    assert outputs() == {"path.csv": PATHS}
    with project.load() as m:
        assert len(m["path"]) == 6 and project.save(m) == 1  # nothing has changed
    assert (project.relations, project.outputs) == (("edge", "path"), ("path",))
    assert upheld.Project("rules.dl").save(m) is None
    with upheld.ChangeFile(stream) as changes:
        changes.write(m.update(delete={"edge": [("c", "d")]}))
    lost = ['-edge("c", "d").', '-path("a", "d").', '-path("b", "d").', '-path("c", "d").', "commit."]
    assert stream.getvalue().splitlines()[-5:] == lost


def test_read_updates():
    """Types come from the materialisation, where the program declares none."""
    m = upheld.materialise("big(x) :- size(x, n), n > 10.", {"size": [("a", 1)]})
    Path("updates").write_text('+size("b", 11).\ncommit.\n-size("b", 11).\n+size("a", 12).\ncommit.\n')
    changes = [m.update(insert=u.insert, delete=u.delete) for u in upheld.read_updates("updates", m)]
    assert [(c.inserted["big"].to_set(), c.deleted["big"].to_set()) for c in changes] == [
        ({("b",)}, set()),
        ({("a",)}, {("b",)}),
    ]
    Path("updates").write_text('+size("b", "c").\ncommit.\n')
    with pytest.raises(upheld.UpheldError, match=r"updates:1:12: .* is not a `number`"):
        list(upheld.read_updates("updates", m))


def test_an_update_shows_its_size():
    m = upheld.materialise(RULES)
    assert [repr(u) for u in upheld.read_updates("updates", m)] == [
        "<Update 1: +1 edge, -1 edge>",
        "<Update 2: nothing>",
        "<Update 3: +1 edge>",
    ]


# -- changes are updates ----------------------------------------------------------------------------------------------


def written(facts: FactsGiven, m: upheld.Materialisation) -> list[upheld.Relation]:
    return [upheld.Relation(n, m[n].columns, m[n].types, rows) for n, rows in facts.items()]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(2 * len(ALGORITHMS)))
def test_changes_reproduce_the_outputs(engine, seed):
    """A plain copy of the output relations that takes the changes as its updates ends with the same outputs."""
    r = Random(seed)
    case: Case = random_typed_case(r, updates=5) if seed % 2 else random_case(r, updates=5)
    declarations = [line for line in case.program.splitlines() if line.startswith(".decl")]
    names = [line.split("(")[0].split()[1] for line in declarations]
    Path("rules.dl").write_text(case.program + "\n" + "".join(f".output {name}\n" for name in names))
    Path("copy.dl").write_text("\n".join(declarations) + "\n" + "".join(f".output {name}\n" for name in names))
    empty = upheld.materialise(Path("copy.dl"))
    steps = [(case.facts, {}), *((u.insertions, u.deletions) for u in case.updates)]
    text = "".join(transaction_text(written(delete, empty), written(insert, empty)) for insert, delete in steps)
    Path("updates").write_text(text, newline="")
    # The copy starts from what the rules derive from nothing.
    start = written({name: relation.to_rows() for name, relation in all_of(upheld.load("rules.dl")).items()}, empty)
    options = ["--engine", engine, "--algorithm", list(ALGORITHMS)[seed // 2], "-D", "out"]
    assert apply("--changes", "changes", "--verify", *options) == 0
    done = outputs()
    Path("replayed").write_text(transaction_text([], start) + Path("changes").read_text(), newline="")
    assert main(["apply", "copy.dl", "--updates", "replayed", "--changes", "again", *options]) == 0
    assert outputs() == done
    assert Path("again").read_text() == transaction_text([], start) + Path("changes").read_text()


def all_of(m: upheld.Materialisation) -> dict[str, upheld.Relation]:
    return {name: m[name] for name in m.relations}


# -- verification -----------------------------------------------------------------------------------------------------


def test_verify_finds_what_is_missing(monkeypatch, capsys):
    """A materialisation that forgets insertions: explicit facts, what follows from them, and the change are wrong."""
    load = upheld.Materialisation._load
    monkeypatch.setattr(upheld.Materialisation, "_load", lambda self, delete, insert: load(self, delete, {}))
    monkeypatch.setattr(upheld.Materialisation, "_small_update", lambda self, rows: None)  # which loads nothing
    assert apply("--verify", "--changes", "changes") == 2
    assert (
        capsys.readouterr().err
        == """\
updates:1: error: after commit 1 the explicit facts differ from recomputation [verification-failed]
  note: unexpected: none; missing: `edge("c", "d")`
  hint: this is a bug in Upheld: please report it, with the program, the facts and the updates
updates:1: error: after commit 1 the facts differ from recomputation [verification-failed]
  note: unexpected: none; missing: `edge("c", "d")`, `path("b", "d")`, `path("c", "d")`; \
by recomputation: edge("c", "d")  explicit
  hint: this is a bug in Upheld: please report it, with the program, the facts and the updates
updates:1: error: after commit 1 the reported insertions differ from recomputation [verification-failed]
  note: unexpected: none; missing: `edge("c", "d")`, `path("b", "d")`, `path("c", "d")`
  hint: this is a bug in Upheld: please report it, with the program, the facts and the updates
"""
    )
    assert outputs() == {}
    assert Path("changes").read_text() == ""


def test_verify_finds_what_is_too_much(monkeypatch, capsys):
    """The first facts of each side are shown, and how many more there are. Commits before are in the changes."""
    recompute = upheld.Materialisation._copy_with
    kept = {"c", "d"}

    def forgetful(m, facts):
        """From the second time on, without the edges from here and with one more."""
        given = {name: set(rows) for name, rows in facts}
        if ("a", "b") in given["edge"]:
            given["edge"] = {row for row in given["edge"] if row[0] in kept} | {("x", "y")}
        return recompute(m, given.items())

    monkeypatch.setattr(upheld.Materialisation, "_copy_with", forgetful)
    assert apply("--verify", "--changes", "changes") == 2
    message = capsys.readouterr().err
    assert message.startswith("updates:5: error: after commit 3 the facts differ from recomputation [veri")
    shown = '`edge("a", "b")`, `edge("b", "c")`, `path("a", "b")`, `path("a", "c")`, `path("a", "d")` and 2 more'
    assert f'unexpected: {shown}; missing: `edge("x", "y")`, `path("x", "y")`; by recomputation: ' in message
    assert Path("changes").read_text() == CHANGES[: CHANGES.index('+path("a", "b")')]


def test_verify_knows_that_facts_of_the_program_may_go():
    Path("rules.dl").write_text('.decl p, q(x:symbol)\np("a"). p("b").\nq(x) :- p(x).\n.output q\n')
    Path("updates").write_text('-p("a").\ncommit.\n+p("a").\n-p("b").\ncommit.\n')
    assert apply("--verify") == 0
    assert outputs() == {"q.csv": "a\n"}


# -- what may fail ----------------------------------------------------------------------------------------------------


def test_all_is_checked_first(capsys):
    """An error in the last line is told before anything is done, and nothing is written."""
    Path("changes").write_text("was here before\n")
    Path("updates").write_text(UPDATES + "+edge(1, 2).\ncommit.\n")
    Path("edge.facts").unlink()  # which would be told next
    assert apply("--changes", "changes") == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("updates:7:7: error: column 1 (`x`) holds `1`, which is not a `symbol`")
    assert "missing-file" not in printed.err
    assert outputs() == {}
    assert Path("changes").read_text() == "was here before\n"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_transaction_that_fails(engine, capsys):
    """It is named by its number and place, before the reason. The changes hold the commits before it."""
    Path("rules.dl").write_text(RULES + ".decl n(x:number)\n.decl one(x:number)\none(1 / x) :- n(x).\n.output one\n")
    Path("updates").write_text("+n(1).\ncommit.\n\n+n(2).\n+n(0).\ncommit.\n+n(3).\ncommit.\n")
    assert apply("--changes", "changes", "--engine", engine) == 2
    first, note, second, *_ = capsys.readouterr().err.splitlines()
    assert first == "updates:4: error: commit 2 could not be applied [failed-commit]"
    assert note.startswith("  note: the commit was rolled back and no outputs were written")
    assert "[undefined-result]" in second
    assert outputs() == {}
    assert Path("changes").read_text() == "+one(1).\ncommit.\n"


def test_limits(capsys):
    """They hold for each transaction."""
    chain = "".join(f'+edge("n{i}", "n{i + 1}").\n' for i in range(20))
    Path("updates").write_text(f"{UPDATES}{chain}commit.\n")
    assert apply("--max-facts", "100") == 2
    message = capsys.readouterr().err
    assert message.startswith("updates:7: error: commit 4 could not be applied")
    assert "limit of 100 facts" in message
    assert apply("--max-facts", "10000") == 0


def test_interrupt(monkeypatch, capsys):
    """Stopped from the keyboard: no outputs, and the changes of what is done."""

    def interrupted(commits):
        raise KeyboardInterrupt

    line = lambda shown: nullcontext((None, interrupted))  # noqa: E731
    monkeypatch.setattr(import_module("upheld.cli.commands.apply"), "commits_line", line)
    assert apply("--changes", "changes") == 130
    assert capsys.readouterr() == ("", "interrupted: no outputs were written\n")
    assert outputs() == {}
    assert Path("changes").read_text() == CHANGES[: CHANGES.index("commit.") + len("commit.\n")]


MISTAKE = '+edge("c", "d").\ncommit.\n+edge(1, 2).\ncommit.\n'
FIRST_CHANGE = '+path("a", "d").\n+path("b", "d").\n+path("c", "d").\ncommit.\n'


@pytest.mark.parametrize(
    "options, text, changes, slug",
    [
        ((), MISTAKE, FIRST_CHANGE, "ill-typed-value"),
        (("--merge-waiting", "2"), MISTAKE, FIRST_CHANGE, "ill-typed-value"),
        (("--merge-waiting", "2", "--max-facts", "5"), '+edge("c", "d").\ncommit.\n', "", "limit-reached"),
    ],
    ids=["read-here", "read-by-a-thread", "a-thread-that-waits"],
)
def test_a_pipe_that_stays_open_after_a_mistake(options, text, changes, slug):
    """A mistake stops the run when it comes, and not when the pipe ends, which it may never do."""
    command = [sys.executable, "-m", "upheld", "apply", "rules.dl", "--updates", "-", "-D", "out", "--changes", "-"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*command, *options, "--engine", "reference"], text=True, **pipes) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write(text)
        process.stdin.flush()
        assert process.wait(timeout=300) == 2
        assert process.stdout.read() == changes
        message = process.stderr.read()
    assert f"[{slug}]" in message and "Fatal" not in message
    assert outputs() == {}


def test_a_reader_that_goes_away():
    """`upheld apply ... --changes - | head -1` applies all transactions and writes all outputs."""
    command = [sys.executable, "-m", "upheld", "apply", "rules.dl", "--updates", "-", "-D", "out", "--changes", "-"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*command, "--engine", "reference"], text=True, **pipes) as process:
        assert process.stdin and process.stdout and process.stderr
        first, _, rest = UPDATES.partition("commit.\n")
        process.stdin.write(f"{first}commit.\n")
        process.stdin.flush()
        assert process.stdout.readline() == '-path("a", "b").\n'
        process.stdout.close()
        process.stdin.write(rest)
        process.stdin.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=300) == 0
    assert outputs() == {"path.csv": PATHS}


def test_a_pipe_with_an_error(capsys):
    """It cannot be read twice, so what comes before the error is applied and told."""
    bad = UPDATES + "+edge(1).\ncommit.\n+edge(2).\n"
    command = [sys.executable, "-m", "upheld", "apply", "rules.dl", "--updates", "-", "-D", "out", "--changes", "-"]
    done = subprocess.run(command, input=bad, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert done.stdout == CHANGES
    assert [line[:12] for line in done.stderr.splitlines() if "error: " in line] == ["<stdin>:7:2:", "<stdin>:9:2:"]
    assert outputs() == {}


@pytest.mark.parametrize(
    "changes, slug",
    [
        ("updates", "same-file"),
        ("out/../updates", "same-file"),
        ("edge.facts", "same-file"),
        ("out/path.csv", "same-file"),
        ("out", "not-a-file"),
        ("nowhere/changes", "missing-file"),
        ("/dev/full", "unwritable-file"),
    ],
)
def test_changes_that_cannot_be_written(changes, slug, capsys):
    assert apply("--changes", changes) == 2
    assert f"[{slug}]" in capsys.readouterr().err
    assert Path("updates").read_text() == UPDATES
    assert Path("edge.facts").read_text() == "a\tb\nb\tc\n"
    assert outputs() == {}


def replace_disk(monkeypatch, disk):
    """Have files that are opened to write bytes be of a class."""
    real = Path.open
    monkeypatch.setattr(
        Path, "open", lambda path, mode="r", *a, **b: disk(path, mode) if mode == "wb" else real(path, mode, *a, **b)
    )


@pytest.mark.parametrize(
    "failure", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "ctrl-c"]
)
def test_changes_end_with_a_whole_transaction(failure, monkeypatch, capsys):
    """A disk that fills, or Ctrl-C, within a transaction: the file of changes ends with the one before it."""
    written = 0

    class Disk(FileIO):
        def write(self, data):
            nonlocal written
            if written:
                super().write(bytes(data)[:7])
                raise failure
            written = super().write(data)
            return written

    replace_disk(monkeypatch, Disk)
    assert apply("--changes", "changes") == (130 if isinstance(failure, KeyboardInterrupt) else 2)
    assert Path("changes").read_text() == CHANGES[: CHANGES.index("commit.") + len("commit.\n")]
    assert "cut-transaction" not in capsys.readouterr().err


def test_changes_that_cannot_be_taken_back(monkeypatch, capsys):
    """If the rest of a transaction stays, the error says so."""

    class Disk(FileIO):
        def write(self, data):
            super().write(bytes(data)[:7])
            raise OSError(28, "No space left on device")

        def truncate(self, size=None):
            raise OSError(5, "Input/output error")

    replace_disk(monkeypatch, Disk)
    assert apply("--changes", "changes") == 2
    message = capsys.readouterr().err
    assert "[unwritable-file]" in message and "[cut-transaction]" in message


def test_changes_to_a_stream_that_fails():
    class Stream(StringIO):
        def write(self, text):
            raise OSError(28, "No space left on device")

    with pytest.raises(upheld.UpheldError) as caught:
        upheld.ChangeFile(Stream()).write(upheld.load("rules.dl").update())
    assert caught.value.slugs == ("unwritable-file",)


def test_unknown_algorithm(capsys):
    assert apply("--algorithm", "drad") == 2
    assert "did you mean `dred`?" in capsys.readouterr().err
    assert outputs() == {}


def test_missing_files(capsys):
    assert main(["apply", "rules.dl", "--updates", "none", "-D", "out"]) == 2
    assert capsys.readouterr().err.startswith("none: error: there is no such file [missing-file]")
    assert main(["apply", "rules.dl", "--updates", "updates", "-D", "nowhere"]) == 2
    assert "[missing-file]" in capsys.readouterr().err
    assert main(["apply", "rules.dl"]) == 2
    assert "--updates" in capsys.readouterr().err


# -- on a terminal ----------------------------------------------------------------------------------------------------


def test_a_line_on_a_terminal():
    """Commits are counted on a terminal when they take longer than a moment."""
    Path("updates").write_text("".join(f'+edge("n{i}", "n{i + 1}").\ncommit.\n' for i in range(30)))
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    command = [sys.executable, "-m", "upheld", "apply", "rules.dl", "--updates", "updates", "-D", "out"]
    with subprocess.Popen([*command, "--engine", "reference", "--verify"], stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # the terminal has gone
            pass
    os.close(ours)
    assert process.returncode == 0
    assert b" commits" in shown
