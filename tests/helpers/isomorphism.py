"""Whether two sets of triples are the same up to labels of blank nodes, and whether one says all that another does."""

from __future__ import annotations

from collections.abc import Iterator, Set

Triple = tuple[str, ...]


def entails(found: Set[Triple], wanted: Set[Triple]) -> bool:
    """Tell whether blank nodes of `wanted` can stand for terms of `found` such that all its triples are there."""
    return next(_mappings(found, wanted, distinct=False), None) is not None


def isomorphic(one: Set[Triple], other: Set[Triple]) -> bool:
    return len(one) == len(other) and next(_mappings(one, other, distinct=True), None) is not None


def _mappings(found: Set[Triple], wanted: Set[Triple], distinct: bool) -> Iterator[dict[str, str]]:
    by_property: dict[str, list[Triple]] = {}
    for triple in found:
        by_property.setdefault(triple[1], []).append(triple)

    def extended(mapping: dict[str, str], pattern: Triple, triple: Triple) -> dict[str, str] | None:
        new = dict(mapping)
        for mine, theirs in zip(pattern, triple):
            if not mine.startswith("_:"):
                if mine != theirs:
                    return None
            elif new.setdefault(mine, theirs) != theirs:
                return None
        if distinct and (len(set(new.values())) < len(new) or any(not v.startswith("_:") for v in new.values())):
            return None
        return new

    def search(mapping: dict[str, str], left: list[Triple]) -> Iterator[dict[str, str]]:
        if not left:
            yield mapping
            return
        # The triple with the fewest open nodes first: it has the fewest places to be.
        left = sorted(left, key=lambda t: sum(term.startswith("_:") and term not in mapping for term in t))
        pattern, rest = left[0], left[1:]
        candidates = by_property.get(pattern[1], []) if not pattern[1].startswith("_:") else list(found)
        for triple in candidates:
            new = extended(mapping, pattern, triple)
            if new is not None:
                yield from search(new, rest)

    yield from search({}, list(wanted))
