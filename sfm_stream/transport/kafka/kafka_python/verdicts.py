"""What each error that a client of Kafka raises means to a worker: one table, for every class of kafka.errors.

It is always safe to go on after an error: the worker drops what it has in hand and starts from what is committed. So a
worker waits after every error that a cluster in trouble can cause, even one that kafka-python calls final. It ends
where waiting cannot help, because somebody has to grant, configure or decide something.
"""

from __future__ import annotations

import struct
from enum import Enum, auto
from pathlib import PurePath

from kafka.errors import KafkaError

from sfm_stream.errors import BrokerAway, BrokerError, SfmStreamError, StateError


class Verdict(Enum):
    """What a worker does after an error."""

    AWAY = auto()
    """The cluster, or the client's view of it, is in trouble: wait, and go on from what is committed."""
    REFUSED = auto()
    """It would be refused again: end with exit code 7."""
    LOST = auto()
    """Records are gone that had to be read: end with exit code 4."""
    OURS = auto()
    """The answer to a request that this package never sends, or sent wrongly: a fault of ours, raised unchanged."""


_AWAY = """
KafkaError RetriableError InvalidMetadataError BrokerResponseError UnknownError
Cancelled KafkaConnectionError KafkaTimeoutError RequestTimedOutError NetworkExceptionError TooManyInFlightRequests
NodeNotReadyError UnknownBrokerIdError BrokerNotAvailableError BrokerIdNotRegisteredError StaleBrokerEpochError
StaleControllerEpochError NotControllerError MetadataEmptyBrokerList StaleMetadata ListenerNotFoundError
LeaderNotAvailableError NotLeaderForPartitionError ReplicaNotAvailableError PreferredLeaderNotAvailableError
EligibleLeadersNotAvailableError ElectionNotNeededError FencedLeaderEpochError UnknownLeaderEpochError
OffsetNotAvailableError UnstableOffsetCommitError NoOffsetForPartitionError
UnknownTopicOrPartitionError UnknownTopicIdError InconsistentTopicIdError
KafkaStorageError LogDirNotFoundError NotEnoughReplicasError NotEnoughReplicasAfterAppendError
ThrottlingQuotaExceededError QuotaViolationError
KafkaProtocolError CorrelationIdError InvalidReceiveError IllegalStateError
FetchSessionIdNotFoundError InvalidFetchSessionEpochError FetchSessionTopicIdError
ShareSessionNotFoundError InvalidShareSessionEpochError
CoordinatorLoadInProgressError CoordinatorNotAvailableError NotCoordinatorError
CommitFailedError IllegalGenerationError UnknownMemberIdError RebalanceInProgressError MemberIdRequiredError
GroupIdNotFoundError
ConcurrentTransactionsError TransactionCoordinatorFencedError TransactionAbortedError TransactionAbortableError
TransactionalIdNotFoundError ProducerFencedError InvalidProducerEpochError InvalidProducerIdMappingError
InvalidTxnStateError UnknownProducerIdError OutOfOrderSequenceNumberError DuplicateSequenceNumberError
"""
"""A plain KafkaError says that the client gave up for reasons that it does not name; mostly a coordinator went away.
IllegalStateError: a thread of the client took something away under another. Fenced and unknown producers: settle()
makes a new one."""

_REFUSED = """
AuthorizationError TopicAuthorizationFailedError GroupAuthorizationFailedError ClusterAuthorizationFailedError
TransactionalIdAuthorizationFailedError DelegationTokenAuthorizationFailedError
SaslAuthenticationFailedError UnsupportedSaslMechanismError IllegalSaslStateError SecurityDisabledError
DelegationTokenAuthDisabledError DelegationTokenNotFoundError DelegationTokenOwnerMismatchError
DelegationTokenRequestNotAllowedError DelegationTokenExpiredError InvalidPrincipalTypeError
PrincipalDeserializationFailureError UnacceptableCredentialError
KafkaConfigurationError UnsupportedVersionError IncompatibleBrokerVersion UnrecognizedBrokerVersion
MismatchedEndpointTypeError UnsupportedEndpointTypeError
UnsupportedCodecError UnsupportedCompressionTypeError UnsupportedForMessageFormatError
InvalidSessionTimeoutError InvalidGroupIdError InconsistentGroupProtocolError GroupMaxSizeReachedError
InvalidTransactionTimeoutError
InvalidTopicError TopicAlreadyExistsError InvalidPartitionsError InvalidReplicationFactorError
InvalidReplicationAssignmentError InvalidConfigurationError PolicyViolationError
MessageSizeTooLargeError RecordListTooLargeError InvalidTimestampError InvalidRecordError CorruptRecordError
"""
"""Rights, credentials, versions, and settings of the broker or of a topic; a record that cannot be read."""

_LOST = """
OffsetOutOfRangeError LogTruncationError
"""
"""Retention took what was to be read next, or a new leader has a shorter log than the one that was read."""

_OURS = """
NoError IllegalArgumentError InvalidRequestError InvalidFetchRequestError InvalidRequiredAcksError
OffsetMetadataTooLargeError InvalidCommitOffsetSizeError OperationNotAttemptedError
FencedInstanceIdError UnreleasedInstanceIdError
NonEmptyGroupError GroupSubscribedToTopicError TopicDeletionDisabledError
ReassignmentInProgressError NoReassignmentInProgressError ResourceNotFoundError DuplicateResourceError
FencedMemberEpochError StaleMemberEpochError UnsupportedAssignorError
InvalidRecordStateError FencedStateEpochError OffsetMovedToTieredStorageError
UnknownSubscriptionIdError TelemetryTooLargeError FeatureUpdateFailedError InvalidUpdateVersionError
InconsistentVoterSetError SnapshotNotFoundError PositionOutOfRangeError DuplicateBrokerRegistrationError
InconsistentClusterIdError IneligibleReplicaError NewLeaderElectedError UnknownControllerIdError
InvalidRegistrationError InvalidVoterKeyError DuplicateVoterError VoterNotFoundError
"""
"""Static members, groups of KIP-848, share groups, deletions, reassignments, telemetry, and what brokers say to each
other: nothing here asks for these."""

VERDICTS: dict[str, Verdict] = {
    name: verdict
    for verdict, names in (
        (Verdict.AWAY, _AWAY),
        (Verdict.REFUSED, _REFUSED),
        (Verdict.LOST, _LOST),
        (Verdict.OURS, _OURS),
    )
    for name in names.split()
}
"""Name of a class of kafka.errors to what it means; a subclass from elsewhere means what its nearest base does."""

_RACES = (RuntimeError, LookupError, ValueError, AttributeError, AssertionError, struct.error)
"""What the insides of the client raise where a node goes away under them, or one thread under another."""


def verdict(error: BaseException) -> Verdict:
    """What an error means that a call of the client raised; not for errors of this package."""
    if isinstance(error, KafkaError):
        return next(VERDICTS[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in VERDICTS)
    if isinstance(error, OSError) or (isinstance(error, _RACES) and where_in_client(error)):
        return Verdict.AWAY
    return Verdict.OURS


def becomes(error: BaseException) -> type[SfmStreamError] | None:
    """The error of this package to raise instead; None where the error is raised unchanged."""
    return {
        Verdict.AWAY: BrokerAway,
        Verdict.REFUSED: BrokerError,
        Verdict.LOST: StateError,
        Verdict.OURS: None,
    }[verdict(error)]


def where_in_client(error: BaseException) -> str:
    """Where in the client an error arose, as "fetcher.py:123"; "" where it did not arise in the client."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or trace.tb_frame.f_globals.get("__name__", "").partition(".")[0] != "kafka":
        return ""
    return f"{PurePath(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
