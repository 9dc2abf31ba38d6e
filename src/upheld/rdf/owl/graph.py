"""The triples of an ontology, by subject."""

from __future__ import annotations

from collections.abc import Iterable

from upheld.language.terms.vocabulary import RDF

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
