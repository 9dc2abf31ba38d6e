"""Dates and timestamps by their codes."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from upheld.language.types import dates


@pytest.mark.parametrize("text", ["0001-01-01", "1969-12-31", "2000-02-29", "2024-12-31", "9999-12-31"])
def test_a_date_reads_back_as_it_was_written(text):
    assert dates.date_text(dates.date_of(text)) == text


@pytest.mark.parametrize("text", ["2023-02-29", "2024-13-01", "0000-01-01", "20240101", "2024-1-1", "", "2024-W01-1"])
def test_a_text_that_is_not_a_date_is_refused(text):
    with pytest.raises(dates.NotADate):
        dates.date_of(text)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01", 0),
        ("1970-01-01T00:00", 0),
        ("1970-01-01 00:00:00.000001", 1),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T01:00:00+0100", 0),
        ("1970-01-01T01:00:00+01", 0),
        ("1969-12-31T23:59:59.9Z", -100_000),
        ("1970-01-01T00:00:00.1234560000Z", 123_456),
        ("9999-12-31T23:59:59.999999Z", dates.MICROSECONDS[1]),
    ],
)
def test_a_timestamp_is_a_number_of_microseconds(text, moment):
    assert dates.timestamp_of(text) == moment
    assert dates.timestamp_of(dates.timestamp_text(moment)) == moment


@pytest.mark.parametrize(
    "text",
    ["1970-01-01T24:00:00Z", "1970-01-01T00:00:00.0000001Z", "1970-01-01T00", "1970-01-01Tx", "0001-01-01T00:00+01:00"],
)
def test_a_text_that_is_not_a_timestamp_is_refused(text):
    with pytest.raises(dates.NotADate):
        dates.timestamp_of(text)


def test_a_datetime_without_a_zone_is_in_utc():
    in_berlin = datetime(2024, 7, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    assert dates.microseconds(datetime(2024, 7, 1, 10)) == dates.microseconds(in_berlin)
    assert dates.as_datetime(dates.microseconds(in_berlin)) == datetime(2024, 7, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("unit", "expected"),
    [("year", "2024-01-01"), ("quarter", "2024-04-01"), ("month", "2024-05-01"), ("week", "2024-05-13")],
)
def test_dates_and_timestamps_are_truncated_alike(unit, expected):
    day = dates.date_of("2024-05-17")
    assert dates.date_text(dates.truncated_date(day, unit)) == expected
    moment = dates.timestamp_of("2024-05-17T13:14:15.9Z")
    assert dates.timestamp_text(dates.truncated_timestamp(moment, unit)) == f"{expected}T00:00:00Z"


def test_a_timestamp_before_1970_is_truncated_downwards():
    moment = dates.timestamp_of("1969-12-31T23:59:59.5Z")
    assert dates.timestamp_text(dates.truncated_timestamp(moment, "second")) == "1969-12-31T23:59:59Z"
    assert dates.day_of(moment) == -1


def test_months_are_added_as_far_as_the_calendar_goes():
    assert dates.date_text(dates.plus_months(dates.date_of("2023-11-30"), 3)) == "2024-02-29"
    assert dates.date_text(dates.plus_months(dates.date_of("9999-11-30"), 1)) == "9999-12-30"
    with pytest.raises(dates.NotADate):
        dates.plus_months(dates.date_of("9999-12-01"), 1)
    with pytest.raises(dates.NotADate):
        dates.plus_months(dates.date_of("0001-01-31"), -1)


def test_whole_months_lie_between_two_days():
    for start, end, months in [
        ("2024-01-31", "2024-02-29", 1),
        ("2024-02-29", "2024-01-31", -1),
        ("2024-03-01", "2025-02-28", 11),
    ]:
        assert dates.months_between(dates.date_of(start), dates.date_of(end)) == months


def test_parts_are_those_of_the_calendar():
    day = date(2021, 1, 3)
    parts = {name: part(day) for name, part in dates.PARTS_OF_DATES.items()}
    assert parts == {"year": 2021, "quarter": 1, "month": 1, "week": 53, "day": 3, "day_of_week": 7, "day_of_year": 3}
