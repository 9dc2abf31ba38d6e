"""Random programs with a published profile: the recursive rules and all rules of each level.

A level is a stratum of the stratification by levels: its rules depend on rules of the level below. Rules have the
shapes that ontologies give: subclasses, domains and ranges, inverses, subproperties, and existential restrictions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from experiments.data.facts import Facts, distinct

#: Recursive rules and all rules of each level.
Profile = Sequence[tuple[int, int]]

#: A relation and its number of columns.
Relation = tuple[str, int]


def scaled(profile: Profile, rules: int) -> list[tuple[int, int]]:
    """Return a profile with about this number of rules at most, each level in proportion."""
    total = sum(all_rules for _, all_rules in profile)
    factor = min(1.0, rules / total)
    result = []
    for level, (recursive, every) in enumerate(profile, 1):
        cycles = min(every, max(int(recursive > 0) * 2, round(recursive * factor)))
        entry = int(level > 1 and cycles > 0)  # without a rule that leads into it, a cycle would be on level 1
        result.append((cycles, max(1, round(every * factor), cycles + entry)))
    return result


def program(profile: Profile, seed: int, *, explicit_relations: int = 40) -> tuple[str, list[Relation]]:
    """Return the rules, and the relations of explicit facts: below all levels, and on level 1."""
    r = np.random.default_rng(seed)
    below: list[Relation] = [(f"e{k}", 1 + k % 2) for k in range(explicit_relations)]
    explicit = list(below)
    everything = list(below)
    lines: list[str] = []
    for level, (recursive, every) in enumerate(profile, 1):
        plain = every - recursive
        cycles = list(_cycles(level, recursive, plain if level > 1 else every))
        heads = [relation for cycle in cycles for relation in cycle[:1]]
        entries = min(plain, len(heads))
        for cycle in cycles:
            lines += _ring(cycle, r)
        # One rule leads from the level below into each cycle; the others derive relations of their own, two each.
        for k in range(plain):
            if k < entries:
                head, source = heads[k], below
            else:
                number = k - entries
                head = (f"l{level}_{number // 2}", 1 + number // 2 % 3 // 2)
                source = below if number % 2 == 0 else everything
            lines.append(_rule(head, _one(source, r), everything, r))
        mine = list(dict.fromkeys([*(one for cycle in cycles for one in cycle), *_own(level, plain - entries)]))
        if level == 1:
            explicit += mine
        everything = everything + mine
        below = mine or below
    return "".join(lines), explicit


def _own(level: int, rules: int) -> Iterator[Relation]:
    for number in range((rules + 1) // 2):
        yield f"l{level}_{number}", 1 + number % 3 // 2


def _cycles(level: int, recursive: int, entries: int) -> Iterator[list[Relation]]:
    """Yield the relations of each cycle of a level. Every cycle has as many rules as relations.

    A cycle that no rule leads into would be on level 1, so there are as many cycles as rules for that at most.
    """
    if recursive == 0:
        return
    count = max(1, min(entries, recursive // 2))
    sizes = [recursive // count + (k < recursive % count) for k in range(count)]
    for k, size in enumerate(sizes):
        columns = 2 if k % 2 == 0 and size <= 3 else 1
        yield [(f"c{level}_{k}_{i}", columns) for i in range(size)]


def _ring(cycle: list[Relation], r: np.random.Generator) -> list[str]:
    """Return rules that lead from each relation of a cycle to the next: inverses, or steps along a relation."""
    if len(cycle) == 1:
        name, columns = cycle[0]
        return [f"{name}(x, y) :- {name}(y, x).\n" if columns == 2 else f"{name}(x) :- {name}(y), e1(x, y).\n"]
    lines = []
    for (left, columns), (right, _) in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        if columns == 2:
            lines.append(f"{right}(y, x) :- {left}(x, y).\n")
        elif r.random() < 0.5:
            lines.append(f"{right}(x) :- {left}(x).\n")
        else:
            lines.append(f"{right}(x) :- e{2 * int(r.integers(4)) + 1}(x, y), {left}(y).\n")
    return lines


def _one(relations: list[Relation], r: np.random.Generator) -> Relation:
    return relations[int(r.integers(len(relations)))]


def _rule(head: Relation, body: Relation, others: list[Relation], r: np.random.Generator) -> str:
    """Return a rule from one relation to another, which may look at a third besides."""
    (name, columns), (source, width) = head, body
    if columns == 2:
        if width == 2:
            return f"{name}({'x, y' if r.random() < 0.5 else 'y, x'}) :- {source}(x, y).\n"
        return f"{name}(x, y) :- {source}(x), e{2 * int(r.integers(4)) + 1}(x, y).\n"
    if width == 2:
        return f"{name}({'x' if r.random() < 0.5 else 'y'}) :- {source}(x, y).\n"
    other, other_width = _one(others, r)
    if r.random() < 0.25:
        beside = f", {other}(x)" if other_width == 1 else f", {other}(x, _)"
        return f"{name}(x) :- {source}(x){beside}.\n"
    return f"{name}(x) :- {source}(x).\n"


def facts(relations: list[Relation], scale: int, values: int, seed: int) -> Facts:
    """Return about `scale` facts; the relations below all levels have most of them."""
    r = np.random.default_rng(seed)
    first = [name.startswith("e") for name, _ in relations]
    shares = np.array([1.0 if is_first else 0.15 for is_first in first]) / np.arange(1, len(relations) + 1) ** 0.5
    sizes = np.maximum(1, (scale * shares / shares.sum()).astype(np.int64))
    return {
        name: distinct(r.integers(0, values, (int(size), columns)))
        for (name, columns), size in zip(relations, sizes, strict=True)
    }
