"""Errors and warnings on standard error: the one way by which commands show them."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, TextIO, cast

from upheld import UpheldWarning
from upheld.base.errors import FactsError, Problem


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


class _StandardOutput:
    """A stream that goes on without its reader, and whose other failures are errors of ours."""

    def __init__(self, stream: TextIO):
        self._stream = stream

    def write(self, text: str) -> int:
        with self._kept():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._kept():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @contextmanager
    def _kept(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            self._drop()  # the reader has enough, which is its business: outputs that go elsewhere are still wanted
        except (OSError, UnicodeEncodeError) as error:
            self._drop()
            reason = getattr(error, "strerror", None) or error
            hint = "name a folder for outputs with `-D`, or a file for changes with `--changes`"
            message = f"standard output cannot be written: {reason}"
            raise FactsError(Problem("unwritable-file", message, place="<stdout>", hint=hint)) from None

    def _drop(self) -> None:
        """Have what is written from here on, and what has not been flushed yet, go nowhere."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, self._stream.fileno())
        finally:
            os.close(nowhere)


@contextmanager
def standard_output() -> Iterator[None]:
    """Let all that is printed meanwhile go through a stream that outlives its reader; flush it at the end."""
    with redirect_stdout(cast(TextIO, _StandardOutput(sys.stdout))):
        try:
            yield
        except BaseException:
            with suppress(FactsError):  # the error that is under way is the one to show
                sys.stdout.flush()
            raise
        sys.stdout.flush()
