"""Regular expressions of RE2, which are matched in linear time.

Patterns and texts may both come from facts. Backtracking takes exponential time on some pairs of the two, in
a call that no limit can stop. RE2 knows POSIX classes such as `[[:digit:]]`, as Soufflé does; it has neither
backreferences nor lookaround.
"""

from __future__ import annotations

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


def found_in(pattern: str, text: str) -> bool:
    """Return whether some part of a text matches."""
    return regular_expression(pattern).search(text) is not None
