"""Every syntax error: its slug, its exact place, and words that help."""

from __future__ import annotations

import inspect
import os
import sys

import pytest

from upheld.base.errors import ProgramError, UsageError
from upheld.language.syntax.files import read_file, read_query, read_text
from upheld.language.syntax.parser import PROBLEM_LIMIT

MANY = 100_000


def problems(text, dialect="dl", **options):
    with pytest.raises(ProgramError) as caught:
        read_text(text, dialect, **options)
    return caught.value.problems


def check(dialect, text, slug, place, *words):
    """Check that a text has one problem, of this slug, at this place, told in these words."""
    (problem,) = problems(text, dialect, name="p")
    assert (problem.slug, str(problem.span)) == (slug, f"p:{place}")
    for word in words:
        assert word in str(problem)


@pytest.mark.parametrize(
    "text, slug, place, words",
    [
        # what clauses consist of
        ("p(x) :- q(x), r(y", "missing-bracket", "1:18", ["`)` is missing", "opened here", "p:1:16"]),
        ("p(x :- q(x).", "missing-bracket", "1:4", ["`)` is missing", "p:1:2"]),
        ("p(1,2.", "missing-bracket", "1:6", ["`)` is missing"]),
        ("p(x) :- (q(x); r(x).", "missing-bracket", "1:20", ["opened here", "p:1:9"]),
        ("p(1)).", "missing-bracket", "1:5", ["`)` closes no bracket"]),
        ("p(1\np(2).", "missing-bracket", "1:4", ["opened here"]),
        ("p(x) :- q(x)\nr(1).", "missing-full-stop", "1:13", ["a `.` is missing", "or a `,` if the rule goes on"]),
        ("p(1)", "missing-full-stop", "1:5", ["end with `.`"]),
        ("p(1)  // p\n\n.decl q(x:number)", "missing-full-stop", "1:5", ["end with `.`"]),
        (
            "p(x) :- q(x)\n  r(x), x > 1.",
            "syntax",
            "2:3",
            ["found the name `r`, expected an operator, `,`, `;` or `.`"],
        ),
        ("p(x) :- q(x),\np(x) :- r(x).", "syntax", "2:6", ["found `:-`", "does the preceding rule end with `.`?"]),
        ("p(x) :- .", "empty-body", "1:9", ["a fact is written without `:-`"]),
        ("p(1) p(2).", "syntax", "1:6", ["found the name `p`, expected `:-`, `,` or `.`"]),
        ("p(1 2).", "syntax", "1:5", ["found the number `2`, expected `,` or `)`"]),
        ("p(,1).", "syntax", "1:3", ["found `,`, expected a term"]),
        ("p(x) :- q(x),, r(x).", "syntax", "1:14", ["found `,`, expected an atom or a comparison"]),
        ("p(x) :- q.", "syntax", "1:9", ["found the term `q`", "is written `q()`"]),
        ("p(x) :- q(x), x + 1.", "syntax", "1:15", ["found the term `x + 1`, expected an atom or a comparison"]),
        ("p(x) :- x < y < z.", "syntax", "1:9", ["found a formula, expected a term"]),
        ("p(x = 1).", "syntax", "1:5", ["found `=`, expected `,` or `)`"]),
        ("p((x = 1)).", "syntax", "1:4", ["found a formula, expected a term"]),
        ("p(!x).", "syntax", "1:3", ["found `!`, expected a term"]),
        ("p(x) :- band.", "syntax", "1:9", ["found `band`"]),
        ("match(x, y) :- q(x, y).", "syntax", "1:1", ["found the name `match`, expected the name of a relation"]),
        ("_(1).", "syntax", "1:1", ["expected the name of a relation"]),
        ("*", "syntax", "1:1", ["found `*`, expected a fact, a rule or a directive"]),
        ("p(é).", "syntax", "1:3", ["found `é`, expected a term"]),
        ("p(x) :- q(x) && r(x).", "syntax", "1:14", ["found `&`"]),
        # strings, numbers, names
        ('p("a).\nq(1).', "unterminated-string", "1:3", ["without its closing quote"]),
        ('p(1).\nq("a\n").', "unterminated-string", "2:3", ["a string ends on its line"]),
        ("p(1). /* q(1).", "unterminated-comment", "1:7", ["close it with `*/`"]),
        ("p(x) :- /* q(x).", "unterminated-comment", "1:9", ["`*/`"]),
        (r'p("a\qb").', "bad-escape", "1:5", [r"`\q`", r"\n", "for a backslash"]),
        (r'p("\u00e9").', "bad-escape", "1:4", [r"`\u`"]),
        ('p("a\0b").', "nul-character", "1:5", ["NUL"]),
        ("p(\0).", "nul-character", "1:3", ["NUL"]),
        ('p("a\ud800").', "lone-surrogate", "1:5", ["U+D800"]),
        ("p(\udfff).", "lone-surrogate", "1:3", ["U+DFFF"]),
        ("p(12ab).", "bad-number", "1:3", ["`12ab` is not a number"]),
        ("p(0x).", "bad-number", "1:3", ["`0x`"]),
        ("p(1.5u).", "bad-number", "1:3", ["only integers are unsigned"]),
        (
            "p(9223372036854775808).",
            "number-out-of-range",
            "1:3",
            ["9223372036854775808u", "9 223 372 036 854 775 807"],
        ),
        ("p(-9223372036854775809).", "number-out-of-range", "1:3", ["out of range"]),
        ("p(-9223372036854775808 ^ 2).", "number-out-of-range", "1:4", ["out of range"]),
        ("p(18446744073709551616u).", "number-out-of-range", "1:3", ["an unsigned"]),
        ("p(0xFFFFFFFFFFFFFFFFF).", "number-out-of-range", "1:3", ["out of range"]),
        ("p(1e400).", "number-out-of-range", "1:3", ["too large for a float"]),
        (f"p({'9' * 10_000}).", "number-out-of-range", "1:3", ["10,000 characters"]),
        (f"p({'9' * 1_000_000}).", "number-out-of-range", "1:3", ["1,000,000 characters"]),
        (f"p(0.{'9' * 1_000_000}).", "number-out-of-range", "1:3", ["1,000,002 characters"]),
        (f"{'p' * 1_000_000}(1).", "name-too-long", "1:1", ["at most 1,000 characters", "(1000000 characters)"]),
        # depth
        (f"p({'(' * MANY}1{')' * MANY}).", "nested-too-deep", "1:203", ["at most 200 deep"]),
        (f"p(x) :- {'(' * MANY}q(x){')' * MANY}.", "nested-too-deep", "1:209", ["at most 200 deep"]),
        (f"p(x) :- {'!' * MANY}q(x).", "nested-too-deep", "1:209", ["split the rule"]),
        (f"p({'-' * MANY}1).", "nested-too-deep", "1:203", ["split the rule"]),
        (f"p({'f(' * MANY}1).", "nested-too-deep", "1:403", ["split the rule"]),
        (f"p({'1+' * MANY}1).", "nested-too-deep", "1:404", ["split the rule"]),
        (f"p({'1^' * MANY}1).", "nested-too-deep", "1:403", ["split the rule"]),
        (f"p(((1{'+1' * 150}){'+1' * 100})).", "nested-too-deep", "1:107", ["split the rule"]),
        # directives
        (".dec p(x:number)", "unknown-directive", "1:1", ["there is no directive `.dec`", "did you mean `.decl`?"]),
        (" .bad", "unknown-directive", "1:2", ["`.bad`"]),
        (".decl p(x)", "syntax", "1:10", ["found `)`, expected `:`"]),
        (".decl p(x:number y:number)", "syntax", "1:18", ["expected `,` or `)`"]),
        (".decl p(x:number,)", "syntax", "1:18", ["expected the name of an attribute"]),
        (".decl p(x:number\nq(1).", "missing-bracket", "1:17", ["opened here"]),
        (".decl p(x:number) input", "unknown-qualifier", "1:19", ["write `.input p` on a line of its own"]),
        (".decl p(x:number) inlin", "unknown-qualifier", "1:19", ["did you mean `inline`?"]),
        (".type", "syntax", "1:6", ["found the end of the text, expected the name of a type"]),
        (".input p(a)", "syntax", "1:11", ["expected `=`"]),
        (".input p(a=(b))", "syntax", "1:12", ["expected the value of an option"]),
        (".pragma 1", "syntax", "1:9", ["expected a string"]),
        (".plan x", "syntax", "1:7", ["expected the number of a plan"]),
        ('.include "nowhere.dl"', "missing-file", "1:10", ["there is no file"]),
        (".include nowhere", "syntax", "1:10", ["expected a string"]),
        # what is refused by name
        ("p(c) :- c = count x : { q(x) }.", "aggregate-target", "1:13", ["`count` has a target"]),
        ("p(c) :- c = sum : { q(_) }.", "aggregate-target", "1:13", ["`sum` has no target"]),
        ("p(c) :- c = max(x, y) : q(x, y).", "syntax", "1:23", ["expected"]),
        ("p(c) :- c = count : { q(_) .", "missing-bracket", "1:27", ["`}` is missing"]),
        # records and algebraic data types
        ("p([x, y) :- q(x, y).", "missing-bracket", "1:8", ["`]` is missing"]),
        (".type P = [x:number, y]\np(1).", "syntax", "1:23", ["expected `:`"]),
        (".type T = Leaf {} | Node", "syntax", "1:25", ["expected `{`"]),
        (".type T = Leaf {x:number | Node {}", "syntax", "1:26", ["expected `,` or `}`"]),
        # components
        (".comp C", "syntax", "1:8", ["found the end of the text, expected `<`, `:` or `{`"]),
        (".comp C : { }", "syntax", "1:11", ["expected the name of a component"]),
        (".comp C<T { }", "syntax", "1:11", ["expected `,` or `>`"]),
        (".comp C { p(1). ", "missing-bracket", "1:16", ["`}` is missing", "opened here"]),
        (".comp C { p(1) }", "missing-full-stop", "1:15", ["put a `.` here"]),
        (".comp C {\n p(x) :- q(x)\n}\nr(1).", "missing-full-stop", "2:14", ["put a `.` here"]),
        (".comp C {\n p(x) :- q(x\n}\nr(1).", "missing-bracket", "2:13", ["opened here"]),
        (".init c C", "syntax", "1:9", ["expected `=`"]),
        (".override p", "bad-override", "1:1", ["outside of a component"]),
        ("p(1). }", "syntax", "1:7", ["found `}`, expected a fact, a rule or a directive"]),
        (".functor f():number\np(1).", "unsupported-functor", "1:1", ["without arguments"]),
        (".functor f(x:number):number stateful", "unmaintainable", "1:29", ["`stateful`"]),
        (".functor f(x:number)\np(1).", "syntax", "2:1", ["expected `:`"]),
        ("p(@f).", "syntax", "1:5", ["expected `(`"]),
        ("p(x) <= p(y).", "syntax", "1:13", ["expected `:-`"]),
        ("p(x) <= x < y.", "syntax", "1:11", ["expected `(`"]),
        ("p(as(x, number)) :- q(x).", "unsupported-cast", "1:3", ["`as`"]),
        (".lattice l", "unsupported-lattice", "1:1", ["lattices"]),
        (".once", "unsupported-once", "1:1", ["`.once`"]),
        ("#define A 1\np(1).", "unsupported-preprocessor", "1:1", ["`#define A 1`", ".include"]),
        ("p(x) :- q(x),\n#ifdef A\n r(x).", "unsupported-preprocessor", "2:1", ["run the preprocessor first"]),
        ("p(autoinc()).", "unmaintainable", "1:3", ["`autoinc` cannot be maintained exactly"]),
        ("p($).", "unmaintainable", "1:3", ["cannot be maintained exactly"]),
        ("p(x) :- x = random().", "unmaintainable", "1:13", ["cannot be maintained exactly"]),
        ("p(x) :- now() = x.", "unmaintainable", "1:9", ["cannot be maintained exactly"]),
        ("p(x) :- x = @time().", "unmaintainable", "1:13", ["cannot be maintained exactly"]),
        (
            ".decl p(x:number) choice-domain x",
            "unmaintainable",
            "1:19",
            ["`choice-domain` cannot be maintained exactly"],
        ),
        (".limitsize p(n=1)", "unmaintainable", "1:1", ["`.limitsize` cannot be maintained exactly"]),
    ],
)
def test_dl(text, slug, place, words):
    check("dl", text, slug, place, *words)


@pytest.mark.parametrize(
    "text, slug, place, words",
    [
        ("[?x, a, rdf:C] :- p(?x)\n[?x, a, rdf:D] :- q(?x) .", "missing-full-stop", "1:24", ["a `.` is missing"]),
        ("@prefix p: <http://e/>\nq(?x) :- p:C[?x] .", "missing-full-stop", "1:23", ["a `.` is missing"]),
        ("p(?x :- q(?x) .", "missing-bracket", "1:5", ["`)` is missing"]),
        ("[?x, a, rdf:C :- q(?x) .", "missing-bracket", "1:14", ["`]` is missing", "opened here"]),
        ("p(?x) :- .", "empty-body", "1:10", ["a fact is written without `:-`"]),
        ("[?x, a] :- q(?x) .", "syntax", "1:7", ["found `]`, expected `,`"]),
        ("rdf:p[?x, ?y, ?z] :- q(?x) .", "syntax", "1:1", ["found 3 terms, expected one or two"]),
        ("rdf:p :- q(?x) .", "syntax", "1:1", ["expected an atom as the head"]),
        (". p(?x) .", "syntax", "1:1", ["found `.`, expected a fact, a rule or a prefix"]),
        ("p([?x, ?y, ?z]) .", "syntax", "1:3", ["found an atom, expected a term"]),
        ("p(?x) :- q(?x), ?x .", "syntax", "1:17", ["found the term `?x`, expected an atom or a comparison"]),
        ("p(?x) :- NOT EXISTS IN (q(?x)) .", "syntax", "1:21", ["found `IN`, expected a variable"]),
        ("p(?x) :- BIND(?y ?x) .", "syntax", "1:18", ["expected an operator or `AS`"]),
        ("PREFIX p <http://e/>\nq(?x) :- r(?x) .", "syntax", "1:8", ["expected a prefix such as `ex:`"]),
        ("PREFIX p: 3", "syntax", "1:11", ["expected an IRI"]),
        ("p(X, alice) .", "bare-name", "1:6", ["write `?alice` for a variable", '`"alice"`']),
        ("p(?x) :- ex:C[?x], ex:D[?x] .", "undeclared-prefix", "1:10", ["`ex:`", "PREFIX ex: <...>"]),
        ("p(?x) :- rdfz:C[?x] .", "undeclared-prefix", "1:10", ["did you mean `rdf"]),
        ("p(<http://a b>) .", "bad-iri", "1:12", ["a space", "`%20`"]),
        ('p(<http://a"b>) .', "bad-iri", "1:12", ['`"`']),
        ("p(<http://a{b>) .", "bad-iri", "1:12", ["`{`"]),
        ("p(<http://a<b>) .", "bad-iri", "1:12", ["`<`"]),
        ("p(<http://a\x01b>) .", "bad-iri", "1:12", ["U+0001"]),
        ("p(<http://a\ud800b>) .", "bad-iri", "1:12", ["U+D800"]),
        (r"p(<http://a\u00zz>) .", "bad-iri", "1:12", ["the escape"]),
        (r"p(<http://a\u0020>) .", "bad-iri", "1:12", [r"`\u0020`"]),
        ("p(<http://a\n) .", "bad-iri", "1:3", ["without its closing `>`"]),
        ("PREFIX p: <a b>\np(?x) :- q(?x) .", "bad-iri", "1:13", ["a space"]),
        ("p(<>) .", "bad-iri", "1:3", ["empty"]),
        ('p("a) .', "unterminated-string", "1:3", ["closing quote"]),
        (r'p("\q") .', "bad-escape", "1:4", [r"\uXXXX"]),
        (r'p("\u12") .', "bad-escape", "1:4", [r"`\u`"]),
        (r'p("\U00110000") .', "bad-escape", "1:4", [r"`\U00110000`"]),
        (r'p("\ud800") .', "lone-surrogate", "1:4", ["U+D800"]),
        (r'p("\u0000") .', "nul-character", "1:4", ["NUL"]),
        ("p(1x) .", "bad-number", "1:3", ["`1x` is not a number"]),
        (f"p({'9' * 10_000}) .", "number-out-of-range", "1:3", ["10,000 characters"]),
        (f"p(?{'x' * 1_000_000}) .", "name-too-long", "1:3", ["at most 1,000 characters"]),
        (f"p(?x) :- {'(' * MANY}q(?x){')' * MANY} .", "nested-too-deep", "1:210", ["at most 200 deep"]),
        (f"p(?x) :- {'NOT ' * MANY}q(?x) .", "nested-too-deep", "1:810", ["at most 200 deep"]),
        (f"p({'1 + ' * MANY}1) .", "nested-too-deep", "1:805", ["at most 200 deep"]),
        ("p(?x) :- q(?x), FILTER(FOO(?x)) .", "unknown-functor", "1:24", ["no function `FOO`", "REGEX"]),
        ("p(?x) :- q(?x), FILTER(contians(?x, ?x)) .", "unknown-functor", "1:24", ["did you mean `CONTAINS`?"]),
        ("p(?x) :- q(?x), BIND(NOW() AS ?y) .", "unsupported-function", "1:22", ["differs from call to call"]),
        ("p(?x) :- q(?x), BIND(BNODE() AS ?y) .", "unsupported-function", "1:22", ["`SKOLEM(...)`"]),
        ("p(?x) :- q(?x), RAND(?x) .", "unsupported-function", "1:17", ["pass the number as a fact"]),
        ("p(?x) :- q(?x), BIND(UUID() AS ?y) .", "unsupported-function", "1:22", ["`SKOLEM(...)`"]),
        ("p(?x) :- q(?x), FILTER(BOUND(1)) .", "syntax", "1:24", ["`BOUND` takes a variable"]),
        ("p(?x) :- q(?x), FILTER(?x IN 1) .", "syntax", "1:30", ["expected `(`"]),
        ("p(?x) :- q(?x) NOT q(?x) .", "syntax", "1:16", ["found `NOT`"]),
        ("p(?x) :- q(?x), SKOLEM(?x) .", "wrong-argument-count", "1:17", ["takes 2 or more arguments, not 1"]),
        ("p(?x) :- q(?x), BIND(SQRT(?x) AS ?y) .", "unsupported-function", "1:22", ["`SQRT` is not supported"]),
        ("p(?x) :- q(?x), FILTER(REGEX(?x)) .", "wrong-argument-count", "1:24", ["takes 2 to 3 arguments, not 1"]),
        ("p(?x) :- q(?x), BIND(STRLEN() AS ?y) .", "wrong-argument-count", "1:22", ["takes 1 argument, not 0"]),
        ("p(?x) :- q(?x), BIND(IF(?x) AS ?y) .", "wrong-argument-count", "1:22", ["takes 3 arguments, not 1"]),
        ("p(?x) :- AGGREGATE(q(?x) ON ?x BIND MEDIAN(?x) AS ?y) .", "unsupported-aggregate", "1:37", ["SUM, AVG"]),
        ("p(?x) :- AGGREGATE(q(?x) ON ?x BIND SUM(*) AS ?y) .", "syntax", "1:41", ["a term"]),
        ("p(?x) :- AGGREGATE(q(?x) ON ?x BIND SUM(?x, ?x) AS ?y) .", "wrong-argument-count", "1:37", ["not 2"]),
        ("p(?x) :- AGGREGATE(q(?x) ON ?x) .", "syntax", "1:31", ["`BIND`"]),
        ("p(?x) :- AGGREGATE(q(?x) ?x BIND SUM(?x) AS ?y) .", "syntax", "1:26", ["`ON`"]),
        ("p(?x) :- AGGREGATE(q(?x) ON ?x BIND COUNT(?x)) .", "syntax", "1:46", ["`AS`"]),
        ("p(?x) :- q(?x, ?y), NOT EXISTS ?y IN (r(?y)) .", "local-variable", "1:32", ["another name"]),
        ("BASE <e/>\np(1) .", "bad-iri", "1:6", ["is not an absolute IRI"]),
        ("BASE p\np(1) .", "syntax", "1:6", ["an IRI in `<` and `>`"]),
        ("p(?x) :- VALUES (?x ?y) { (1) } .", "syntax", "1:27", ["found 1 term, expected 2"]),
        ("p(?x) :- VALUES ?x { UNDEF } .", "syntax", "1:22", ["a relation has no empty places"]),
        ("p(?x) :- VALUES ?x { ?y } .", "syntax", "1:22", ["a term without variables"]),
    ],
)
def test_dlog(text, slug, place, words):
    check("dlog", text, slug, place, *words)


def test_deep_in_the_stack_of_a_caller():
    """Where little of the stack is left, nesting that would do elsewhere is refused, and all else is read."""

    def at_depth(depth, action):
        return at_depth(depth - 1, action) if depth else action()

    def attempt():
        (problem,) = problems(f"p({'f(' * 150}1{')' * 150}).\np(1).")
        with pytest.raises(ProgramError, match="nested-too-deep"):
            read_query(f"p({'f(' * 150}1{')' * 150})")
        return problem.slug

    depth = len(inspect.stack())
    assert at_depth(sys.getrecursionlimit() - depth - 200, attempt) == "nested-too-deep"


# -- several problems -------------------------------------------------------------------------------------------------


def test_all_at_once():
    """Each faulty statement gives one problem, and those between them none."""
    text = """.decl p(x number)
p(1, .
q(x) :- p(x), r("a).
ok(1.5, "a.b"). // no . here
.input p(a)
p(x) :- x = = 1, p([x]).
#define X
p(1)
p(x) :- c.d(x), e(x).
.comp C { p(1. }
ok(x) :- p(x), (r(x); s(x)
"""
    found = [(problem.slug, problem.span.line) for problem in problems(text)]
    assert found == [
        ("syntax", 1),
        ("syntax", 2),
        ("unterminated-string", 3),
        ("syntax", 5),
        ("syntax", 6),
        ("unsupported-preprocessor", 7),
        ("missing-full-stop", 8),
        ("missing-bracket", 10),
        ("missing-bracket", 11),
    ]


def test_all_at_once_in_rdf():
    text = """PREFIX : http://e/
:p[?x, ?y] :- q(?x, ?y .
:p[?x, <a.b c>] .
:ok[?x] :- q(:a.b, 1.5, "x. y", <http://a.b/c>) . % no . here
:p[?x] :- q(?x) r(?x) .
PREFIX e: <http://e/>
e:p[?x] :- e:q[?x]
"""
    found = [(problem.slug, problem.span.line) for problem in problems(text, "dlog")]
    assert found == [("syntax", 1), ("missing-bracket", 2), ("bad-iri", 3), ("syntax", 5), ("missing-full-stop", 7)]


def test_too_many():
    """Beyond a limit, problems are no longer shown, and that is said."""
    assert len(problems("p(.\n" * PROBLEM_LIMIT)) == PROBLEM_LIMIT
    found = problems("p(.\n" * MANY)
    assert len(found) == PROBLEM_LIMIT + 1
    assert found[-1].slug == "too-many-problems"
    assert "the first 20 are shown" in str(found[-1])


def test_problems_of_included_files(tmp_path):
    """They come with the others, each in its own file."""
    (tmp_path / "part.dl").write_text("p(1).\nq(.\n")
    found = problems('r(.\n.include "part.dl"\ns(.', base=tmp_path, name="main.dl")
    assert [str(problem.span) for problem in found] == ["main.dl:1:3", f"{tmp_path / 'part.dl'}:2:3", "main.dl:3:3"]


# -- queries ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, dialect, slug, place",
    [
        ("", "dl", "empty-body", "1:1"),
        (" .", "dl", "empty-body", "1:2"),
        ("p(x). q(x).", "dl", "syntax", "1:7"),
        ("p(x) :- q(x)", "dl", "syntax", "1:6"),
        ("p(x", "dl", "missing-bracket", "1:4"),
        (f"p(((1{'+1' * 150}){'+1' * 100}))", "dl", "nested-too-deep", "1:107"),
        ("ex:p[?x]", "dlog", "undeclared-prefix", "1:1"),
        ("p(?y), NOT EXISTS ?y IN (q(?y))", "dlog", "local-variable", "1:19"),
    ],
)
def test_queries(text, dialect, slug, place):
    with pytest.raises(ProgramError) as caught:
        read_query(text, dialect)
    (problem,) = caught.value.problems
    assert (problem.slug, str(problem.span)) == (slug, f"<query>:{place}")


# -- files ------------------------------------------------------------------------------------------------------------


def file_problem(path):
    with pytest.raises(ProgramError) as caught:
        read_file(path)
    (problem,) = caught.value.problems
    return problem


def test_missing_file(tmp_path):
    problem = file_problem(tmp_path / "nowhere.dl")
    assert (problem.slug, problem.place) == ("missing-file", str(tmp_path / "nowhere.dl"))


def test_directory(tmp_path):
    (tmp_path / "folder.dl").mkdir()
    assert file_problem(tmp_path / "folder.dl").slug == "not-a-file"


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
def test_no_permission(tmp_path):
    path = tmp_path / "secret.dl"
    path.write_text("p(1).")
    path.chmod(0)
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)  # root may read every file, and nobody may not
    try:
        assert file_problem(path).slug == "no-permission"
    finally:
        os.seteuid(before)


def test_no_permission_told(tmp_path, monkeypatch):
    """Whoever runs this."""

    def denied(path):
        raise PermissionError(13, "Permission denied")

    path = tmp_path / "secret.dl"
    path.write_text("p(1).")
    monkeypatch.setattr("pathlib.Path.read_bytes", denied)
    problem = file_problem(path)
    assert problem.slug == "no-permission"
    assert "no permission to read" in str(problem)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_unreadable_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.dl")
    assert file_problem(tmp_path / "pipe.dl").slug == "unreadable-file"
    assert file_problem("a\0b.dl").slug == "unreadable-file"
    assert file_problem(f"{'x' * 5_000}.dl").slug == "unreadable-file"


def test_not_utf8(tmp_path):
    path = tmp_path / "latin.dl"
    path.write_bytes(b'p("a").\np("\xe9").')
    problem = file_problem(path)
    assert problem.slug == "not-utf8"
    assert "byte 0xE9 at offset 11, in line 2" in str(problem)


def test_unknown_extension(tmp_path):
    problem = file_problem(tmp_path / "program.dlg")
    assert problem.slug == "unknown-extension"
    assert "`*.dl` (Soufflé) or `*.dlog` (RDFox)" in str(problem)


def test_unknown_dialect():
    with pytest.raises(UsageError, match="the dialects are `dl` and `dlog`") as caught:
        read_text("p(1).", "prolog")
    assert caught.value.slugs == ("unknown-dialect",)


def test_include_cycle(tmp_path):
    (tmp_path / "a.dl").write_text('.include "b.dl"')
    (tmp_path / "b.dl").write_text('p(1).\n.include "./a.dl"')
    problem = file_problem(tmp_path / "a.dl")
    assert (problem.slug, str(problem.span)) == ("include-cycle", f"{tmp_path / 'b.dl'}:2:10")


def test_include_directory(tmp_path):
    (problem,) = problems('.include "."', base=tmp_path)
    assert (problem.slug, problem.span.column) == ("not-a-file", 10)


def test_too_many_includes(tmp_path):
    """Neither a long chain of files nor one that doubles at every step takes long."""
    for i in range(200):
        (tmp_path / f"{i}.dl").write_text(f'.include "{i + 1}.dl"')
    assert file_problem(tmp_path / "0.dl").slug == "too-many-includes"
    for i in range(25):
        (tmp_path / f"{i}.dl").write_text(f'.include "{i + 1}.dl"\n.include "{i + 1}.dl"')
    (tmp_path / "25.dl").write_text("")
    with pytest.raises(ProgramError) as caught:
        read_file(tmp_path / "0.dl")
    assert set(caught.value.slugs) == {"too-many-includes"}
