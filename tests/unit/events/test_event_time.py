"""One value to milliseconds, and columns that agree with it."""

from __future__ import annotations

import time
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfm_stream.events.event_schema import MAX_TIME_MS, EventSchema
from sfm_stream.events.event_time import TimeReader, epoch_ms
from sfm_stream.types import NO_TIME, Reason

EARLIEST_MS, LATEST_MS = 1_600_000_000_000, 1_800_000_000_999
NOW_S = 1_700_000_000


def time_reader(unit: str, **more: Any) -> TimeReader:
    settings: dict[str, Any] = {"time": "at", "earliest_ms": EARLIEST_MS, "latest_ms": LATEST_MS} | more
    return TimeReader(EventSchema(key=(), item="user", time_unit=unit, **settings))


@pytest.mark.parametrize(
    ("unit", "value", "ms"),
    [
        ("s", NOW_S, NOW_S * 1000),
        ("s", NOW_S + 0.123, NOW_S * 1000 + 123),
        ("s", float(NOW_S), NOW_S * 1000),
        ("s", 1700000000.0009999, NOW_S * 1000 + 1),
        ("s", 1700000000.000999, NOW_S * 1000),
        ("ms", NOW_S * 1000 + 7, NOW_S * 1000 + 7),
        ("ms", NOW_S * 1000 + 7.999, NOW_S * 1000 + 7),
        ("us", NOW_S * 10**6 + 1999, NOW_S * 1000 + 1),
        ("ns", NOW_S * 10**9 + 1_999_999, NOW_S * 1000 + 1),
        ("iso8601", "2023-11-14T22:13:20.0019999Z", NOW_S * 1000 + 1),
        ("iso8601", "2023-11-15T03:43:20+05:30", NOW_S * 1000),
        ("%d/%b/%Y:%H:%M:%S %z", "14/Nov/2023:23:13:20 +0100", NOW_S * 1000),
        # in quotes, as GA4 and OpenTelemetry write them
        ("s", str(NOW_S), NOW_S * 1000),
        ("s", f"{NOW_S}.123", NOW_S * 1000 + 123),
        ("ms", f"{NOW_S}007", NOW_S * 1000 + 7),
        ("us", "1673858401132002", 1673858401132),
        ("ns", "1673858401132002999", 1673858401132),
        # whole numbers that a producer wrote as floats
        ("us", 1.7e15, NOW_S * 1000),
        ("ns", 1.7e18, NOW_S * 1000),
        ("us", "1700000000000000.0", NOW_S * 1000),
        # habits of ISO 8601
        ("iso8601", "2023-11-14t22:13:20z", NOW_S * 1000),
        ("iso8601", "2023-11-14T22:13:20Z[UTC]", NOW_S * 1000),
        ("iso8601", "2023-11-14T23:13:20+01:00[Europe/Paris]", NOW_S * 1000),
        ("iso8601", "2023-11-14T24:00:00Z", 1_700_006_400_000),
        ("iso8601", "2023-11-14T24:00Z", 1_700_006_400_000),
        ("iso8601", "20231114T240000+0000", 1_700_006_400_000),
        ("iso8601", "2023-11-14T22:13:60Z", (NOW_S + 40) * 1000),
        ("iso8601", "2023-11-14T22:13:60.250+00:00", (NOW_S + 40) * 1000 + 250),
        ("%d %b %Y %H:%M:%S %Z", "14 Nov 2023 22:13:20 UTC", NOW_S * 1000),
        ("%d %b %Y %H:%M:%S %Z", "14 Nov 2023 22:13:20 GMT", NOW_S * 1000),
        ("%%Z %d %b %Y %H:%M:%S %z", "%Z 14 Nov 2023 22:13:20 +0000", NOW_S * 1000),
    ],
)
def test_reads(unit: str, value: object, ms: int) -> None:
    assert time_reader(unit).read(value) == (ms, Reason.OK)


@pytest.mark.parametrize(
    ("unit", "value", "reason"),
    [
        ("ms", None, Reason.TIME_MISSING),
        ("ms", True, Reason.TIME_TYPE),
        ("ms", "1700000000000x", Reason.TIME_TYPE),
        ("ms", " 1700000000000", Reason.TIME_TYPE),
        ("ms", "1.7e12", Reason.TIME_TYPE),
        ("ms", "\u0661\u0667\u0660\u0660\u0660\u0660\u0660\u0660\u0660\u0660\u0660\u0660\u0660", Reason.TIME_TYPE),
        ("ms", "9" * 41, Reason.TIME_TYPE),
        ("ms", str(NOW_S), Reason.TIME_LOOKS_LIKE_SECONDS),
        ("ms", "", Reason.TIME_TYPE),
        ("ms", [], Reason.TIME_TYPE),
        ("ms", {}, Reason.TIME_TYPE),
        ("us", 1.7e15 + 0.5, Reason.TIME_TYPE),
        ("ns", 1.7e9 + 0.5, Reason.TIME_TYPE),
        ("us", "1700000000000000.5", Reason.TIME_TYPE),
        ("iso8601", NOW_S, Reason.TIME_TYPE),
        ("s", float("inf"), Reason.TIME_UNREADABLE),
        ("s", float("-inf"), Reason.TIME_UNREADABLE),
        ("s", float("nan"), Reason.TIME_UNREADABLE),
        ("iso8601", "", Reason.TIME_UNREADABLE),
        ("iso8601", "yesterday", Reason.TIME_UNREADABLE),
        ("iso8601", "2023-11-14T23:59:61Z", Reason.TIME_UNREADABLE),
        ("iso8601", "2023-11-14T24:00:01Z", Reason.TIME_UNREADABLE),
        ("iso8601", "2023-11-14T25:00:00Z", Reason.TIME_UNREADABLE),
        ("iso8601", "2023-11-14T22:13:20[Europe/Berlin]", Reason.TIME_UNREADABLE),
        ("iso8601", "2023-11-14T22:13:20Z[UTC][u-ca=hebrew]", Reason.TIME_UNREADABLE),
        ("iso8601", "9999-12-31T24:00:00Z", Reason.TIME_UNREADABLE),
        ("%d %b %Y %H:%M:%S %Z", "14 Nov 2023 22:13:20 EST", Reason.TIME_UNREADABLE),
        ("%d %b %Y %H:%M:%S %Z", "14 Nov 2023 22:13:20 ", Reason.TIME_UNREADABLE),
        ("iso8601", "2023-02-29T00:00:00Z", Reason.TIME_UNREADABLE),
        ("iso8601", "2023-11-14T22:13:20", Reason.TIME_NAIVE),
        ("%Y-%m-%d", "2023-11-14", Reason.TIME_NAIVE),
        ("%Y-%m-%d", "14-11-2023", Reason.TIME_UNREADABLE),
        ("ms", NOW_S, Reason.TIME_LOOKS_LIKE_SECONDS),
        ("ms", NOW_S + 0.5, Reason.TIME_LOOKS_LIKE_SECONDS),
        ("s", NOW_S * 10**3, Reason.TIME_LOOKS_LIKE_MILLISECONDS),
        ("ms", NOW_S * 10**6, Reason.TIME_LOOKS_LIKE_MICROSECONDS),
        ("ms", NOW_S * 10**9, Reason.TIME_LOOKS_LIKE_NANOSECONDS),
        ("ms", NOW_S * 1e6, Reason.TIME_LOOKS_LIKE_MICROSECONDS),
        ("ms", 0, Reason.TIME_IMPLAUSIBLE),
        ("ms", -1, Reason.TIME_IMPLAUSIBLE),
        ("ms", 2**63, Reason.TIME_IMPLAUSIBLE),
        ("ms", -(10**400), Reason.TIME_IMPLAUSIBLE),
        ("s", 1e300, Reason.TIME_IMPLAUSIBLE),
        ("iso8601", "1969-12-31T23:59:59Z", Reason.TIME_IMPLAUSIBLE),
        ("iso8601", "9999-12-31T23:59:59-23:59", Reason.TIME_IMPLAUSIBLE),
        ("iso8601", "0001-01-01T00:00:00+23:59", Reason.TIME_IMPLAUSIBLE),
    ],
)
def test_refuses(unit: str, value: object, reason: Reason) -> None:
    assert time_reader(unit).read(value) == (NO_TIME, reason)


def test_naive_text_is_utc_where_the_format_says_so() -> None:
    assert time_reader("iso8601", naive_zone="UTC").read("2023-11-14T22:13:20") == (NOW_S * 1000, Reason.OK)


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2023-07-01T12:00:00", "2023-07-01T10:00:00Z"),
        ("2023-12-01T12:00:00", "2023-12-01T11:00:00Z"),
        # the hour that comes twice is its first
        ("2023-10-29T01:59:59", "2023-10-28T23:59:59Z"),
        ("2023-10-29T02:00:00", "2023-10-29T00:00:00Z"),
        ("2023-10-29T02:59:59", "2023-10-29T00:59:59Z"),
        ("2023-10-29T03:00:00", "2023-10-29T02:00:00Z"),
        # the hour that is left out: as if the clock had not been put forward
        ("2023-03-26T01:59:59", "2023-03-26T00:59:59Z"),
        ("2023-03-26T02:30:00", "2023-03-26T01:30:00Z"),
        ("2023-03-26T03:30:00", "2023-03-26T01:30:00Z"),
        # an offset that is there holds
        ("2023-07-01T12:00:00+00:00", "2023-07-01T12:00:00Z"),
        ("2023-07-01T24:00:00", "2023-07-01T22:00:00Z"),
    ],
)
def test_naive_text_in_a_zone(text: str, utc: str) -> None:
    want = time_reader("iso8601").read(utc)
    assert want[1] == Reason.OK
    assert time_reader("iso8601", naive_zone="Europe/Berlin").read(text) == want
    pattern = time_reader("%Y-%m-%dT%H:%M:%S", naive_zone="Europe/Berlin")
    assert "+" in text or "24:" in text or pattern.read(text) == want


@pytest.mark.parametrize("zone", ["EST5EDT", "Asia/Kolkata", "UTC"])
def test_no_time_depends_on_the_zone_of_the_host(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        pattern = "%d %b %Y %H:%M:%S %Z"
        for name in (*time.tzname, "EST", "CET"):
            reason = Reason.OK if name == "UTC" else Reason.TIME_UNREADABLE
            assert time_reader(pattern).read(f"14 Nov 2023 22:13:20 {name}")[1] == reason
        assert time_reader(pattern).read("14 Nov 2023 22:13:20 UTC") == (NOW_S * 1000, Reason.OK)
        assert time_reader("iso8601", naive_zone="UTC").read("2023-11-14T22:13:20") == (NOW_S * 1000, Reason.OK)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_hostile_text_takes_no_time_of_its_square() -> None:
    """Each would take hours if a pattern were tried from every place in it."""
    for text in (
        "+" + "1" * 10**6,
        "2023-11-14T" * 10**5,
        "Z[" * 10**5 + "]",
        "1" * 10**6,
        "2023-11-14T24" + ":00" * 10**5,
    ):
        assert time_reader("iso8601").read(text)[1] == Reason.TIME_UNREADABLE
        assert time_reader("ms").read(text)[1] == Reason.TIME_TYPE


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_both_ends_of_the_band_are_plausible(unit: str) -> None:
    per_ms = {"s": Decimal("0.001"), "ms": Decimal(1), "us": Decimal(1000), "ns": Decimal(10**6)}[unit]
    reader = time_reader(unit, earliest_ms=1_600_000_000_000, latest_ms=1_700_000_000_000)
    first, last = int(reader._low_ms * per_ms), int(reader._high_ms * per_ms)
    step = 1 if unit == "s" else int(per_ms)
    column = [first - 1, first, last, last + step - 1, last + step]
    want = [reader.read(value) for value in column]
    assert [reason == Reason.OK for _, reason in want] == [False, True, True, True, False]
    assert list(zip(*(part.tolist() for part in reader.column(np.array(column))), strict=True)) == want


@given(st.sampled_from(["s", "ms"]), st.decimals(NOW_S, NOW_S + 10**6, places=6))
def test_six_digits_of_a_second_are_exact(unit: str, seconds: Decimal) -> None:
    value = float(seconds if unit == "s" else seconds * 1000)
    assert epoch_ms(value, unit) == int(seconds * 1000)


numbers = st.one_of(
    st.integers(),
    st.integers(EARLIEST_MS - 5, LATEST_MS + 5),
    st.integers(EARLIEST_MS // 1000 - 5, LATEST_MS // 1000 + 5),
    st.floats(EARLIEST_MS - 5, LATEST_MS + 5),
    st.floats(EARLIEST_MS / 1000 - 5, LATEST_MS / 1000 + 5),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([10**400, -(10**400), 2**63, 2**53 + 1, EARLIEST_MS - 0.001, LATEST_MS + 0.9996]),
)


@given(st.sampled_from(["s", "ms"]), st.lists(numbers))
def test_a_column_of_numbers_agrees_with_single_ones(unit: str, values: list[int | float]) -> None:
    reader = time_reader(unit)
    ms, reasons = reader.column(values)
    assert list(zip(ms.tolist(), reasons.tolist(), strict=True)) == [reader.read(value) for value in values]


@given(st.sampled_from(["s", "ms", "us", "ns"]), st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_a_column_of_integers_agrees_with_single_ones(unit: str, values: list[int]) -> None:
    for band in ({}, {"earliest_ms": 0, "latest_ms": MAX_TIME_MS}):
        reader = time_reader(unit, **band)
        ms, reasons = reader.column(np.array(values, np.int64))
        assert list(zip(ms.tolist(), reasons.tolist(), strict=True)) == [reader.read(value) for value in values]


def test_record_timestamps() -> None:
    ms, reasons = time_reader("ms", time=None).arrivals(np.array([NOW_S * 1000, NO_TIME, NOW_S, 0]))
    assert ms.tolist() == [NOW_S * 1000, NO_TIME, NO_TIME, NO_TIME]
    want = [Reason.OK, Reason.TIME_MISSING, Reason.TIME_LOOKS_LIKE_SECONDS, Reason.TIME_IMPLAUSIBLE]
    assert reasons.tolist() == want
