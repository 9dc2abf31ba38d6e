"""Dates, times and durations of XML Schema: any year, any fraction of a second, and a time zone or none.

These are the values of RDF literals. They are compared exactly; where XML Schema does not order two of them, they have
no order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from functools import cache

EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)

_ZONE = r"(?P<zone>Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9]|[+-]14:00)?"
_DATE = r"(?P<year>-?(?:[1-9][0-9]{3,8}|0[0-9]{3}))-(?P<month>0[1-9]|1[0-2])-(?P<day>0[1-9]|[12][0-9]|3[01])"
_TIME = (
    r"(?:(?P<hour>[01][0-9]|2[0-3]):(?P<minute>[0-5][0-9]):(?P<second>[0-5][0-9](?:\.[0-9]{1,1000})?)"
    r"|(?P<midnight>24:00:00(?:\.0{1,1000})?))"
)
_MOMENTS = {"dateTime": f"{_DATE}T{_TIME}{_ZONE}", "date": f"{_DATE}{_ZONE}", "time": f"{_TIME}{_ZONE}"}
_NUMBER = "[0-9]{1,1000}"
_MONTHS = rf"(?:(?P<years>{_NUMBER})Y)?(?:(?P<months>{_NUMBER})M)?"
_SECONDS = (
    rf"(?:(?P<days>{_NUMBER})D)?"
    rf"(?:T(?=[0-9])(?:(?P<hours>{_NUMBER})H)?(?:(?P<minutes>{_NUMBER})M)?(?:(?P<seconds>{_NUMBER}(?:\.{_NUMBER})?)S)?)?"
)
_DURATIONS = {
    "duration": rf"(?P<sign>-?)P(?=[0-9T]){_MONTHS}{_SECONDS}",
    "yearMonthDuration": rf"(?P<sign>-?)P(?=[0-9]){_MONTHS}",
    "dayTimeDuration": rf"(?P<sign>-?)P(?=[0-9T]){_SECONDS}",
}
MOMENTS, DURATIONS = frozenset(_MOMENTS), frozenset(_DURATIONS)

#: Of two moments of which one has no zone, none comes first if they are this close: zones reach 14 hours either way.
_WIDEST_ZONE = 14 * 3600
#: The months from which durations are compared, by XML Schema: all lengths of months come one after another.
_REFERENCES = ((1696, 9), (1697, 2), (1903, 3), (1903, 7))


@dataclass(frozen=True, slots=True)
class Moment:
    """A dateTime, date or time as it is written, with its zone in minutes; a time is on a day of its own."""

    kind: str
    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: Decimal
    zone: int | None

    def seconds(self) -> tuple[int, Decimal]:
        """Return the seconds since year 0, whole ones and the rest; in UTC if there is a zone."""
        whole = int(self.second)
        days = days_before(self.year, self.month) + self.day
        seconds = (days * 24 + self.hour) * 3600 + (self.minute - (self.zone or 0)) * 60 + whole
        return seconds, EXACT.subtract(self.second, Decimal(whole))


@dataclass(frozen=True, slots=True)
class Duration:
    """A number of months and of seconds."""

    months: int
    seconds: Decimal


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """Return a compiled pattern: most programs need none of these."""
    return re.compile(text)


def days_before(year: int, month: int) -> int:
    """Return the days from the first of March of year 0 to the first of a month, in the Gregorian calendar."""
    year, month = (year, month - 3) if month > 2 else (year - 1, month + 9)  # years from March end with a leap day
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5


def moment(kind: str, text: str) -> Moment | None:
    """Return the dateTime, date or time that a text stands for, if it does.

    >>> moment("date", "2024-02-29").day, moment("date", "2023-02-29")
    (29, None)
    """
    if (match := _pattern(_MOMENTS[kind]).fullmatch(text)) is None:
        return None
    parts = match.groupdict()
    year, month, day = (int(parts.get(name) or default) for name, default in (("year", 0), ("month", 3), ("day", 1)))
    if day > days_before(year + month // 12, month % 12 + 1) - days_before(year, month):
        return None
    hour, minute = (int(parts.get(name) or 0) for name in ("hour", "minute"))
    if parts.get("midnight") and kind == "dateTime":  # the first moment of the next day
        year, month, day = _next_day(year, month, day)
    return Moment(kind, year, month, day, hour, minute, Decimal(parts.get("second") or 0), _zone(parts["zone"]))


def _next_day(year: int, month: int, day: int) -> tuple[int, int, int]:
    following = (year + month // 12, month % 12 + 1)
    last = days_before(*following) - days_before(year, month)
    return (year, month, day + 1) if day < last else (*following, 1)


def _zone(text: str | None) -> int | None:
    if text is None or text == "Z":
        return None if text is None else 0
    minutes = int(text[1:3]) * 60 + int(text[4:])
    return -minutes if text[0] == "-" else minutes


def duration(kind: str, text: str) -> Duration | None:
    """Return the duration that a text stands for, if it does.

    >>> duration("duration", "-P1Y2MT3S")
    Duration(months=-14, seconds=Decimal('-3'))
    """
    if (match := _pattern(_DURATIONS[kind]).fullmatch(text)) is None:
        return None
    parts = match.groupdict()
    sign = -1 if parts["sign"] else 1
    months = int(parts.get("years") or 0) * 12 + int(parts.get("months") or 0)
    days, hours, minutes = (int(parts.get(name) or 0) for name in ("days", "hours", "minutes"))
    seconds = EXACT.add(Decimal(((days * 24 + hours) * 60 + minutes) * 60), Decimal(parts.get("seconds") or 0))
    return Duration(sign * months, seconds if sign == 1 else EXACT.minus(seconds))


def zone_text(minutes: int) -> str:
    """Return a zone as dates have it.

    >>> zone_text(0), zone_text(-330)
    ('Z', '-05:30')
    """
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}" if minutes else "Z"


def zone_duration(minutes: int) -> str:
    """Return a zone as a duration.

    >>> zone_duration(0), zone_duration(-330)
    ('PT0S', '-PT5H30M')
    """
    hours, rest = divmod(abs(minutes), 60)
    text = (f"{hours}H" if hours else "") + (f"{rest}M" if rest else "")
    return f"{'-' if minutes < 0 else ''}PT{text or '0S'}"


def compared(a: Moment | Duration, b: Moment | Duration) -> int | None:
    """Return -1, 0 or 1 if `a` is before, equal to or after `b`, both of one kind; None if there is no order."""
    if isinstance(a, Moment) and isinstance(b, Moment):
        return _compared_moments(a, b)
    assert isinstance(a, Duration) and isinstance(b, Duration), "values of two kinds"
    signs = {_sign(_after(a, reference), _after(b, reference)) for reference in _REFERENCES}
    return signs.pop() if len(signs) == 1 else None


def _compared_moments(a: Moment, b: Moment) -> int | None:
    one, other = a.seconds(), b.seconds()
    if (a.zone is None) == (b.zone is None):
        return _sign(one, other)
    if a.zone is not None:
        return None if (sign := _compared_moments(b, a)) is None else -sign
    seconds, rest = one
    if (seconds + _WIDEST_ZONE, rest) < other:
        return -1
    return 1 if (seconds - _WIDEST_ZONE, rest) > other else None


def _after(duration: Duration, reference: tuple[int, int]) -> Decimal:
    """Return the seconds of a moment that is a duration after the first of a month."""
    year, month = reference
    months = year * 12 + month - 1 + duration.months
    return EXACT.add(Decimal(days_before(months // 12, months % 12 + 1) * 86400), duration.seconds)


def _sign(a: Decimal | tuple[int, Decimal], b: Decimal | tuple[int, Decimal]) -> int:
    return (a > b) - (a < b)  # type: ignore[operator]
