"""The end of a producer: at once, whatever it has in flight, and without a part in the end of the process."""

from __future__ import annotations

from kafka import KafkaProducer


def forget_at_exit(producer: KafkaProducer) -> None:
    """The end of the process does not wait for this producer: whoever made it ends it."""
    producer._unregister_cleanup()


def drop_what_is_in_flight(producer: KafkaProducer) -> None:
    """Its close() after this does not wait for answers."""
    if producer._sender is not None:
        producer._sender.force_close()
