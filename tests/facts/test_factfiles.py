"""Facts files: what is written reads back, what Soufflé writes is read, and bad files are explained and harmless."""

from __future__ import annotations

import gzip
import io
import math
import os
from functools import reduce
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upheld.base.errors import FactsError, ProgramError
from upheld.base.source import Source, Span
from upheld.facts.files.badrows import BAD_ROWS_SHOWN
from upheld.facts.files.formats import Format
from upheld.facts.files.reading import read_bytes, rows_in
from upheld.facts.files.writing import Output, facts_text, stdout_text, write_all
from upheld.language.terms.terms import literal
from upheld.language.types.primitive import INT64_MAX, INT64_MIN, PRIMITIVE_TYPES, UINT64_MAX, sorted_rows
from upheld.language.types.records import RecordType, from_python
from upheld.language.values import NAN, normalise_float


def format_of(columns="xy", kind="input", relation="edge", **options):
    return Format.from_options(list(options.items()), kind, relation, list(columns))


def read_facts(path, types, format):
    return rows_in(read_bytes(path), path, types, format)


def write_facts(path, rows, types, format):
    write_all([Output(path, rows, types, format)])


@pytest.fixture
def facts(tmp_path):
    """Write a file and return its path."""

    def write(content, name="edge.facts"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def problems_of(path, types=("number", "number"), format=None):
    with pytest.raises(FactsError) as caught:
        read_facts(path, types, format or format_of("xyzuvw"[: len(types)]))
    return caught.value.problems


def problem_of(*args, **kwargs):
    (problem,) = problems_of(*args, **kwargs)
    return problem


# -- there and back ---------------------------------------------------------------------------------------------------

plain_texts = st.text(st.characters(blacklist_characters="\t\n\r,;", blacklist_categories=["Cs"]), max_size=8)
any_texts = st.text(st.characters(blacklist_categories=["Cs"]) | st.sampled_from('\n\r\t,;"'), max_size=8)


LIST = RecordType("List")
LIST.branches["[]"] = ("number", "symbol", LIST)
TYPES = (*(type for type in PRIMITIVE_TYPES if type != "record"), LIST)
names = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"], exclude_characters=",;[]()"), max_size=4)
lists = st.lists(st.tuples(st.integers(INT64_MIN, INT64_MAX), names), max_size=3)


def values(type, texts):
    return {
        "number": st.integers(INT64_MIN, INT64_MAX),
        "unsigned": st.integers(0, UINT64_MAX),
        "float": st.floats().map(normalise_float),
        "symbol": texts,
        "record": lists.map(lambda items: reduce(lambda tail, item: from_python((*item, tail), LIST), items, "nil")),
        "term": texts.map(literal),
    }[type]


@st.composite
def tables(draw, texts):
    types = tuple(draw(st.lists(st.sampled_from(TYPES), max_size=4)))
    rows = draw(st.sets(st.tuples(*(values(type, texts) for type in types)), max_size=12))
    return types, rows


@given(table=tables(plain_texts), delimiter=st.sampled_from(["\t", ",", ";;"]), headers=st.booleans(), gz=st.booleans())
def test_plain_files_read_back(tmp_path_factory, table, delimiter, headers, gz):
    """What is written is read again, in ascending order, if no symbol holds a delimiter or line break."""
    types, rows = table
    path = tmp_path_factory.getbasetemp() / "edge.facts"
    format = Format("edge", tuple("abcd"[: len(types)]), delimiter=delimiter, headers=headers, compress=gz)
    write_facts(path, rows, types, format)
    assert read_facts(path, types, format) == sorted_rows(rows, types)


@given(table=tables(any_texts), delimiter=st.sampled_from([",", "\t", "<>"]), headers=st.booleans())
def test_quoted_files_read_back(tmp_path_factory, table, delimiter, headers):
    """With `rfc4180` what is written is read again, whatever symbols hold."""
    types, rows = table
    path = tmp_path_factory.getbasetemp() / "edge.facts"
    format = Format("edge", tuple("abcd"[: len(types)]), delimiter=delimiter, headers=headers, rfc4180=True)
    write_facts(path, rows, types, format)
    assert read_facts(path, types, format) == sorted_rows(rows, types)


@given(st.binary(max_size=60), st.sampled_from(["number", "float", "symbol"]), st.booleans())
def test_any_bytes_are_read_or_refused(tmp_path_factory, content, type, rfc4180):
    """Only `FactsError` escapes."""
    path = tmp_path_factory.getbasetemp() / "edge.facts"
    path.write_bytes(content)
    problems, rows = (), []
    try:
        rows = read_facts(path, (type, type), Format("edge", ("x", "y"), delimiter=",", rfc4180=rfc4180))
    except FactsError as error:
        problems = error.problems
    assert all(p.place.startswith(str(path)) for p in problems)
    assert all(len(row) == 2 for row in rows)


def test_blocks_of_a_long_file(facts):
    """Files longer than a block come out whole, and a bad row far down has its line."""
    good = [(i, i * i) for i in range(150_000)]
    text = "".join(f"{x}\t{y}\n" for x, y in good)
    assert read_facts(facts(text), ("number", "number"), format_of()) == good
    assert problem_of(facts(text + "1\tx\n" + text)).place.endswith("edge.facts:150001")
    quoted = "".join(f'"{x}","{y}\n"\n' for x, y in good)
    expected = [(str(x), f"{y}\n") for x, y in good]
    assert read_facts(facts(quoted), ("symbol", "symbol"), format_of(rfc4180="true")) == expected


# -- what Soufflé writes ----------------------------------------------------------------------------------------------


def test_lines(facts):
    """The last line needs no end, and lines may end as on Windows."""
    expected = [(1, "a"), (2, "b")]
    for text in ("1\ta\n2\tb\n", "1\ta\n2\tb", "1\ta\r\n2\tb\r\n", "1\ta\r\n2\tb\r"):
        assert read_facts(facts(text), ("number", "symbol"), format_of()) == expected


def test_an_empty_line_is_the_empty_symbol(facts):
    assert read_facts(facts("a\n\nb\n"), ["symbol"], format_of("x")) == [("a",), ("",), ("b",)]
    assert problem_of(facts("\n"), ["term"]).slug == "short-row"  # no term is empty
    assert read_facts(facts(""), ["symbol"], format_of("x")) == []
    assert read_facts(facts("\t\n"), ["symbol", "symbol"], format_of()) == [("", "")]


def test_nullary_relations(facts, tmp_path):
    """A relation of no columns holds if its file has a line."""
    assert read_facts(facts("()\n"), [], format_of("")) == [()]
    assert set(read_facts(facts("\n\n"), [], format_of(""))) == {()}
    assert read_facts(facts(""), [], format_of("")) == []
    assert problem_of(facts("1\n"), types=()).slug == "long-row"
    write_facts(tmp_path / "a.csv", {()}, [], format_of("", "output"))
    assert (tmp_path / "a.csv").read_text() == "()\n"
    write_facts(tmp_path / "a.csv", set(), [], format_of("", "output"))
    assert (tmp_path / "a.csv").read_text() == ""


@pytest.mark.parametrize(
    "type, text, value",
    [
        ("number", "-9223372036854775808", INT64_MIN),
        ("number", "0x7fffFFFFffffffff", INT64_MAX),
        ("number", "-0b101", -5),
        ("number", "+5", 5),
        ("number", " 5", 5),
        ("number", "0" * 5000 + "7", 7),
        ("unsigned", "18446744073709551615", UINT64_MAX),
        ("float", "3", 3.0),
        ("float", ".5", 0.5),
        ("float", "1E3", 1000.0),
        ("float", "-inf", -math.inf),
        ("float", "1e-999", 0.0),
        ("symbol", "a\0b \u00e9", "a\0b \u00e9"),
        ("term", "<http://a.b/c>", "<http://a.b/c>"),
        ("term", '"caf\\u00e9"@FR', '"caf\u00e9"@fr'),
        ("term", '"5"^^<http://www.w3.org/2001/XMLSchema#integer>', '"5"^^<http://www.w3.org/2001/XMLSchema#integer>'),
    ],
)
def test_values(facts, type, text, value):
    ((found,),) = read_facts(facts(text + "\n"), [type], format_of("x"))
    assert found == value and builtin(found) is builtin(value)


builtin = type


def test_floats_are_normal(facts):
    """Every NaN is the one NaN, and there is no negative zero."""
    (nan,), (other,), (zero,) = read_facts(facts("nan\n-NaN\n-0.0\n"), ["float"], format_of("x"))
    assert nan is NAN and other is NAN
    assert math.copysign(1, zero) == 1


def test_gzip(facts, tmp_path):
    """A gzipped file is unpacked, asked or not; one that is not gzipped is read although `compress` is on."""
    packed = facts(gzip.compress(b"1\t2\n"))
    assert read_facts(packed, ("number", "number"), format_of()) == [(1, 2)]
    assert read_facts(packed, ("number", "number"), format_of(compress="true")) == [(1, 2)]
    assert read_facts(facts("1\t2\n"), ("number", "number"), format_of(compress="true")) == [(1, 2)]
    format = format_of(kind="output", compress="true")
    write_facts(tmp_path / format.filename, [(1, 2)], ("number", "number"), format)
    assert gzip.decompress((tmp_path / "edge.csv.gz").read_bytes()) == b"1\t2\n"


def test_quoting(facts):
    text = '"foo""bar""",plain,"one\r\ntwo"\n,"",a"b\n'
    rows = read_facts(facts(text), ["symbol"] * 3, format_of("xyz", rfc4180="true"))
    assert rows == [('foo"bar"', "plain", "one\r\ntwo"), ("", "", 'a"b')]
    assert read_facts(facts('"a",'), ["symbol"] * 2, format_of(rfc4180="true")) == [("a", "")]


def test_text_of_facts():
    """Rows are sorted by value; symbols are quoted with `rfc4180`, numbers never; floats are as short as can be."""
    types = ("number", "float", "symbol")
    rows = [(10, 0.1, 'a"b'), (9, 2.0, ""), (9, NAN, "z"), (9, 1e30, "z")]
    plain = '9\t2\t\n9\t1e+30\tz\n9\tnan\tz\n10\t0.1\ta"b\n'
    assert facts_text(rows, types, format_of("xyz", "output")) == plain
    assert facts_text(rows, types, format_of("xyz", "output", headers="true")) == "x\ty\tz\n" + plain
    quoted = '9,2,""\n9,1e+30,"z"\n9,nan,"z"\n10,0.1,"a""b"\n'
    assert facts_text(rows, types, format_of("xyz", "output", rfc4180="true")) == quoted


def test_text_on_standard_output():
    rule = "=" * 15
    format = format_of(kind="output", IO="stdout")
    assert format.io == "stdout"
    assert stdout_text([(1, 2)], ("number", "number"), format) == f"{'-' * 15}\nedge\n{rule}\n1\t2\n{rule}\n"
    format = format_of(kind="output", IO="stdout", headers="true")
    assert stdout_text([], ("number", "number"), format) == f"{'-' * 15}\nedge\nx\ty\n{rule}\n{rule}\n"


@pytest.mark.parametrize(
    "case, relation, types, options_in, output, options_out",
    [
        ("semantic_load7", "A", "number number", {"headers": "true"}, "B.csv", {}),
        ("semantic_load11", "A", "symbol symbol symbol", {"rfc4180": "true"}, "A.csv", {"rfc4180": "true"}),
        ("semantic_load13", "A", "symbol", {"rfc4180": "true"}, "A.csv", {}),
        ("syntactic_input_directive3", "A", "number number", {}, "B.csv", {"delimiter": "delim"}),
        (
            "syntactic_output_directive_quotes2",
            "A",
            "number number",
            {"IO": "file", "filename": "NameFromInputDec.facts", "delimiter": "g"},
            "NameFromOutputDec.csv",
            {"delimiter": "h"},
        ),
    ],
)
def test_files_of_souffle(cases, case, relation, types, options_in, output, options_out):
    """Copying a relation gives the bytes that Soufflé gives."""
    place = cases / "souffle" / "run" / case
    types = types.split()
    format = format_of("xyz"[: len(types)], "input", relation, **options_in)
    rows = read_facts(place / "facts" / format.filename, types, format)
    written = facts_text(rows, types, format_of("xyz"[: len(types)], "output", relation, **options_out))
    assert written == (place / output).read_text()


# -- options ----------------------------------------------------------------------------------------------------------


def test_defaults():
    assert format_of() == Format("edge", ("x", "y"), "edge.facts", "file", "\t", False, False, False)
    assert format_of(kind="output").filename == "edge.csv"
    assert format_of(rfc4180="true").delimiter == ","
    assert format_of(rfc4180="true", delimiter=";").delimiter == ";"
    assert format_of(delimiter="\\t").delimiter == "\t"
    assert format_of(compress="true").filename == "edge.facts.gz"
    assert format_of(kind="printsize").io == "stdout"


@pytest.mark.parametrize(
    "kind, option, value, slug, words",
    [
        ("output", "IO", "stdin", "unsupported-io", ["`IO=stdin`", "`IO=file`", "`IO=sqlite`"]),
        ("input", "IO", "stdout", "unsupported-io", ["`.input`", "`IO=file`"]),
        ("output", "IO", "tape", "unsupported-io", ["`IO=tape`", "`IO=stdout`"]),
        ("printsize", "filename", "a", "unknown-option", ["`filename`", "`IO`"]),
        ("input", "filname", "a", "unknown-option", ["`filname`", "did you mean `filename`?"]),
        ("output", "params", "x", "unsupported-option", ["`params`", "leave it out"]),
        ("input", "headers", "yes", "bad-option", ["`headers`", "`yes`", "`true` or `false`"]),
        ("input", "delimiter", "", "bad-option", ["delimiter", "empty"]),
        ("input", "delimiter", "\n", "bad-option", ["line break"]),
        ("input", "filename", "", "bad-option", ["is not the name of a file"]),
    ],
)
def test_bad_options(kind, option, value, slug, words):
    with pytest.raises(ProgramError) as caught:
        format_of(kind=kind, **{option: value})
    (problem,) = caught.value.problems
    assert problem.slug == slug and problem.place == f".{kind} edge"
    assert all(word in str(problem) for word in words), str(problem)


def test_all_bad_options_come_at_once_and_in_their_place():
    span = Span(Source("a.dl", ".input edge(IO=x, a=b)"), 7, 11)
    options = [("IO", "x"), ("a", "b"), ("IO", "file")]
    with pytest.raises(ProgramError) as caught:
        Format.from_options(options, "input", "edge", ["x"], span)
    assert caught.value.slugs == ("unsupported-io", "unknown-option", "bad-option")
    assert all(str(p).startswith("a.dl:1:8: error") for p in caught.value.problems)


def test_quotes_do_not_delimit_quoted_fields():
    with pytest.raises(ProgramError, match="holds a quote"):
        format_of(rfc4180="true", delimiter='"')


# -- bad rows ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "types, text, slug, words",
    [
        ("number number", "1\tabc", "ill-typed-value", ["column 2 (`y`)", "`abc`", "not a `number`", "as `symbol`"]),
        ("number number", "1\t1.5", "ill-typed-value", ["`1.5`", "as `float`"]),
        ("number number", "5 \t1", "ill-typed-value", ["column 1 (`x`)", "`5 `", "remove the spaces"]),
        ("number number", "1_000\t1", "ill-typed-value", ["`1_000`"]),
        ("number number", "\u0663\t1", "ill-typed-value", ["`\u0663`"]),
        ("number number", "\t1", "ill-typed-value", ["``"]),
        ("number number", "0x\t1", "ill-typed-value", ["`0x`"]),
        ("float symbol", "1,5\ta", "ill-typed-value", ["`1,5`", "not a `float`"]),
        ("number number", "1\t9223372036854775808", "number-out-of-range", ["9223372036854775807", "`unsigned`"]),
        ("number number", "1\t" + "9" * 10_000, "number-out-of-range", ["10000 characters"]),
        ("unsigned symbol", "-1\ta", "number-out-of-range", ["`-1`", "0 to 18446744073709551615", "as `number`"]),
        ("float symbol", "1e999\ta", "number-out-of-range", ["`1e999`", "`float`"]),
        ("number number", "1", "short-row", ["1 column;", "column 2 (`y`) is missing", "2 columns: `x` (number)"]),
        ("number number", "1,2", "short-row", ['delimiter=","']),
        ("number number", "", "short-row", ["the line is empty", "remove the line"]),
        ("number number", "1\t2\tx3", "long-row", ["3 columns", "`x3`", "2 columns"]),
    ],
)
def test_bad_rows(facts, types, text, slug, words):
    good = {"number": "1", "unsigned": "1", "float": "1", "symbol": "a"}
    line = "\t".join(good[type] for type in types.split())
    path = facts(f"{line}\n{line}\n{text}\n{line}\n")
    problem = problem_of(path, types.split())
    assert problem.slug == slug and problem.place == f"{path}:3"
    assert problem.hint
    assert all(word in str(problem) for word in words), str(problem)


def test_an_empty_line_is_no_number(facts):
    assert problem_of(facts("1\n\n"), ["number"]).slug == "short-row"


def test_all_bad_rows_come_at_once(facts):
    path = facts("1\t2\nx\ty\n1\n1\t2\t3\n")
    problems = problems_of(path)
    assert [p.slug for p in problems] == ["ill-typed-value", "ill-typed-value", "short-row", "long-row"]
    assert [p.place for p in problems] == [f"{path}:{line}" for line in (2, 2, 3, 4)]


def test_a_closing_line_after_many_bad_rows(facts):
    problems = problems_of(facts("x\t1\n" * (BAD_ROWS_SHOWN + 5)))
    assert len(problems) == BAD_ROWS_SHOWN + 1
    assert problems[-1].slug == "more-bad-rows" and str(BAD_ROWS_SHOWN) in problems[-1].message
    assert len(problems_of(facts("x\t1\n" * BAD_ROWS_SHOWN))) == BAD_ROWS_SHOWN


def test_lines_are_counted_with_headers_and_quoted_line_breaks(facts):
    path = facts('x,y\n"a\nb",1\n"c",z\n')
    format = format_of(rfc4180="true", headers="true")
    problem = problem_of(path, ["symbol", "number"], format)
    assert problem.place == f"{path}:4" and "`z`" in problem.message


@pytest.mark.parametrize(
    "text, line, words", [('a,"b\n', 1, ["never closed"]), ('a,b\n"c"d,e\n', 2, ["followed by `d`", '`""`'])]
)
def test_bad_quoting(facts, text, line, words):
    path = facts(text)
    problem = problem_of(path, ["symbol", "symbol"], format_of(rfc4180="true"))
    assert problem.slug == "bad-quoting" and problem.place == f"{path}:{line}"
    assert all(word in str(problem) for word in words)


# -- bad files --------------------------------------------------------------------------------------------------------


def test_not_utf8(facts):
    path = facts(b"1\t2\n1\t\xff\n")
    problem = problem_of(path)
    assert problem.slug == "not-utf8" and problem.place == f"{path}:2"
    assert "0xff at offset 6" in problem.message


def test_missing_file(facts, tmp_path):
    facts("", "Edges.facts")
    problem = problem_of(tmp_path / "edge.facts")
    assert (problem.slug, problem.place) == ("missing-file", str(tmp_path / "edge.facts"))
    assert problem.hint == "did you mean `Edges.facts`?"


def test_missing_folder(tmp_path):
    problem = problem_of(tmp_path / "nowhere" / "edge.facts")
    assert problem.slug == "missing-file" and "no folder" in problem.message


def test_folder(tmp_path):
    assert problem_of(tmp_path).slug == "not-a-file"


def test_no_permission(facts, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    path = facts("1\t2\n")
    monkeypatch.setattr(io, "open", refuse)
    assert problem_of(path).slug == "no-permission"


@pytest.mark.parametrize(
    "content", [gzip.compress(b"1\t2\n" * 100)[:-9], b"\x1f\x8bnonsense"], ids=["cut-short", "nonsense"]
)
def test_broken_gzip(facts, content):
    problem = problem_of(facts(content))
    assert problem.slug == "unreadable-file" and "gzip" in problem.message


def test_a_name_no_file_can_have():
    assert problem_of(Path("a\0b")).slug == "unreadable-file"
    assert problem_of(Path("a" * 5000)).slug == "unreadable-file"


# -- writing ----------------------------------------------------------------------------------------------------------


def output(path, rows=((1, 2),), relation="edge", types=("number", "number")):
    return Output(path, rows, types, format_of(kind="output", relation=relation))


def contents(folder):
    return {p.name: p.read_text() for p in folder.iterdir() if p.is_file()}


def failure_of(outputs):
    with pytest.raises(FactsError) as caught:
        write_all(outputs)
    return caught.value.problems


def test_all_files_or_none(tmp_path):
    """If one file cannot be written, the others stay as they were, and nothing else is left behind."""
    (tmp_path / "a.csv").write_text("old\n")
    (tmp_path / "b.csv").mkdir()
    names = ["a.csv", "b.csv", "nowhere/c.csv", "d.csv"]
    problems = failure_of(output(tmp_path / name, relation=name) for name in names)
    assert [(p.slug, p.place) for p in problems] == [
        ("not-a-file", str(tmp_path / "b.csv")),
        ("missing-file", str(tmp_path / "nowhere" / "c.csv")),
    ]
    assert contents(tmp_path) == {"a.csv": "old\n"}


def test_a_failure_midway_leaves_nothing(tmp_path, monkeypatch):
    """Neither an error of the disk nor one of ours leaves a partial file."""
    (tmp_path / "a.csv").write_text("old\n")

    def rows():
        yield (1, 2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_all([output(tmp_path / "a.csv"), output(tmp_path / "b.csv", rows(), "b")])
    assert contents(tmp_path) == {"a.csv": "old\n"}

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("upheld.facts.files.replacement.shutil.copymode", full)
    (problem,) = failure_of([output(tmp_path / "a.csv")])
    assert problem.slug == "unwritable-file" and "No space left" in problem.message
    assert contents(tmp_path) == {"a.csv": "old\n"}


def test_replacing_that_fails(tmp_path, monkeypatch):
    def refuse(*args):
        raise PermissionError

    monkeypatch.setattr(os, "replace", refuse)
    assert failure_of([output(tmp_path / "a.csv")])[0].slug == "no-permission"
    assert contents(tmp_path) == {}


def test_write_protected_files_stay(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("old\n")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    (problem,) = failure_of([output(tmp_path / "a.csv")])
    assert problem.slug == "no-permission" and "write" in problem.message
    assert contents(tmp_path) == {"a.csv": "old\n"}


def test_devices_are_not_replaced():
    assert failure_of([output(Path("/dev/null"))])[0].slug == "not-a-file"
    assert Path("/dev/null").is_char_device()


def test_two_relations_in_one_file(tmp_path):
    problems = failure_of([output(tmp_path / "a.csv", relation="p"), output(tmp_path / "a.csv", relation="q")])
    assert problems[0].slug == "same-file" and "`q` and `p`" in problems[0].message
    assert contents(tmp_path) == {}
    write_all([output(tmp_path / "a.csv"), output(tmp_path / "a.csv")])
    assert contents(tmp_path) == {"a.csv": "1\t2\n"}


def test_links_and_permissions_stay(tmp_path):
    """A link keeps pointing at the file, which keeps its permissions; a new file has the usual ones."""
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    real.write_text("old\n")
    real.chmod(0o640)
    link.symlink_to(real)
    write_all([output(link), output(tmp_path / "new.csv", relation="new")])
    assert link.is_symlink() and real.read_text() == "1\t2\n"
    assert real.stat().st_mode & 0o777 == 0o640
    usual = tmp_path / "usual"
    usual.touch()
    assert (tmp_path / "new.csv").stat().st_mode == usual.stat().st_mode
