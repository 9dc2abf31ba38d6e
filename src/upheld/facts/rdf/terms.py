"""RDF terms made in Python: the N-Triples text of an IRI, a literal or a blank node."""

from __future__ import annotations

from decimal import Decimal

from upheld.base.errors import FactsError, Problem, UsageError, quote
from upheld.language.terms import ntriples
from upheld.language.terms.ntriples import NotATerm
from upheld.language.terms.terms import XSD
from upheld.language.terms.terms import literal as literal_of


def iri(text: str) -> str:
    """Return the term of an IRI, in N-Triples syntax.

    Args:
        text: The IRI, without brackets.

    >>> iri("https://example.org/acme")
    '<https://example.org/acme>'
    """
    bare = text[1:-1] if text[:1] == "<" and text[-1:] == ">" else text
    try:
        return f"<{ntriples.iri(bare)}>"
    except NotATerm as wrong:
        raise _bad_term(text, wrong) from None


def literal(
    value: str | bool | int | float | Decimal, *, datatype: str | None = None, language: str | None = None
) -> str:
    """Return the term of a literal, in N-Triples syntax.

    Args:
        value: A string, a number, or a Boolean.
        datatype: IRI of the datatype of a string.
        language: Language tag of a string.

    >>> literal("chat", language="fr"), literal(5)
    ('"chat"@fr', '"5"^^<http://www.w3.org/2001/XMLSchema#integer>')
    >>> literal("2026-01-31", datatype="http://www.w3.org/2001/XMLSchema#date")
    '"2026-01-31"^^<http://www.w3.org/2001/XMLSchema#date>'
    """
    if not isinstance(value, str):
        if datatype is not None or language is not None:
            message = f"the literal {quote(value)} is a number, whose datatype is fixed"
            raise UsageError(Problem("bad-argument", message, hint="pass the value as text"))
        return f'"{str(value).lower()}"^^<{XSD}boolean>' if isinstance(value, bool) else literal_of(value)
    if datatype is not None and language is not None:
        raise UsageError(Problem("bad-argument", "a literal has a datatype or a language, not both"))
    suffix = f"^^{iri(datatype)}" if datatype is not None else f"@{language}" if language is not None else ""
    try:
        return ntriples.term(literal_of(value) + suffix)
    except NotATerm as wrong:
        raise _bad_term(value, wrong) from None


def blank(label: str) -> str:
    """Return the term of a blank node.

    Args:
        label: Label of the node, without `_:`.

    >>> blank("b1")
    '_:b1'
    """
    try:
        return ntriples.term(f"_:{label}")
    except NotATerm as wrong:
        raise _bad_term(label, wrong) from None


def _bad_term(text: str, wrong: NotATerm) -> FactsError:
    return FactsError(Problem("bad-term", f"{quote(text)} {wrong.reason}", hint=wrong.hint))
