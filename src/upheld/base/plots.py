"""Plots as SVG, for pages that need nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence

from upheld.base.pages import Markup, element, text

#: Sizes in pixels.
_WIDTH, _BAR, _LABEL, _NOTE = 860, 18, 420, 120
_PLOT_HEIGHT, _MARGIN = 240, 60
#: The height of a line of text.
_LINE = 18


def bars(values: Sequence[tuple[str, float, str]]) -> Markup:
    """Return horizontal bars: for each a label, a value, and the note behind the bar."""
    most = max((value for _, value, _ in values), default=0) or 1
    room = _WIDTH - _LABEL - _NOTE
    lines = []
    for i, (label, value, note) in enumerate(values):
        y, width = i * (_BAR + 4), max(1.0, room * value / most)
        short = label if len(label) <= 60 else f"{label[:59]}…"
        name = element("text", short, x=_LABEL - 6, y=y + 13, text_anchor="end")
        bar = element("rect", x=_LABEL, y=y, width=f"{width:.1f}", height=_BAR)
        after = element("text", note, x=f"{_LABEL + width + 6:.1f}", y=y + 13)
        lines.append(element("g", element("title", f"{label}: {note}"), name, bar, after))
    return _picture(len(values) * (_BAR + 4), lines)


def over_time(values: Sequence[tuple[int, float, str]], baseline: float | None, name: str) -> Markup:
    """Return a point for each number of a run, on a logarithmic scale, and a line for what they are compared with."""
    shown = [value for _, value, _ in values if value > 0] + ([baseline] if baseline else [])
    if not shown:
        return Markup()
    low, high = math.floor(math.log10(min(shown))), math.ceil(math.log10(max(shown)) + 1e-9)
    first, last = values[0][0], max(values[-1][0], values[0][0] + 1)

    def x(number: float) -> float:
        return _MARGIN + (number - first) / (last - first) * (_WIDTH - 2 * _MARGIN)

    def y(value: float) -> float:
        exponent = math.log10(value) if value > 0 else low
        return 10 + (high - exponent) / max(1, high - low) * (_PLOT_HEIGHT - 40)

    parts = []
    for exponent in range(low, high + 1):
        at = y(10.0**exponent)
        parts.append(element("line", x1=_MARGIN, x2=_WIDTH - _MARGIN, y1=f"{at:.1f}", y2=f"{at:.1f}", class_="grid"))
        parts.append(element("text", f"{10.0**exponent:g}", x=_MARGIN - 6, y=f"{at + 4:.1f}", text_anchor="end"))
    for number, value, note in values:
        point = element("circle", element("title", note), cx=f"{x(number):.1f}", cy=f"{y(value):.1f}", r=3)
        parts.append(point)
    if baseline:
        at = y(baseline)
        parts.append(element("line", x1=_MARGIN, x2=_WIDTH - _MARGIN, y1=f"{at:.1f}", y2=f"{at:.1f}", class_="base"))
        beside = at - 4 if at >= _LINE else at + _LINE - 4  # below, where the line is at the upper edge
        label = "starting again"
        parts.append(element("text", label, x=_WIDTH - _MARGIN, y=f"{beside:.1f}", text_anchor="end", class_="base"))
    parts.append(element("text", name, x=_WIDTH / 2, y=_PLOT_HEIGHT - 4, text_anchor="middle"))
    parts += [element("text", n, x=f"{x(n):.1f}", y=_PLOT_HEIGHT - 16, text_anchor="middle") for n in {first, last}]
    return _picture(_PLOT_HEIGHT, parts)


def _picture(height: int, parts: Sequence[Markup]) -> Markup:
    return element("svg", *parts, viewBox=f"0 0 {_WIDTH} {max(height, 1)}", width=_WIDTH, height=max(height, 1))


_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 900px; margin: 2em auto; padding: 0 1em; color: #222; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }
table { border-collapse: collapse; font-size: 13px; } td, th { padding: 2px 10px 2px 0; vertical-align: top; }
tr + tr td { border-top: 1px solid #eee; }
svg { max-width: 100%; font: 12px system-ui, sans-serif; }
svg rect { fill: #3b7ea1; } svg circle { fill: #3b7ea1; opacity: .75; } svg text { fill: #222; }
svg .grid { stroke: #e4e4e4; } svg line.base { stroke: #c4572b; stroke-dasharray: 5 4; }
svg text.base { fill: #c4572b; }
details > summary { cursor: pointer; }
"""


def page(title: str, *content: object) -> str:
    """Return a whole page, which needs no other file."""
    head = element("head", element("meta", charset="utf-8"), element("title", title), element("style", Markup(_STYLE)))
    body = element("body", element("h1", title), *map(text, content))
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"
