"""Dates as days and timestamps as microseconds since 1970-01-01, in UTC: their texts, their parts and their arithmetic.

Years are from 1 to 9999, in the Gregorian calendar, as ISO 8601 and Python have them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

EPOCH = date(1970, 1, 1)
_START = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

SECOND = 1_000_000
DAY = 86_400 * SECOND

#: The first and the last day, and the first and the last microsecond.
DAYS = ((date.min - EPOCH).days, (date.max - EPOCH).days)
MICROSECONDS = (DAYS[0] * DAY, DAYS[1] * DAY + DAY - 1)

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ](?P<time>[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.(?P<digits>[0-9]+))?)?)"
    r"(?P<zone>Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)


class NotADate(Exception):
    """A text that is not a date or timestamp, or one outside the calendar; the message says why."""


def date_of(text: str) -> int:
    """Return the day of an ISO 8601 date.

    >>> date_of("1970-02-01"), date_of("0001-01-01")
    (31, -719162)
    """
    if not _DATE.fullmatch(text):
        raise NotADate("a date is written `YYYY-MM-DD`")
    try:
        return (date.fromisoformat(text) - EPOCH).days
    except ValueError:
        raise NotADate("there is no such day") from None


def date_text(days: int) -> str:
    """Return the ISO 8601 text of a day.

    >>> date_text(31)
    '1970-02-01'
    """
    return as_date(days).isoformat()


def as_date(days: int) -> date:
    """Return a day as Python's date."""
    return EPOCH + timedelta(days)


def timestamp_of(text: str) -> int:
    """Return the microsecond of an ISO 8601 timestamp. Without a zone it is in UTC; a date alone is its midnight.

    >>> timestamp_of("1970-01-01T00:00:01.5+00:00"), timestamp_of("1970-01-01 01:00+01:00")
    (1500000, 0)
    """
    matched = _TIMESTAMP.fullmatch(text)
    if matched is None:
        raise NotADate(
            "a timestamp is written `YYYY-MM-DDThh:mm:ss`, with a fraction and a zone such as `Z` or `+02:00`"
        )
    digits = (matched["digits"] or "").rstrip("0")
    if len(digits) > 6:
        raise NotADate("a timestamp has six digits after the second at most")
    time, zone = matched["time"] or "00:00", matched["zone"] or "Z"
    if matched["digits"]:
        time = f"{time[:8]}.{digits:0<6}"
    try:
        return microseconds(datetime.fromisoformat(f"{matched['date']}T{time}{zone}"))
    except ValueError:
        raise NotADate("there is no such time") from None


def timestamp_text(microseconds: int) -> str:
    """Return the ISO 8601 text of a microsecond, in UTC.

    >>> timestamp_text(0), timestamp_text(1_500_000)
    ('1970-01-01T00:00:00Z', '1970-01-01T00:00:01.500000Z')
    """
    return as_datetime(microseconds).isoformat().removesuffix("+00:00") + "Z"


def as_datetime(microseconds: int) -> datetime:
    """Return a microsecond as Python's datetime, in UTC."""
    return _START + timedelta(microseconds=microseconds)


def microseconds(moment: datetime) -> int:
    """Return the microsecond of a datetime, which is in UTC if it has no zone."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    matched = (moment - _START) // _MICROSECOND
    if not MICROSECONDS[0] <= matched <= MICROSECONDS[1]:
        raise NotADate("the years are from 1 to 9999")
    return matched


# -- parts ------------------------------------------------------------------------------------------------------------

#: The parts of a day.
PARTS_OF_DATES: dict[str, Callable[[date], int]] = {
    "year": lambda d: d.year,
    "quarter": lambda d: (d.month + 2) // 3,
    "month": lambda d: d.month,
    "week": lambda d: d.isocalendar().week,
    "day": lambda d: d.day,
    "day_of_week": lambda d: d.isoweekday(),
    "day_of_year": lambda d: d.timetuple().tm_yday,
}

#: The parts of the time of a day.
PARTS_OF_TIMES: dict[str, Callable[[datetime], int]] = {
    "hour": lambda t: t.hour,
    "minute": lambda t: t.minute,
    "second": lambda t: t.second,
    "microsecond": lambda t: t.microsecond,
}

#: Units of truncation, from the longest to the shortest; the last three are for timestamps only.
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_LENGTHS = {"day": DAY, "hour": 3_600 * SECOND, "minute": 60 * SECOND, "second": SECOND}


def day_of(microseconds: int) -> int:
    """Return the day that a microsecond belongs to."""
    return microseconds // DAY


def truncated_date(days: int, unit: str) -> int:
    """Return the first day of the year, quarter, month or week of a day; weeks begin on Monday.

    >>> date_text(truncated_date(date_of("2024-05-17"), "quarter"))
    '2024-04-01'
    """
    day = as_date(days)
    match unit:
        case "year":
            return (day.replace(month=1, day=1) - EPOCH).days
        case "quarter":
            return (day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1) - EPOCH).days
        case "month":
            return (day.replace(day=1) - EPOCH).days
        case "week":
            return days - day.weekday()
        case "day":
            return days
    raise NotADate(f"a date is truncated to {', '.join(UNITS[:4])} or {UNITS[4]}")


def truncated_timestamp(microseconds: int, unit: str) -> int:
    """Return the first microsecond of the unit that a microsecond belongs to."""
    if unit in _LENGTHS:
        return microseconds // _LENGTHS[unit] * _LENGTHS[unit]
    if unit not in UNITS:
        raise NotADate(f"a timestamp is truncated to {', '.join(UNITS[:-1])} or {UNITS[-1]}")
    return truncated_date(day_of(microseconds), unit) * DAY


# -- arithmetic -------------------------------------------------------------------------------------------------------


def plus_months(days: int, months: int) -> int:
    """Return the day some months later, the last one of its month if that month is shorter.

    >>> date_text(plus_months(date_of("2024-01-31"), 1))
    '2024-02-29'
    """
    day = as_date(days)
    month = day.year * 12 + day.month - 1 + months
    if not 12 <= month < 120_000:
        raise NotADate("the years are from 1 to 9999")
    first = day.replace(year=month // 12, month=month % 12 + 1, day=1)
    following = 31 if first == date(9999, 12, 1) else ((first + timedelta(32)).replace(day=1) - first).days
    return (first - EPOCH).days + min(day.day, following) - 1


def months_between(start: int, end: int) -> int:
    """Return the whole months from one day to another, negative if that is before.

    >>> months_between(date_of("2024-01-31"), date_of("2024-03-30"))
    1
    """
    if end < start:
        return -months_between(end, start)
    first, last = as_date(start), as_date(end)
    months = (last.year - first.year) * 12 + last.month - first.month
    return months if plus_months(start, months) <= end else months - 1


def whole(difference: int, length: int) -> int:
    """Return how many whole lengths a difference is, rounded towards zero."""
    return difference // length if difference >= 0 else -(-difference // length)
