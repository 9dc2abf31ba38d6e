"""The values of facts as Python has them."""

from __future__ import annotations

Value = int | float | str
