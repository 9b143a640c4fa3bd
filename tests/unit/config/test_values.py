"""Single values of a configuration: what is read, and what is refused in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from sfm_stream.config.tables import EventTable, KafkaTable, LimitsTable, WindowTable
from sfm_stream.config.values import address, duration_ms, field_paths, instant_ms, number, time_parser


@pytest.mark.parametrize(
    ("text", "span_ms"),
    [("500ms", 500), ("90s", 90_000), ("30m", 1_800_000), ("2 h", 7_200_000), ("1d", 86_400_000), ("0s", 0)],
)
def test_durations(text: str, span_ms: int) -> None:
    assert duration_ms(text) == span_ms


@pytest.mark.parametrize("value", ["", "1", "m", "1.5h", "-1s", "1w", " 1s", "1s ", 60, None])
def test_what_is_no_duration(value: Any) -> None:
    with pytest.raises(ValueError, match="expected a duration in quotes"):
        duration_ms(value)


def test_instants() -> None:
    assert instant_ms(datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)) == 1500
    assert instant_ms(datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))) == 0
    for value in (datetime(1970, 1, 1), "1970-01-01T00:00:00Z", 0):  # noqa: DTZ001 -- a time without offset is the case
        with pytest.raises(ValueError, match="with an offset, without quotes"):
            instant_ms(value)


def test_field_paths() -> None:
    assert field_paths("a.b") == ("a.b",)
    assert field_paths(["a", "b"]) == ("a", "b")
    assert field_paths([]) == ()
    for value in (3, ["a", ""], ["a", 1], ("a",)):
        with pytest.raises(ValueError, match="expected a field name, or a list"):
            field_paths(value)


def test_numbers_are_exact_decimals() -> None:
    assert (number(1), number(0.1), number(Decimal("0.10"))) == (Decimal(1), Decimal("0.1"), Decimal("0.10"))
    for value in (True, "1", None):
        with pytest.raises(ValueError, match=f"expected a number, got {type(value).__name__}"):
            number(value)


@pytest.mark.parametrize("text", ["", "127.0.0.1:9464", "localhost:0", "[::1]:65535"])
def test_addresses(text: str) -> None:
    assert address(text) == text


@pytest.mark.parametrize("value", ["localhost", ":80", "a:65536", "::1:80", "http://a:80", 80, None])
def test_what_is_no_address(value: Any) -> None:
    with pytest.raises(ValueError, match="expected an address such as"):
        address(value)


def test_settings_that_are_times_are_known_by_how_they_are_read() -> None:
    window, event = WindowTable.model_fields, EventTable.model_fields
    assert time_parser(window["grace"]) is duration_ms
    assert time_parser(window["size"]) is None, "a name, though most are durations"
    assert time_parser(window["start"]) is time_parser(event["earliest"]) is instant_ms
    assert time_parser(KafkaTable.model_fields["downtime"]) is duration_ms
    assert time_parser(event["max_key_bytes"]) is time_parser(LimitsTable.model_fields["max_gap_windows"]) is None
