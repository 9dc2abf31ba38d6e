"""A rehearsal: updates and questions whose outcome nobody sees, so that all they need is compiled.

Which kernels are compiled, and for which types, depends on rules, algorithm and facts. So instead of a list of kernels
there is work of each kind: facts deleted and inserted, few at once and more, a query, and an explanation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from upheld.facts.columns import Row
from upheld.facts.relation import Relation
from upheld.language.values import Value
from upheld.materialisation.reading import Reading

Facts = dict[str, list[Row]]

#: Facts of each relation that a rehearsal deletes or inserts at once.
SIZES = (1, 40)

#: Values of each type for facts that are made up. Relations with columns of other types stay empty.
VALUES: Mapping[str, Sequence[Value]] = {
    "number": (1, 2, 3),
    "unsigned": (1, 2, 3),
    "float": (1.0, 2.0, 3.0),
    "symbol": ("a", "b", "c"),
    "boolean": (False, True),
    "term": ("<http://example.org/a>", "<http://example.org/b>", "<http://example.org/c>"),
}


def rehearse(m: Reading, preview: Callable[[Facts, Facts], object]) -> None:
    """Preview insertions and deletions of explicit facts, look facts up, and explain one."""
    explicit = [relation for name in m.relations if len(relation := m.explicit(name))]
    for size in SIZES:
        gone = {relation.name: relation.head(size).to_rows() for relation in explicit}
        come = {relation.name: _others(relation, gone[relation.name]) for relation in explicit}
        for insert, delete in (({}, gone), (come, {}), (come, gone)):
            preview(insert, delete)
    derived = _derived(m)
    for relation in map(m.__getitem__, m.relations):
        for row in relation.head(1).to_rows():
            relation.find(**dict(zip(relation.columns, row)))
            if relation.name in derived:
                m.explain(relation.name, row)
                derived = frozenset()  # one proof is enough


def _derived(m: Reading) -> frozenset[str]:
    return frozenset(rule.head.predicate for rule in m._written.rules)


def _others(relation: Relation, rows: list[Row]) -> list[Row]:
    """Return facts that a relation does not have, made from the values of some that it has."""
    turned = rows[1:] + rows[:1] if len(rows) > 1 else relation.head(2).to_rows()[-1:]
    crossed = (left[:-1] + right[-1:] for left, right in zip(rows, turned))
    return [row for row in crossed if row not in relation]


def made_up(m: Reading) -> Facts:
    """Return a few facts of each relation without rules, over so few values that rules can join them."""
    facts: Facts = {}
    for relation in map(m.explicit, sorted(set(m.relations) - _derived(m))):
        values = [VALUES.get(type.removesuffix("?"), ()) for type in relation.types]
        rows = min(map(len, values), default=0)
        if rows:
            facts[relation.name] = [tuple(v[(i + c) % len(v)] for c, v in enumerate(values)) for i in range(rows)]
    return facts
