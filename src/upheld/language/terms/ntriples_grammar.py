"""The grammar of N-Triples: patterns of terms and lines as files write them, and the escapes.

The patterns are texts that Python and Java take alike, and the plain ones, without escapes, RE2 as well. Stricter
checks, of IRIs and language tags, are in `ntriples`.
"""

from __future__ import annotations

import re

#: The characters that a letter or a sign behind a backslash stands for.
SHORT_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
#: A character by its code.
CODE_ESCAPE = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
CONTROL = r"[\x00-\x1f\x7f]"

_SCHEME = "[a-zA-Z][a-zA-Z0-9+.-]*:"  # IRIs of N-Triples are absolute
_OF_IRI = r'[^\x00-\x20<>"{}|^`\\]'
IRI = f"<{_SCHEME}(?:{_OF_IRI}|{CODE_ESCAPE})*+>"

_LETTER = (
    "A-Za-z\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_SIGN = rf"{_LETTER}0-9_\-\xb7\u0300-\u036f\u203f\u2040"
BLANK_NODE = rf"_:[{_LETTER}0-9_](?:\.*+[{_SIGN}])*+"

STRING = rf'"(?:[^"\\\n\r]|\\[tbnrf"\'\\]|{CODE_ESCAPE})*+"'
LITERAL = rf"{STRING}(?:\^\^{IRI}|@[a-zA-Z]++(?:-[a-zA-Z0-9]++)*+)?"
#: A line with a triple; its groups are the three terms.
TRIPLE = rf"^[ \t]*+({IRI}|{BLANK_NODE})[ \t]*+({IRI})[ \t]*+({IRI}|{BLANK_NODE}|{LITERAL})[ \t]*+\.[ \t]*+(?:#.*+)?$"

# Nearly all lines of nearly all files are of this form, which can be cut at its spaces: no escapes, no blank nodes. It
# took Java 4 us a triple where three extractions by the pattern above took 7. The terms are in their one form as they
# are, but for the type of a string.
_PLAIN_IRI = f"<{_SCHEME}{_OF_IRI}*>"
_PLAIN_LITERAL = rf'"[^"\\\x00-\x1f\x7f]*"(?:\^\^{_PLAIN_IRI}|@[a-z]+(?:-[a-z0-9]+)*)?'
PLAIN_TRIPLE = rf"^{_PLAIN_IRI} {_PLAIN_IRI} (?:{_PLAIN_IRI}|{_PLAIN_LITERAL}) \.$"

#: A literal cut in its parts, which are not checked: the inside of its quotes, language tag, and datatype.
literal_parts = re.compile(r'"((?:[^"\\\n\r]|\\.)*+)"(?:@([A-Za-z0-9\-]+)|\^\^<([^<>]*)>)?').fullmatch
