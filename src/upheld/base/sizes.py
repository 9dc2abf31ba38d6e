"""Sizes of memory as people write them: `500M`, `1.5g`, `2t`."""

from __future__ import annotations

import re

_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def size_of(text: str) -> int | None:
    """Return a size in bytes, or None if `text` is not one: a number, then `k`, `m`, `g` or `t` in either case.

    >>> size_of("2k"), size_of("1.5G"), size_of("1t"), size_of("much")
    (2048, 1610612736, 1099511627776, None)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kmgt]?)b?", text.strip().lower(), re.ASCII)
    return int(float(match[1]) * _UNITS[match[2]]) if match else None
