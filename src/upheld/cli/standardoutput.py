"""Standard output as commands write to it, whoever reads it and for how long."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, TextIO, cast

from upheld.base.errors import FactsError, Problem


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
