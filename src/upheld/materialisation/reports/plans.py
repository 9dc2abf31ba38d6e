"""How an engine matches rules, as text that notebooks show as a tree."""

from __future__ import annotations

from upheld.base.pages import indented, outline


class Plans(str):
    """The plans of all rules, as lines of text. A notebook shows a tree that folds."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return outline(indented(self.splitlines()), unfolded=1)
