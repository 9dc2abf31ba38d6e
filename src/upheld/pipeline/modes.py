"""Where rules are applied: by the memory engine in the driver if the facts fit there, else by rounds of Spark jobs."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from upheld.errors import LimitReached, Problem, UsageError, quote
from upheld.pipeline.job import Settings
from upheld.pipeline.report import Choice

# What facts take in the driver at least: for each fact a row on its way in, its place in the table, flags and an index;
# for each text a Python object beside its characters.
_FACT_BYTES = 64
_VALUE_BYTES = 16
_TEXT_BYTES = 80

_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}

_PLANS = {"driver": "the driver's memory engine", "rounds": "rounds of Spark jobs"}


@dataclass(frozen=True)
class Sizes:
    """What the explicit facts of a run amount to."""

    facts: int
    values: int
    texts: int
    characters: int

    @property
    def need(self) -> int:
        """The bytes they take in the driver."""
        return self.facts * _FACT_BYTES + self.values * _VALUE_BYTES + self.texts * _TEXT_BYTES + self.characters

    def __str__(self) -> str:
        return f"{self.facts:,} facts and {self.texts:,} texts take about {_shown(self.need)}"


def bytes_of(size: str | None) -> int:
    """Return the bytes that a size such as `4g` means; half of the machine's memory by default."""
    if size is None:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    found = re.fullmatch(r"(\d+)([kmgt]?)b?", size.lower())
    if not found:
        message, note = f"{quote(size)} is not a size", "a size is a whole number with k, m, g or t, such as `4g`"
        raise UsageError(Problem("bad-job", message, place="driver_memory", note=note))
    return int(found[1]) * _UNITS[found[2]]


def choose(settings: Settings, sizes: Sizes) -> tuple[str, Choice]:
    """Return the mode of a run, and why; raise if the facts do not fit where they must."""
    limit = bytes_of(settings.driver_memory)
    fits = sizes.need <= limit
    room = f"{sizes}, and {_shown(limit)} are allowed"
    if settings.mode != "auto":
        mode, why = settings.mode, f"it was asked for; {room}"
    elif settings.state is not None:
        mode, why = "driver", room  # a state is read and written by the driver
    else:
        mode, why = ("driver" if fits else "rounds"), f"{room} in the driver"
    if mode == "driver" and not fits:
        raise LimitReached(
            Problem(
                "too-large-for-driver",
                f"{sizes} in the driver, and {_shown(limit)} are allowed",
                note="rules are applied by the memory engine in the driver, if that was asked for or a state is kept",
                hint="raise `driver_memory` if the machine has more, or keep no state and choose the mode `rounds`",
            )
        )
    return mode, Choice("rules are applied in", _PLANS[mode], why)


def _shown(size: int) -> str:
    return f"{size / 2**30:.1f} GB" if size >= 2**30 else f"{size / 2**20:.1f} MB"
