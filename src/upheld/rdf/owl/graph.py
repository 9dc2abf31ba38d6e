"""The triples of an ontology, by subject."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from upheld.language.terms.vocabulary import PREFIXES, RDF

FIRST, REST, NIL, TYPE = (f"<{RDF}{name}>" for name in ("first", "rest", "nil", "type"))


class Malformed(Exception):
    """Triples that use the words of OWL and say nothing in it."""


class Graph:
    """Triples, by subject and property, in a fixed order."""

    def __init__(self, triples: Iterable[tuple[str, ...]]) -> None:
        self.triples = sorted(triples)
        self._by_subject: dict[tuple[str, str], list[str]] = {}
        for s, p, o in self.triples:
            self._by_subject.setdefault((s, p), []).append(o)

    def values(self, subject: str, property: str) -> list[str]:
        """Return the objects of the triples with a subject and a property."""
        return self._by_subject.get((subject, property), [])

    def value(self, subject: str, property: str) -> str | None:
        """Return the only object of a subject and a property, None if there is none."""
        found = self.values(subject, property)
        if len(found) > 1:
            raise Malformed(f"{subject} has several values of {property}")
        return found[0] if found else None

    def members(self, cell: str) -> list[str]:
        """Return the members of a list."""
        result: list[str] = []
        seen: set[str] = set()
        while cell != NIL:
            first, rest = self.value(cell, FIRST), self.value(cell, REST)
            if first is None or rest is None or cell in seen:
                raise Malformed(f"{cell} is not a cell of a finite list")
            seen.add(cell)
            result.append(first)
            cell = rest
        return result


#: Strings, which are left as they are, and IRIs of a namespace and a plain name.
_IRI = re.compile(r'"(?:[^"\\]|\\.)*"|<([^<>"]*[#/:])([A-Za-z][A-Za-z0-9_-]*)>')


def namespaces(text: str) -> dict[str, str]:
    """Return the namespaces of the IRIs in a text with a prefix for each; the one used most has the empty prefix."""
    used = Counter(iri[1] for iri in _IRI.finditer(text) if iri[1])
    known = {iri: name for name, iri in PREFIXES.items() if iri in used}
    others = [iri for iri, _ in used.most_common() if iri not in known]
    return known | {iri: f"ns{i}" if i else "" for i, iri in enumerate(others)}


def shortened(text: str, names: dict[str, str]) -> str:
    """Return a text with its IRIs written by prefixes."""
    return _IRI.sub(lambda iri: f"{names[iri[1]]}:{iri[2]}" if iri[1] in names else iri[0], text)
