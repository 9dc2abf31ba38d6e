"""Rules as texts that do not depend on the names of variables or on the order of the body, nor on that of rules.

Variables are numbered by colour refinement: two of them get different colours if they stand at different places of
atoms and built-ins, or beside variables of different colours. Where that leaves several variables of one colour, the
first of them is given a colour of its own and the refinement goes on. Variables that can be exchanged for each other
give the same text whichever comes first. The text is that of the rule itself with other names, so different rules
never share one; a rule with a body like a regular graph may have several, by the order it was written in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256

from upheld.language.ast import Constant, Variable
from upheld.language.core import Core, Expression, Rule

#: A part of a rule: its text with `?` for each variable, and these variables in order.
_Part = tuple[str, tuple[str, ...]]


def normal_texts(core: Core) -> list[str]:
    """Return the normal texts of all rules of a program, sorted.

    Passes name hidden relations by the text that they were made from. Here their names come from their own rules.
    """
    made: dict[str, list[Rule]] = {}
    for rule in core.rules:
        if core.predicates[rule.head.predicate].internal:
            made.setdefault(rule.head.predicate, []).append(rule)
    names: dict[str, str] = {}
    aggregated = {aggregation.relation: aggregation for aggregation in core.aggregations}
    hidden_names = made.keys() | aggregated.keys()

    def name(hidden: str) -> None:
        if hidden in aggregated:
            a = aggregated[hidden]
            if a.body in made:
                name(a.body)
            names[hidden] = f"{a.function} of {a.target} by {a.groups} in {_name(a.body, names)}"
            return
        names[hidden] = "itself"
        for rule in made[hidden]:
            for atom in rule.atoms:
                if atom.predicate in hidden_names and atom.predicate not in names:
                    name(atom.predicate)
        texts = sorted(normal_text(rule, names) for rule in made[hidden])
        names[hidden] = sha256("\n".join(texts).encode()).hexdigest()

    for hidden in hidden_names:
        if hidden not in names:
            name(hidden)
    return sorted(normal_text(rule, names) for rule in core.rules)


def normal_text(rule: Rule, names: Mapping[str, str] | None = None) -> str:
    """Return the text of a rule up to the names of variables and the order of its body; `names` renames relations.

    >>> from upheld import parse
    >>> from upheld.compiler.compile import compile_program
    >>> one, other = (compile_program(parse(text)).core.rules[0] for text in (
    ...     "p(x, z) :- e(x, y), e(y, z), x < 5.", "p(a, b) :- a < 5, e(c, b), e(a, c)."))
    >>> normal_text(one) == normal_text(other)
    True
    """
    atoms = [("head ", rule.head), *(("", atom) for atom in rule.positive), *(("!", atom) for atom in rule.negative)]
    patterns = [_pattern(f"{mark}{_name(atom.predicate, names or {})}", atom.terms) for mark, atom in atoms]
    patterns += [_pattern(f"{test.operator}:{test.type}", test.arguments) for test in rule.builtins]
    colours = _refined(dict.fromkeys(rule.variables(), 0), patterns)
    while len(set(colours.values())) < len(colours):
        seen = list(colours.values())
        chosen = min((c, i) for i, c in enumerate(seen) if seen.count(c) > 1)[1]
        apart = {name: 2 * c + (i != chosen) for i, (name, c) in enumerate(colours.items())}
        colours = _refined(apart, patterns)
    return "\n".join(sorted(_filled(pattern, [f"v{colours[name]}" for name in names]) for pattern, names in patterns))


def _name(predicate: str, names: Mapping[str, str]) -> str:
    return f"[{names[predicate]}]" if predicate in names else _escaped(repr(predicate))


def _pattern(name: str, arguments: Iterable[Expression]) -> _Part:
    variables: list[str] = []

    def text(expression: Expression) -> str:
        match expression:
            case Variable(name=name):
                variables.append(name)
                return "?"
            case Constant(value=value, type=type):
                return _escaped(f"{value!r}:{type}")
            case _:
                return f"{_escaped(repr(expression.functor))}({', '.join(map(text, expression.arguments))})"

    return f"{name}({', '.join(map(text, arguments))})", tuple(variables)


def _refined(colours: dict[str, int], patterns: list[_Part]) -> dict[str, int]:
    """Return the coarsest stable colouring of the variables, numbered from 0."""
    while True:
        seen: dict[str, list[str]] = {name: [] for name in colours}
        for pattern, names in patterns:
            around = [(colours[name], names.index(name)) for name in names]
            for place, name in enumerate(names):
                seen[name].append(f"{place} {around} {pattern}")
        signs = {name: f"{colour:09} {sorted(seen[name])}" for name, colour in colours.items()}
        ranks = {sign: rank for rank, sign in enumerate(sorted(set(signs.values())))}
        finer = {name: ranks[sign] for name, sign in signs.items()}
        if len(ranks) == len(set(colours.values())):
            return finer
        colours = finer


def _escaped(text: str) -> str:
    """Return a Python literal without question marks."""
    return text.replace("?", "\\x3f")


def _filled(pattern: str, names: list[str]) -> str:
    pieces = pattern.split("?")
    return "".join(piece + name for piece, name in zip(pieces, [*names, ""], strict=True))
