"""Errors and warnings on standard error: the one way by which commands show them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from upheld import UpheldWarning


def show(message: object) -> None:
    """Print an error or a warning to standard error, in colour if that is a terminal."""
    text = str(message)
    print(paint(text) if sys.stderr.isatty() else text, file=sys.stderr)


def paint(message: str) -> str:
    """Return a message with its `error:` in red, its `warning:` in yellow and its notes in blue, for a terminal."""
    for word, colour in ((" error:", 31), (" warning:", 33), (" note:", 34), (" hint:", 34)):
        message = message.replace(word, f"\033[{colour}m{word}\033[0m")
    return message


@contextmanager
def warnings_shown() -> Iterator[None]:
    """Show each `UpheldWarning` that is issued meanwhile as a message, without the line of code that issued it."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UpheldWarning)
        others = warnings.showwarning

        def showwarning(message: Warning | str, *place: object, **more: object) -> None:
            if isinstance(message, UpheldWarning):
                show(message)
            else:
                others(message, *place, **more)  # type: ignore[arg-type]

        warnings.showwarning = showwarning
        yield
