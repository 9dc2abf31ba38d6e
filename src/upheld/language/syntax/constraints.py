"""The variables of a constraint, whose values say what violates it."""

from __future__ import annotations

from collections.abc import Iterator

from upheld.language.ast import Atom, Conjunction, Disjunction, Formula, Test, Variable, variables


def bound_variables(body: Formula) -> tuple[Variable, ...]:
    """Return the variables that a body binds, each once, in the order in which they occur.

    Of a disjunction these are the variables that each of its parts binds.

    >>> from upheld.language.syntax.files import read_query
    >>> body = read_query("p(x, y), !q(y, _), (r(z, u) ; z = 1), n = count : { r(x, w) }, n > 2", "dl")
    >>> [v.name for v in bound_variables(body)]
    ['x', 'y', 'z', 'n']
    """
    by_name: dict[str, Variable] = {}
    for variable in _bound(body):
        by_name.setdefault(variable.name, variable)
    return tuple(by_name.values())


def _bound(formula: Formula) -> Iterator[Variable]:
    match formula:
        case Atom():
            yield from variables(formula, in_aggregates=False)
        case Test(operator="=", terms=terms):
            yield from (term for term in terms if isinstance(term, Variable))
        case Conjunction(formulas=parts):
            for part in parts:
                yield from _bound(part)
        case Disjunction(formulas=parts):
            first, *others = (list(_bound(part)) for part in parts)
            names = [{variable.name for variable in other} for other in others]
            yield from (variable for variable in first if all(variable.name in some for some in names))
        case _:
            return
