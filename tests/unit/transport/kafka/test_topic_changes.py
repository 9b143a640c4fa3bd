"""What must not change about a topic under a running worker: each change is one line with what was, what is, and the
remedy; what does no harm is none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sfm_stream.config.tables import KafkaTable
from sfm_stream.transport.kafka.topic_changes import (
    TopicAtStart,
    changes,
    copy_at_start,
    dead_letters_at_start,
    input_at_start,
    own_at_start,
    pipeline_changes,
)
from sfm_stream.transport.kafka.topic_facts import UNBOUNDED_MS, TopicFacts
from sfm_stream.transport.kafka.topic_rules import WindowNeeds, own_topics

DAY_MS = 86_400_000
WINDOW = WindowNeeds(longest_ms=600_000, grace_ms=300_000, max_future_skew=3_600_000)
RULES = own_topics("p", 7 * DAY_MS)
BEFORE, AFTER, DIFFERENCE = (f"message.timestamp.{name}.max.ms" for name in ("before", "after", "difference"))
NEW_EPOCH = "raise pipeline.epoch and set window.start to a window border that is still to come"


def facts(name: str, **configs: str) -> TopicFacts:
    return TopicFacts(name, f"id of {name}", 2, 3, {key.replace("_", "."): value for key, value in configs.items()})


SOURCE = facts("in", message_timestamp_type="CreateTime", retention_ms="-1", message_timestamp_after_max_ms="3600000")
APPENDED = facts("in", message_timestamp_type="LogAppendTime", retention_ms="-1")
OWN = {rule.name: TopicFacts(rule.name, f"id of {rule.name}", 2, 3, rule.created_with(3)) for rule in RULES}
AT_START = [input_at_start(SOURCE), *(own_at_start(OWN[rule.name], rule) for rule in RULES)]


def altered(before: TopicFacts, **configs: str) -> TopicFacts:
    return replace(before, configs={**before.configs, **{key.replace("_", "."): v for key, v in configs.items()}})


def changed(
    *now: TopicFacts, gone: str = "", timestamps: str = "create_time", topics: list[TopicAtStart] = AT_START
) -> list[str]:
    """Of the pipeline, with these topics in place of those that are right."""
    there = {SOURCE.name: SOURCE, **OWN} | {each.name: each for each in now}
    there.pop(gone, None)
    settings = KafkaTable(bootstrap=["x"], topic="in", timestamps=timestamps, downtime="1d")
    return pipeline_changes(topics, there, "in", RULES, settings, WINDOW)


def test_topics_as_they_were_are_no_change():
    assert changed() == []
    assert changed(altered(SOURCE, segment_ms="1", retention_ms=str(30 * DAY_MS))) == []


@pytest.mark.parametrize(
    ("now", "line"),
    [
        (replace(SOURCE, topic_id="new"), f"made again (id id of in, now new); what was not read is gone: {NEW_EPOCH}"),
        (replace(SOURCE, topic_id="new", partitions=5), "was deleted and made again"),
        (replace(SOURCE, partitions=5), f"had 2 partitions and now has 5: keys may have moved: {NEW_EPOCH}"),
        (replace(SOURCE, partitions=1), "had 2 partitions and now has 1"),
        (
            altered(SOURCE, message_timestamp_type="LogAppendTime"),
            "message.timestamp.type was CreateTime and now is LogAppendTime: give the topic the clock of "
            f"kafka.timestamps again, {NEW_EPOCH}",
        ),
        (
            altered(SOURCE, message_timestamp_after_max_ms="9"),
            "after the broker's clock was 1h and now is 9ms",
        ),
        (
            altered(SOURCE, message_timestamp_before_max_ms="9"),
            f"before the broker's clock was {UNBOUNDED_MS}ms and now",
        ),
        (altered(SOURCE, message_timestamp_after_max_ms=str(UNBOUNDED_MS)), f"now is {UNBOUNDED_MS}ms: set it back"),
        (altered(SOURCE, retention_ms="1000"), "retention.ms is 1000, set it to more than"),
        (altered(SOURCE, cleanup_policy="compact"), "cleanup.policy is compact, set it to delete"),
    ],
)
def test_each_change_of_the_input_is_one_line(now, line):
    [said] = changed(now)
    assert said.startswith("topic in")
    assert line in said
    assert "\n" not in said


def test_a_deleted_input_is_named_with_a_new_epoch():
    [line] = changed(gone="in")
    assert line == f"topic in was deleted, and with it what was not read yet: {NEW_EPOCH}"


def test_the_bound_of_older_brokers_is_seen_too():
    base = replace(SOURCE, configs={"message.timestamp.type": "CreateTime", DIFFERENCE: "3600000"})
    lines = changes([input_at_start(base)], {"in": altered(base, message_timestamp_difference_max_ms="9")})
    assert len(lines) == 2
    assert all("was 1h and now is 9ms" in line for line in lines)


def test_bounds_do_not_matter_where_the_broker_gives_the_time():
    at_start = [input_at_start(APPENDED), *AT_START[1:]]
    assert changed(APPENDED, topics=at_start, timestamps="log_append_time") == []
    assert (
        changed(altered(APPENDED, message_timestamp_after_max_ms="9"), topics=at_start, timestamps="log_append_time")
        == []
    )
    [line] = changed(
        altered(APPENDED, message_timestamp_type="CreateTime"), topics=at_start, timestamps="log_append_time"
    )
    assert "was LogAppendTime and now is CreateTime" in line


def test_a_broker_that_gives_no_ids_leaves_the_other_facts_to_tell():
    assert changed(replace(SOURCE, topic_id="")) == []
    without = [input_at_start(replace(SOURCE, topic_id="")), *AT_START[1:]]
    assert changed(topics=without) == []
    assert len(changed(replace(SOURCE, partitions=5), topics=without)) == 1


@pytest.mark.parametrize("name", OWN)
def test_topics_of_its_own_are_looked_at_as_at_the_start(name):
    remedy = NEW_EPOCH if name == "p.ledger" else "give the pipeline another id and set window.start"
    [line] = changed(gone=name)
    assert line.startswith(f"topic {name} was deleted")
    assert remedy in line
    [line] = changed(replace(OWN[name], topic_id="new"))
    assert line.startswith(f"topic {name} was deleted and made again")
    assert remedy in line
    [line] = changed(replace(OWN[name], partitions=3))
    assert line.startswith(f"topic {name} had 2 partitions and now has 3: it has to have as many as the input")
    [line] = changed(altered(OWN[name], max_message_bytes="1000"))
    assert line.startswith(f"topic {name}: max.message.bytes is 1000, set it to")


def test_several_changes_are_several_lines():
    assert len(changed(replace(SOURCE, topic_id="new"), replace(OWN["p.ledger"], topic_id="new"), gone="p.outbox")) == 3


def test_the_topics_of_a_copy():
    source, target, positions = facts("raw"), facts("in"), facts("p.repartition")
    at_start = copy_at_start(source, target, positions)
    there = {each.name: each for each in (source, target, positions)}
    assert changes(at_start.values(), there) == []
    # Whose clock its source has does not matter to a copy, that of what it writes does.
    assert changes(at_start.values(), there | {"raw": altered(source, message_timestamp_type="LogAppendTime")}) == []
    [line] = changes(at_start.values(), there | {"in": altered(target, message_timestamp_type="LogAppendTime")})
    assert NEW_EPOCH in line
    [line] = changes(at_start.values(), there | {"raw": replace(source, partitions=9)})
    assert "add as many partitions to topic p.repartition" in line
    [line] = changes(at_start.values(), there | {"raw": replace(source, topic_id="new")})
    assert "delete topic p.repartition" in line
    for name in ("raw", "in", "p.repartition"):
        assert len(changes(at_start.values(), {key: value for key, value in there.items() if key != name})) == 1


def test_the_topic_of_dead_letters_is_made_anew_by_a_start():
    [line] = changes([dead_letters_at_start(facts("p.dead-letters"))], {})
    assert "start the workers again" in line
