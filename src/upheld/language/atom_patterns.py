"""Patterns of atoms, and which of them share an instance."""

from __future__ import annotations

from collections import defaultdict

from upheld.language.ast import Constant
from upheld.language.core import Atom, Rule
from upheld.language.values import Value

#: The pattern of an atom: for each position, the value of a constant or the number of a variable.
Pattern = tuple[str, tuple[tuple[str, Value | int], ...]]


def pattern_of(atom: Atom) -> Pattern:
    numbers: dict[str, int] = {}
    terms: list[tuple[str, Value | int]] = []
    for term in atom.terms:
        if isinstance(term, Constant):
            terms.append(("=", term.value))
        else:
            terms.append(("?", numbers.setdefault(term.name, len(numbers))))
    return atom.predicate, tuple(terms)


def share_an_instance(one: Atom, other: Atom) -> bool:
    """Return whether some fact is an instance of both atoms, with their variables renamed apart."""
    return one.predicate == other.predicate and _unify(pattern_of(one), pattern_of(other))


def patterns_of(rules: tuple[Rule, ...]) -> dict[int, Pattern]:
    """Return the pattern of each atom of some rules, by the identity of the atom."""
    return {id(atom): pattern_of(atom) for rule in rules for atom in (rule.head, *rule.atoms)}


def share_instances(patterns: list[Pattern]) -> dict[Pattern, int]:
    """Return a number for each pattern such that patterns with a common instance have the same one.

    Patterns are compared shape against shape: two without repeated variables have a common instance if their
    constants agree where both have one, so one look into a hash table finds all partners of a pattern.
    """
    parent = list(range(len(patterns)))

    def find(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    simple = [has_distinct_variables(p) for p in patterns]
    shapes: dict[tuple[str, frozenset[int]], list[int]] = defaultdict(list)
    for i, (predicate, terms) in enumerate(patterns):
        shapes[predicate, frozenset(p for p, (kind, _) in enumerate(terms) if kind == "=")].append(i)
    by_predicate: dict[str, list[tuple[frozenset[int], list[int]]]] = defaultdict(list)
    for (predicate, constants), members in shapes.items():
        by_predicate[predicate].append((constants, members))
    for groups in by_predicate.values():
        if len(groups) == 1 and len(groups[0][1]) == 1:
            continue
        for a, (constants_a, members_a) in enumerate(groups):
            for constants_b, members_b in groups[a:]:
                common = sorted(constants_a & constants_b)
                buckets: dict[tuple[object, ...], list[int]] = defaultdict(list)
                for i in members_a:
                    buckets[tuple(patterns[i][1][p] for p in common)].append(i)
                for j in members_b:
                    bucket = buckets.get(tuple(patterns[j][1][p] for p in common), [])
                    for i in bucket:
                        if find(i) != find(j) and _unify(patterns[i], patterns[j]):
                            parent[find(i)] = find(j)
                    if simple[j]:  # it met every simple one in the bucket: one of them now stands for all
                        met = [i for i in bucket if simple[i]]
                        bucket[:] = met[:1] + [i for i in bucket if not simple[i]]
    return {pattern: find(i) for i, pattern in enumerate(patterns)}


def _unify(one: Pattern, other: Pattern) -> bool:
    """Return whether some fact is an instance of both patterns, with their variables renamed apart."""
    value: dict[tuple[int, Value | int], tuple[int, Value | int]] = {}

    def resolve(side: int, term: tuple[str, Value | int]) -> tuple[int, Value | int]:
        key = (-1, term[1]) if term[0] == "=" else (side, term[1])
        while key in value:
            key = value[key]
        return key

    for a, b in zip(one[1], other[1], strict=True):
        left, right = resolve(0, a), resolve(1, b)
        if left == right:
            continue
        if left[0] == -1 and right[0] == -1:
            return False
        if left[0] == -1:
            left, right = right, left
        value[left] = right
    return True


def is_instance(values: tuple[Value, ...], pattern: Pattern) -> bool:
    binding: dict[Value | int, Value] = {}
    for value, (kind, term) in zip(values, pattern[1], strict=True):
        expected = term if kind == "=" else binding.setdefault(term, value)
        if expected != value and expected is not value:  # the one NaN of facts equals itself
            return False
    return True


def has_distinct_variables(pattern: Pattern) -> bool:
    names = [number for kind, number in pattern[1] if kind == "?"]
    return len(set(names)) == len(names)


def is_unconstrained(pattern: Pattern) -> bool:
    return all(kind == "?" for kind, _ in pattern[1]) and has_distinct_variables(pattern)
