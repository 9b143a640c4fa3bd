"""What the admin client says is taken for what it is: a group without members, and a topic that is missing."""

from __future__ import annotations

from types import SimpleNamespace

import kafka.errors as kafka_errors
import pytest

from sfm_stream.errors import BrokerAway, BrokerError
from sfm_stream.transport.kafka.kafka_python.admin import KafkaPythonAdmin
from sfm_stream.transport.kafka.kafka_python.client import KafkaPythonCluster


def admin_of(client: SimpleNamespace) -> KafkaPythonAdmin:
    return KafkaPythonAdmin(client, KafkaPythonCluster(("there:1",)).translated)


@pytest.mark.parametrize(
    ("error", "members", "expected"),
    [
        (None, ["a", "b"], 2),
        (str(kafka_errors.GroupIdNotFoundError("no")), [], 0),
        (str(kafka_errors.NotCoordinatorError()), [], None),
        (str(kafka_errors.CoordinatorLoadInProgressError()), [], None),
    ],
)
def test_a_group_is_taken_for_empty_only_where_its_coordinator_says_so(error, members, expected):
    """A first start relies on it: the workers of the epoch before have to be stopped."""
    answer = {"group": {"error": error, "members": members}}
    admin = admin_of(SimpleNamespace(describe_groups=lambda groups: answer))
    if expected is None:
        with pytest.raises(BrokerAway):
            admin.group_members("group")
    else:
        assert admin.group_members("group") == expected


def test_a_topic_is_taken_for_missing_only_where_the_broker_says_so():
    def admin(error: type[kafka_errors.BrokerResponseError]) -> KafkaPythonAdmin:
        answer = {"name": "t", "error_code": error.errno, "partitions": [1, 2] if error.errno == 0 else []}
        return admin_of(SimpleNamespace(describe_topics=lambda names: [answer]))

    assert admin(kafka_errors.NoError).partition_count("t") == 2
    assert admin(kafka_errors.UnknownTopicOrPartitionError).partition_count("t") == 0
    with pytest.raises(BrokerAway):
        admin(kafka_errors.LeaderNotAvailableError).partition_count("t")
    with pytest.raises(BrokerError, match="ACL"):
        admin(kafka_errors.TopicAuthorizationFailedError).partition_count("t")
