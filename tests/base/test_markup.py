"""HTML of pages: text is escaped, trees fold, and numbers are aligned to the right."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from upheld.base.pages import Markup, element, first_rows, indented, outline, table, text
from upheld.base.plots import bars, over_time, page


class Nesting(HTMLParser):
    """Checks that each element ends where it should, and counts the elements."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.deepest = 0

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in ("br", "meta"):
            self.open.append(tag)
            self.deepest = max(self.deepest, self.open.count("details"))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parsed(html: str) -> Nesting:
    parser = Nesting()
    parser.feed(html)
    assert parser.open == []
    return parser


def test_text_is_escaped():
    """What facts contain is shown, and never is HTML."""
    assert element("td", "<script>&") == "<td>&lt;script&gt;&amp;</td>"
    assert element("a", "x", title='"<') == '<a title="&quot;&lt;">x</a>'
    assert element("b", Markup("<i>x</i>")) == "<b><i>x</i></b>"


@pytest.mark.parametrize("odd", ["\x00", "\x1b", "\x7f", "\ud800"])
def test_characters_that_html_does_not_have(odd):
    """A page can be written whatever the facts contain."""
    assert text(f"a{odd}b").encode() == "a\N{REPLACEMENT CHARACTER}b".encode()


def test_a_table_of_the_first_rows():
    """Rows beyond the first ten are counted, long values are cut, and numbers are aligned to the right."""
    html = first_rows(("x", "y"), [(i, "z" * 500) for i in range(13)], 13)
    assert parsed(html).seen.count("tr") == 11
    assert "3 more rows" in html
    assert "z" * 201 not in html
    assert 'text-align:right">12<' not in html and 'text-align:right">9<' in html
    assert "more row" not in first_rows(("x",), [(1,)], 1)


def test_booleans_are_not_numbers():
    """A column with a truth value is text."""
    assert "right" not in table(("x",), [(True,), (1,)])


def test_numbers_that_are_missing():
    """A blank does not make a column of numbers one of texts; blanks alone are texts."""
    assert 'text-align:right">7<' in table(("x",), [(7,), ("",)])
    assert "right" not in table(("x",), [("",)])


def test_an_outline_folds():
    """An entry contains the deeper entries that follow it; only the first levels are open."""
    html = outline(indented(["a", "  b", "    c", "      d", "        e", "  f", "g"]))
    found = parsed(html)
    assert found.deepest == 4
    assert html.count("<details open>") == 3
    assert html.index(">f<") > html.index(">e<")


def test_a_deep_outline():
    """A tree of any depth is built without recursion."""
    assert parsed(outline((level, "x") for level in range(2_000))).deepest == 1_999


def test_plots():
    """Plots have a mark for each value, also where all values are the same or zero."""
    assert parsed(bars([("a", 1.0, "1 s"), ("b", 0.0, "0 s")])).seen.count("rect") == 2
    assert parsed(bars([])).seen == ["svg"]
    assert parsed(over_time([(1, 0.1, "n"), (2, 0.0, "n")], 3.0, "seconds")).seen.count("circle") == 2
    assert parsed(over_time([(1, 1.0, "n")], None, "seconds")).seen.count("circle") == 1
    assert over_time([(1, 0.0, "n")], 0.0, "seconds") == ""


@pytest.mark.parametrize("baseline", [10.0, 9.9, 8.0, 5.0, 0.1])
def test_the_label_of_a_line_is_within_the_plot(baseline):
    """Also if the line is at the upper edge, where there is no room above it."""
    html = over_time([(1, 0.1, "n"), (2, 0.2, "n")], baseline, "seconds")
    found = re.search(r'y="([0-9.]+)"[^>]*class="base">starting again', html)
    assert found and 12 <= float(found[1]) <= 236


def test_a_page_needs_no_other_file():
    """It has its style in it, and no address of anything else."""
    html = page("Title <", element("p", "text"))
    parsed(html)
    assert "Title &lt;" in html
    assert "http" not in html and "src=" not in html
