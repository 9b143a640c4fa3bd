"""Every rule for topics: what is good passes, a violation is named with its setting, what was found and what to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sfm_stream.config.tables import KafkaTable
from sfm_stream.transport.kafka.cluster_values import MAX_RECORD_BYTES
from sfm_stream.transport.kafka.topic_facts import TopicFacts
from sfm_stream.transport.kafka.topic_rules import (
    Purpose,
    TopicRules,
    WindowNeeds,
    input_problems,
    input_warnings,
    own_topics,
    problems,
)

FOREVER = str((1 << 63) - 1)
DAY_MS = 86_400_000
OWN = own_topics("p", 7 * DAY_MS)
BOUNDS = ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms")
DIFFERENCE = "message.timestamp.difference.max.ms"

KAFKA = KafkaTable(bootstrap=["x"], topic="in", timestamps="create_time", downtime="1d")
APPENDED = KafkaTable(bootstrap=["x"], topic="in", timestamps="log_append_time", downtime="1d")
WINDOW = WindowNeeds(longest_ms=600_000, grace_ms=300_000, max_future_skew=3_600_000)
NEEDED_MS = DAY_MS + 900_000


def rules_of(purpose: str) -> TopicRules:
    return next(rules for rules in OWN if rules.purpose == purpose)


def made(rules: TopicRules, replication: int = 3, **changes: str | None) -> TopicFacts:
    """The topic as it is created, with some settings changed (None: unknown to the broker); _ stands for a dot."""
    configs: dict[str, str | None] = {**rules.created_with(replication)}
    configs |= {name.replace("_", "."): value for name, value in changes.items()}
    kept = {name: value for name, value in configs.items() if value is not None}
    return TopicFacts(rules.name, "id", 2, replication, kept)


def source(**changes: str) -> TopicFacts:
    configs = {
        "cleanup.policy": "delete",
        "retention.ms": str(7 * DAY_MS),
        "retention.bytes": "-1",
        "message.timestamp.type": "CreateTime",
        BOUNDS[0]: FOREVER,
        BOUNDS[1]: "3600000",
    }
    configs |= {name.replace("_", "."): value for name, value in changes.items()}
    return TopicFacts("in", "id", 2, 3, configs)


def wrong(found: TopicFacts, partitions: int = 2) -> list[str]:
    return problems({found.name: found}, OWN, partitions)


def test_a_pipeline_has_four_topics_of_its_own():
    assert [rules.name for rules in OWN] == ["p.outbox", "p.ledger", "p.sketches", "p.rollups"]


def test_what_topics_are_created_with():
    for rules in OWN:
        settings = rules.created_with(3)
        assert int(settings["max.message.bytes"]) > MAX_RECORD_BYTES
        assert settings["min.insync.replicas"] == "2"
        assert settings["unclean.leader.election.enable"] == "false"
        assert rules.created_with(2)["min.insync.replicas"] == "1"
        assert settings["cleanup.policy"] == ("compact" if rules.purpose == "ledger" else "delete")
    outbox, ledger = rules_of("outbox").created_with(1), rules_of("ledger").created_with(1)
    assert outbox["retention.ms"] == str(7 * DAY_MS)
    assert outbox["message.timestamp.type"] == "LogAppendTime"
    assert (ledger["segment.ms"], ledger["min.cleanable.dirty.ratio"]) == ("3600000", "0.1")
    for purpose in ("sketches", "rollups"):
        settings = rules_of(purpose).created_with(1)
        assert settings["retention.ms"] == "-1"
        assert settings["message.timestamp.type"] == "CreateTime"
        assert [settings[name] for name in BOUNDS] == [FOREVER, FOREVER]
        older = rules_of(purpose).created_with(1, older=True)
        assert older[DIFFERENCE] == FOREVER
        assert not set(BOUNDS) & set(older)


@pytest.mark.parametrize("replication", [1, 2, 3, 5])
@pytest.mark.parametrize("purpose", list(Purpose))
def test_a_topic_as_created_has_no_problem(purpose, replication):
    assert wrong(made(rules_of(purpose), replication)) == []


def test_topics_that_are_missing_or_of_others_are_no_problem():
    assert problems({}, OWN, 2) == []
    assert problems({"in": replace(source(), partitions=9)}, OWN, 2) == []


BAD_EVERYWHERE = [
    ("max_message_bytes", "1048588"),
    ("max_message_bytes", str(MAX_RECORD_BYTES)),
    ("min_insync_replicas", "1"),
    ("unclean_leader_election_enable", "true"),
]
BAD_RELEASED = [
    ("cleanup_policy", "compact"),
    ("cleanup_policy", "compact,delete"),
    ("cleanup_policy", "delete, compact"),
    ("retention_ms", "604800000"),
    ("retention_bytes", "1000000000"),
    ("message_timestamp_type", "LogAppendTime"),
    ("message_timestamp_before_max_ms", "604800000"),
    ("message_timestamp_after_max_ms", "3600000"),
]
BAD = {
    "outbox": [
        ("cleanup_policy", "compact"),
        ("cleanup_policy", "compact,delete"),
        ("retention_ms", "3600000"),
        ("retention_bytes", "1000000000"),
    ],
    "ledger": [("cleanup_policy", "delete"), ("cleanup_policy", "compact,delete"), ("cleanup_policy", "")],
    "sketches": BAD_RELEASED,
    "rollups": BAD_RELEASED,
}


@pytest.mark.parametrize(
    ("purpose", "name", "value"),
    [(purpose, *change) for purpose, changes in BAD.items() for change in changes + BAD_EVERYWHERE],
)
def test_each_violation_is_one_line_with_setting_found_and_needed(purpose, name, value):
    rules, setting = rules_of(purpose), name.replace("_", ".")
    [line] = wrong(made(rules, **{name: value}))
    assert line.startswith(f"topic p.{purpose}: {setting} is {value}, set it to {rules.created_with(3)[setting]}")
    assert "\n" not in line


@pytest.mark.parametrize(
    ("purpose", "name", "value"),
    [
        ("outbox", "retention_ms", "-1"),
        ("outbox", "retention_ms", str(8 * DAY_MS)),
        ("outbox", "message_timestamp_type", "CreateTime"),
        ("outbox", "message_timestamp_after_max_ms", "3600000"),
        ("ledger", "retention_ms", "1"),
        ("ledger", "segment_ms", "604800000"),
        ("ledger", "message_timestamp_type", "LogAppendTime"),
        ("sketches", "max_message_bytes", "16777216"),
        ("sketches", "min_insync_replicas", "3"),
        ("sketches", "message_timestamp_before_max_ms", None),
        ("rollups", "message_timestamp_difference_max_ms", FOREVER),
    ],
)
def test_what_does_no_harm_is_accepted(purpose, name, value):
    assert wrong(made(rules_of(purpose), **{name: value})) == []


def test_a_topic_of_few_replicas_need_not_outlive_a_broker():
    rules = rules_of("ledger")
    assert wrong(made(rules, 2, min_insync_replicas="1", unclean_leader_election_enable="true")) == []


def test_several_problems_are_several_lines():
    lines = wrong(made(rules_of("sketches"), retention_ms="1", message_timestamp_type="LogAppendTime"), partitions=3)
    assert len(lines) == 3


@pytest.mark.parametrize(("partitions", "remedy"), [(3, "add partitions up to 3"), (1, "another id")])
def test_own_topics_have_as_many_partitions_as_the_input(partitions, remedy):
    [line] = wrong(made(rules_of("rollups")), partitions)
    assert line.startswith(f"topic p.rollups: 2 partitions where the input has {partitions}")
    assert remedy in line


def test_the_bound_of_older_brokers_counts_where_the_newer_is_unset():
    def bound(**configs: str) -> int:
        return TopicFacts("t", "", 1, 1, {k.replace("_", "."): v for k, v in configs.items()}).timestamp_bound_ms(
            "after"
        )

    after, difference = "message_timestamp_after_max_ms", "message_timestamp_difference_max_ms"
    assert bound() == int(FOREVER)
    assert bound(**{difference: "7"}) == 7
    assert bound(**{after: "5"}) == 5
    assert bound(**{after: "9", difference: "7"}) == 9
    assert bound(**{after: FOREVER, difference: "7"}) == 7
    [line] = wrong(
        made(
            rules_of("sketches"),
            message_timestamp_before_max_ms=None,
            message_timestamp_after_max_ms="9",
            message_timestamp_difference_max_ms=FOREVER,
        )
    )
    assert "message.timestamp.after.max.ms is 9" in line
    lines = wrong(made(rules_of("sketches"), message_timestamp_difference_max_ms="7"))
    assert len(lines) == 2
    assert all(f"{DIFFERENCE} is 7" in line for line in lines)


def test_a_good_input_has_no_problem():
    assert input_problems(source(), KAFKA, WINDOW) == []
    assert input_warnings(source()) == []
    assert input_problems(source(message_timestamp_type="LogAppendTime"), APPENDED, WINDOW) == []
    assert input_problems(source(retention_ms="-1"), KAFKA, WINDOW) == []
    assert input_problems(source(retention_ms=str(NEEDED_MS + 1)), KAFKA, WINDOW) == []


def test_time_stamps_of_producers_do_not_pass_for_those_of_the_log():
    [line] = input_problems(source(), APPENDED, WINDOW)
    assert "message.timestamp.type is CreateTime where kafka.timestamps is log_append_time" in line
    assert 'only "blanked" holds' in line
    assert "kafka.timestamps to create_time" in line


def test_time_stamps_of_the_log_do_not_pass_for_those_of_producers():
    [line] = input_problems(source(message_timestamp_type="LogAppendTime"), KAFKA, WINDOW)
    assert "message.timestamp.type is LogAppendTime where kafka.timestamps is create_time" in line
    assert '"removed"' in line
    assert "kafka.timestamps to log_append_time" in line


@pytest.mark.parametrize("bound", ["3600001", FOREVER])
def test_the_broker_bounds_the_clocks_of_producers(bound):
    [line] = input_problems(source(message_timestamp_after_max_ms=bound), KAFKA, WINDOW)
    assert f"message.timestamp.after.max.ms is {bound}, set it to 3600000 (window.max_future_skew) or less" in line
    assert "kafka.accept_any_clock" in line
    accepting = KAFKA.model_copy(update={"accept_any_clock": True})
    assert input_problems(source(message_timestamp_after_max_ms=bound), accepting, WINDOW) == []


def test_without_producers_time_no_bound_is_needed():
    appended = source(message_timestamp_type="LogAppendTime", message_timestamp_after_max_ms=FOREVER)
    assert input_problems(appended, APPENDED, WINDOW) == []


def test_an_older_broker_bounds_the_difference():
    base = {name: value for name, value in source().configs.items() if name not in BOUNDS}

    def older(value: str) -> TopicFacts:
        return replace(source(), configs=base | {DIFFERENCE: value})

    assert input_problems(older("3600000"), KAFKA, WINDOW) == []
    [line] = input_problems(older(FOREVER), KAFKA, WINDOW)
    assert f"{DIFFERENCE} is {FOREVER}" in line
    [line] = input_problems(replace(source(), configs=base), KAFKA, WINDOW)
    assert "message.timestamp.after.max.ms" in line


@pytest.mark.parametrize("kept_ms", [NEEDED_MS, 1])
def test_the_input_is_kept_longer_than_a_window_and_a_stop(kept_ms):
    [line] = input_problems(source(retention_ms=str(kept_ms)), KAFKA, WINDOW)
    assert f"retention.ms is {kept_ms}, set it to more than {NEEDED_MS}" in line
    assert "window.size + window.grace + kafka.downtime" in line
    assert input_problems(source(retention_ms=str(kept_ms), cleanup_policy=""), KAFKA, WINDOW) == []


@pytest.mark.parametrize("policy", ["compact", "compact,delete", "delete,compact"])
def test_a_compacted_input_is_refused(policy):
    [line] = input_problems(source(cleanup_policy=policy), KAFKA, WINDOW)
    assert "cleanup.policy is compact" in line
    assert "set it to delete" in line


def test_an_input_that_is_bounded_in_bytes_is_warned_of():
    [line] = input_warnings(source(retention_bytes="1000"))
    assert "topic in: retention.bytes is 1000" in line
    assert input_problems(source(retention_bytes="1000"), KAFKA, WINDOW) == []
    assert input_warnings(source(retention_bytes="1000", cleanup_policy="")) == []
