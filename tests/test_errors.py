"""Bad input, through the real command line: what was found, where, the rule it breaks, the way out; nothing changed."""

from __future__ import annotations

import builtins
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

import upheld
from upheld.base.errors import EvaluationError, Problem, warn
from upheld.cli import main

#: Wherever a run fails, this was there before and is all that is there after.
KEPT = "was here before\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """An empty folder to work in, with an output folder `out` in it that already holds a file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "p.csv").write_text(KEPT)
    return tmp_path


@pytest.fixture
def refused(folder, capsys):
    """Run a program that must fail; return what it prints on standard error."""

    def run(program: str | bytes, *options: str, name: str = "rules.dl", facts: dict[str, bytes] | None = None) -> str:
        Path(name).write_bytes(program.encode() if isinstance(program, str) else program)
        for file, content in (facts or {}).items():
            Path(file).write_bytes(content)
        assert main(["run", name, "-D", "out", *options]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert "Traceback" not in printed.err
        assert_nothing_written()
        return printed.err

    return run


def assert_nothing_written() -> None:
    assert os.listdir("out") == ["p.csv"]
    assert Path("out/p.csv").read_text() == KEPT


def assert_says(message: str, slug: str, place: str, *words: str, caret: str | None = None) -> None:
    """The first problem has this slug and place; the message has these words, in this order; `caret` is underlined."""
    first = message.splitlines()[0]
    assert first.startswith(f"{place}: error: ")
    assert first.endswith(f" [{slug}]")
    at = 0
    for word in words:
        assert word in message[at:]
        at = message.index(word, at) + len(word)
    if caret is not None:
        _, line, carets = message.splitlines()[:3]
        begin, end = carets.index("^"), carets.rindex("^") + 1
        assert line[begin:end] == caret


# -- texts ------------------------------------------------------------------------------------------------------------


def test_missing_bracket(refused):
    message = refused(".decl e(x:number)\ne(1).\np(x) :- e(x.\n")
    assert_says(message, "missing-bracket", "rules.dl:3:12", "`)` is missing", "rules.dl:3:10: opened here")


def test_missing_square_bracket(refused):
    message = refused("[?x, <http://a>, ?y :- [?x, <http://b>, ?y].\n", name="rules.dlog")
    assert_says(message, "missing-bracket", "rules.dlog:1:20", "`]` is missing", "rules.dlog:1:1: opened here")


def test_missing_full_stop(refused):
    """It points at the end of the rule before, not at where the next one begins."""
    message = refused("p(x) :- e(x, y)\n\n// a comment\nq(x) :- e(x, y).\n")
    assert_says(message, "missing-full-stop", "rules.dl:1:16", "note: facts and rules end with `.`", "hint: put a `.`")


def test_unterminated_string(refused):
    message = refused('e(1).\nf("abc).\n')
    assert_says(message, "unterminated-string", "rules.dl:2:3", "closing quote", "note: a string ends on its line")


def test_unterminated_comment(refused):
    message = refused("e(1).\n  /* for ever\ne(2).\n")
    assert_says(message, "unterminated-comment", "rules.dl:2:3", "hint: close it with `*/`", caret="/*")


def test_bad_escape(refused):
    message = refused('e("a\\qb").\n')
    assert_says(message, "bad-escape", "rules.dl:1:5", "`\\q`", "the escapes are", "hint:", caret="\\q")


def test_nul(refused):
    assert_says(refused(b"e(1).\n\0\n"), "nul-character", "rules.dl:2:1", "NUL")
    assert_says(refused(b'e("a\0b").\n'), "nul-character", "rules.dl:1:5", "NUL")


def test_lone_surrogate(refused):
    """In a file it is not UTF-8; escaped in a string, the `.dlog` dialect refuses it."""
    assert_says(refused(b'e("a\xed\xa0\x80b").\n'), "not-utf8", "rules.dl", "0xED at offset 4, in line 1")
    message = refused('[<http://a>, <http://b>, "a\\ud800b"] :- [?x, <http://b>, ?y].\n', name="rules.dlog")
    assert_says(message, "lone-surrogate", "rules.dlog:1:28")


def test_lone_surrogate_in_a_text():
    """A Python string can hold one."""
    with pytest.raises(upheld.UpheldError) as refusal:
        upheld.materialise('e("\ud800").')
    assert refusal.value.slugs == ("lone-surrogate",)


@pytest.mark.parametrize(
    "text",
    [
        "p(x) :- e(x), y = " + "(" * 100_000 + "x" + ")" * 100_000 + ".",
        "p(x) :- " + "(" * 100_000 + "e(x)" + ")" * 100_000 + ".",
        "p(x) :- e(x), y = " + "-(" * 100_000 + "x" + ")" * 100_000 + ".",
        "p(x) :- " + "!(" * 100_000 + "e(x)" + ")" * 100_000 + ".",
    ],
    ids=["terms", "formulas", "minuses", "negations"],
)
def test_deep_nesting(refused, text):
    message = refused(text)
    assert "[nested-too-deep]" in message.splitlines()[0]
    assert message.startswith("rules.dl:1:")
    assert "hint: split the rule" in message
    assert len(message) < 1000


def test_long_name(refused):
    """A megabyte of name is refused, and not printed."""
    message = refused(f"e(1).\n{'a' * 1_000_000}(1).\n")
    assert_says(message, "name-too-long", "rules.dl:2:1", "(1000000 characters)", "note: a name has at most")
    assert len(message) < 1000


def test_long_number(refused):
    message = refused(f"e({'9' * 10_000}).\n")
    assert_says(message, "number-out-of-range", "rules.dl:1:3", "10,000")
    assert len(message) < 1000


def test_number_out_of_range(refused):
    message = refused("e(9223372036854775808).\n")
    assert_says(message, "number-out-of-range", "rules.dl:1:3", "9223372036854775808", "note: a number", "hint:")


def test_undeclared_prefix(refused):
    message = refused("[?x, foo:p, ?y] :- [?x, <http://b>, ?y].\n", name="rules.dlog")
    assert_says(
        message, "undeclared-prefix", "rules.dlog:1:6", "`foo:`", "hint: declare it: `PREFIX foo:", caret="foo:"
    )


def test_bad_iri(refused):
    message = refused("PREFIX : <http://a b>\n[?x, :p, ?y] :- [?x, :q, ?y].\n", name="rules.dlog")
    assert_says(message, "bad-iri", "rules.dlog:1:19", "a space", "note: spaces", "hint: percent-encode")


def test_invalid_regular_expression(refused):
    message = refused('p(x) :- e(x), match("(a", x).\n')
    words = ("`(a` is not a regular expression", "missing )", "note: patterns follow", "hint:")
    assert_says(message, "invalid-regex", "rules.dl:1:21", *words, caret='"(a"')


def test_invalid_regular_expression_over_terms(refused):
    message = refused(':p[?x] :- :q[?x], FILTER(REGEX(?x, "(a")).\n'.replace(":", "<http://a/>"), name="rules.dlog")
    assert "[syntax]" in message.splitlines()[0]
    message = refused('PREFIX : <http://a/>\n:p[?x] :- :q[?x], FILTER(REGEX(?x, "(a")).\n', name="rules.dlog")
    assert_says(message, "invalid-regex", "rules.dlog:2:36", "`(a`", caret='"(a"')


def test_invalid_regular_expression_found_in_the_data(refused):
    """A pattern that comes from facts is known only when the rule is applied."""
    message = refused('e("(a", "b").\np(x) :- e(x, y), match(x, y).\n')
    assert_says(message, "undefined-result", "rules.dl:2:1", "'(a' is not a regular expression", 'with x = "(a"')


# -- programs ---------------------------------------------------------------------------------------------------------


def test_unsafe_head(refused):
    message = refused("reach(X, Z) :- edge(X, Y).\n")
    note = "note: each head variable must occur in a positive body atom"
    assert_says(message, "unsafe-head", "rules.dl:1:10", "unsafe variable `Z` in rule head", note, caret="Z")


def test_unsafe_negation(refused):
    message = refused("p(x) :- q(x), !r(y).\n")
    words = ("unsafe variable `y` under negation", "positive body atom", "hint: did you mean `x`?")
    assert_says(message, "unsafe-negation", "rules.dl:1:18", *words, caret="y")


def test_unsafe_comparison(refused):
    message = refused("p(x) :- q(x), y < 3.\n")
    words = ("unsafe variable `y` in a comparison", "positive body atom", "hint: did you mean `x`?")
    assert_says(message, "unsafe-comparison", "rules.dl:1:15", *words, caret="y")


def test_negation_through_recursion(refused):
    """The cycle is printed, with the rules that make it."""
    message = refused("p(x) :- e(x), !q(x).\nq(x) :- r(x).\nr(x) :- p(x).\n")
    assert_says(
        message,
        "negation-in-recursion",
        "rules.dl:1:1",
        "p(x) <- !q(x) <- r(x) <- p(x)",
        "rules.dl:2:1: `q(x)` depends on `r(x)`",
        "rules.dl:3:1: `r(x)` depends on `p(x)`",
        "hint: break the cycle",
    )


def test_arity_clash(refused):
    """Both places are shown: the use, and the declaration or first use."""
    message = refused("e(1, 2).\np(x) :- e(x).\n")
    words = ("`e` has 2 columns, not 1", "rules.dl:1:1: first used here")
    assert_says(message, "arity-clash", "rules.dl:2:9", *words, caret="e(x)")
    message = refused(".decl e(x:number, y:number)\ne(1).\n")
    assert_says(message, "arity-clash", "rules.dl:2:1", "rules.dl:1:7: declared here", caret="e(1)")


def test_type_clash(refused):
    """Both places are shown."""
    message = refused(".decl e(x:number)\n.decl s(x:symbol)\ns(x) :- e(x).\n")
    words = ("symbol where number is needed", "rules.dl:2:9: symbol", "rules.dl:1:9: number", "one type everywhere")
    assert_says(message, "type-clash", "rules.dl:3:11", *words, caret="x")


def test_type_clash_of_constants(refused):
    message = refused('e(1).\ne("a").\n')
    assert_says(message, "type-clash", "rules.dl:2:3", "rules.dl:1:3: number: a number here", caret='"a"')


def test_unknown_relation(refused):
    """The nearest name is suggested."""
    message = refused(".decl edge(x:number)\n.decl p(x:number)\np(x) :- egde(x).\n")
    words = ("unknown relation `egde`", "note: a program with declarations", "hint: did you mean `edge`?")
    assert_says(message, "unknown-relation", "rules.dl:3:9", *words, caret="egde(x)")


def test_unknown_functor(refused):
    message = refused("p(x) :- e(y), x = strlenn(y).\n")
    assert_says(message, "unknown-functor", "rules.dl:1:19", "`strlenn`", "hint: did you mean `strlen`?")


@pytest.mark.parametrize(
    "call, takes",
    [
        ("strlen(y, y)", "takes 1 argument, not 2"),
        ("substr(y, 1)", "takes 3 arguments, not 2"),
        ("range(1, 2, 3, 4)", "takes 2 or 3 arguments, not 4"),
        ("cat(y)", "takes 2 or more arguments, not 1"),
    ],
)
def test_wrong_number_of_arguments(refused, call, takes):
    message = refused(f"p(x) :- e(y), x = {call}.\n")
    assert_says(message, "wrong-argument-count", "rules.dl:1:19", takes, "hint:", caret=call)


# -- runs -------------------------------------------------------------------------------------------------------------


def test_division_by_zero(refused):
    """The rule and the binding are named."""
    message = refused("e(1, 0).\np(z) :- e(x, y), z = x / y.\n.output p\n.output e\n")
    words = ("division by zero in `p(z) :- e(x, y), z = x / y.`", "note: with x = 1, y = 0", "hint: guard")
    assert_says(message, "undefined-result", "rules.dl:2:1", *words)


def test_two_divisions_by_zero(refused):
    """Of several expressions without a value, one is named, whichever fact comes first."""
    message = refused("e(1).\ne(2).\ne(0).\np(x, a, b) :- e(x), a = 10 / x, b = 20 / x.\n.output p\n")
    assert_says(message, "undefined-result", "rules.dl:4:1", "division by zero", "note: with x = 0")


def test_overflow(refused):
    """The rule and the binding are named."""
    message = refused("e(9223372036854775807).\np(x + 1) :- e(x).\n.output p\n")
    words = ("9223372036854775808 does not fit a 64-bit number in `p(x + 1) :- e(x).`", "with x = 9223372036854775807")
    assert_says(message, "undefined-result", "rules.dl:2:1", *words)


def test_division_by_zero_in_a_fact(refused):
    message = refused("e(1).\ne(1 / 0).\n")
    assert_says(message, "undefined-result", "rules.dl:2:1", "division by zero", caret="e(1 / 0)")


@pytest.mark.parametrize(
    "option, amount",
    [
        (("--max-facts", "1000"), "1000 facts"),
        (("--max-rounds", "100"), "100 rounds"),
        (("--max-seconds", "0.2"), "0.2 seconds"),
        (("--max-memory", "1M"), "1048576 bytes of memory"),
    ],
)
def test_limits(refused, option, amount):
    """A run that would never end is stopped, its rule named and nothing kept."""
    message = refused("n(0).\nn(x+1) :- n(x).\n.output n\n", *option)
    words = (f"its limit of {amount} while applying `n(x + 1) :- n(x).`", "the run was rolled back", "hint: bound")
    assert_says(message, "limit-reached", "rules.dl:2:1", *words)


# -- facts files ------------------------------------------------------------------------------------------------------

READS = ".decl e(x:number, y:symbol)\n.input e\n.decl p(x:number)\np(x) :- e(x, _).\n.output p\n"


def test_short_row(refused):
    message = refused(READS, facts={"e.facts": b"1\ta\n2\n"})
    assert_says(message, "short-row", "e.facts:2", "1 column; column 2 (`y`) is missing", "note: `e` has 2", "hint:")


def test_long_row(refused):
    message = refused(READS, facts={"e.facts": b"1\ta\n2\tb\tc\n"})
    assert_says(message, "long-row", "e.facts:2", "3 columns", "holds `c`", "note: `e` has 2", "hint:")


def test_ill_typed_row(refused):
    message = refused(READS, facts={"e.facts": b"1\ta\nx1\tb\n"})
    words = ("column 1 (`x`) holds `x1`, which is not a `number`", "note: a `number` is", "hint:")
    assert_says(message, "ill-typed-value", "e.facts:2", *words)


def test_all_bad_rows_at_once(refused):
    message = refused(READS, facts={"e.facts": b"1\n2\tb\tc\nx\ty\n4\td\n"})
    assert [line.split(":")[1] for line in message.splitlines() if line.startswith("e.facts")] == ["1", "2", "3"]


def test_facts_that_are_not_utf8(refused):
    """The byte and its offset in the file are told."""
    message = refused(READS, facts={"e.facts": b"1\ta\n2\t\xff\n"})
    assert_says(message, "not-utf8", "e.facts:2", "byte 0xff at offset 6", "hint: convert")


def test_program_that_is_not_utf8(refused):
    message = refused(b"e(1).\n// \xff\n")
    assert_says(message, "not-utf8", "rules.dl", "0xFF at offset 9, in line 2")


def test_missing_facts_file(refused):
    assert_says(refused(READS), "missing-file", "e.facts", "no such file", "hint:")


def test_missing_program(capsys):
    assert main(["run", "nothing.dl", "-D", "out"]) == 2
    assert_says(capsys.readouterr().err, "missing-file", "nothing.dl", "there is no file `nothing.dl`")
    assert_nothing_written()


def test_facts_file_is_a_folder(refused):
    Path("e.facts").mkdir()
    assert_says(refused(READS), "not-a-file", "e.facts", "hint:")


def test_program_is_a_folder(capsys):
    Path("rules.dl").mkdir()
    assert main(["run", "rules.dl", "-D", "out"]) == 2
    assert_says(capsys.readouterr().err, "not-a-file", "rules.dl", "directory")
    assert_nothing_written()


def test_program_without_its_extension(capsys):
    """The command line takes files: what does not look like one is not taken for a program's text."""
    for name in ("rules.txt", "p(1).", "."):
        assert main(["run", name, "-D", "out"]) == 2
        assert_says(capsys.readouterr().err, "unknown-extension", str(Path(name)), "`*.dl`", "`*.dlog`")
    assert_nothing_written()


def test_program_of_one_word(capsys):
    """A word may be the name of a rule set, misspelt, or of a file without its extension."""
    assert main(["run", "rules", "-D", "out"]) == 2
    message = capsys.readouterr().err
    assert message.startswith("error: `rules` is not a rule set, a file ")
    assert "[unknown-program]" in message and "ends in `.dl` or `.dlog`" in message
    assert_nothing_written()


@pytest.fixture
def forbidden(monkeypatch):
    """Make files unreadable and unwritable, even to someone who may read and write everything."""
    names: set[str] = set()

    def guard(function):
        def guarded(file, *args, **kwargs):
            if not isinstance(file, int) and Path(file).name in names:
                raise PermissionError(13, "Permission denied", str(file))
            return function(file, *args, **kwargs)

        return guarded

    import io

    monkeypatch.setattr(builtins, "open", guard(builtins.open))
    monkeypatch.setattr(io, "open", guard(io.open))
    monkeypatch.setattr(os, "open", guard(os.open))
    monkeypatch.setattr(os, "replace", guard(os.replace))
    return names


def test_no_permission_to_read_the_facts(refused, forbidden):
    forbidden.add("e.facts")
    assert_says(refused(READS, facts=None), "no-permission", "e.facts")


def test_no_permission_to_read_the_program(forbidden, capsys):
    Path("rules.dl").write_text("e(1).")
    forbidden.add("rules.dl")
    assert main(["run", "rules.dl", "-D", "out"]) == 2
    assert_says(capsys.readouterr().err, "no-permission", "rules.dl", "permission to read `rules.dl`")
    assert_nothing_written()


def test_output_that_cannot_be_written(refused):
    """Of several outputs, none is written if one cannot be."""
    Path("taken").write_text("a file, no folder")
    program = 'p(1).\nq(2).\n.output p\n.output q(filename="../taken/q.csv")\n'
    message = refused(program)
    assert re.match(r"out/\.\./taken/q\.csv: error: .* \[[a-z-]+\]\n", message)


def test_missing_output_folder(refused):
    """It is told before the work is done, not after."""
    message = refused("n(0).\nn(x+1) :- n(x).\n.output n\n", "-D", "nowhere")
    assert_says(message, "missing-file", "nowhere", "no folder `nowhere` to write to", "hint: create the folder")
    assert not Path("nowhere").exists()


def test_unknown_output_option(refused):
    message = refused("p(1).\n.output p(fielname=x)\n")
    assert re.search(r"^rules\.dl:2:\d+: error: .*`fielname`", message)
    assert "did you mean `filename`?" in message


# -- the contract -----------------------------------------------------------------------------------------------------


def test_all_errors_of_a_file_at_once(refused):
    """Errors of syntax come together; so do all the others."""
    message = refused("p(x) :- e(x.\nq(1)\nr(2).\nf(1.\n")
    assert re.findall(r"^rules\.dl:(\d+).*error: .*\[(.*)\]$", message, re.MULTILINE) == [
        ("1", "missing-bracket"),
        ("2", "missing-full-stop"),
        ("4", "missing-bracket"),
    ]
    message = refused(
        """\
.decl e(x:number)
.decl p(x:number)
p(y) :- e(x).
p(x) :- e(x, x).
p(x) :- ee(x).
p("a").
p(x) :- e(x), !e(z).
p(strlen(x)) :- e(x).
p(nope(x)) :- e(x).
"""
    )
    assert re.findall(r"^rules\.dl:(\d+).*error: .*\[(.*)\]$", message, re.MULTILINE) == [
        ("3", "unsafe-head"),
        ("4", "arity-clash"),
        ("5", "unknown-relation"),
        ("6", "type-clash"),
        ("7", "unsafe-negation"),
        ("8", "type-clash"),
        ("9", "unknown-functor"),
    ]


def test_all_errors_of_all_facts_files_at_once(refused):
    message = refused(
        ".decl e(x:number)\n.input e\n.decl f(x:number)\n.input f\n.decl g(x:number)\n.input g\n",
        facts={"e.facts": b"x\n", "g.facts": b"1\t2\n"},
    )
    assert re.findall(r"^(\S+): error: .*\[(.*)\]$", message, re.MULTILINE) == [
        ("e.facts:1", "ill-typed-value"),
        ("f.facts", "missing-file"),
        ("g.facts:1", "long-row"),
    ]


def test_check_refuses_likewise(capsys):
    Path("rules.dl").write_text("p(x) :- q(y).\n")
    assert main(["check", "rules.dl"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert_says(printed.err, "unsafe-head", "rules.dl:1:3")


def test_debug_shows_the_traceback(capsys):
    Path("rules.dl").write_text("p(x) :- q(y).\n")
    assert main(["run", "--debug", "rules.dl", "-D", "out"]) == 2
    message = capsys.readouterr().err
    assert message.startswith("Traceback")
    assert "rules.dl:1:3: error: unsafe variable `x` in rule head [unsafe-head]" in message
    assert_nothing_written()


@pytest.mark.parametrize(
    "program, slug",
    [
        (b"p(x) :- q(y).\n", b"[unsafe-head]"),
        (b"p(\xff).\n", b"[not-utf8]"),
        (b"n(0).\nn(x+1) :- n(x).\n.output n\n", b"[limit-reached]"),
        (b"p(x) :- " + b"(" * 100_000 + b"\n", b"[nested-too-deep]"),
    ],
    ids=["program", "bytes", "run", "nesting"],
)
def test_as_a_process(program, slug):
    """The same from outside: exit code 2, standard error alone, no traceback, nothing written."""
    Path("rules.dl").write_bytes(program)
    command = [sys.executable, "-c", "from upheld.cli import main; import sys; sys.exit(main())"]
    done = subprocess.run(
        [*command, "run", "rules.dl", "-D", "out", "--max-facts", "500"], capture_output=True, timeout=300, check=False
    )
    assert done.returncode == 2
    assert done.stdout == b""
    assert slug in done.stderr
    assert b"Traceback" not in done.stderr
    assert b"\x1b" not in done.stderr  # no colour in a pipe
    assert_nothing_written()


def test_warnings_name_the_line_of_the_caller():
    """A warning is issued where a program calls Upheld, whatever lies between, and carries its problem."""
    problem = Problem("odd", "this is odd", place="here", severity="warning")
    inside = {"__name__": "upheld.somewhere", "warn": warn}
    exec("def issue(problem): warn([problem])", inside)
    with pytest.warns(upheld.UpheldWarning, match="here: warning: this is odd") as issued:
        inside["issue"](problem)
    assert issued[0].filename == __file__
    assert issued[0].message.problem is problem


def test_errors_go_to_other_processes():
    """An error that is pickled and read again is the same: tasks send each other theirs."""
    error = EvaluationError([Problem("undefined-result", "1 / 0", note="with x = 0"), Problem("undefined-result", "2")])
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is EvaluationError
    assert (str(again), again.problems) == (str(error), error.problems)
