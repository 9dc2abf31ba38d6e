"""The entities that an XML document declares, and what they would grow to.

The parser replaces them without a bound: nine lines of entities made of ten others each are a gigabyte. So what they
come to is reckoned first, and a document that grows out of proportion is refused.
"""

from __future__ import annotations

import re

_DECLARATION = re.compile(rb"""<!ENTITY\s+(?:%\s+)?([^\s%"'<>&;]+)\s+(?:"([^"]*)"|'([^']*)')""")
_REFERENCE = re.compile(rb"&([^\s&;#<>\"']+);")

#: Characters that entities may add to a document, and the same as a multiple of its length.
MOST_ADDED, MOST_TIMES = 1 << 20, 20


def grows_too_large(document: bytes) -> bool:
    """Tell whether the entities of an XML document make it much larger than it is, or refer to themselves."""
    declared = {name: first or second for name, first, second in _DECLARATION.findall(document)}
    if not declared:
        return False
    lengths: dict[bytes, int] = {}

    most = max(MOST_ADDED, MOST_TIMES * len(document))

    def grown(text: bytes, open_names: frozenset[bytes]) -> int:
        """Return the length of a text with its entities replaced, above `most` if it has no end."""
        total = len(text)
        for name in _REFERENCE.findall(text):
            if name not in declared:
                continue
            if name in open_names:
                return most + 1
            if name not in lengths:
                lengths[name] = grown(declared[name], open_names | {name})
            total += lengths[name]
            if total > most:
                return most + 1
        return total

    return grown(document, frozenset()) > most
