"""Datalog as Prolog writes it, turned into the `.dl` dialect: lower-case names are constants, `not` is negation."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\s*(:-|!=|<=|>=|[A-Za-z_][A-Za-z0-9_]*|\d+|.)")

#: Ordinary names there, and words of the language here.
_RENAMED = {"true": "true_", "false": "false_"}


def to_dl(text: str, *, numbers_are_names: bool = False) -> str:
    """Return the clauses, atoms or bodies of `text` in the `.dl` dialect.

    >>> to_dl("p(X,a) :- not q(X), X != b, r.")
    'p(X,"a"):-!q(X),X!="b",r().'
    """
    tokens = _TOKEN.findall(text.strip())
    result: list[str] = []
    depth = 0
    for i, token in enumerate(tokens):
        before = tokens[i - 1] if i else ""
        after = tokens[i + 1] if i + 1 < len(tokens) else ""
        depth += (token == "(") - (token == ")")
        is_name = token[0].islower()
        is_argument = depth > 0 or "=" in (before[-1:], after[-1:])
        if token == "not":
            result.append("!")
        elif is_name and after == "(":
            result.append(_RENAMED.get(token, token))
        elif (is_name and is_argument) or (token.isdigit() and numbers_are_names):
            result.append(f'"{token}"')
        elif is_name:
            result.append(f"{_RENAMED.get(token, token)}()")
        else:
            result.append(token)
    return "".join(result)


def facts_in(text: str, *, numbers_are_names: bool = False) -> set[tuple[str, tuple[int | str, ...]]]:
    """Return the facts that a text lists, as pairs of predicate and values."""
    facts = set()
    for name, arguments in re.findall(r"([a-z]\w*)\s*(?:\(([^)]*)\))?", text):
        values = [value.strip() for value in arguments.split(",")] if arguments else []
        facts.add((name, tuple(int(v) if v.isdigit() and not numbers_are_names else v for v in values)))
    return facts
