"""Texts as tokens. A scanner reads one token at any offset, so a parser looks ahead by scanning twice.

Scanning never fails: text that is not a token (an unterminated string, a name that is too long) becomes a token of
kind `error` that carries its problem, and the parser that stumbles over it reports that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from upheld.base.errors import Problem, ProgramError, quote
from upheld.base.source import Source, Span

NAME_LENGTH = 1_000
NUMBER_LENGTH = 1_000


class Token(NamedTuple):
    """A piece of text. `kind` is the text itself for operators and reserved words."""

    kind: str
    text: str
    start: int
    end: int
    problem: Problem | None = None


#: Makes a token in half the time that calling the class takes.
_new = tuple.__new__

BLANKS = r"[ \t\r\n\f\v\ufeff]++"
COMMENT = r"/\*[^*]*+\*++(?:[^/*][^*]*+\*++)*+/"
STRING = r'(?P<string>"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+")|(?P<open_string>"[^\n]*)'
REST = r"(?P<open_comment>/\*)|(?P<end>\Z)|(?P<stray>[\s\S])"


def pattern(skipped: str, *tokens: str) -> re.Pattern[str]:
    """Return the pattern of a dialect: what is skipped, then one token. It matches everywhere."""
    return re.compile(f"(?:{skipped})*+(?:{'|'.join((STRING, *tokens, REST))})")


class Scanner:
    """Tokens of a source. The pattern's groups name the kinds; a token of group `sign` is its own kind."""

    def __init__(self, source: Source, pattern: re.Pattern[str], reserved: frozenset[str]):
        self.source = source
        self._text = source.text
        self._match = pattern.match
        self._kinds = {number: name for name, number in pattern.groupindex.items()}
        self._reserved = reserved

    def at(self, offset: int) -> Token:
        """Return the first token at or behind an offset; the last one is of kind `end`."""
        found = self._match(self._text, offset)
        assert found and found.lastindex, "a pattern that does not match everywhere"
        kind = self._kinds[found.lastindex]
        start, end = found.span(found.lastindex)
        text = self._text[start:end]
        if kind == "sign" or text in self._reserved:
            kind = text
        elif kind in _FAULTS or (kind == "stray" and text in _UNFIT) or (end - start > NAME_LENGTH and kind in _NAMES):
            return self._error(kind, text, start, end)
        return _new(Token, (kind, text, start, end, None))

    def _error(self, kind: str, text: str, start: int, end: int) -> Token:
        if kind == "open_comment":
            end = len(self._text)
        opening = {"open_string": 1, "open_comment": 2}.get(kind, end - start)
        return Token("error", text, start, end, _problem(kind, text, Span(self.source, start, start + opening)))


_NAMES = frozenset(("name", "variable", "prefixed", "blank", "branch"))
_FAULTS = frozenset(("open_string", "open_comment", "bad_number", "preprocessor"))
_UNFIT = frozenset(("\0", *map(chr, range(0xD800, 0xE000))))


def _problem(kind: str, text: str, span: Span) -> Problem:
    match kind:
        case "open_string":
            note = "a string ends on its line"
            return Problem("unterminated-string", "a string without its closing quote", span, note=note)
        case "open_comment":
            hint = "close it with `*/`"
            return Problem("unterminated-comment", "a comment without its closing `*/`", span, hint=hint)
        case "bad_number":
            note = "a name does not start with a digit"
            return Problem("bad-number", f"{quote(text)} is not a number", span, note=note)
        case "preprocessor":
            message = f"the preprocessor line {quote(text)} is not supported"
            note = "programs are not preprocessed"
            hint = "run the preprocessor first, or use `.include`; a comment starts with `//`"
            return Problem("unsupported-preprocessor", message, span, note=note, hint=hint)
        case "stray":
            return unfit(text, span)
        case _:
            note = f"a name has at most {NAME_LENGTH:,} characters"
            return Problem("name-too-long", f"the name {quote(text)} is too long", span, note=note)


def unfit(character: str, span: Span) -> Problem:
    """Return the problem of a character that no text may hold."""
    if character == "\0":
        return Problem("nul-character", "a NUL character", span, note="text must not contain NUL characters")
    code = f"U+{ord(character):04X}"
    return Problem("lone-surrogate", f"the lone surrogate {code}", span, note="a surrogate is only half a character")


_SPECIAL = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[\s\S])|[\0\ud800-\udfff]")


def string_value(source: Source, token: Token, escapes: Mapping[str, str], code_points: bool) -> str:
    """Return what a string token says; `\\u` and `\\U` are escapes only with `code_points`."""
    text = token.text[1:-1]
    if "\\" not in text and text.isprintable():
        return text

    def character(found: re.Match[str]) -> str:
        start = token.start + 1 + found.start()
        span = Span(source, start, start + len(found[0]))
        escape = found[1]
        if escape is None:
            raise ProgramError(unfit(found[0], span))
        if escape in escapes:
            return escapes[escape]
        if code_points and len(escape) > 1 and (code := int(escape[1:], 16)) <= 0x10FFFF:
            if chr(code) in _UNFIT:
                raise ProgramError(unfit(chr(code), span))
            return chr(code)
        if len(escape) > 1 and not code_points:
            span = Span(source, start, start + 2)
        known = " ".join(f"\\{e}" for e in escapes) + (r" \uXXXX \UXXXXXXXX" if code_points else "")
        shown = quote(source.text[span.start : span.end])
        note = f"the escapes are {known}"
        raise ProgramError(
            Problem("bad-escape", f"there is no escape {shown}", span, note=note, hint="write `\\\\` for a backslash")
        )

    return _SPECIAL.sub(character, text)
