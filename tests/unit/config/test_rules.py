"""Rules across settings: each is broken once, and says so; what follows from settings that keep them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from sfm_stream.config.config import Config, parse_config
from sfm_stream.errors import ConfigError
from sfm_stream.privacy.epsilon import flip_threshold_of
from sfm_stream.sketch.hashing import XXH64

BASE = {
    "pipeline.id": '"views"',
    "event.key": '"page"',
    "event.item": '"user"',
    "event.time": '"at"',
    "window.size": '"15m"',
    "window.grace": '"1m"',
    "privacy.epsilon": "1",
    "privacy.keys": '"presence_is_public"',
    "privacy.max_epsilon_per_item_day": "1000",
    "input.path": '"in.jsonl"',
    "output.path": '"out.sqlite"',
}
CLUSTER = {
    "input.path": None,
    "output.path": None,
    "kafka.bootstrap": '["localhost:9092"]',
    "kafka.topic": '"visits"',
    "kafka.timestamps": '"log_append_time"',
}
WHOLE = {"input.complete": "true"}
DECLARED = {"privacy.keys": '"declared"'}
KERNELS = ["auto", "python", "native"]
LATE_KEYS = {"privacy.declared_from": '[{since = 2026-01-31T00:00:01Z, keys = ["z"]}]'}


def toml(settings: dict[str, str | None]) -> str:
    """The base with these settings changed; None: left out."""
    tables: dict[str, list[str]] = {}
    for name, value in {**BASE, **settings}.items():
        table, _, setting = name.partition(".")
        if value is not None:
            tables.setdefault(table, []).append(f"{setting} = {value}")
    return "\n".join("\n".join([f"[{table}]", *lines]) for table, lines in tables.items())


BROKEN: list[tuple[dict[str, str | None], str]] = [
    ({"window.size": '"7m"'}, "window.size: 7m does not divide one hour"),
    ({"window.size": '"0s"'}, "window.size: 0ms does not divide one hour"),
    ({"window.start": "2026-01-31T00:00:01Z"}, "window.start: not a border of windows of 15m"),
    ({"window.start": "1969-12-31T00:00:00Z"}, "window.start: before 1970"),
    ({"input.order": '"any"'}, 'input.order: "any" needs input.complete = true'),
    ({**WHOLE, "window.end": "2026-01-31T00:00:01Z"}, "window.end: not a border of windows of 15m"),
    (
        {**WHOLE, "window.start": "2026-01-31T00:00:00Z", "window.end": "2026-01-31T00:00:00Z"},
        "window.end: not after window.start",
    ),
    ({"window.grace": None}, "window.grace: needed, as windows close in order of time"),
    ({"window.end": "2026-01-31T00:00:00Z"}, "window.end: only for an input that is counted whole"),
    ({"event.time": None}, "event.time: needed, as lines of a file have no time stamp of their own"),
    ({**CLUSTER, "output.path": '"out"'}, "kafka: stands in place of [input] and [output]; leave those out"),
    ({"output.path": None}, "input, output: both are needed, or [kafka] in their place"),
    ({"output.path": '"in.jsonl"'}, "output.path: the same file as input.path"),
    ({**CLUSTER, "kafka.topic": '"views.ledger"'}, "kafka.topic: a topic that the pipeline itself writes"),
    ({**CLUSTER, "kafka.topic": '"views_dead-letters"'}, "there can be no views.dead-letters, which the pipeline"),
    ({**CLUSTER, "pipeline.epoch": "2"}, "window.start: needed for an epoch after the first"),
    ({"sketch.hash_key_file": '"key"'}, 'sketch.hash_key_file: only for sketch.hash = "blake2b"'),
    ({"sketch.hash": '"blake2b"'}, 'sketch.hash_key_file: needed for sketch.hash = "blake2b"'),
    (
        {"sketch.hash": '"blake2b"', "sketch.hash_key_file": '"none"'},
        "sketch.hash_key_file: No such file or directory",
    ),
    ({"privacy.count_share": "1"}, "privacy.count_share: 1 of privacy.epsilon, 1, pays for the count of a release"),
    ({"privacy.count_share": "-0.1"}, "outside 0 <= share < 1. Choose another share, or 0 for releases without"),
    ({"privacy.count_share": "inf"}, "privacy.count_share: "),
    ({"privacy.count_share": '"0.1"'}, "privacy.count_share: expected a number"),
    (
        {"privacy.epsilon": "0.005", "privacy.count_share": "0.1"},
        "privacy.count_share: 0.1 of privacy.epsilon, 0.005, pays for the count of a release and the rest for its "
        "bits: epsilon of the count: 0.0005 is outside 2^-10..16. Choose another share, or 0 for releases without a ",
    ),
    ({"privacy.epsilon": "17", "privacy.count_share": "0.1"}, "privacy.epsilon: 17 is outside 2^-10..16"),
    ({"privacy.epsilon_selection": "1"}, "privacy.epsilon_selection and delta_selection: only for"),
    ({"privacy.declared": '["a"]'}, 'privacy.declared: only for privacy.keys = "declared"'),
    ({"privacy.keys": '"selected"'}, "privacy.epsilon_selection and privacy.delta_selection: both are needed"),
    (DECLARED, "privacy.declared: the list of keys is needed"),
    ({**DECLARED, "privacy.declared": '["a", "a"]'}, "privacy.declared: a key is listed twice"),
    ({**DECLARED, "privacy.declared": '[["a", "b"]]'}, "privacy.declared: a key of 2 fields where event.key has 1"),
    ({**DECLARED, "privacy.declared": "[9223372036854775808]"}, "privacy.declared: an integer key outside int64"),
    (
        {**DECLARED, "privacy.declared": '["long"]', "event.max_key_bytes": "3"},
        "privacy.declared: a key longer than event.max_key_bytes",
    ),
    ({**DECLARED, **LATE_KEYS}, "privacy.declared_from.since: 2026-01-31T00:00:01Z is not a border of windows of 15m"),
    ({"privacy.max_epsilon_per_item_day": "5"}, "privacy.max_epsilon_per_item_day"),
    ({"rollup.zone": '"Nowhere"'}, "rollup.zone"),
]


@pytest.mark.parametrize(("settings", "problem"), BROKEN, ids=[problem[:60] for _, problem in BROKEN])
def test_each_rule_says_what_is_wrong_and_nothing_else(settings: dict[str, str | None], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(toml(settings), Path("/nowhere"))
    assert len(caught.value.problems) == 1
    assert problem in caught.value.problems[0]


def test_all_problems_are_told_together_in_the_order_of_the_rules() -> None:
    settings = {
        **DECLARED,
        **LATE_KEYS,
        "privacy.declared": '["a", "a", 9223372036854775808]',
        "sketch.buckets": "1000",
        "window.grace": None,
        "window.start": "2026-01-31T00:00:01Z",
        "output.path": '"in.jsonl"',
        "event.time": None,
    }
    with pytest.raises(ConfigError) as caught:
        parse_config(toml(settings), Path("/nowhere"))
    said = [problem.partition(":")[0] for problem in caught.value.problems]
    assert said == [
        *("sketch.buckets", "privacy.declared", "privacy.declared"),
        *("window.start", "window.grace", "event.time", "output.path"),
    ]


def test_a_wrong_window_is_said_once_and_not_by_each_rule_that_needs_it() -> None:
    settings = {**DECLARED, **LATE_KEYS, "window.size": '"7m"', "window.start": "2026-01-31T00:00:01Z"}
    with pytest.raises(ConfigError) as caught:
        parse_config(toml(settings), Path("/nowhere"))
    assert caught.value.problems == (
        'window.size: 7m does not divide one hour; choose a length that does, or "hour", "day", "week", "month"',
    )


def test_what_follows_from_settings_is_offered_by_the_names_of_the_file() -> None:
    config = parse_config(toml(WHOLE), Path("/data"))
    assert (config.pipeline.id, config.pipeline.epoch, config.window.size) == ("views", 1, "15m")
    assert (config.event.key, config.rollup.zone, config.logs.level) == (("page",), "UTC", "info")
    assert (config.metrics.public, config.limits.max_gap_windows) == ("", 10_000)
    assert (config.whole, config.on_cluster, config.item_hash) == (True, False, XXH64)
    assert (config.input_path, config.output_path) == ("/data/in.jsonl", Path("/data/out.sqlite"))
    with pytest.raises(ConfigError, match="needs the settings of a cluster"):
        assert config.kafka
    cluster = parse_config(toml(CLUSTER), Path("/data"))
    assert (cluster.on_cluster, cluster.kafka.topic, cluster.own_fingerprint) == (True, "visits", None)
    with pytest.raises(ConfigError, match="this configuration is for a cluster"):
        assert cluster.files


WITHOUT_COUNTS = {"privacy.count_share": "0"}


@pytest.mark.parametrize(
    ("settings", "partitions", "fingerprint"),
    [({}, 1, "2e90950f1768c3914244f80ef2594ce7"), (CLUSTER, 3, "a8522bcb8139c2b6bfd40aa041e982d0")],
    ids=["file", "topic"],
)
def test_without_counts_the_fingerprint_is_the_one_of_epochs_that_began_before_there_were_any(
    settings: dict[str, str | None], partitions: int, fingerprint: str
) -> None:
    config = parse_config(toml({**settings, **WITHOUT_COUNTS}), Path())
    assert config.fingerprint(partitions) == fingerprint
    counted = parse_config(toml({**settings, "privacy.count_share": "0.1"}), Path())
    assert counted.fingerprint(partitions) != fingerprint
    assert counted.without_counts().fingerprint(partitions) == fingerprint


def test_a_share_of_epsilon_pays_for_the_count_and_the_budget_is_that_of_both_together() -> None:
    config = parse_config(toml({"privacy.epsilon": "2", "privacy.count_share": "0.2"}), Path())
    (span,) = config.budget.spans
    assert (span.epsilon, span.bits_epsilon, span.count_epsilon) == (2, Decimal("1.6"), Decimal("0.4"))
    assert span.flip_threshold == flip_threshold_of(Decimal("1.6"))
    assert config.budget.epsilon_per_day == 2 * 96
    (span,) = parse_config(toml(WITHOUT_COUNTS), Path()).budget.spans
    assert (span.epsilon, span.bits_epsilon, span.count_epsilon) == (1, 1, 0)


SPAN = "[[spans]]\nsize = {}\nepsilon = {}\ncount_share = {}\n"


def with_spans(*tables: str, settings: dict[str, str | None] | None = None) -> Config:
    return parse_config("\n".join([toml(settings or {}), *tables]), Path())


def test_the_fingerprint_has_every_name_that_records_have() -> None:
    """ "1h" and "hour" are the same windows under two names: one epoch has records of one of them."""
    hour, one_hour = ({"window.size": size} for size in ('"hour"', '"1h"'))
    assert with_spans(settings=hour).own_fingerprint != with_spans(settings=one_hour).own_fingerprint
    nameless = [with_spans(settings={**size, **WITHOUT_COUNTS}).own_fingerprint for size in (hour, one_hour)]
    assert nameless[0] == nameless[1], "records without a name of their span"
    spans = [with_spans(SPAN.format(size, 1, 0)).own_fingerprint for size in ('"hour"', '"1h"')]
    assert spans[0] != spans[1]


@pytest.mark.parametrize(
    ("one", "other"), [(('"day"', "1", "0.1"), ('"day"', "1.0", "0.10")), (('"60m"', "1", "0"), ('"1h"', "1", "0"))]
)
def test_two_spellings_of_one_value_have_one_fingerprint(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert with_spans(SPAN.format(*one)).own_fingerprint == with_spans(SPAN.format(*other)).own_fingerprint


@pytest.mark.parametrize(
    ("span", "settings"),
    [
        (('"week"', "1", "0.1"), {}),
        (('"day"', "2", "0.1"), {}),
        (('"day"', "1", "0.2"), {}),
        (('"day"', "1", "0"), {}),
        (('"day"', "1", "0.1\nbuckets = 2048"), {}),
        (('"day"', "1", "0.1\nlevels = 20"), {}),
        (('"day"', "1", "0.1"), {"rollup.zone": '"Europe/Berlin"'}),
        (('"day"', "1", "0.1"), {"privacy.count_share": "0.2"}),
        (('"day"', "1", "0.1"), {"privacy.epsilon": "2"}),
    ],
)
def test_no_setting_of_a_span_changes_within_an_epoch(span: tuple[str, ...], settings: dict[str, str | None]) -> None:
    day = with_spans(SPAN.format('"day"', "1", "0.1"))
    assert with_spans(SPAN.format(*span), settings=settings).own_fingerprint != day.own_fingerprint


@pytest.mark.parametrize(
    "table",
    [SPAN.format('"day"', "1" * 5000, 0), SPAN.format('"day"', "1e" + "9" * 30, 0), SPAN.format("[" * 20_000, 1, 0)],
    ids=["digits", "exponent", "brackets"],
)
def test_what_no_reader_of_toml_can_hold_is_an_error_of_the_configuration(table: str) -> None:
    with pytest.raises(ConfigError, match=r"^configuration: a number in it, or the depth of its brackets"):
        with_spans(table)


def test_the_kernel_is_no_part_of_the_fingerprint():
    """Both give the same results, so an epoch may go on with the other one."""
    configs = [parse_config(toml(each), Path()) for each in ({}, *({"worker.kernel": f'"{name}"'} for name in KERNELS))]
    assert [config.worker.kernel for config in configs] == ["auto", *KERNELS]
    assert len({config.own_fingerprint for config in configs}) == 1
    with pytest.raises(ConfigError, match=r"worker.kernel: .*'auto', 'python' or 'native'"):
        parse_config(toml({"worker.kernel": '"rust"'}), Path())
