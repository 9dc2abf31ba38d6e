"""Whatever text the parsers are given, only Upheld's own error comes out, and soon.

Each test looks at a number of texts: at one in five of them in `make test`. A failure prints the seed of its text.
"""

from __future__ import annotations

import gzip
import os
import random
import time
from collections.abc import Callable

import pytest

from tests.helpers.sizes import usually
from upheld.base.errors import UpheldError
from upheld.language.syntax.files import DIALECTS, read_query, read_text
from upheld.language.syntax.printer import to_text

#: What one text may take, in seconds of the processor for this thread.
PATIENCE = 5.0

TOKENS = """
    . , ; : :- ! ( ) [ ] { } = != < <= > >= + - * / % ^ | & && || ^^ @ $ # \\ ' " <: _ ? // /* */ \n \t \r \0 \ufeff
    band bor bxor bnot bshl bshr bshru land lor lxor lnot true false nil as count sum min max match contains autoinc
    .decl .type .input .output .printsize .pragma .plan .include .comp .init .functor .limitsize .number_type .bad
    inline eqrel choice-domain x y p(x) q(x,y) edge(1,2). p(x):-q(x). number symbol 0 1 -1 1.5 1e3 0x1F 0b1 1u 12x
    9223372036854775808 "a" "\\n" "\\q" "\\u12" "a
    ?x ?y :p ex:p rdf:type <http://e/> <http://e <> _:b a [?x,a,:C] :C[?x] :p[?x,?y] p(?x,?y) "x"@en "5"^^xsd:integer
    NOT EXISTS IN FILTER BIND AS AGGREGATE PREFIX @prefix BASE REGEX( STRLEN( CONCAT( CONTAINS( PREFIX\x20:\x20<a>
    \ud800 é 😀 \x7f
""".replace("\n    ", " ").split(" ")


def check(text: str, dialect: str) -> None:
    """Read a text as a program and as a query; what can be read prints to text that reads the same."""
    start = time.thread_time()
    problems = ()
    try:
        program = read_text(text, dialect)
    except UpheldError as error:
        problems = error.problems
    else:
        assert read_text(to_text(program), dialect) == program
    assert all(problem.span or problem.slug == "too-many-problems" for problem in problems)
    try:
        formula = read_query(text, dialect)
    except UpheldError:
        pass
    else:
        assert read_query(to_text(formula, dialect), dialect) == formula
    assert time.thread_time() - start < PATIENCE


def fuzz(make: Callable[[random.Random], str], texts: int) -> None:
    """Check this number of texts from `make`, a fifth of them in `make test`."""
    first = random.randrange(2**32) if not os.environ.get("CI") else 0
    for seed in range(first, first + usually(texts // 5, texts)):
        text = make(random.Random(seed))
        for dialect in DIALECTS:
            try:
                check(text, dialect)
            except Exception as error:
                pytest.fail(f"seed {seed}, dialect {dialect}: {type(error).__name__}: {error}\n{text[:2_000]!r}")


def test_random_bytes():
    """Bytes that are mostly no program at all."""

    def make(draw: random.Random) -> str:
        return draw.randbytes(draw.randrange(200)).decode("utf-8", "surrogateescape")

    fuzz(make, 5_000)


def test_random_tokens():
    """Pieces of both dialects in any order."""

    def make(draw: random.Random) -> str:
        pieces = draw.choices(TOKENS, k=draw.randrange(1, 30))
        return draw.choice(["", " ", " ", "\n"]).join(pieces)

    fuzz(make, 8_000)


def test_repeated_tokens():
    """One piece again and again, which is what makes parsers slow or deep."""

    def make(draw: random.Random) -> str:
        piece = "".join(draw.choices(TOKENS, k=draw.randrange(1, 4)))
        before, after = draw.choice(["", "p(", "p(x) :- ", ".decl p("]), draw.choice(["", ").", "."])
        return before + piece * draw.choice([10, 300, 2_000]) + after

    fuzz(make, 1_000)


def test_mutated_cases(cases):
    """Programs of others with some characters lost, doubled, moved or replaced."""
    texts = [path.read_text() for path in sorted(cases.glob("souffle/*/*/*.dl"))]
    texts += [path.read_text() for path in sorted(cases.glob("lubm/*.dlog"))]
    texts += [gzip.decompress(path.read_bytes()).decode() for path in sorted(cases.glob("update-streams/*.dlog.gz"))]
    assert texts

    def make(draw: random.Random) -> str:
        text = draw.choice(texts)
        at = draw.randrange(len(text))
        text = text[at : at + 3_000]
        for _ in range(draw.randrange(1, 6)):
            i, j = sorted(draw.choices(range(len(text) + 1), k=2))
            j = min(j, i + draw.choice([0, 1, 1, 10, 100]))
            change = draw.choice(["", text[i:j] * 2, draw.choice(TOKENS), draw.choice(TOKENS), text[i:j][::-1]])
            text = text[:i] + change + text[j:]
        return text

    fuzz(make, 2_000)
