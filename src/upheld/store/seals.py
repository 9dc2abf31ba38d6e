"""Sealed JSON: its first line has the format and the SHA-256 of all bytes after that line.

So no bit of it can change unnoticed:

    {"format": 2, "sha256": "5f0c...",
      "version": 7,
      ...
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple

_FIRST_LINE = re.compile(rb'\{"format": (\d+), "sha256": "([0-9a-f]{64})",')


class Seal(NamedTuple):
    """The first line of sealed JSON: the format of the rest, and whether the rest has the SHA-256 of that line."""

    format: int
    holds: bool


def sealed(format: int, fields: Mapping[str, str]) -> bytes:
    """Return the bytes of an object with these fields, each of which is JSON already and gets a line of its own."""
    body = (",\n".join(f'  "{name}": {value}' for name, value in fields.items()) + "\n}\n").encode()
    return f'{{"format": {format}, "sha256": "{sha256(body).hexdigest()}",\n'.encode() + body


def seal_of(text: bytes) -> Seal | None:
    """Return the seal of a text; None if it has none."""
    first, _, body = text.partition(b"\n")
    line = _FIRST_LINE.fullmatch(first)
    return Seal(int(line[1]), sha256(body).hexdigest() == line[2].decode()) if line else None
