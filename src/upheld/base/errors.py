"""The exceptions of Upheld, how messages quote names, types and counts, and what refuses a wrong argument.

Each exception carries problems: what was found, where, the rule it breaks, the way out.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from upheld.base.source import Span

#: The note of a `KeyboardInterrupt` that came after a run had written all outputs.
WRITTEN = "all outputs had been written"

#: Names and values come from outside and may be of any length; messages quote no more than this of each.
QUOTED_LENGTH = 60


def quote(text: object) -> str:
    """Return `text` in backquotes, with unprintable characters replaced and cut to `QUOTED_LENGTH`."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))
    if len(shown) > QUOTED_LENGTH:
        shown = f"{shown[:QUOTED_LENGTH]}... ({len(str(text))} characters)"
    return f"`{shown}`"


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun.

    >>> count(1, "row"), count(2000, "row"), count(0, "stratum", "strata")
    ('1 row', '2,000 rows', '0 strata')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def described_type(value: object) -> str:
    """Return the type of a value for a message: an `int`, a `list`."""
    name = type(value).__name__
    return f"{'an' if name[:1] in 'aeiouAEIOU' else 'a'} {quote(name)}"


def described(value: object) -> str:
    """Return a value with its type, for messages."""
    if value is None or isinstance(value, bool):
        return quote(value)
    try:
        shown = repr(value)
    except Exception:  # a `__repr__` that is not ours
        shown = "..."
    return f"the `{type(value).__name__}` {quote(shown)}"


def nearest(name: object, known: Iterable[str]) -> str | None:
    """Return a hint with the known name most similar to `name`, or None; `name` may be any object."""
    from difflib import get_close_matches

    name = str(name)
    similar = get_close_matches(name, list(known), n=1, cutoff=0.6) if len(name) < 200 else []
    return f"did you mean {quote(similar[0])}?" if similar else None


@dataclass(frozen=True)
class Problem:
    """One mistake in the input. `slug` is stable and documented in `docs/reference/errors.md`."""

    slug: str
    message: str
    span: Span | None = None
    #: Where it is, when that is not a place in a source: a facts file and row, an argument of a call.
    place: str | None = None
    #: The rule that was broken.
    note: str | None = None
    #: The way out.
    hint: str | None = None
    #: Other places that matter, each with a label.
    related: tuple[tuple[str, Span], ...] = ()
    severity: str = "error"
    #: Lines that show what was found.
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = str(self.span) if self.span else self.place
        lines = [f"{where + ': ' if where else ''}{self.severity}: {self.message} [{self.slug}]"]
        if self.span:
            lines.append(self.span.excerpt())
            for origin in self.span.origins():
                lines.append(f"  {origin}: in the instance made here")
                lines.append(origin.excerpt())
        for label, span in self.related:
            lines.append(f"  {span}: {label}")
            lines.append(span.excerpt())
        lines += [f"  {line}" for line in self.details]
        if self.note:
            lines.append(f"  note: {self.note}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class UpheldError(Exception):
    """The base of all errors that Upheld raises, with one or more `problems`. Nothing has been changed."""

    def __init__(self, problems: Problem | Sequence[Problem]):
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        assert self.problems, "an error without a problem"
        super().__init__("\n".join(map(str, self.problems)))

    def __reduce__(self) -> tuple[object, ...]:
        """Errors of tasks go to other processes."""
        return type(self), (self.problems,)

    @property
    def slugs(self) -> tuple[str, ...]:
        """The slug of each problem."""
        return tuple(p.slug for p in self.problems)


class UpheldWarning(UserWarning):
    """A warning about a `problem` that is probably a mistake but stops nothing."""

    def __init__(self, problem: Problem):
        self.problem = problem
        super().__init__(str(problem))


def warn(problems: Iterable[Problem]) -> None:
    """Issue each problem as an `UpheldWarning`, at the line of the first caller outside Upheld."""
    level = 1 + len(list(_frames()))
    for problem in problems:
        warnings.warn(UpheldWarning(problem), stacklevel=level)


def _frames() -> Iterator[FrameType]:
    """Yield the frames of Upheld, from the innermost to the function that was called from outside."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "upheld":
        yield frame
        frame = frame.f_back


class ProgramError(UpheldError):
    """A program that cannot be read or is not valid."""


class FactsError(UpheldError):
    """Facts that do not fit the program, or a facts file that cannot be read or written."""


class EvaluationError(UpheldError):
    """A rule whose arithmetic has no result for some binding of its variables."""


class LimitReached(UpheldError):
    """A run stopped by one of its limits."""


class ConstraintViolated(UpheldError):
    """A change that violates constraints of the program, or facts that do.

    Args:
        problems: A problem for each violated constraint.
        violations: The new violations by constraint: relations whose columns are variables of the constraint.
        explanations: The proof of the first violation of each constraint.
    """

    def __init__(
        self,
        problems: Problem | Sequence[Problem],
        violations: Mapping[str, Any] | None = None,
        explanations: Mapping[str, Any] | None = None,
    ):
        super().__init__(problems)
        self.violations, self.explanations = dict(violations or {}), dict(explanations or {})

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.problems, self.violations, self.explanations)


class VerificationFailed(UpheldError):
    """Maintained facts that differ from a materialisation from scratch: a bug in Upheld."""


class UsageError(UpheldError):
    """A call or command that asks for something that does not exist."""


class MissingDependency(UpheldError):
    """An optional package that is needed but not installed."""


# -- arguments ---------------------------------------------------------------------------------------------------------


def require(is_right: bool, parameter: str, meaning: str, value: object) -> None:
    """Refuse an argument of the function that was called from outside Upheld, or by a command, unless it is right."""
    if not is_right:
        frames = (f for f in _frames() if not f.f_globals["__name__"].startswith("upheld.cli"))
        called = [f for f in frames if "<locals>" not in f.f_code.co_qualname][-1]
        code, owner = called.f_code, called.f_locals.get("self")
        name = code.co_qualname if owner is None else f"{type(owner).__name__}.{code.co_name}"
        raise bad_argument(f"`{parameter}` of `{name.removesuffix('.__init__')}`", meaning, value)


def bad_argument(what: str, meaning: str, value: object) -> UsageError:
    """Return the error for an argument that is not what it must be."""
    return UsageError(Problem("bad-argument", f"{what} must be {meaning}, got {described(value)}"))


def check_choice(value: object, parameter: str, choices: Iterable[str], slug: str) -> None:
    """Refuse an argument that is not one of the choices for a parameter."""
    known = list(choices)
    if not isinstance(value, str) or value not in known:
        message = f"{quote(value)} is not a value of `{parameter}`"
        note = f"it is one of {', '.join(map(quote, known))}"
        raise UsageError(Problem(slug, message, note=note, hint=nearest(value, known)))


def is_path(value: object) -> bool:
    """Return whether `value` is a path as text without NUL, which no file system allows."""
    return isinstance(value, str | os.PathLike) and isinstance(path := os.fspath(value), str) and "\0" not in path


def are_paths(value: object) -> bool:
    """Return whether `value` is a list of paths."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes) and all(map(is_path, value))


def are_texts(value: object) -> bool:
    """Return whether `value` is a list of strings."""
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(text, str) for text in value)


def is_whole(value: object, least: int = 0) -> bool:
    """Return whether `value` is a whole number of at least `least`."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def check_folder(folder: str | Path) -> None:
    """Refuse a folder that is not there, before the work rather than after it."""
    if not Path(folder).is_dir():
        message = f"there is no folder {quote(folder)} to write to"
        hint = "create the folder, or name another one"
        raise FactsError(Problem("missing-file", message, place=str(folder), hint=hint))
