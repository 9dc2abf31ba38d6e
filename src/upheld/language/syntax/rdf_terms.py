"""RDF terms in programs: IRIs in full and with prefixes, literals, blank nodes. They become N-Triples texts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NoReturn

from upheld.base.errors import Problem, nearest, quote
from upheld.base.source import Source, Span
from upheld.language.ast import Call, Constant, Term
from upheld.language.syntax.lexer import NUMBER_LENGTH, Scanner, Token, string_value
from upheld.language.syntax.parser import PREFIX, Draft, Parser
from upheld.language.terms import ntriples
from upheld.language.terms.iris import resolve
from upheld.language.terms.ntriples import NotATerm
from upheld.language.terms.terms import literal
from upheld.language.terms.vocabulary import PREFIXES, XSD
from upheld.language.types.primitive import ESCAPES

if TYPE_CHECKING:
    pass

_IRI_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})?")
_NOT_IN_IRIS = re.compile(r'[\x00-\x20<>"{}|^`\ud800-\udfff]')
_LOCAL_ESCAPE = re.compile(r"\\(.)")


class TermParser(Parser):
    """Reads RDF terms, and returns their N-Triples texts with canonical escapes."""

    def __init__(self, source: Source, scanner: Scanner, draft: Draft):
        super().__init__(source, scanner, draft)
        self.prefixes = PREFIXES | draft.prefixes
        #: The IRI that relative ones are resolved by, if the file has stated one.
        self.base: str | None = None

    def negative(self) -> Term:
        """Read a minus sign and its operand. Minus before a number makes a negative number."""
        start = self.advance().start
        if self.token.kind == "number":
            return Constant(self.literal("-"), "term", self.since(start))
        operand = self.term(self.expression(PREFIX))
        return Call("-", (operand,), self.since(start))

    def literal(self, sign: str) -> str:
        """Read a literal or a blank node, and return its N-Triples text."""
        token = self.advance()
        text = token.text
        if token.kind == "blank":
            return self.checked(text, token)
        if token.kind == "number":
            if len(text) > NUMBER_LENGTH:
                message = f"a number of {len(text):,} characters"
                self.refuse("number-out-of-range", message, self.since(token.start))
            kind = "integer" if text.isdigit() else "double" if "e" in text.lower() else "decimal"
            return f'"{sign}{text}"^^<{XSD}{kind}>'
        quoted = literal(string_value(self.source, token, ESCAPES, code_points=True))
        if self.token.kind == "tag":
            return self.checked(quoted + self.advance().text, token)
        return self.checked(f"{quoted}^^<{self.iri()}>", token) if self.accept("^^") else quoted

    def checked(self, text: str, token: Token) -> str:
        """Return the canonical text of a literal or a blank node that begins with a token."""
        try:
            return ntriples.term(text)
        except NotATerm as wrong:
            self.refuse("bad-term", f"{quote(text)} {wrong.reason}", self.since(token.start), hint=wrong.hint)

    def iri(self) -> str:
        """Read an IRI in full or with a prefix, and return it without its brackets."""
        if self.token.kind == "<":
            self.bad_iri()
        if self.token.kind not in ("iri", "prefixed"):
            self.fail("an IRI")
        token = self.advance()
        if token.kind == "iri":
            reference = self.full_iri(token)
            return self.absolute(reference if self.base is None else resolve(reference, self.base), token)
        prefix, _, local = token.text.partition(":")
        if prefix not in self.prefixes:
            span = Span(self.source, token.start, token.start + len(prefix) + 1)
            hint = nearest(prefix, self.prefixes) or f"declare it: `PREFIX {prefix}: <...>`"
            message = f"the prefix {quote(prefix + ':')} is not declared"
            self.draft.problems.append(Problem("undeclared-prefix", message, span, hint=hint))
            # Once told is enough.
            self.prefixes[prefix] = ""
        whole = self.prefixes[prefix] + _LOCAL_ESCAPE.sub(r"\1", local)
        return self.absolute(whole, token) if self.prefixes[prefix] else whole

    def absolute(self, iri: str, token: Token) -> str:
        try:
            return ntriples.iri(iri)
        except NotATerm as wrong:
            message = f"{quote(f'<{iri}>')} {wrong.reason}"
            self.refuse("bad-iri", message, Span(self.source, token.start, token.end), hint=wrong.hint)

    def full_iri(self, token: Token) -> str:
        text = token.text[1:-1]

        def character(found: re.Match[str]) -> str:
            code = int(found[1][1:], 16) if found[1] else -1
            if not 0 <= code <= 0x10FFFF or chr(code) == "\\" or _NOT_IN_IRIS.match(chr(code)):
                start = token.start + 1 + found.start()
                self.refuse_iri(f"the escape {quote(found[0])}", Span(self.source, start, start + len(found[0])))
            return chr(code)

        if not text and self.base is None:
            self.refuse("bad-iri", "an empty IRI", self.since(token.start))
        return _IRI_ESCAPE.sub(character, text) if "\\" in text else text

    def bad_iri(self) -> NoReturn:
        """Refuse the `<` that comes next, pointing at what keeps it from beginning an IRI."""
        found = _NOT_IN_IRIS.search(self.source.text, self.token.end)
        if found is None or found[0] in "\r\n" or ">" not in self.source.text[found.start() :]:
            self.refuse("bad-iri", "an IRI without its closing `>`", self.here())
        visible = found[0].isprintable() and found[0] != " "
        culprit = quote(found[0]) if visible else "a space" if found[0] == " " else f"U+{ord(found[0]):04X}"
        self.refuse_iri(culprit, Span(self.source, *found.span()))

    def refuse_iri(self, culprit: str, span: Span) -> NoReturn:
        note = 'spaces, control characters and < > " { } | ^ ` \\ do not occur in IRIs'
        self.refuse("bad-iri", f"an IRI with {culprit} in it", span, note, "percent-encode it, as in `%20`")
