"""Sealed JSON: its first line has the format and the SHA-256 of all bytes after that line.

So no bit of it can change unnoticed:

    {"format": 2, "sha256": "5f0c...",
      "version": 7,
      ...
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, TypeVar

from upheld.base.errors import FactsError, Problem

T = TypeVar("T")

_FIRST_LINE = re.compile(rb'\{"format": (\d+), "sha256": "([0-9a-f]{64})",')


def sealed(format: int, fields: Mapping[str, str]) -> bytes:
    """Return the bytes of an object with these fields, each of which is JSON already and gets a line of its own."""
    body = (",\n".join(f'  "{name}": {value}' for name, value in fields.items()) + "\n}\n").encode()
    return f'{{"format": {format}, "sha256": "{sha256(body).hexdigest()}",\n'.encode() + body


def unsealed(
    text: bytes, format: int, parse: Callable[[Any], T | None], slug: str, what: str, place: str, hint: str | None
) -> T:
    """Return what `parse` makes of sealed JSON; raise if it is damaged, of another format, or not `what` it should be.

    `parse` returns None, or raises `ValueError` and the like, for what it does not take.
    """
    first, _, body = text.partition(b"\n")
    line = _FIRST_LINE.fullmatch(first)
    message, note = f"this is not {what}", f"a manifest is JSON of the format {format} with the SHA-256 of its own text"
    if line is not None and int(line[1]) != format:
        message, note = f"the manifest has the format {int(line[1])}", f"this release reads the format {format}"
        hint = "use the release of Upheld that wrote it"
    elif line is not None and sha256(body).hexdigest() != line[2].decode():
        message = "the manifest is damaged"
    elif line is not None:
        try:
            if (parsed := parse(json.loads(text))) is not None:
                return parsed
        except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
            pass  # what is not a manifest is refused below, whatever is wrong with it
    raise FactsError(Problem(slug, message, place=place, note=note, hint=hint))
