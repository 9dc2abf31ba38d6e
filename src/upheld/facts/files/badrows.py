"""Rows that do not fit their relation, collected to be reported together."""

from __future__ import annotations

from collections.abc import Sequence

from upheld.base.errors import FactsError, Problem, quote

#: A file of the wrong kind may have a million bad rows; the first ones show what is wrong.
BAD_ROWS_SHOWN = 20

EXPECTED = {
    "number": "a `number` is a whole number from -9223372036854775808 to 9223372036854775807",
    "unsigned": "an `unsigned` is a whole number from 0 to 18446744073709551615",
    "float": "a `float` is a number such as `0.5`, `-3` or `1e9`, or `inf` or `nan`",
    "symbol": "a `symbol` is text",
    "record": "a record is written as in `[1, [2, nil]]`, and a branch as in `$Add($Num(1), $Zero)`",
    "term": "a `term` is an RDF term as N-Triples writes it",
}


class BadRows:
    """The problems of the bad rows found so far in one place, at most `BAD_ROWS_SHOWN` rows."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.problems: list[Problem] = []
        self._rows = 0

    def add(self, problems: Sequence[Problem]) -> None:
        """Add the problems of one more bad row; raise all of them if there are too many rows by now."""
        if self._rows == BAD_ROWS_SHOWN:
            message = f"more bad rows follow; only the first {BAD_ROWS_SHOWN} are shown"
            raise FactsError([*self.problems, Problem("more-bad-rows", message, place=self.place)])
        self._rows += 1
        self.problems += problems

    def check(self) -> None:
        """Raise the problems, if there are any."""
        if self.problems:
            raise FactsError(self.problems)


def column_name(index: int, columns: Sequence[str]) -> str:
    """Return a column's number from one, with its name if it has one, for messages."""
    return f"column {index + 1}" + (f" ({quote(columns[index])})" if index < len(columns) else "")
