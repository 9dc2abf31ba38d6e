"""How large relations will be once all is derived, from explicit facts alone.

Facts that rules derive are estimated by the join of their bodies. What a relation owes to recursion is left out, but
for one round of it: such estimates are low, and a low estimate leaves rules as they stand.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from upheld.language.ast import Constant
from upheld.language.core import Core, Rule
from upheld.language.hypertrees.estimates import Table, estimate_atom, estimate_join

#: Tells the table of the explicit facts of a predicate.
Explicit = Callable[[str], Table]


class Forecast:
    """The tables of the predicates of a program, each worked out when it is first asked for."""

    def __init__(self, core: Core, explicit: Explicit):
        self._explicit = explicit
        self._found: dict[str, Table] = {}
        self._deriving: dict[str, list[Rule]] = {}
        for rule in core.rules:
            self._deriving.setdefault(rule.head.predicate, []).append(rule)

    def __getitem__(self, predicate: str, /) -> Table:
        if predicate not in self._found:
            self._found[predicate] = self._explicit(predicate)
            # Rules that look at the relation itself come last, when the others have filled it.
            rules = self._deriving.get(predicate, [])
            for rule in sorted(rules, key=lambda r: any(a.predicate == predicate for a in r.positive)):
                derived = self._derived(rule)
                self._found[predicate] = _together(self._found[predicate], derived)
        return self._found[predicate]

    def _derived(self, rule: Rule) -> Table:
        """Return the table of the facts that a rule derives."""
        body = estimate_join([estimate_atom(a, self[a.predicate]) for a in rule.positive])
        if any(not self[a.predicate].rows for a in rule.positive):
            return Table(0.0, (0.0,) * len(rule.head.terms))
        inner = [v for v in dict.fromkeys(rule.head.variables()) if v in body.distinct]
        rows = body.rows if len(inner) < len(set(rule.head.variables())) else body.projected(inner)
        distinct = [
            1.0 if isinstance(term, Constant) else min(rows, body.distinct.get(term.name, rows))
            for term in rule.head.terms
        ]
        return Table(rows, tuple(distinct))


def _together(one: Table, other: Table) -> Table:
    """Return the table of all facts of two, which are taken to differ while there are values enough for it."""
    distinct = tuple(map(max, one.distinct, other.distinct))
    return Table(min(one.rows + other.rows, prod(distinct)), distinct)
