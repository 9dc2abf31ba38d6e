"""Elements of HTML. Text is escaped unless it is markup already."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from upheld.base.errors import count

#: Rows of a relation that a page shows.
ROWS_SHOWN = 10

#: Characters of a value that a cell shows.
CHARACTERS_SHOWN = 200

#: Characters that HTML does not allow: controls except tab and newline, and halves of surrogate pairs.
_NOT_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")

#: Elements without content and end tag.
_VOID = ("br", "meta")


class Markup(str):
    """HTML: `element` inserts it as it is."""

    __slots__ = ()


def text(content: object) -> Markup:
    """Return a value as HTML."""
    if isinstance(content, Markup):
        return content
    from html import escape

    return Markup(escape(_NOT_TEXT.sub("\N{REPLACEMENT CHARACTER}", str(content))))


def element(name: str, *content: object, **attributes: object) -> Markup:
    """Return an element. An attribute that is True has no value; one that is None is left out.

    >>> element("b", "x < y", class_="c")
    '<b class="c">x &lt; y</b>'
    """
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{text(value)}"')
        for key, value in attributes.items()
        if value is not None
    )
    inside = "" if name in _VOID else f"{''.join(map(text, content))}</{name}>"
    return Markup(f"<{name}{written}>{inside}")


def joined(parts: Iterable[object]) -> Markup:
    """Return several parts, one after the other."""
    return Markup("".join(map(text, parts)))


def table(columns: Sequence[object], rows: Iterable[Sequence[object]]) -> Markup:
    """Return a table with a head. Columns of numbers, some of which may be missing, are aligned to the right."""
    every = list(rows)
    filled = [[row[i] for row in every if row[i] != ""] for i in range(len(columns))]
    right = [bool(values) and all(map(_is_number, values)) for values in filled]
    head = element("tr", *(_aligned("th", column, is_right) for column, is_right in zip(columns, right)))
    body = (element("tr", *(_aligned("td", _shown(v), r) for v, r in zip(row, right))) for row in every)
    return element("table", element("thead", head), element("tbody", *body))


def _aligned(name: str, content: object, right: bool) -> Markup:
    return element(name, content, style=f"text-align:{'right' if right else 'left'}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: object) -> object:
    """Return a value as a cell shows it."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Markup) or len(whole := str(value)) <= CHARACTERS_SHOWN:
        return value
    return f"{whole[:CHARACTERS_SHOWN]}…"


def first_rows(columns: Sequence[object], rows: Iterable[Sequence[object]], size: int) -> Markup:
    """Return a table of the first of `size` rows, with a line that reports how many more there are."""
    more = f"… and {count(size - ROWS_SHOWN, 'more row')}"
    return joined([table(columns, islice(rows, ROWS_SHOWN)), element("small", more) if size > ROWS_SHOWN else ""])


def outline(entries: Iterable[tuple[int, object]], unfolded: int = 3) -> Markup:
    """Return entries, each with its level, as a tree that folds: an entry contains the deeper ones that follow it.

    Entries of fewer levels than `unfolded` are open at first.
    """
    #: For each open entry: its level, its own content, and the parts that it contains so far.
    open_: list[tuple[int, object, list[Markup]]] = [(-1, "", [])]

    def close(level: int) -> None:
        while open_[-1][0] >= level:
            depth, content, inner = open_.pop()
            folds = element("summary", content)
            body = element("div", *inner, style="margin-left:1.5em")
            folding = element("details", folds, body, open=True if depth < unfolded else None)
            open_[-1][2].append(folding if inner else element("div", content, style="margin-left:1em"))

    for level, content in entries:
        close(level)
        open_.append((level, content, []))
    close(0)
    return element("div", *open_[0][2], style="font-family:monospace;white-space:pre-wrap;text-align:left")


def indented(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield lines of text with the levels that their indentation by pairs of blanks means."""
    for line in lines:
        rest = line.lstrip(" ")
        yield (len(line) - len(rest)) // 2, rest


class Plans(str):
    """The plans of all rules, as lines of text. A notebook shows a tree that folds."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return outline(indented(self.splitlines()), unfolded=1)
