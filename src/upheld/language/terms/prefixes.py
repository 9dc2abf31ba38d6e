"""Prefixes for IRIs in texts that people read."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: IRIs, and strings, which may hold what looks like one.
_IRI = re.compile(r'"(?:[^"\\]|\\.)*+"|<([^<>\s"]*+)>')
_LOCAL = re.compile(r"[A-Za-z0-9_](?:[\w.\-]*[\w\-])?")


def shortened(text: str, prefixes: Mapping[str, str]) -> str:
    """Return a text with prefixes for the IRIs outside of strings.

    >>> shortened('<http://e/a> "<http://e/b>"', {"e": "http://e/"})
    'e:a "<http://e/b>"'
    """
    by_length = sorted(prefixes.items(), key=lambda prefix: -len(prefix[1]))

    def short(match: re.Match[str]) -> str:
        iri = match[1]
        for name, namespace in by_length:
            if iri is not None and namespace and iri.startswith(namespace) and _LOCAL.fullmatch(iri, len(namespace)):
                return f"{name}:{iri[len(namespace) :]}"
        return match[0]

    return _IRI.sub(short, text) if prefixes else text
