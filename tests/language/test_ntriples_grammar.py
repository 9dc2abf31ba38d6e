"""One grammar of N-Triples: lines are read by the patterns that check single terms."""

from __future__ import annotations

import re

import pytest

from upheld.language.terms.ntriples import NotATerm, term
from upheld.language.terms.ntriples_grammar import PLAIN_TRIPLE, TRIPLE

#: Terms as files write them, and whether they are terms.
TERMS = {
    "<http://e/a>": True,
    r"<http://e/\u00E9>": True,
    "<a>": False,
    "<http://e/ >": False,
    '"a"': True,
    r'"a \" \t \u0041"': True,
    r'"\x"': False,
    '"a"@en-GB': True,
    '"a"@': False,
    '"1"^^<http://www.w3.org/2001/XMLSchema#integer>': True,
    '"1"^^<integer>': False,
    "_:b1": True,
    "_:b.1": True,
    "_:b.": False,
    "_:\u00e9\u00b7": True,
    "_:\u2070": True,  # a superscript, which N-Triples has among its letters
    "_:\u00aa": False,  # a letter of Unicode, which N-Triples does not have among its own
}


@pytest.mark.parametrize("text", TERMS)
def test_terms_and_lines_agree(text: str) -> None:
    """A text is accepted as a value if and only if it is accepted in a line of a file."""
    line = re.fullmatch(TRIPLE, f"<http://e/s> <http://e/p> {text} .")
    assert (line is not None) == TERMS[text]
    if line is not None:
        assert line.groups() == ("<http://e/s>", "<http://e/p>", text)
        term(text)
    else:
        with pytest.raises(NotATerm):
            term(text)


@pytest.mark.parametrize("text", TERMS)
def test_plain_lines_are_lines(text: str) -> None:
    """A line that is cut at its spaces is one of the grammar."""
    line = f"<http://e/s> <http://e/p> {text} ."
    assert not re.fullmatch(PLAIN_TRIPLE, line) or re.fullmatch(TRIPLE, line)
