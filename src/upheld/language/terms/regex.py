"""Regular expressions of RE2, which are matched in linear time.

Patterns and texts may both come from facts. Backtracking takes exponential time on some pairs of the two, in
a call that no limit can stop. RE2 knows POSIX classes such as `[[:digit:]]`, as Soufflé does; it has neither
backreferences nor lookaround.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any


class NotARegex(Exception):
    """A text is not a regular expression, with the reason."""


@lru_cache(maxsize=256)
def regular_expression(pattern: str) -> Any:
    """Return the compiled pattern; raise `NotARegex` if it is none."""
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        (reason,) = error.args
        raise NotARegex(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from None
    except UnicodeEncodeError:
        raise NotARegex("it has a lone surrogate") from None


def matches(pattern: str, text: str) -> bool:
    """Return whether the whole of a text matches."""
    return regular_expression(pattern).fullmatch(text) is not None


# -- SPARQL -----------------------------------------------------------------------------------------------------------

_SPACE = re.compile(r"\\.|\[(?:\^?\])?(?:\\.|\[:\w+:\]|[^\]\\])*\]|[\t\n\r ]+", re.DOTALL)
_REFERENCE = re.compile(r"\\([\\$])|\$([0-9]+)|[\\$]")


def with_flags(pattern: str, flags: str) -> Any:
    """Return the compiled pattern under flags of XPath: `i`, `m`, `s` as in RE2, `x` (no spaces), `q` (no signs)."""
    if set(flags) - set("imsxq"):
        raise NotARegex(f"the flags are `i`, `m`, `s`, `x` and `q`, not {flags!r}")
    if "q" in flags:
        pattern = re.sub(r"([^\w\s])", r"\\\1", pattern)
    elif "x" in flags:
        pattern = _SPACE.sub(lambda match: "" if match[0].isspace() else match[0], pattern)
    groups = "".join(sorted(set(flags) & set("im" if "q" in flags else "ims")))
    return regular_expression(f"(?{groups}:{pattern})" if groups else pattern)


def replaced(pattern: str, flags: str, replacement: str, text: str) -> str:
    """Return a text with all matches replaced. `$1` stands for the first group, `\\$` for a dollar sign."""
    expression = with_flags(pattern, flags)
    if expression.search("") is not None:
        raise NotARegex("it matches the empty string")
    pieces = [replacement] if "q" in flags else _pieces(replacement, expression.groups)

    def one(match: Any) -> str:
        return "".join(piece if isinstance(piece, str) else match.group(piece) or "" for piece in pieces)

    return str(expression.sub(one, text))


def _pieces(replacement: str, groups: int) -> list[str | int]:
    """Return a replacement as texts and numbers of groups. A number has as many digits as there are such groups."""
    pieces: list[str | int] = []
    end = 0
    for match in _REFERENCE.finditer(replacement):
        pieces.append(replacement[end : match.start()])
        end = match.end()
        if match[1]:
            pieces.append(match[1])
        elif match[2]:
            digits = next((n for n in range(len(match[2]), 1, -1) if int(match[2][:n]) <= groups), 1)
            number = int(match[2][:digits])
            pieces.append(number if number <= groups else "")
            pieces.append(match[2][digits:])
        else:
            raise NotARegex("in a replacement, `$` is followed by a number and `\\` by `$` or `\\`")
    return [*pieces, replacement[end:]]
