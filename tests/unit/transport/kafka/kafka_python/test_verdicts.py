"""The table of what each error of the client means: whole, and what translated() makes of it."""

from __future__ import annotations

import inspect
from types import FunctionType

import kafka.errors as kafka_errors
import pytest
from kafka.consumer.fetcher import RecordTooLargeError
from kafka.coordinator.base import UnjoinedGroupException
from kafka.util import ensure_valid_topic_name

from sfm_stream.errors import BrokerAway, BrokerError, ConfigError, StateError
from sfm_stream.transport.kafka.kafka_python.translation import translated
from sfm_stream.transport.kafka.kafka_python.verdicts import VERDICTS, Verdict, verdict

CLASSES = sorted(
    {kind for _, kind in inspect.getmembers(kafka_errors, inspect.isclass) if issubclass(kind, Exception)},
    key=lambda kind: kind.__name__,
)
RAISED = {Verdict.AWAY: BrokerAway, Verdict.REFUSED: BrokerError, Verdict.LOST: StateError}

MEANT = {
    # What ended running workers, or would.
    "UnknownBrokerIdError": Verdict.AWAY,
    "KafkaError": Verdict.AWAY,
    "IllegalStateError": Verdict.AWAY,
    "UnknownError": Verdict.AWAY,
    "BrokerNotAvailableError": Verdict.AWAY,
    "NoOffsetForPartitionError": Verdict.AWAY,
    "IllegalGenerationError": Verdict.AWAY,
    "ProducerFencedError": Verdict.AWAY,
    # What passes by itself, as the client says too.
    "NodeNotReadyError": Verdict.AWAY,
    "StaleMetadata": Verdict.AWAY,
    "KafkaTimeoutError": Verdict.AWAY,
    "CoordinatorLoadInProgressError": Verdict.AWAY,
    "NotLeaderForPartitionError": Verdict.AWAY,
    "FencedLeaderEpochError": Verdict.AWAY,
    "UnknownLeaderEpochError": Verdict.AWAY,
    "OffsetNotAvailableError": Verdict.AWAY,
    "KafkaStorageError": Verdict.AWAY,
    "UnknownTopicOrPartitionError": Verdict.AWAY,
    # Waiting does not help.
    "TopicAuthorizationFailedError": Verdict.REFUSED,
    "SaslAuthenticationFailedError": Verdict.REFUSED,
    "MessageSizeTooLargeError": Verdict.REFUSED,
    "UnsupportedVersionError": Verdict.REFUSED,
    "OffsetOutOfRangeError": Verdict.LOST,
    "LogTruncationError": Verdict.LOST,
    "IllegalArgumentError": Verdict.OURS,
}


def speak(error: Exception) -> None:
    with translated(("there:1",)):
        raise error


def from_the_client(kind: type[Exception]) -> None:
    """Raise an error in a function that is part of the client."""

    def fail() -> None:
        raise kind("a key of somebody")

    FunctionType(fail.__code__, {"__name__": "kafka.consumer.fetcher"}, closure=fail.__closure__)()


def test_every_class_of_the_client_is_in_the_table_and_nothing_else():
    missing = {kind.__name__ for kind in CLASSES} - VERDICTS.keys()
    assert not missing, (
        f"say in transport/kafka/kafka_python/verdicts.py what these mean to a worker: {sorted(missing)}"
    )
    assert not VERDICTS.keys() - {kind.__name__ for kind in CLASSES}


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_class_is_raised_as_its_verdict_says(kind):
    error = kind("words")
    assert verdict(error) is VERDICTS[kind.__name__]
    assert verdict(error) is MEANT.get(kind.__name__, verdict(error))
    expected = RAISED.get(verdict(error), kind)
    with pytest.raises(expected) as raised:
        speak(error)
    assert type(raised.value) is expected
    if expected is not kind:
        assert "there:1" in str(raised.value)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_what_the_client_would_try_again_is_waited_for(kind):
    assert verdict(kind("words")) is Verdict.AWAY or not kind.retriable


def test_a_class_from_elsewhere_means_what_its_base_does():
    assert verdict(UnjoinedGroupException()) is Verdict.AWAY
    assert verdict(RecordTooLargeError()) is Verdict.AWAY
    assert verdict(kafka_errors.for_code(9_999)()) is Verdict.AWAY
    assert verdict(type("Newer", (kafka_errors.AuthorizationError,), {})()) is Verdict.REFUSED


@pytest.mark.parametrize("kind", [RuntimeError, KeyError, IndexError, ValueError, AttributeError, AssertionError])
def test_what_breaks_inside_the_client_is_told_by_its_place_and_waited_for(kind):
    with pytest.raises(BrokerAway) as raised, translated(("there:1",)):
        from_the_client(kind)
    assert "somebody" not in str(raised.value)
    assert f"test_verdicts.py:{from_the_client.__code__.co_firstlineno + 4} ({kind.__name__})" in str(raised.value)
    with pytest.raises(kind):
        speak(kind("here"))


def test_it_is_so_for_what_the_client_really_raises():
    with pytest.raises(BrokerAway, match=r"util.py:\d+ \(ValueError\)"), translated(("there:1",)):
        ensure_valid_topic_name("")


@pytest.mark.parametrize("error", [OSError("broken pipe"), TimeoutError(), ConnectionResetError()])
def test_the_network_is_waited_for(error):
    with pytest.raises(BrokerAway):
        speak(error)


@pytest.mark.parametrize(
    "error", [TypeError("x"), ConfigError("x"), StateError("x"), BrokerError("x"), BrokerAway("x")]
)
def test_other_errors_pass_as_they_are(error):
    with pytest.raises(type(error)) as raised:
        speak(error)
    assert raised.value is error


def test_a_call_of_the_client_with_a_wrong_type_is_a_fault_of_ours():
    with pytest.raises(TypeError), translated(("there:1",)):
        from_the_client(TypeError)
