"""Rules of the core as text, for messages and `upheld check`."""

from __future__ import annotations

from upheld.language.ast import Constant, Variable
from upheld.language.core import Apply, Atom, Builtin, Expression, Fact, Rule
from upheld.language.passes.wildcards import PREFIX as WILDCARD

_INFIX = frozenset("+ - * / % ^ band bor bxor bshl bshr bshru land lor lxor".split())


def value_text(value: object, type: str = "symbol") -> str:
    """Return a value as the `.dl` dialect writes it; RDF terms as N-Triples."""
    if isinstance(value, str) and type != "term":
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        return f'"{escaped}"'
    return str(value)


def expression_text(expression: Expression) -> str:
    match expression:
        case Variable(name=name):
            return "_" if name.startswith(WILDCARD) else name
        case Constant(value=value, type=type):
            return value_text(value, type)
        case Apply(functor=functor, arguments=arguments):
            parts = [expression_text(a) for a in arguments]
            if functor.name in _INFIX:
                return f"({f' {functor.name} '.join(parts)})" if len(parts) == 2 else f"-{parts[0]}"
            return f"{functor.name}({', '.join(parts)})"


def atom_text(atom: Atom) -> str:
    return f"{atom.predicate}({', '.join(map(expression_text, atom.terms))})"


def builtin_text(builtin: Builtin) -> str:
    left, right = map(expression_text, builtin.arguments)
    if builtin.operator[-1].isalpha():
        return f"{builtin.operator}({left}, {right})"
    return f"{left} {builtin.operator} {right}"


def rule_text(rule: Rule) -> str:
    """Return the rule as text of the `.dl` dialect, whichever dialect it was written in."""
    body = [*map(atom_text, rule.positive), *(f"!{atom_text(a)}" for a in rule.negative)]
    body += map(builtin_text, rule.builtins)
    return f"{atom_text(rule.head)} :- {', '.join(body) or 'true'}."


def fact_text(fact: Fact, types: tuple[str, ...] | None = None) -> str:
    predicate, values = fact
    return f"{predicate}({', '.join(value_text(v, t) for v, t in zip(values, types or ('symbol',) * len(values), strict=True))})"
