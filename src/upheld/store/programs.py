"""Which program the facts of a version follow from."""

from __future__ import annotations

from hashlib import sha256

from upheld.base.errors import Problem, UsageError, quote
from upheld.compiler.edits import without_unread
from upheld.compiler.normal_form import normal_texts
from upheld.language.core import Core
from upheld.store.manifest import Manifest


def digest(core: Core, equality: str) -> str:
    """Return a digest of a program: its relations, rules and facts, and the treatment of equality.

    Layout, the names of variables and columns, and the order of declarations, rules and body atoms mean nothing. (Where
    a pass has made a hidden relation of several columns from a part of a rule, the order of the atoms in it still
    counts.) A rule that is there twice means no more than once: a rule change may leave one of the two in the text of a
    program. Where equality is by axioms they are among the rules.
    """
    lines = sorted(f"{p.name!r}{p.types}" for p in core.predicates.values() if not p.hidden)
    lines += sorted(set(normal_texts(core)))
    lines += sorted(map(repr, core.facts))
    lines += ["equality by rewriting"] if equality == "rewrite" else []
    return sha256("\n".join(lines).encode()).hexdigest()


def other_program(saved: Manifest, core: Core, equality: str) -> str | None:
    """Return how the program that saved a version differs from this one; None if it is this one.

    To rename columns makes no other facts, but to exchange their names does.
    """
    message = f"version {saved.version} was saved by another program"
    # A program whose rules were changed has no hidden relations that nothing reads, unlike one that was compiled.
    if saved.program not in (digest(core, equality), digest(without_unread(core), equality)):
        return message
    columns = {p.name: p.columns for p in core.predicates.values()}
    renamed = [name for name, relation in saved.relations.items() if relation.columns != columns.get(name)]
    if not renamed:
        return None
    then, now = (", ".join(names) for names in (saved.relations[renamed[0]].columns, columns.get(renamed[0], ())))
    return f"{message}: the columns of {quote(renamed[0])} were {quote(then)}, and are {quote(now)}"


def check_program(saved: Manifest, core: Core, equality: str, folder: str) -> None:
    """Raise if a version was saved by another program, or its relations have columns of other names."""
    message = other_program(saved, core, equality)
    if message is not None:
        raise UsageError(
            Problem(
                "other-program",
                message,
                place=folder,
                note="a program is its relations, its rules, the facts it states, and how equality is treated",
                hint="use the program that saved it, open it with `edited` if the program was edited since, or "
                "materialise this one and save it in another folder",
            )
        )
