"""What threads hold of a materialisation while others change it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any

from upheld.columns import Row
from upheld.errors import Problem
from upheld.turns import Turns


class RowsInTurn(Set[Row]):
    """Rows that an engine makes when they are asked for: whoever asks waits for a turn."""

    def __init__(self, rows: Set[Row], turns: Turns):
        self._rows, self._turns = rows, turns

    @classmethod
    def _from_iterable(cls, rows: Iterable[Row]) -> frozenset[Row]:  # type: ignore[override]
        return frozenset(rows)

    def __len__(self) -> int:
        with self._turns.look():
            return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        with self._turns.look():
            return iter(list(self._rows))

    def __contains__(self, row: object) -> bool:
        with self._turns.look():
            return row in self._rows

    def frame(self, columns: Sequence[str]) -> Any:
        """Return the rows as a DataFrame, if Spark holds them."""
        with self._turns.look():
            return self._rows.frame(columns) if hasattr(self._rows, "frame") else None


def not_copied(kind: str) -> Problem:
    """Return the problem of a thing that belongs to one process, and cannot be pickled or copied."""
    return Problem(
        "not-copied",
        f"a {kind} cannot be pickled or copied",
        note="its facts and bookkeeping belong to one process",
        hint="`m.save(folder)` and `upheld.restore(program, folder)` make another; relations can be pickled",
    )
