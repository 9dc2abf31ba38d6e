"""RDF terms as N-Triples writes them: which texts are terms, and the one canonical text of each.

IRIs are absolute and follow RFC 3987, language tags are well-formed by BCP 47, and labels of blank nodes follow
N-Triples, so that every parser of RDF reads what is accepted here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from ipaddress import AddressValueError, IPv6Address

from upheld.base.errors import quote
from upheld.language.terms.ntriples_grammar import BLANK_NODE, SHORT_ESCAPES, literal_parts
from upheld.language.terms.terms import RDF, XSD, escape, literal

# -- IRIs -------------------------------------------------------------------------------------------------------------

_UCS = "\xa0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef" + "".join(
    f"{chr((plane << 16) + (0x1000 if plane == 14 else 0))}-{chr((plane << 16) + 0xFFFD)}" for plane in range(1, 15)
)
_PRIVATE = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
_NAME = rf"A-Za-z0-9\-._~!$&'()*+,;={_UCS}"
_PERCENT = "%[0-9A-Fa-f]{2}"


def _characters(more: str) -> str:
    return f"(?:[{_NAME}{more}]++|{_PERCENT})*+"


#: An address in brackets as the host is rare: `_is_address` looks at it.
_HOST = rf"(?:\[(?P<address>[0-9A-Za-z\-._~!$&'()*+,;=:]*+)\]|{_characters('')})"
_AUTHORITY = rf"//(?:{_characters(':')}@)?{_HOST}(?::[0-9]*+)?(?=[/?#]|\Z)"
_PATH = rf"(?:{_AUTHORITY}|(?!//)){_characters(':@/')}"
_ABSOLUTE = rf"[A-Za-z][A-Za-z0-9+\-.]*+:{_PATH}(?:\?{_characters(f':@/?{_PRIVATE}')})?(?:#{_characters(':@/?')})?"
_FUTURE_ADDRESS = re.compile(r"[vV][0-9A-Fa-f]+\.[A-Za-z0-9\-._~!$&'()*+,;=:]+")

#: Fast path for nearly every IRI: a subset of the above without an authority to check.
_PLAIN_IRI = rf"<[A-Za-z][A-Za-z0-9+\-.]*+:(?://[A-Za-z0-9\-.]*+(?=[/#>])|(?!//))[A-Za-z0-9\-._~:@!$&'()*+,;={_UCS}/]*+"
_PLAIN_IRI += rf"(?:#[A-Za-z0-9\-._~:@!$&'()*+,;={_UCS}/]*+)?+>"

# -- literals --------------------------------------------------------------------------------------------------------

_IRREGULAR = (
    "en-gb-oed|sgn-(?:be-fr|be-nl|ch-de)|i-(?:ami|bnn|default|enochian|hak|klingon|lux|mingo|navajo|pwn|ta[oy]|tsu)"
)
_LANGUAGE = (
    r"(?:[a-z]{2,3}(?:-[a-z]{3}){0,3}|[a-z]{4,8})(?:-[a-z]{4})?(?:-(?:[a-z]{2}|[0-9]{3}))?"
    r"(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*(?:-[a-wyz0-9](?:-[a-z0-9]{2,8})+)*(?:-x(?:-[a-z0-9]{1,8})+)?"
)
#: Tags in lower case, which is how they are compared. Of RDF 1.2 they may have a direction.
_TAG = rf"(?:{_LANGUAGE}|x(?:-[a-z0-9]{{1,8}})+|{_IRREGULAR})(?:--(?:ltr|rtl))?"

#: Datatypes that a text implies: strings, and strings in a language.
_IMPLIED = {f"{XSD}string", f"{RDF}langString", f"{RDF}dirLangString"}
_ESCAPED = r'\\[tbnrf"\\]|\\u00(?:0[0-7BEF]|1[0-9A-F]|7F)|\\uFFF[EF]'
_UNESCAPED = r'[^"\\\x00-\x1f\x7f\ufffe\uffff\ud800-\udfff]*+'
_CANONICAL_STRING = rf'"{_UNESCAPED}(?:(?:{_ESCAPED}){_UNESCAPED})*+"'
_NOT_IMPLIED = "".join(f"(?!<{re.escape(iri)}>)" for iri in sorted(_IMPLIED))

#: Terms that are their own canonical text: all but a few, whose IRIs must be looked at closely. Java takes it too.
CANONICAL = rf"{_PLAIN_IRI}|{_CANONICAL_STRING}(?:\^\^{_NOT_IMPLIED}{_PLAIN_IRI}|@{_TAG})?|{BLANK_NODE}"
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.?))", re.DOTALL)
_PREFIXED = re.compile(r"(?!https?:|urn:|mailto:|file:|tag:)(?:[A-Za-z][\w\-]*)?:(?!//)[^\s<>\"]*")


@cache
def _fullmatch(pattern: str) -> Callable[[str], re.Match[str] | None]:
    """Return how to match a pattern, which is compiled at its first use: most programs have no terms."""
    return re.compile(pattern).fullmatch


class NotATerm(Exception):
    """A value that is not an RDF term: why, and what to write instead."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.reason, self.hint = reason, hint


def are_canonical(texts: Iterable[str]) -> bool:
    """Return whether all texts are canonical terms of a plain form. If not, `term` checks each.

    >>> are_canonical(["<http://e/a>", '"a"@en', "_:b"]), are_canonical(["a"])
    (True, False)
    """
    return all(map(_fullmatch(CANONICAL), texts))


def term(text: str) -> str:
    """Return the canonical text of a term; raise `NotATerm` if the text is none.

    >>> term('"caf\\\\u00e9"^^<http://www.w3.org/2001/XMLSchema#string>')
    '"café"'
    """
    if _fullmatch(CANONICAL)(text):
        return text
    if text[:1] == "<" and text[-1:] == ">":
        return f"<{iri(_unescaped(text[1:-1], {}))}>"
    if text[:1] == '"':
        return _literal(text)
    if text[:2] == "_:":
        raise NotATerm("is not a blank node", "labels are letters and digits, as in `_:b1`")
    raise NotATerm("is not an RDF term", _meant(text))


def term_of(value: object) -> str | None:
    """Return the canonical text of a text, a number or a term of pyoxigraph; None if the value is none of these.

    Raises `NotATerm` for a text that is not a term.
    """
    if isinstance(value, str):
        return term(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return literal(value)
    return term(str(value)) if is_pyoxigraph_term(value) else None


def is_pyoxigraph_term(value: object) -> bool:
    """Return whether this is a `NamedNode`, `Literal` or `BlankNode` of pyoxigraph."""
    kind = type(value)
    return kind.__module__ == "pyoxigraph" and kind.__name__ in ("NamedNode", "Literal", "BlankNode")


def is_graph(value: object) -> bool:
    """Return whether this is a `Store` or `Dataset` of pyoxigraph, or a graph of rdflib."""
    names = [(kind.__module__, kind.__name__) for kind in type(value).__mro__]
    return any(
        name in names for name in (("pyoxigraph", "Store"), ("pyoxigraph", "Dataset"), ("rdflib.graph", "Graph"))
    )


def is_statement(terms: Sequence[str]) -> bool:
    """Return whether RDF has a triple or quad of these terms: no literal is a subject, and a property is an IRI."""
    return terms[0][0] != '"' and terms[1][0] == "<" and (len(terms) < 4 or terms[3][0] != '"')


def iri(text: str) -> str:
    """Return an IRI without brackets if it is a valid one; raise `NotATerm` if not."""
    match = _fullmatch(_ABSOLUTE)(text)
    if match and (match["address"] is None or _is_address(match["address"])):
        return text
    if not re.match(r"[A-Za-z][A-Za-z0-9+\-.]*:", text):
        raise NotATerm("is not an absolute IRI", "begin it with a scheme, as in `<http://example.org/a>`")
    raise NotATerm("is not a valid IRI", "percent-encode characters that IRIs do not allow, such as a space by `%20`")


def language_tag(text: str) -> str:
    """Return a language tag in lower case; raise `NotATerm` if it is not well-formed."""
    if _fullmatch(_TAG)(text.lower()):
        return text.lower()
    raise NotATerm(f"has the language tag {quote(text)}, which is not well-formed", "tags are such as `en` or `pt-br`")


def _literal(text: str) -> str:
    parts = literal_parts(text)
    if not parts:
        hint = 'write `\\\\n` for a line break, `\\\\"` for a quote; `upheld.rdf.literal` does so for any text'
        raise NotATerm("is not a literal", hint)
    inside, tag, datatype = parts.groups()
    quoted = f'"{escape(_unescaped(inside, SHORT_ESCAPES))}"'
    if tag:
        return f"{quoted}@{language_tag(tag)}"
    if datatype is None:
        return quoted
    name = iri(_unescaped(datatype, {}))
    if name in (f"{RDF}langString", f"{RDF}dirLangString"):
        raise NotATerm("has no language", 'write the language after it, as in `"chat"@fr`')
    return quoted if name == f"{XSD}string" else f"{quoted}^^<{name}>"


def _unescaped(text: str, short: dict[str, str]) -> str:
    """Return the characters that a text with escapes stands for."""

    def one(found: re.Match[str]) -> str:
        four, eight, sign = found.groups()
        code = int(four or eight, 16) if four or eight else -1
        if sign in short:
            return short[sign]
        if not 0 <= code <= 0x10FFFF or 0xD800 <= code < 0xE000:
            hint = "escape a character by its code, as in `\\\\u00E9`, or write it as it is"
            raise NotATerm(f"has the escape {quote(found[0])}, which is not a character", hint)
        return chr(code)

    if any("\ud800" <= character <= "\udfff" for character in text):
        raise NotATerm("has a lone surrogate", "remove it")
    return _ESCAPE.sub(one, text) if "\\" in text else text


def _is_address(text: str) -> bool:
    """Return whether this is an address as brackets hold it: of IPv6, or of a version to come."""
    if _FUTURE_ADDRESS.fullmatch(text):
        return True
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return True


def _meant(text: str) -> str:
    """Return how to write what a text was probably meant to be."""
    if text == "a":
        return f"write `<{RDF}type>`"
    if _PREFIXED.fullmatch(text):
        return "prefixes are known in programs and queries only; write the IRI in full, as in `<http://example.org/a>`"
    if _fullmatch(_ABSOLUTE)(text) and len(text) < 50:
        return f'write `<{text}>`, or `upheld.rdf.iri("{text}")`'
    return "an IRI is written in `<` and `>`, text in quotes; `upheld.rdf.iri` and `upheld.rdf.literal` write them"
