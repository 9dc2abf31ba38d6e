"""Prefixes for the IRIs of a program, so that its rules can be read."""

from __future__ import annotations

import re
from collections import Counter

from upheld.language.terms.vocabulary import PREFIXES

#: Strings, which are left as they are, and IRIs of a namespace and a plain name.
_IRI = re.compile(r'"(?:[^"\\]|\\.)*"|<([^<>"]*[#/:])([A-Za-z][A-Za-z0-9_-]*)>')


def namespaces(text: str) -> dict[str, str]:
    """Return the namespaces of the IRIs in a text with a prefix for each; the one used most has the empty prefix."""
    used = Counter(found[1] for found in _IRI.finditer(text) if found[1])
    known = {iri: name for name, iri in PREFIXES.items() if iri in used}
    others = [iri for iri, _ in used.most_common() if iri not in known]
    return known | {iri: f"ns{i}" if i else "" for i, iri in enumerate(others)}


def shortened(text: str, names: dict[str, str]) -> str:
    """Return a text with its IRIs written by prefixes."""
    return _IRI.sub(lambda found: f"{names[found[1]]}:{found[2]}" if found[1] in names else found[0], text)
