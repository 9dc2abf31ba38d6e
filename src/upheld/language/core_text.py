"""Rules of the core as text, for messages and `upheld check`."""

from __future__ import annotations

from upheld.language.core import Apply, Atom, Builtin, Expression, Rule
from upheld.language.passes.expressions import PREFIX as LIFTED
from upheld.language.passes.wildcards import PREFIX as WILDCARD
from upheld.language.printable import prints
from upheld.language.syntax.ast import Constant, Variable

_INFIX = frozenset("+ - * / % ^ band bor bxor bshl bshr bshru land lor lxor".split())
_PREFIX = frozenset(("-", "bnot", "lnot"))

#: Variables that a pass put in the place of expressions, with these expressions.
Lifted = dict[str, Expression]


def value_text(value: object, type: str = "symbol") -> str:
    """Return a value as the `.dl` dialect writes it; RDF terms as N-Triples."""
    if isinstance(value, str) and type != "term":
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
            if not infix and not prefix:
                return f"{functor.name}({', '.join(parts)})"
            gap = " " if functor.name.isalpha() else ""
            text = f" {functor.name} ".join(parts) if infix else f"{functor.name}{gap}{parts[0]}"
            return f"({text})" if within else text


def atom_text(atom: Atom, lifted: Lifted | None = None) -> str:
    return f"{atom.predicate}({', '.join(expression_text(t, lifted) for t in atom.terms)})"


def builtin_text(builtin: Builtin, lifted: Lifted | None = None) -> str:
    left, right = (expression_text(a, lifted) for a in builtin.arguments)
    if builtin.operator[-1].isalpha():
        return f"{builtin.operator}({left}, {right})"
    # `==` is the core's own spelling of an equation that only tests.
    return f"{left} {builtin.operator.replace('==', '=')} {right}"


@prints(Rule)
def rule_text(rule: Rule) -> str:
    """Return the rule as text of the `.dl` dialect, whichever dialect it was written in."""
    lifted = _lifted(rule)
    body = [atom_text(a, lifted) for a in rule.positive]
    body += [f"!{atom_text(a, lifted)}" for a in rule.negative]
    body += [builtin_text(b, lifted) for b in rule.builtins if not _is_lifted(b)]
    return f"{atom_text(rule.head, lifted)} :- {', '.join(body) or 'true'}."


def _lifted(rule: Rule) -> Lifted:
    """Return what the variables stand for that a pass put in the place of expressions."""
    return {b.arguments[0].name: b.arguments[1] for b in rule.builtins if _is_lifted(b)}  # type: ignore[union-attr]


def _is_lifted(builtin: Builtin) -> bool:
    left = builtin.arguments[0]
    return builtin.operator in ("=", "==") and isinstance(left, Variable) and left.name.startswith(LIFTED)
