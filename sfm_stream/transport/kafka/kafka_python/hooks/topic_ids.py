"""The id of a topic, as a consumer has it from the metadata that it asks for in any case."""

from __future__ import annotations

from kafka import KafkaConsumer

from sfm_stream.transport.kafka.kafka_python.hooks.private_names import PrivateNames

RELIES_ON: PrivateNames = {
    "kafka.consumer.group:KafkaConsumer": {
        "_cluster": "the metadata that the consumer has",
    },
    "kafka.cluster:ClusterMetadata": {
        "topic_id(self, topic_name)": "a UUID, None for a topic that is not known; 0 from brokers without ids",
    },
}


def known_topic_id(consumer: KafkaConsumer, topic: str) -> str:
    """The id of the topic; "" where the consumer has not heard of one. Asks nobody."""
    topic_id = consumer._cluster.topic_id(topic)
    return str(topic_id) if topic_id is not None and topic_id.int else ""
