"""The end of a producer: at once, whatever it has in flight, and without a part in the end of the process. The end of a
batch that its topic finds too large: an error.
"""

from __future__ import annotations

from kafka import KafkaProducer

from sfm_stream.transport.kafka.kafka_python.hooks.private_names import PrivateNames

RELIES_ON: PrivateNames = {
    "kafka.producer.kafka:KafkaProducer": {
        "_unregister_cleanup(self)": "it takes back that the end of the process closes the producer",
        "_sender": "the thread that sends",
    },
    "kafka.producer.sender:Sender": {
        "force_close(self)": "close() does not wait for what is in flight after it",
        "_can_split(self, batch, error)": "whether a batch that is too large is sent again in halves, or fails",
    },
}


def forget_at_exit(producer: KafkaProducer) -> None:
    """The end of the process does not wait for this producer: whoever made it ends it."""
    producer._unregister_cleanup()


def never_split(producer: KafkaProducer) -> None:
    """A batch that its topic finds too large fails. kafka-python (3.0.12) sends it again in halves, and then waits for
    the whole one for ever, or says that it does not know what became of it.
    """
    producer._sender._can_split = lambda batch, error: False


def drop_what_is_in_flight(producer: KafkaProducer) -> None:
    """Its close() after this does not wait for answers."""
    if producer._sender is not None:
        producer._sender.force_close()
