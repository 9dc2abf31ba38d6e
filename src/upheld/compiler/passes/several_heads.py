"""`a(x), b(x) :- body.` becomes one clause for each head."""

from __future__ import annotations

from dataclasses import replace

from upheld.language.ast import Clause
from upheld.language.draft import Draft


def split_heads(draft: Draft) -> None:
    """Give every clause exactly one head."""
    draft.rules = [single for clause in draft.rules for single in _split(clause)]
    draft.facts = [single for clause in draft.facts for single in _split(clause)]


def _split(clause: Clause) -> list[Clause]:
    return [clause] if len(clause.heads) == 1 else [replace(clause, heads=(head,)) for head in clause.heads]
