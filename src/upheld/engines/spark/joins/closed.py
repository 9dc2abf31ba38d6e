"""Strata that each task maintains by itself, because all that derives a fact is where the fact is at home.

A stratum is *closed* if each atom in its bodies is of a replicated relation, or is looked up by the value that decides
where the head is at home, and if no other task has copies of its facts. A task then finds every derivation of the facts
that are at home with it, and no other task needs to know of these before the stratum is done. The closure of a graph
whose edges are replicated is such a stratum. All tasks know which strata are closed: it follows from rules and views.
"""

from __future__ import annotations

from collections.abc import Sequence

from upheld.compiler.strata import Stratification, Stratum
from upheld.engines.spark.joins.plans import Target, Views
from upheld.engines.spark.sets.sets import Bound
from upheld.language.core import Atom, Rule

#: Sets of predicates whose strata are kept.
_MOST_KEPT = 256


class ClosedStrata:
    """Which strata of a stratification are closed."""

    def __init__(self, strata: Stratification, views: Views):
        self.strata, self._views = strata, views
        self._closed: dict[int, bool] = {}
        self._reached: dict[Bound, Sequence[Stratum] | None] = {}
        #: All rules, and the numbers by which tasks name them.
        self.rules = [rule for s in strata for rule in s.rules]
        self.numbers = {rule: k for k, rule in enumerate(self.rules)}

    def reached(self, bound: Bound) -> Sequence[Stratum] | None:
        """Return the strata that a change of facts of some predicates may reach; None if one of them is not closed."""
        if bound not in self._reached:
            if len(self._reached) == _MOST_KEPT:
                self._reached.clear()
            self._reached[bound] = self._reach(bound)
        return self._reached[bound]

    def _reach(self, bound: Bound) -> Sequence[Stratum] | None:
        strata = self.strata
        by_index: dict[int, Stratum] = {}
        due = strata.holding({c for predicate in bound for c in strata.classes_of(predicate)})
        while due:
            s = strata.strata[due.pop() - 1]
            if not self.is_closed(s):
                return None
            by_index[s.index] = s
            due |= strata.reading(s.classes) - by_index.keys()
        return [by_index[index] for index in sorted(by_index)]

    def is_closed(self, s: Stratum) -> bool:
        """Return whether a stratum is closed. One without rules is: its facts come with all their copies."""
        if s.index not in self._closed:
            others = bool(s.aggregations or s.classings)
            self._closed[s.index] = not others and all(self._stays(rule) for rule in s.rules)
        return self._closed[s.index]

    def _stays(self, rule: Rule) -> bool:
        head, views = rule.head, self._views
        if rule.builtins or not head.terms or views.has_copies(head.predicate):
            return False
        home = Target.of_atom(head, 0).key
        return all(self._is_at(atom, home) for atom in (*rule.positive, *rule.negative))

    def _is_at(self, atom: Atom, home: str) -> bool:
        """Return whether the owner of a value has all facts that an atom may match."""
        if atom.predicate in self._views.replicated:
            return True
        columns = (c for c in range(len(atom.terms)) if self._views.has(atom.predicate, c))
        return any(Target.of_atom(atom, column).key == home for column in columns)
