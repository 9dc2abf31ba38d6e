"""Rules of the core as text, for messages and `upheld check`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from upheld.base.errors import Problem
from upheld.language.ast import Constant, Variable, prints
from upheld.language.core import Apply, Atom, Builtin, Core, CoreTerm, Expression, Rule
from upheld.language.expressions import PREFIX as LIFTED
from upheld.language.patterns import Taken, constructed, taken
from upheld.language.terms.iris import shortened
from upheld.language.terms.terms import FALSE, TRUE
from upheld.language.terms.vocabulary import PREFIXES
from upheld.language.types.columns import NULL, ColumnType
from upheld.language.types.functors import functor, is_test
from upheld.language.types.records import composed, is_constructor
from upheld.language.values import Value
from upheld.language.wildcards import PREFIX as WILDCARD

_INFIX = frozenset("+ - * / % ^ band bor bxor bshl bshr bshru land lor lxor = != < <= > >= && ||".split())
_PREFIX = frozenset(("-", "bnot", "lnot", "!"))

#: Variables that a pass put in the place of expressions, with these expressions.
Lifted = dict[str, Expression]


def value_text(value: object, type: str = "symbol") -> str:
    """Return a value as the `.dl` dialect writes it; RDF terms as N-Triples."""
    if isinstance(type, ColumnType):
        return type.literal(cast("Value", value))
    if isinstance(value, str) and type not in ("term", "record"):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        return f'"{escaped}"'
    return str(value)


def expression_text(expression: Expression, lifted: Lifted | None = None, *, within: bool = False) -> str:
    """Return an expression as text, in brackets if it stands `within` another one and needs them."""
    match expression:
        case Variable(name=name):
            if lifted and name in lifted:
                return expression_text(lifted[name], lifted, within=within)
            return "_" if name.startswith(WILDCARD) else name
        case Constant(value=value, type=type):
            return value_text(value, type)
        case Apply(functor=functor, arguments=arguments):
            infix = functor.name in _INFIX and len(arguments) == 2
            prefix = functor.name in _PREFIX and len(arguments) == 1
            parts = [expression_text(a, lifted, within=infix or prefix) for a in arguments]
            if is_constructor(functor.name):
                return composed(functor.name, parts)
            if not infix and not prefix:
                return f"{functor.name}({', '.join(parts)})"
            gap = " " if functor.name.isalpha() else ""
            text = f" {functor.name} ".join(parts) if infix else f"{functor.name}{gap}{parts[0]}"
            return f"({text})" if within else text


def atom_text(atom: Atom, lifted: Lifted | None = None) -> str:
    return f"{atom.predicate}({', '.join(expression_text(t, lifted) for t in atom.terms)})"


def builtin_text(builtin: Builtin, lifted: Lifted | None = None) -> str:
    if (field := taken(builtin)) is not None:
        builtin = _as_pattern(field[0], [field])
    if (condition := _condition(builtin)) is not None:
        value, holds = condition
        return expression_text(value, lifted) if holds else f"!{expression_text(value, lifted, within=True)}"
    left, right = (expression_text(a, lifted) for a in builtin.arguments)
    if right == NULL and isinstance(builtin.arguments[1], Constant):
        return f"{'!' if builtin.operator == '!=' else ''}is_null({left})"
    if builtin.operator[-1].isalpha():
        return f"{builtin.operator}({left}, {right})"
    # `==` is the core's own spelling of an equation that only tests.
    return f"{left} {builtin.operator.replace('==', '=')} {right}"


def _condition(builtin: Builtin) -> tuple[Expression, bool] | None:
    """Return the term that a built-in tests for being true or false, and which of the two, if it does so."""
    value, wanted = builtin.arguments
    if builtin.operator != "==" or not isinstance(value, Apply) or not isinstance(wanted, Constant):
        return None
    if wanted.value not in (TRUE, FALSE) or not is_test(value.functor.name):
        return None
    holds = wanted.value == TRUE
    return (value.arguments[0], not holds) if value.functor.name == "!" else (value, holds)


@prints(Rule)
def rule_text(rule: Rule) -> str:
    """Return the rule as text of the `.dl` dialect, whichever dialect it was written in."""
    lifted = _lifted(rule)
    patterns = {builtin.arguments[0]: builtin for builtin in record_patterns(rule.builtins)}
    for record, builtin in patterns.items():
        if isinstance(record, Variable) and record.name.startswith(LIFTED):
            lifted.setdefault(record.name, builtin.arguments[1])
    body = [atom_text(a, lifted) for a in rule.positive]
    body += [f"!{atom_text(a, lifted)}" for a in rule.negative]
    body += [builtin_text(b, lifted) for b in rule.builtins if not _is_lifted(b) and taken(b) is None]
    whole = {record.record for record in map(constructed, rule.builtins) if record is not None}
    body += [builtin_text(b, lifted) for record, b in patterns.items() if record not in whole and _is_shown(record, b)]
    return f"{atom_text(rule.head, lifted)} :- {', '.join(body) or 'true'}."


def _lifted(rule: Rule) -> Lifted:
    """Return what the variables stand for that a pass put in the place of expressions."""
    return {b.arguments[0].name: b.arguments[1] for b in rule.builtins if _is_lifted(b)}  # type: ignore[union-attr]


def _is_lifted(builtin: Builtin) -> bool:
    left = builtin.arguments[0]
    if taken(builtin) is not None:
        return False
    return builtin.operator in ("=", "==") and isinstance(left, Variable) and left.name.startswith(LIFTED)


def with_prefixes(problem: Problem, core: Core) -> Problem:
    """Return a problem of a program with the prefixes of that program in its message."""
    if core.dialect != "dlog":
        return problem
    prefixes = {**PREFIXES, **dict(core.prefixes)}
    related = tuple((shortened(text, prefixes), span) for text, span in problem.related)
    return replace(problem, message=shortened(problem.message, prefixes), related=related)


# -- records ----------------------------------------------------------------------------------------------------------


def record_patterns(builtins: Iterable[Builtin]) -> list[Builtin]:
    """Return, for each record whose fields are used, its equation with the pattern that it matches."""
    apart: dict[tuple[Expression, str], list[Taken]] = {}
    for builtin in builtins:
        if (field := taken(builtin)) is not None:
            apart.setdefault((field.record, field.field.constructor), []).append(field)
    return [_as_pattern(record, fields) for (record, _), fields in apart.items()]


def with_patterns(atom: Atom, builtins: Iterable[Builtin]) -> Atom:
    """Return an atom, to be shown, with the patterns that built-ins match its records with."""
    patterns = {
        b.arguments[0].name: b.arguments[1] for b in record_patterns(builtins) if isinstance(b.arguments[0], Variable)
    }

    def expanded(expression: Expression) -> Expression:
        if isinstance(expression, Variable) and expression.name in patterns:
            return expanded(patterns[expression.name])
        if isinstance(expression, Apply):
            return Apply(expression.functor, tuple(map(expanded, expression.arguments)))
        return expression

    return Atom(atom.predicate, tuple(cast("CoreTerm", expanded(term)) for term in atom.terms))


def is_matched(builtin: Builtin) -> bool:
    """Return whether a built-in only says that a record, with the values that it has, matches its pattern."""
    return taken(builtin) is not None or len(set(map(expression_text, builtin.arguments))) == 1


def _as_pattern(record: Expression, fields: list[Taken]) -> Builtin:
    """Return the equation of a record with a pattern that has these fields."""
    kind = fields[0][1]
    values: list[Expression] = [Variable(WILDCARD)] * kind.fields
    for _, field, value in fields:
        if field.index is not None:
            values[field.index] = value
    constructor = functor(kind.constructor, kind.fields, ",".join(["record"] * kind.fields))
    return Builtin("=", "record", (record, Apply(constructor, tuple(values))))


def _is_shown(record: Expression, pattern: Builtin) -> bool:
    """Return whether a pattern stands beside the atoms: one of a variable of the program, unless all is known."""
    if isinstance(record, Variable):
        return not record.name.startswith(LIFTED)
    record_of = pattern.arguments[1]
    return not isinstance(record_of, Apply) or not all(
        isinstance(v, Constant) or v == Variable(WILDCARD) for v in record_of.arguments
    )
