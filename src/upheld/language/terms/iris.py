"""Relative IRIs: RFC 3986, section 5.2, which RFC 3987 takes over."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: Appendix B of RFC 3986: scheme, authority, path, query and fragment.
_PARTS = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.\-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)


def resolve(reference: str, base: str) -> str:
    """Return the absolute IRI that a reference stands for beside a base.

    >>> resolve("../c?d", "http://e/a/b/x"), resolve("#f", "http://e/a?q"), resolve("urn:x", "http://e/")
    ('http://e/a/c?d', 'http://e/a?q#f', 'urn:x')
    """
    scheme, authority, path, query, fragment = _split(reference)
    base_scheme, base_authority, base_path, base_query, _ = _split(base)
    if scheme is None:
        scheme = base_scheme
        if authority is None:
            authority = base_authority
            if not path:
                path, query = base_path, base_query if query is None else query
            else:
                path = _without_dots(path if path[0] == "/" else _merged(path, base_authority, base_path))
        else:
            path = _without_dots(path)
    else:
        path = _without_dots(path)
    parts = (f"{scheme}:", "" if authority is None else f"//{authority}", path)
    return "".join(parts) + ("" if query is None else f"?{query}") + ("" if fragment is None else f"#{fragment}")


def _split(iri: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    match = _PARTS.fullmatch(iri)
    assert match is not None, "every text is a reference"
    return match[1], match[2], match[3], match[4], match[5]


def _merged(path: str, base_authority: str | None, base_path: str) -> str:
    if base_authority is not None and not base_path:
        return f"/{path}"
    return base_path[: base_path.rfind("/") + 1] + path


def _without_dots(path: str) -> str:
    """Return a path without `.` and `..`: section 5.2.4."""
    result: list[str] = []
    segments = path.split("/")
    for i, segment in enumerate(segments):
        last = i == len(segments) - 1
        if segment not in (".", ".."):
            result.append(segment)
            continue
        if segment == ".." and len(result) > 1:
            result.pop()
        if last:
            result.append("")
    return "/".join(result)


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
