"""How large relations will be once all is derived, from explicit facts alone.

Facts that rules derive are estimated by the join of their bodies. Recursion is left out except for one round, and so
are derivations over many levels: such estimates are low, and a low estimate leaves rules as they stand.

Facts with different constants are counted separately: in RDF all facts are triples, and it is the property
that says how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod

from upheld.compiler.hypertrees.estimates import Table, estimate_atom, estimate_join
from upheld.language.ast import Constant
from upheld.language.core import Atom, Core, Rule
from upheld.language.values import Value

#: Tells for each of some atoms the table of the explicit facts that have its constants.
Explicit = Callable[[Sequence[Atom]], Iterable[Table]]

#: A predicate, and for each column the constant that is asked for, if one is.
_Key = tuple[str, tuple[tuple[Value] | None, ...]]

#: Rules above rules that are looked through, and atoms in all. Beyond, explicit facts must do.
DEEPEST, MOST = 20, 100


class Forecast:
    """The tables of the atoms of a program, each worked out when it is first asked for."""

    def __init__(self, core: Core, explicit: Explicit):
        self._ask = explicit
        self._explicit: dict[_Key, Table] = {}
        self._found: dict[_Key, Table] = {}
        self._depth = 0
        self._deriving: dict[str, list[Rule]] = {}
        for rule in core.rules:
            self._deriving.setdefault(rule.head.predicate, []).append(rule)

    def expect(self, atoms: Iterable[Atom]) -> None:
        """Ask for the explicit facts of atoms, and of all that they are derived from, together.

        Tasks that have the facts are then asked once, and not for one atom after the other.
        """
        reached: dict[_Key, Atom] = {}
        for atom in atoms:
            self._reach(atom, 0, reached)
        self._explicit.update(zip(reached, self._ask(list(reached.values())), strict=True))

    def _reach(self, atom: Atom, depth: int, reached: dict[_Key, Atom]) -> None:
        """Collect the atoms that `of` looks at."""
        key = _key(atom)
        if key not in reached:
            reached[key] = atom
            if depth < DEEPEST and len(reached) < MOST:
                for below in (a for rule in self._rules(key) for a in rule.positive):
                    self._reach(below, depth + 1, reached)

    def of(self, atom: Atom) -> Table:
        key = _key(atom)
        if key not in self._found:
            if key not in self._explicit:
                self.expect([atom])
            self._found[key] = self._explicit[key]
            if self._depth < DEEPEST and len(self._found) < MOST:
                self._depth += 1
                self._add_derived(key)
                self._depth -= 1
        return self._found[key]

    def _add_derived(self, key: _Key) -> None:
        for rule in self._rules(key):
            derived = self._derived(rule, key)
            self._found[key] = _together(self._found[key], derived)

    def _rules(self, key: _Key) -> list[Rule]:
        """Return the rules that derive such facts, in the order to look at them in."""
        rules = [r for r in self._deriving.get(key[0], []) if _meet(_key(r.head), key)]

        def turn(rule: Rule) -> int:
            if any(_meet(_key(a), key) for a in rule.positive):
                return 2
            return int(any(a.predicate in self._deriving for a in rule.positive))

        # First what is explicit. Rules that look at such facts themselves come last, when others have added to them.
        return sorted(rules, key=turn)

    def _derived(self, rule: Rule, key: _Key) -> Table:
        """Return the table of the facts that a rule derives, those alone that have the constants asked for."""
        tables = [self.of(a) for a in rule.positive]
        if any(not table.rows for table in tables):
            return Table(0.0, (0.0,) * len(rule.head.terms))
        body = estimate_join([estimate_atom(a, table) for a, table in zip(rule.positive, tables, strict=True)])
        inner = [v for v in dict.fromkeys(rule.head.variables()) if v in body.distinct]
        rows = body.rows if len(inner) < len(set(rule.head.variables())) else body.projected(inner)
        distinct = [
            1.0 if isinstance(term, Constant) else min(rows, body.distinct.get(term.name, rows))
            for term in rule.head.terms
        ]
        for column, asked in enumerate(key[1]):
            if asked is not None:
                rows, distinct[column] = rows / max(1.0, distinct[column]), 1.0
        return Table(rows, tuple(min(n, rows) for n in distinct))


def _key(atom: Atom) -> _Key:
    return atom.predicate, tuple((t.value,) if isinstance(t, Constant) else None for t in atom.terms)


def _meet(one: _Key, other: _Key) -> bool:
    """Return whether facts may have the constants of both."""
    return one[0] == other[0] and all(a is None or b is None or a == b for a, b in zip(one[1], other[1], strict=True))


def _together(one: Table, other: Table) -> Table:
    """Return the table of all facts of two, which are taken to differ while there are values enough for it."""
    distinct = tuple(map(max, one.distinct, other.distinct))
    return Table(min(one.rows + other.rows, prod(distinct)), distinct)
