"""Texts and places in them, so that every error can point at what it speaks of."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

#: A line of a source may be megabytes long; this much of it is shown around the place of interest.
EXCERPT_WIDTH = 120


@dataclass(frozen=True, eq=False)
class Source:
    """A named text, or a part of one. Two sources are the same only if they are the same object."""

    name: str
    text: str
    #: The number of its first line, which is above one in a part that other lines come before.
    first_line: int = 1
    _line_starts: list[int] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        starts = self._line_starts
        starts.append(0)
        at = self.text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = self.text.find("\n", at + 1)

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and column of an offset, both counted from one."""
        line = bisect_right(self._line_starts, offset)
        return self.first_line + line - 1, offset - self._line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        """Return the text of a line, without its end."""
        at = number - self.first_line
        start = self._line_starts[at]
        end = self._line_starts[at + 1] - 1 if at + 1 < len(self._line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r")


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """The characters `start` up to `end` of a source, and the `.init` that put them into the program, if one did."""

    source: Source
    start: int
    end: int
    origin: Span | None = None

    @property
    def line(self) -> int:
        return self.source.position(self.start)[0]

    @property
    def column(self) -> int:
        return self.source.position(self.start)[1]

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"

    def to(self, other: Span) -> Span:
        """Return the span from the start of this one to the end of the other."""
        return Span(self.source, self.start, max(self.end, other.end), self.origin)

    def origins(self) -> Iterator[Span]:
        """Yield the `.init` directives that put this place into the program, innermost first."""
        span = self.origin
        while span is not None:
            yield span
            span = span.origin

    def excerpt(self) -> str:
        """Return the line of the span with a caret line below it."""
        line, column = self.source.position(self.start)
        text = self.source.line(line)
        marked = max(1, min(self.end - self.start, len(text) - column + 1))
        begin = max(0, column - 1 - EXCERPT_WIDTH // 2) if len(text) > EXCERPT_WIDTH else 0
        shown = text[begin : begin + EXCERPT_WIDTH]
        left, right = "..." if begin else "", "..." if begin + EXCERPT_WIDTH < len(text) else ""
        # Tabs are kept in the padding so that the caret stays below its character.
        padding = "".join("\t" if c == "\t" else " " for c in left + text[begin : column - 1])
        carets = "^" * min(marked, EXCERPT_WIDTH - (column - 1 - begin))
        number = str(line)
        visible = "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in shown)
        return f"  {number} | {left}{visible}{right}\n  {' ' * len(number)} | {padding}{carets}"
