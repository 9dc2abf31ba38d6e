"""What a goal is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Goal:
    """Something to be reached, what was found, and whether that reaches it; `None` if it was not measured."""

    text: str
    found: str
    reached: bool | None


ANSWER = {True: "yes", False: "**no**", None: "not measured"}
