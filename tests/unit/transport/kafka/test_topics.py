"""Topics of a pipeline on a cluster: what is told of them, and how those that are missing are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from kafka.errors import KafkaTimeoutError

from sfm_stream.errors import BrokerError, ConfigError
from sfm_stream.transport.kafka.kafka_python import admin as admin_module
from sfm_stream.transport.kafka.kafka_python.admin import KafkaPythonAdmin
from sfm_stream.transport.kafka.kafka_python.client import KafkaPythonCluster
from sfm_stream.transport.kafka.topic_facts import TopicFacts
from sfm_stream.transport.kafka.topic_rules import TopicRules, own_topics
from sfm_stream.transport.kafka.topics import create_missing, facts

DAY_MS = 86_400_000
OWN = own_topics("p", 7 * DAY_MS)
BOUNDS = ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms")


def rules_of(purpose: str) -> TopicRules:
    return next(rules for rules in OWN if rules.purpose == purpose)


NONE, UNKNOWN, DENIED, LATE, EXISTS, FEW, INVALID = 0, 3, 29, 7, 36, 38, 40


@dataclass
class Admin:
    """Stands for a cluster: topics there are, and what it answers to the creation of one with these settings."""

    there: dict[str, int] = field(default_factory=dict)
    answer: Callable[[str, dict[str, str]], int] = lambda name, configs: NONE
    asked: list[dict[str, Any]] = field(default_factory=list)
    waited: list[str] = field(default_factory=list)
    withheld: int = 0
    leaders: bool = True

    def describe_topics(self, names: list[str]) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "error_code": self.there.get(name, UNKNOWN),
                "partitions": [{"replica_nodes": [1, 2, 3]}, {"replica_nodes": [1, 2]}],
                "topic_id": None,
            }
            for name in names
        ]

    def describe_configs(self, resources: list[Any], config_filter: str) -> dict[str, Any]:
        assert config_filter == "all"
        self.withheld -= 1
        entries = {} if self.withheld >= 0 else {"a": {"value": "1"}, "hidden": {"value": None}}
        return {"topic": {resource.name: entries for resource in resources}}

    def create_topics(self, wanted: dict[str, Any], raise_errors: bool) -> dict[str, Any]:
        assert not raise_errors
        self.asked.append(wanted)
        return {
            "topics": [
                {"name": name, "error_code": self.answer(name, each["configs"]), "error_message": f"words {each}"}
                for name, each in wanted.items()
            ]
        }

    def close(self) -> None: ...

    def wait_for_topics(self, names: list[str], timeout_ms: int) -> None:
        self.waited += names
        if not self.leaders:
            raise KafkaTimeoutError("no leader")


@pytest.fixture
def connected(monkeypatch):
    """Connections to such a cluster."""
    monkeypatch.setattr(admin_module, "_CONFIG_PAUSE_S", 0.0)

    def connect(admin: Admin) -> KafkaPythonCluster:
        opened = lambda cluster: KafkaPythonAdmin(admin, cluster.translated)  # noqa: E731 -- a stand-in of one line
        monkeypatch.setattr(KafkaPythonCluster, "admin", opened)
        return KafkaPythonCluster(("somewhere",))

    return connect


def test_facts_leave_out_what_is_missing_and_ask_again_for_settings(connected):
    there = connected(Admin({"a": NONE, "b": NONE}, withheld=2))
    assert facts(there, ["a", "b", "c"]) == {name: TopicFacts(name, "", 2, 2, {"a": "1"}) for name in "ab"}
    assert facts(there, []) == {}


def test_facts_that_are_withheld_are_an_error_that_names_the_topic(connected):
    with pytest.raises(BrokerError, match="topic a: its settings cannot be read; grant"):
        facts(connected(Admin({"a": NONE}, withheld=100)), ["a"])
    with pytest.raises(BrokerError, match=r"somewhere.*TopicAuthorizationFailed.*topic a"):
        facts(connected(Admin({"a": DENIED})), ["a"])


def test_only_missing_topics_are_created(connected):
    admin = Admin({"p.outbox": NONE})
    created = create_missing(connected(admin), OWN, 5, 3)
    assert created == ("p.ledger", "p.sketches", "p.rollups") == tuple(admin.waited)
    [asked] = admin.asked
    assert asked["p.ledger"] == {
        "num_partitions": 5,
        "replication_factor": 3,
        "configs": rules_of("ledger").created_with(3),
    }
    nothing = Admin({rules.name: NONE for rules in OWN})
    assert create_missing(connected(nothing), OWN, 5, 3) == ()
    assert not nothing.asked


def test_a_topic_that_another_worker_creates_first_is_waited_for(connected):
    admin = Admin(answer=lambda name, configs: EXISTS if name == "p.ledger" else NONE)
    assert create_missing(connected(admin), OWN, 5, 3) == ("p.outbox", "p.sketches", "p.rollups")
    assert "p.ledger" in admin.waited


def test_an_older_broker_is_asked_in_its_own_words(connected):
    admin = Admin(answer=lambda name, configs: INVALID if set(BOUNDS) & set(configs) else NONE)
    assert create_missing(connected(admin), OWN, 5, 3) == tuple(rules.name for rules in OWN)
    _, second = admin.asked
    assert list(second) == ["p.sketches", "p.rollups"]
    assert second["p.sketches"]["configs"] == rules_of("sketches").created_with(3, older=True)


def test_a_setting_that_no_broker_takes_is_reported_in_the_first_words(connected):
    admin = Admin(answer=lambda name, configs: INVALID)
    with pytest.raises(BrokerError, match=r"topic p\.outbox cannot be created: words"):
        create_missing(connected(admin), OWN, 5, 3)
    with pytest.raises(BrokerError, match=r"topic p\.sketches cannot be created: words.*before\.max"):
        create_missing(connected(admin), [rules_of("sketches")], 5, 3)


def test_too_few_brokers_name_the_setting(connected):
    admin = Admin(answer=lambda name, configs: FEW)
    with pytest.raises(ConfigError, match=r"kafka\.replication: topic p\.outbox cannot have 3 replicas: words"):
        create_missing(connected(admin), OWN, 5, 3)


def test_what_goes_wrong_on_the_way_is_an_error_of_the_broker(connected):
    for code in (DENIED, LATE):
        with pytest.raises(BrokerError, match=r"topic p\.outbox cannot be created"):
            create_missing(connected(Admin(answer=lambda name, configs, code=code: code)), OWN, 5, 3)
    with pytest.raises(BrokerError, match="no leader"):
        create_missing(connected(Admin(leaders=False)), OWN, 5, 3)
