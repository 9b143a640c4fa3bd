"""What is in the two registries, and what is not."""

import math
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from support.rollup_runs import DAY_MS, HOUR_MS, PIPELINE, SHAPE, K, at

from sfm_stream.errors import UsageError
from sfm_stream.observe import metrics
from sfm_stream.observe.metrics import DEFINITIONS, OperatorMetrics
from sfm_stream.observe.public_metrics import PublicMetrics, key_label
from sfm_stream.pipeline.rollup.coverage import Absence
from sfm_stream.sketch.sfm import SfmSketch
from sfm_stream.sketch.tally import Tally
from sfm_stream.types import Window
from sfm_stream.wire.codec import RollupRecord
from sfm_stream.wire.keys import encode_key

T0 = at("2026-01-01")
PRESENCE = Absence(1)
"""A key without a release had no event."""
DOCS = Path(__file__).resolve().parents[3] / "docs"


def record(key="a", hour=0, grain="hour", value=10.0, high=None, **other):
    """A published roll-up of the hour or day of this number."""
    sketch = SfmSketch(SHAPE, K, "xxh64", bytes(SHAPE.nbytes))
    size = HOUR_MS if grain == "hour" else DAY_MS
    fields = {
        "pipeline": PIPELINE,
        "epoch": 1,
        "partition": 0,
        "partitions": 4,
        "grain": grain,
        "window": Window(T0 + hour * size, T0 + (hour + 1) * size),
        "zone": "UTC",
        "key": encode_key(key),
        "unit": "removed",
        "windows": 4,
        "decided": 4,
        "released": 1,
        "complete": True,
        "revision": 5,
        "tally": Tally.of([sketch]),
        "merged": sketch,
        "value": value,
        "standard_error": 1.0,
        "low": value - 1,
        "high": value + 2 if high is None else high,
        "confidence": 0.95,
        "status": "ok",
    }
    return RollupRecord(**fields | other)


def scraped(registry):
    """(name, labels) -> value of every sample."""
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def series(registry, name):
    return {labels: value for (found, labels), value in scraped(registry).items() if found == name}


def keys(registry, name="sfm_estimate", grain="hour"):
    return {dict(labels)["key"] for labels in series(registry, name) if dict(labels)["grain"] == grain}


def shown(*records, max_keys=1000, absence=PRESENCE):
    public = PublicMetrics(max_keys, absence)
    for each in records:
        public.published(each)
    return public


def full_operator():
    operator = OperatorMetrics()
    operator.replace("w", [(m, ("x",) * len(m.labels), 1.0) for m in DEFINITIONS if m.registry == "operator"])
    return operator


def test_every_name_is_ours_once_and_says_what_it_is():
    names = [metric.name for metric in DEFINITIONS]
    assert len(set(names)) == len(names)
    assert all(name.startswith("sfm_") for name in names)
    assert all(metric.name.endswith("_total") == (metric.kind == "counter") for metric in DEFINITIONS)
    assert all(metric.help and len(metric.help) < 120 for metric in DEFINITIONS)
    constants = {value.name for value in vars(metrics).values() if isinstance(value, metrics.Definition)}
    assert constants == set(names), "a definition that is in no registry"


@pytest.mark.parametrize("encode", [generate_latest, openmetrics])
def test_nothing_else_is_served_whatever_the_format(encode):
    for name, registry in (("operator", full_operator().registry), ("public", shown(record()).registry)):
        lines = encode(registry).decode().splitlines()
        text = [line for line in lines if not line.startswith("#")]
        found = {line.split("{")[0].split(" ")[0] for line in text}
        assert found == {metric.name for metric in DEFINITIONS if metric.registry == name}
        assert not any(part in line for line in lines for part in ("_created", "process_", "python_"))


def test_public_series_do_not_depend_on_what_was_counted():
    few = shown(record("a", value=0.0, low=0.0), record("b", status="empty"))
    many = shown(record("a", value=9e9, high=math.inf, status="saturated"), record("b", released=4, tally=tally(4)))
    assert scraped(few.registry).keys() == scraped(many.registry).keys()
    assert few.registry.get_sample_value("sfm_estimate_high", {"key": "a", "grain": "hour"}) == 2.0
    assert many.registry.get_sample_value("sfm_estimate_high", {"key": "a", "grain": "hour"}) == math.inf


def tally(releases):
    return Tally.of([SfmSketch(SHAPE, K, "xxh64", bytes(SHAPE.nbytes))] * releases)


def test_before_anything_is_published_nothing_is_said_of_any_key():
    assert scraped(PublicMetrics(10, Absence(1)).registry) == {
        ("sfm_estimate_keys_left_out", (("grain", "day"),)): 0.0,
        ("sfm_estimate_keys_left_out", (("grain", "hour"),)): 0.0,
    }


def test_weeks_and_months_are_shown_where_they_are_released():
    released = {"origin": "raw", "span": "month", "windows": 1, "decided": 1}
    month = record("a", value=50.0, grain="month", window=Window(T0, T0 + 31 * DAY_MS), **released)
    public = shown(record("a"), month)
    assert public.registry.get_sample_value("sfm_estimate", {"key": "a", "grain": "month"}) == 50.0
    assert public.registry.get_sample_value("sfm_estimate_keys_left_out", {"grain": "month"}) == 0
    assert public.registry.get_sample_value("sfm_estimate_keys_left_out", {"grain": "week"}) is None


def test_only_the_last_final_span_of_hours_and_days_is_shown():
    public = shown(
        record("a", 0),
        record("gone", 0),
        record("a", 1, value=20.0),
        record("late", 0),
        record("quarter", 2, "quarter", window=Window(T0, T0 + HOUR_MS // 4)),
        record("open", 2, complete=False),
        record("a", 0, "day", value=30.0),
    )
    assert keys(public.registry) == {"a"}
    assert series(public.registry, "sfm_estimate") == {
        (("grain", "hour"), ("key", "a")): 20.0,
        (("grain", "day"), ("key", "a")): 30.0,
    }
    assert series(public.registry, "sfm_estimate_end_timestamp_seconds") == {
        (("grain", "hour"), ("key", "a")): (T0 + 2 * HOUR_MS) / 1000,
        (("grain", "day"), ("key", "a")): (T0 + DAY_MS) / 1000,
    }


def test_of_two_epochs_or_places_of_a_key_the_later_one_is_shown():
    public = shown(record(epoch=2, value=2.0), record(epoch=1, value=1.0))
    assert set(series(public.registry, "sfm_estimate").values()) == {2.0}
    public = shown(record(hour=1, value=2.0), record(hour=0, value=1.0, partition=1))
    assert set(series(public.registry, "sfm_estimate").values()) == {2.0}


def test_the_number_of_keys_is_bounded_and_the_rest_is_counted():
    public = shown(*(record(f"k{n}", hour) for hour in range(3) for n in range(7 + hour)), max_keys=5)
    assert keys(public.registry) == {f"k{n}" for n in range(5)}
    assert len(series(public.registry, "sfm_estimate_low")) == 5
    assert public.registry.get_sample_value("sfm_estimate_keys_left_out", {"grain": "hour"}) == 4
    assert public.registry.get_sample_value("sfm_estimate_keys_left_out", {"grain": "day"}) == 0
    more = shown(*(record(f"{p}{n}", partition=p) for p in range(3) for n in range(3)), max_keys=5)
    assert len(keys(more.registry)) == 5
    assert more.registry.get_sample_value("sfm_estimate_keys_left_out", {"grain": "hour"}) == 4


def test_keys_of_a_partition_go_with_it():
    public = shown(record("a"), record("b", partition=1), record("b", partition=1, grain="day"))
    public.keep({0, 3})
    assert keys(public.registry) == {"a"}
    assert keys(public.registry, grain="day") == set()


def test_series_of_a_partition_go_with_it_and_those_of_other_workers_stay():
    operator = OperatorMetrics()
    operator.replace("publish", [(metrics.LAG, ("publish", "0"), 3)])
    operator.replace("ingest", [(metrics.LAG, ("ingest", p), 5) for p in "01"])
    operator.replace("ingest", [(metrics.LAG, ("ingest", "1"), 4)])
    assert series(operator.registry, "sfm_position_lag_records") == {
        (("partition", "0"), ("worker", "publish")): 3,
        (("partition", "1"), ("worker", "ingest")): 4,
    }


@pytest.mark.parametrize("sample", [(metrics.ESTIMATE, ("a", "hour"), 1.0), (metrics.LAG, ("ingest",), 1.0)])
def test_no_sample_of_the_other_registry_or_with_other_labels(sample):
    with pytest.raises(UsageError):
        OperatorMetrics().replace("w", [sample])


def test_labels_of_keys_are_unique():
    parts = ["a", "1", 1, -1, b"a", "0x61", '["a"]', "", "a\nb", "é", "[", '{"hex":"61"}']
    encoded = {encode_key(part) for part in parts} | {encode_key((a, b)) for a in parts for b in parts}
    encoded.add(encode_key(()))
    assert len({key_label(key) for key in encoded}) == len(encoded)
    assert key_label(encode_key("home page")) == "home page"
    assert key_label(encode_key(("de", 7))) == '["de",7]'


def test_odd_keys_are_scraped_as_they_are():
    odd = ['"quoted"', "line\nbreak", "back\\slash", "é"]
    assert keys(shown(*map(record, odd)).registry) == set(odd)


def test_every_alert_names_a_metric_there_is():
    import re

    text = (DOCS / "operating.md").read_text()
    assert set(re.findall(r"\bsfm_[a-z_]+", text)) - {"sfm_stream"} <= {metric.name for metric in DEFINITIONS}
