"""The command line: options as Soufflé has them, what goes where, and exit codes."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import upheld
from tests.helpers.cases import ROOT
from upheld import cli
from upheld.base.errors import Problem, warn
from upheld.cli import main
from upheld.engines import ENGINES

RULES = """\
.decl edge(x:number, y:symbol)
.input edge
.decl node(x:number)
.output node
.decl name(y:symbol)
.output name(filename="names.txt", delimiter=",")
.decl both(x:number, y:symbol)
.printsize both
node(x) :- edge(x, _).
name(y) :- edge(_, y).
both(x, y) :- node(x), name(y).
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """A folder to work in, with a program, facts and a folder for outputs."""
    monkeypatch.chdir(tmp_path)
    Path("rules.dl").write_text(RULES)
    Path("facts").mkdir()
    Path("facts/edge.facts").write_text("1\ta\n2\tb\n2\ta\n")
    Path("out").mkdir()
    return tmp_path


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the installed command as a process of its own."""
    command = Path(sys.executable).with_name("upheld")
    return subprocess.run([command, *arguments], capture_output=True, text=True, timeout=300, check=False)


# -- run --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_run(engine, capsys):
    """Facts come from one folder, outputs go to another, sizes to standard output."""
    assert main(["run", "-F", "facts", "-D", "out", "rules.dl", "--engine", engine]) == 0
    assert {name: Path("out", name).read_text() for name in os.listdir("out")} == {
        "node.csv": "1\n2\n",
        "names.txt": "a\nb\n",
    }
    assert capsys.readouterr() == ("both\t4\n", "")


def test_options_may_touch_their_values(capsys):
    """`souffle -Ffacts -Dout program.dl`, in any order."""
    assert main(["run", "rules.dl", "-Dout", "-Ffacts"]) == 0
    assert sorted(os.listdir("out")) == ["names.txt", "node.csv"]


def test_folders_default_to_here():
    Path("edge.facts").write_text("7\tz\n")
    assert main(["run", "rules.dl"]) == 0
    assert Path("node.csv").read_text() == "7\n"


def test_facts_are_not_looked_for_beside_the_program(capsys):
    """As Soufflé does, `-F` decides, and the current folder where there is none."""
    os.chdir("out")
    assert main(["run", "../rules.dl", "-F", "../facts"]) == 0
    assert Path("node.csv").exists()


def test_print_instead_of_writing(capsys):
    """`-D -` prints the outputs."""
    assert main(["run", "-F", "facts", "-D", "-", "rules.dl"]) == 0
    printed = capsys.readouterr().out
    assert "node\n===============\n1\n2\n===============\n" in printed
    assert "both\t4\n" in printed
    assert os.listdir("out") == []


def test_outputs_to_standard_output(capsys):
    Path("rules.dl").write_text("p(1). p(2).\n.output p(IO=stdout)\n")
    assert main(["run", "rules.dl", "-D", "out"]) == 0
    assert "1\n2\n" in capsys.readouterr().out
    assert os.listdir("out") == []


def test_nullary_outputs():
    Path("rules.dl").write_text("p(). q() :- r().\n.output p, q\n")
    assert main(["run", "rules.dl", "-D", "out"]) == 0
    assert Path("out/p.csv").read_text() == "()\n"
    assert Path("out/q.csv").read_text() == ""


def test_warnings_go_to_standard_error(capsys):
    Path("rules.dl").write_text(".decl p(x:number)\n.decl q(x:number)\np(1).\n.output p\n")
    assert main(["run", "rules.dl", "-D", "out"]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("rules.dl:2:7: warning: ")
    assert "[unused-relation]" in printed.err


def test_check_warns_on_standard_error(capsys):
    """The report goes to standard output, and what is probably a mistake to standard error; JSON has all of it."""
    Path("rules.dl").write_text(".decl p(x:number)\n.decl q(x:number)\np(1).\n.output p\n")
    assert main(["check", "rules.dl"]) == 0
    printed = capsys.readouterr()
    assert "warning" not in printed.out
    assert printed.err.startswith("rules.dl:2:7: warning: ")
    assert main(["check", "rules.dl", "--json"]) == 0
    printed = capsys.readouterr()
    assert [w["slug"] for w in json.loads(printed.out)["warnings"]] == ["unused-relation"]
    assert printed.err == ""


def test_warnings_that_python_issues_are_shown_as_messages(capsys, monkeypatch):
    """A function that returns no warnings issues them; the command line shows them like all others, each time."""

    def load(*arguments, **options):
        warn([Problem("odd", "this is odd", place="here", hint="mend it", severity="warning")])
        warnings.warn("of another package", stacklevel=1)
        return upheld.materialise("p(1).")

    monkeypatch.setattr(upheld, "load", load)
    for _ in range(2):
        with warnings.catch_warnings(record=True) as others:
            warnings.simplefilter("always")
            assert main(["query", "rules.dl", "p(x)"]) == 0
        assert capsys.readouterr().err == "here: warning: this is odd [odd]\n  hint: mend it\n"
        assert [str(w.message) for w in others] == ["of another package"]


def test_rdfox_programs():
    Path("rules.dlog").write_text("[?y, <http://a>, ?x] :- [?x, <http://a>, ?y].\n")
    assert main(["run", "rules.dlog", "-D", "out"]) == 0


def test_outputs_are_replaced():
    Path("out/node.csv").write_text("old\n")
    assert main(["run", "-F", "facts", "-D", "out", "rules.dl"]) == 0
    assert Path("out/node.csv").read_text() == "1\n2\n"


def test_unknown_engine(capsys):
    assert main(["run", "rules.dl", "-F", "facts", "-D", "out", "--engine", "memry"]) == 2
    assert "did you mean `memory`?" in capsys.readouterr().err
    assert os.listdir("out") == []


@pytest.mark.parametrize(
    "size, expected", [("500", 500), ("2K", 2048), ("1.5m", 1572864), ("8G", 8 * 2**30), ("1t", 2**40)]
)
def test_sizes(size, expected):
    options = cli.parser().parse_args(["run", "rules.dl", "--max-memory", size])
    assert options.max_memory == expected


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["run"],
        ["run", "rules.dl", "--max-memory", "much"],
        ["run", "rules.dl", "--max-facts", "many"],
        ["run", "rules.dl", "--nonsense"],
        ["check"],
    ],
)
def test_usage_errors(arguments, capsys):
    """A command that cannot be understood exits with 2 and shows the usage."""
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage: upheld" in capsys.readouterr().err


# -- check ------------------------------------------------------------------------------------------------------------

CHECKED = """\
.decl n(x:number)
.decl m(x:number)
.decl unused(x:number)
.output m
n(0).
n(x + 1) :- n(x), x < 9.
n(x) :- n(y), x = y - 1, x > 0.
m(x) :- n(x), !k(x).
.decl k(x:number)
"""


def test_check_as_text(capsys):
    """Relations, strata and which rules are recursive; warnings go to standard error."""
    Path("rules.dl").write_text(CHECKED)
    assert main(["check", "rules.dl"]) == 0
    printed = capsys.readouterr()
    assert printed.out == (
        """\
4 relations, 3 rules (2 recursive), 1 fact in the program, 3 strata
  n(x: number)
  m(x: number)
  unused(x: number)
  k(x: number)
stratum 1: given facts, no rules
stratum 2: 2 rules, 2 recursive
  n(x + 1) :- n(x), x < 9.  (recursive)
  n(x) :- n(y), x > 0, x = y - 1.  (recursive)
stratum 3: 1 rule
  m(x) :- n(x), !k(x).
"""
    )
    assert printed.err == (
        """\
rules.dl:3:7: warning: relation `unused` is neither used in a rule body nor output [unused-relation]
  3 | .decl unused(x:number)
    |       ^^^^^^
rules.dl:6:1: warning: recursion through arithmetic in `n(x + 1) :- n(x), x < 9.` may never end [arithmetic-recursion]
  6 | n(x + 1) :- n(x), x < 9.
    | ^^^^^^^^^^^^^^^^^^^^^^^
  note: a run that keeps deriving new values is stopped by its limits
rules.dl:7:1: warning: recursion through arithmetic in `n(x) :- n(y), x > 0, x = y - 1.` may never end [arithmetic-recursion]
  7 | n(x) :- n(y), x = y - 1, x > 0.
    | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  note: a run that keeps deriving new values is stopped by its limits
"""  # noqa: E501
    )


def test_check_as_json(capsys):
    """The same as data."""
    Path("rules.dl").write_text(CHECKED)
    assert main(["check", "--json", "rules.dl"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report == upheld.check(Path("rules.dl")).to_dict()
    assert [r["name"] for r in report["relations"]] == ["n", "m", "unused", "k"]
    assert report["facts"] == 1
    assert [(s["index"], len(s["nonrecursive"]), len(s["recursive"])) for s in report["strata"]] == [
        (1, 0, 0),
        (2, 0, 2),
        (3, 1, 0),
    ]
    assert report["strata"][2]["nonrecursive"] == [{"rule": "m(x) :- n(x), !k(x).", "place": "rules.dl:8:1"}]
    assert [(w["slug"], w["place"]) for w in report["warnings"]] == [
        ("unused-relation", "rules.dl:3:7"),
        ("arithmetic-recursion", "rules.dl:6:1"),
        ("arithmetic-recursion", "rules.dl:7:1"),
    ]


@pytest.mark.parametrize("medium", ["stdout", "tape"])
def test_check_refuses_what_run_refuses(medium, capsys):
    """Options of directives are checked, together with the rules."""
    Path("rules.dl").write_text(f".decl p(x:number)\n.input p(IO={medium})\n.output p(headers=maybe)\np(x) :- p(y).\n")
    messages = []
    for command in ("check", "run"):
        assert main([command, "rules.dl"]) == 2
        messages.append(capsys.readouterr().err)
    assert messages[0] == messages[1]
    assert re.findall(r"\[([a-z-]+)\]$", messages[0], re.MULTILINE) == ["unsafe-head", "unsupported-io", "bad-option"]


def test_check_shows_twenty_errors(capsys):
    Path("rules.dl").write_text("".join(f"p{i}(x) :- q(y).\n" for i in range(70)))
    assert main(["check", "rules.dl"]) == 2
    message = capsys.readouterr().err
    assert message.count("[unsafe-head]") == 20 and message.count("[too-many-problems]") == 1


def test_check_coarsest(capsys):
    """Fewer strata; what is warned of stays the same."""
    Path("rules.dl").write_text("b(x) :- a(x). c(x) :- b(x). d(x + 1) :- c(x).")
    assert main(["check", "rules.dl"]) == 0
    assert "(0 recursive), 0 facts in the program, 4 strata" in capsys.readouterr().out
    assert main(["check", "rules.dl", "--coarsest"]) == 0
    printed = capsys.readouterr().out
    assert "(3 recursive), 0 facts in the program, 1 stratum" in printed
    assert "warning" not in printed


def test_check_reads_no_facts(capsys):
    """Facts files need not be there."""
    assert main(["check", "rules.dl"]) == 0
    assert os.listdir("out") == []


# -- the rest ---------------------------------------------------------------------------------------------------------


def test_demo(capsys):
    """It shows rules, facts, a change, and that the update looked at less than all; the same each time."""
    assert main(["demo"]) == 0
    shown = capsys.readouterr().out
    assert "path(x, z) :- path(x, y)" in shown
    assert "    + " in shown and "    - " in shown
    update, anew = re.search(r"considered (\d+) rule instances .* anew takes (\d+)\.", shown, re.DOTALL).groups()
    assert 10 * int(update) < int(anew)
    assert main(["demo"]) == 0
    assert capsys.readouterr().out == shown
    assert main(["demo", "--seed", "7"]) == 0
    assert capsys.readouterr().out != shown


def test_version_and_help(capsys):
    for arguments, word in ((["--version"], upheld.__version__), (["--help"], "run"), (["run", "--help"], "--facts")):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 0
        assert word in capsys.readouterr().out


@pytest.mark.parametrize("command", cli.COMMANDS, ids=lambda module: module.__name__.rpartition(".")[2])
def test_help_of_commands(command, capsys):
    """Usage, one line of summary, options in groups with their defaults, and examples that the parser accepts."""
    name = command.__name__.rpartition(".")[2]
    with pytest.raises(SystemExit):
        main([name, "--help"])
    usage, summary, *rest = capsys.readouterr().out.split("\n\n")
    assert usage.startswith(f"usage: upheld {name} ") and usage.count("\n") == 0
    assert len(summary) <= 72 and summary.endswith(".")
    assert rest[-1].startswith("examples:\n")
    assert not any(block.startswith("options:") for block in rest), "an option outside of the groups"
    for line in rest[-1].splitlines()[1:]:
        words = shlex.split(line.partition(" | ")[2] or line)
        assert words[:2] == ["upheld", name]
        assert cli.parser().parse_args(words[1:]).execute is command.execute


def test_interrupt(monkeypatch, capsys):
    """Stopped from the keyboard: 130, one line, nothing written."""

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(upheld.Project, "load", interrupted)
    assert main(["run", "-F", "facts", "-D", "out", "rules.dl"]) == 130
    assert capsys.readouterr() == ("", "interrupted: no outputs were written\n")
    assert os.listdir("out") == []


def test_colours_on_a_terminal_only(monkeypatch, capsys):
    Path("rules.dl").write_text("p(x) :- q(y).")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert main(["run", "rules.dl", "-D", "out"]) == 2
    assert "\033[31m" in capsys.readouterr().err


def test_as_a_process():
    done = run("run", "-F", "facts", "-D", "out", "rules.dl")
    assert (done.returncode, done.stdout, done.stderr) == (0, "both\t4\n", "")
    assert Path("out/node.csv").read_text() == "1\n2\n"
    assert run("run", "nothing.dl").returncode == 2
    assert run("--version").stdout == f"upheld {upheld.__version__}\n"


def test_a_reader_that_goes_away():
    """`upheld check ... | head -1` is no error."""
    Path("rules.dl").write_text("".join(f"p{i}(x) :- q{i}(x).\n" for i in range(3000)))
    command = Path(sys.executable).with_name("upheld")
    with subprocess.Popen([command, "check", "rules.dl"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=300) == 0


def test_a_standard_output_that_is_full():
    """What cannot be printed is an error with a message and code 2."""
    command = [sys.executable, "-m", "upheld", "run", "rules.dl", "-F", "facts", "-D", "-", "--engine", "reference"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=300, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("<stdout>: error: standard output cannot be written: No space left on device")


# -- exit codes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, code",
    [
        (["query", "edge(1, y)"], 0),
        (["query", "edge(7, y)"], 1),
        (["query", "edge(7, y)", "--count"], 1),
        (["query", "edge(7, y)", "--json"], 1),
        (["query", 'edge(1, "a")'], 0),
        (["query", 'edge(7, "a")'], 1),
        (["query", "edgy(7)"], 2),
        (["query", "edge(1, y)", "--max-facts", "1"], 2),
        (["explain", "node(1)"], 0),
        (["explain", "node(7)"], 1),
        (["explain", "node(7)", "--json"], 1),
        (["explain", "nodes(7)"], 2),
    ],
)
def test_queries_and_explanations_answer_by_their_code(arguments, code, capsys):
    """0 if something holds, 1 if nothing does, 2 if there was no looking."""
    command, *rest = arguments
    assert main([command, "rules.dl", *rest, "-F", "facts", "--engine", "reference"]) == code


@pytest.mark.parametrize(
    "arguments, printed",
    [
        (["edge(x, y)", "--parameter", "x=1"], "y\na\n"),
        (["edge(x, y)", "--parameter", "x=1", "--parameter", "y=a"], "true\n"),
        (["edge(x, y)", "--parameter", 'y="a"'], "x\n1\n2\n"),
        (["--sql", "select y from edge where x = $x", "--parameter", "x=1"], "y\na\n"),
    ],
)
def test_parameters_of_queries(arguments, printed, capsys):
    """Numbers are numbers, and text is text with quotes or without."""
    assert main(["query", "rules.dl", *arguments, "-F", "facts", "--engine", "reference"]) == 0
    assert capsys.readouterr().out == printed


def test_parameters_of_queries_over_triples(capsys):
    """They are terms, in which quotes stay."""
    Path("names.dlog").write_text("[?x, <urn:called>, ?y] :- [?x, <urn:name>, ?y] .\n")
    Path("names.nt").write_text('<urn:a> <urn:name> "Al" .\n<urn:b> <urn:name> "Bo" .\n')
    for query in (["[?x, <urn:called>, ?y]"], ["--sparql", "SELECT ?x ?y { ?x <urn:called> ?y }", "--format", "tsv"]):
        assert main(["query", "names.dlog", *query, "-F", "names.nt", "--parameter", 'y="Bo"']) == 0
        out = capsys.readouterr().out
        assert "<urn:b>" in out and "<urn:a>" not in out


def test_explained_queries(capsys):
    """The plan is printed, of Upheld or of DuckDB; there is none of SPARQL."""
    options = ["-F", "facts", "--explain"]
    assert main(["query", "rules.dl", "edge(x, y), node(x)", "--parameter", "x=1", *options]) == 0
    assert "from all facts" in capsys.readouterr().out
    assert main(["query", "rules.dl", "--sql", "select y from edge where x = $x", "--parameter", "x=1", *options]) == 0
    assert "ARROW_SCAN" in capsys.readouterr().out
    assert main(["query", "rules.dl", "--sparql", "ASK {}", *options]) == 2
    assert "rule body" in capsys.readouterr().err


def test_bad_parameters_of_queries(capsys):
    """They are refused before the program is read, or by the query."""
    query = ["query", "rules.dl", "edge(x, y)", "-F", "facts", "--parameter"]
    for parameter in ("x", "=1"):
        with pytest.raises(SystemExit, match="2"):
            main([*query, parameter])
        assert f"`{parameter}` is not of the form NAME=VALUE" in capsys.readouterr().err
    assert main([*query, "z=1"]) == 2
    assert "no variable `z` for a parameter" in capsys.readouterr().err


VIOLATIONS = ".decl violation(x:number)\nviolation(x) :- edge(x, _), x > 1.\n.output violation\n"


@pytest.mark.parametrize("command", ["run", "apply"])
def test_fail_on_violation(command, capsys):
    """Facts of `violation` make the exit code 1, and the outputs are written."""
    Path("rules.dl").write_text(RULES + VIOLATIONS)
    Path("updates").write_text("commit.\n")
    options = ["rules.dl", "-F", "facts", "-D", "out", "--engine", "reference"]
    options += ["--updates", "updates"] if command == "apply" else []
    assert main([command, *options]) == 0
    assert main([command, *options, "--fail-on-violation"]) == 1
    assert capsys.readouterr().err == "warning: 1 fact of `violation` holds [violation]\n"
    assert Path("out/violation.csv").read_text() == "2\n"
    Path("facts/edge.facts").write_text("1\ta\n")
    assert main([command, *options, "--fail-on-violation"]) == 0
    assert capsys.readouterr().err == ""


def test_fail_on_violation_of_an_ontology(capsys):
    Path("pets.ttl").write_text(
        "@prefix : <https://example.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
        ":p a owl:IrreflexiveProperty . :a :p :a .\n"
    )
    options = ["owl2rl", "-F", "pets.ttl", "-D", "out.nt", "--fail-on-violation"]
    assert main(["run", *options]) == 1
    message = capsys.readouterr().err
    assert message.count("[violation]") == 1 and "prp-irp" in message
    assert Path("out.nt").exists()


def test_fail_on_violation_where_there_can_be_none(capsys):
    """A program that cannot fail so is refused, rather than found good every time."""
    assert main(["run", "rules.dl", "-F", "facts", "-D", "out", "--fail-on-violation"]) == 2
    assert "[no-violations]" in capsys.readouterr().err
    assert os.listdir("out") == []


# -- outputs among the facts ------------------------------------------------------------------------------------------


def test_triples_written_among_the_facts(capsys):
    """What is derived would be explicit in the next run, so there is a warning."""
    Path("rules.dlog").write_text("[?y, <http://a>, ?x] :- [?x, <http://a>, ?y].\n")
    Path("facts/given.nt").write_text("<http://x> <http://a> <http://y> .\n")
    for output in ("facts/derived.nt", "facts/../facts/derived.ttl"):
        assert main(["run", "rules.dlog", "-F", "facts", "-D", output, "--engine", "reference"]) == 0
        message = capsys.readouterr().err
        assert message.startswith(f"{output}: warning: ") and "[output-among-facts]" in message
    assert main(["run", "rules.dlog", "-F", "facts/given.nt", "-D", "facts/given.nt", "--engine", "reference"]) == 0
    assert "[output-among-facts]" in capsys.readouterr().err
    assert main(["run", "rules.dlog", "-F", "facts/given.nt", "-D", "facts/other.nt", "--engine", "reference"]) == 0
    assert main(["run", "rules.dlog", "-F", "facts", "-D", "out/derived.nt", "--engine", "reference"]) == 0
    assert capsys.readouterr().err == ""


def test_an_output_in_the_place_of_an_input(capsys):
    Path("rules.dl").write_text(RULES + '.output edge(filename="edge.facts")\n')
    assert main(["run", "rules.dl", "-F", "facts", "-D", "out", "--engine", "reference"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["run", "rules.dl", "-F", "facts", "-D", "facts", "--engine", "reference"]) == 0
    assert capsys.readouterr().err.startswith("facts/edge.facts: warning: this output is in the folder that facts")


def test_this_is_the_tree_under_test():
    """The installed command runs the code beside these tests."""
    assert Path(upheld.__file__).resolve().is_relative_to(ROOT)


def test_a_missing_folder_is_reported_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = ".decl a(x:number) .decl b(x:number) .input a .input b .output a a(x) :- b(x)."
    Path("p.dl").write_text(text)
    assert main(["run", "p.dl", "-F", "nowhere"]) == 2
    assert capsys.readouterr().err.count("[missing-file]") == 1
