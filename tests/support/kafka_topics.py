"""What tests do with topics of a real Kafka: make them, write to them, read all that is there."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from support.patience import PATIENCE_S, patiently

Sent = tuple[bytes | None, bytes | None, int | None, int | None]
"""Key, value, timestamp in ms (None: now), partition (None: by the key)."""
Read = tuple[int, int, bytes | None, bytes | None, int, list[tuple[str, bytes]]]
"""Partition, offset, key, value, timestamp in ms, headers."""


def topic_name(prefix: str = "test") -> str:
    """A name that no other test has."""
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


KEPT = {"retention.ms": "-1"}


def make_topic(bootstrap: str, name: str, partitions: int = 1, config: Mapping[str, object] | None = None) -> str:
    """Create a topic and give its name, once every partition has a leader. Replicas: the cluster's default.

    Its records are kept: those of tests bear times long past, and the broker deletes what is a week old now and then.
    """
    settings = {**KEPT, **{key: str(value) for key, value in (config or {}).items()}}
    wanted = {"num_partitions": partitions, "configs": settings}
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics({name: wanted}, wait_for_metadata=True)
    return name


def produce(
    bootstrap: str,
    topic: str,
    records: Iterable[Sent],
    compression: str | None = None,
    transactional_id: str | None = None,
    abort: bool = False,
) -> list[tuple[int, int]]:
    """Write records, in one transaction if it has an id; (partition, offset) of each, once all replicas have it.

    abort: the transaction is aborted after its records are in the log (without an id it gets one).
    """
    if abort and transactional_id is None:
        transactional_id = topic_name("aborted")
    with KafkaProducer(
        bootstrap_servers=bootstrap, acks="all", compression_type=compression, transactional_id=transactional_id
    ) as producer:
        if transactional_id is not None:
            producer.init_transactions()
            producer.begin_transaction()
        futures = [
            producer.send(topic, key=key, value=value, timestamp_ms=timestamp_ms, partition=partition)
            for key, value, timestamp_ms, partition in records
        ]
        written = [future.get(timeout=PATIENCE_S) for future in futures]
        if transactional_id is not None:
            producer.abort_transaction() if abort else producer.commit_transaction()
    return [(record.partition, record.offset) for record in written]


def read_all(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[Read]:
    """Every record of a topic by partition and offset, up to the end that this isolation shows at the time of the call.

    read_uncommitted: up to the high watermark, records of open and aborted transactions among them. read_committed: up
    to the last stable offset. Fails where the end is not reached.
    """
    with KafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level=isolation, enable_auto_commit=False, auto_offset_reset="earliest"
    ) as consumer:
        parts = [TopicPartition(topic, part) for part in sorted(consumer.partitions_for_topic(topic) or ())]
        if not parts:
            raise LookupError(f"no topic {topic}")
        consumer.assign(parts)
        consumer.seek_to_beginning(*parts)
        ends = consumer.end_offsets(parts)
        found: list[Read] = []
        # Positions, not records, tell the end: markers of transactions have offsets and are never given out.
        for _ in patiently(lambda: f"{topic}: at {[consumer.position(part) for part in parts]}, to {ends}"):
            if all(consumer.position(part) >= ends[part] for part in parts):
                break
            for part, records in consumer.poll(timeout_ms=100).items():
                found += [
                    (r.partition, r.offset, r.key, r.value, r.timestamp, list(r.headers))
                    for r in records
                    if r.offset < ends[part]
                ]
    return sorted(found, key=lambda record: record[:2])


def unready(bootstrap: str, brokers: set[int]) -> str:
    """What is still missing: a broker that is not registered, or a replica on one of them that is behind; else ""."""
    with KafkaAdminClient(
        bootstrap_servers=bootstrap, bootstrap_timeout_ms=5000, request_timeout_ms=5000, reconnect_backoff_max_ms=100
    ) as admin:
        known = {each["broker_id"] for each in admin.describe_cluster()["brokers"] if not each.get("is_fenced")}
        if brokers - known:
            return f"brokers {sorted(brokers - known)} are not registered"
        for topic in admin.describe_topics():
            for part in topic["partitions"]:
                if behind := (brokers & set(part["replica_nodes"])) - set(part["isr_nodes"]):
                    return f"{topic['name']} {part['partition_index']}: behind on {sorted(behind)}"
    return ""


def coordinator(bootstrap: str, name: str, log: str = "__transaction_state") -> int:
    """The broker that coordinates the transactions of this id, or with __consumer_offsets the group of this name: the
    leader of the partition of its log that Java's String.hashCode chooses."""
    code = 0
    for letter in name:
        code = (31 * code + ord(letter)) & 0xFFFFFFFF
    signed = code - (1 << 32) if code >> 31 else code
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        [found] = admin.describe_topics([log])
    leaders = {place["partition_index"]: place["leader_id"] for place in found["partitions"]}
    leader: int = leaders[abs(signed) % len(leaders)]
    return leader
