"""Checks of the entities declared by an XML document: plain definitions, and the size of their expansion.

The parser replaces them without a bound: nine lines of entities made of ten others each are a gigabyte. So what they
come to is computed first, and a document that grows out of proportion is refused. So each name must have one meaning:
the parser takes the last of several declarations, other readers the first, and it takes parameter entities for
others. Documents with such declarations are refused as well.
"""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from upheld.base.errors import Problem, quote

_DECLARATION = re.compile(
    rb"""<!ENTITY(?:\s+(?P<parameter>%\s+)?(?P<name>[A-Za-z_:\x80-\xff][\w.:\x80-\xff-]*)\s+"""
    rb"""(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<external>SYSTEM|PUBLIC)\s))?"""
)
_REFERENCE = re.compile(rb"&([^\s&;#<>\"']+);")

#: Characters that entities may add to a document, and the same as a multiple of its length.
MOST_ADDED, MOST_TIMES = 1 << 20, 20


def problem_of_entities(document: bytes, path: Path) -> Problem | None:
    """Return what is wrong with the entities of an XML document: how they are declared, or what they grow to."""
    declared: dict[bytes, bytes] = {}
    for found in _DECLARATION.finditer(document):
        wrong = _wrong(found, declared)
        if wrong is not None:
            line = document.count(b"\n", 0, found.start()) + 1
            note = "entities are declared once each, by name and value"
            return Problem(
                "bad-entity", wrong, place=f"{path}:{line}", note=note, hint="replace the entity by its value"
            )
        declared[found["name"]] = found["double"] or found["single"] or b""
    if declared and _grows_too_large(document, declared):
        return Problem(
            "entity-bomb",
            "the entities of this document expand too far",
            place=str(path),
            note="entities may expand a document at most about twentyfold, and must not contain themselves",
            hint="replace the entities by their values",
        )
    return None


def _wrong(found: re.Match[bytes], declared: dict[bytes, bytes]) -> str | None:
    """Return what is wrong with a declaration that comes after others, if anything is."""
    if found["name"] is None:
        return "this declaration of an entity cannot be read"
    name = quote(found["name"].decode(errors="replace"))
    if found["parameter"]:
        return f"{name} is a parameter entity, which is not supported"
    if found["external"]:
        return f"{name} is an external entity, which is not supported"
    return f"the entity {name} is declared twice" if found["name"] in declared else None


def _grows_too_large(document: bytes, declared: dict[bytes, bytes]) -> bool:
    """Tell whether entities make a document much larger than it is, or refer to themselves."""
    most = max(MOST_ADDED, MOST_TIMES * len(document))
    uses = {name: [used for used in _REFERENCE.findall(text) if used in declared] for name, text in declared.items()}
    grown: dict[bytes, int] = {}  # what an entity adds to the length of a reference to it
    try:
        for name in TopologicalSorter(uses).static_order():
            added = len(declared[name]) - len(name) - 2 + sum(grown[used] for used in uses[name])
            grown[name] = min(added, most + 1)
    except CycleError:
        return True
    in_declarations = sum(grown[used] for names in uses.values() for used in names)
    in_all = sum(grown.get(used, 0) for used in _REFERENCE.findall(document))
    kept = sum(max(added, 0) for added in grown.values())  # the parser expands entities that nothing refers to as well
    return len(document) + in_all - in_declarations + kept > most
