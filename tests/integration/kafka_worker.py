"""Runs workers of one configuration or several on a real cluster, and dies by SIGKILL where it is told to.

    python kafka_worker.py CONFIG[,CONFIG...] ROLES POINT COUNT first|again, or --fork (support/forks.py)

ROLES: ingest, publish, rollup, joined by commas; bare is an ingest that publishes its draws at once, without the
outbox. Its coins flip nothing but the last level of a sketch, which no item of a test reaches: there they are fair, so
that counts can be compared cell by cell, and two draws of one release are told apart. What a selection draws is fair.
POINT, in the COUNT-th
transaction of this process: draw (coins were drawn), first-send (the first batch is in its log), sent, offsets (they
are accepted), ready (all but the commit is sent), committing (the commit is sent and its answer not awaited),
committed; never. With stop- before it, SIGSTOP instead of SIGKILL.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
from kafka import KafkaProducer
from support.forks import arguments_of_this_fork

from sfm_stream.composition.kafka import open_ingest, open_outbox, open_rollup
from sfm_stream.composition.kafka_names import names_of
from sfm_stream.composition.stop_signal import Stop
from sfm_stream.config.config import load_config
from sfm_stream.transport.kafka.kafka_python import producer
from sfm_stream.units import SKETCHES
from sfm_stream.workers.loop import serve

LASTS = {64 * 24: 64, 32 * 24: 32}
"""Number of cells of a sketch of these tests, to those of its last level."""
LISTENS = "listens to signals"
READY = "ready to commit "
INITIALIZED = "transactions begin under "


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(0.2)


class MarkingCoins:
    """No coin of a sketch comes up, but in the last level each does with probability one half. Others are fair."""

    def __init__(self, point: str, count: int) -> None:
        self.left = count if point == "draw" else -1

    def digits(self, count):
        drawn = np.frombuffer(os.urandom(count), np.uint8)
        if last := LASTS.get(count):
            drawn = np.full(count, 255, np.uint8)
            drawn[-last:] = np.where(np.frombuffer(os.urandom(last), np.uint8) < 128, 0, 255)
        self.left -= 1
        if self.left == 0:
            die()
        return drawn


def plant(point: str, count: int) -> None:
    """Put the death into the seams of the real client."""
    end = stop if point.startswith("stop-") else die
    point = point.removeprefix("stop-")
    left = [count]
    chosen: list[KafkaProducer | None] = [None]
    lock = threading.Lock()
    init, begin, append = KafkaProducer.init_transactions, KafkaProducer.begin_transaction, producer.append_batch
    flush, offsets, commit = (
        KafkaProducer.flush,
        KafkaProducer.send_offsets_to_transaction,
        KafkaProducer.commit_transaction,
    )

    def at(client, here):
        """Whether this is the place, which is passed once; several threads have producers."""
        if client is not chosen[0] or point != here:
            return False
        chosen[0] = None
        return True

    def told_init(self):
        init(self)
        logging.info("%s%s", INITIALIZED, self.config["transactional_id"])

    def counted_begin(self):
        begin(self)
        with lock:
            left[0] -= 1
            if left[0] == 0:
                chosen[0] = self

    def dying_append(client, *arguments):
        future = append(client, *arguments)
        if at(client, "first-send"):
            flush(client)
            end()
        return future

    def dying_flush(self, *arguments, **named):
        flush(self, *arguments, **named)
        if at(self, "sent"):
            logging.info("%s%s", READY, self.config["transactional_id"])
            end()

    def dying_offsets(self, *arguments, **named):
        offsets(self, *arguments, **named)
        if at(self, "offsets"):
            end()

    def dying_commit(self):
        if at(self, "ready"):
            logging.info("%s%s", READY, self.config["transactional_id"])
            end()
        if at(self, "committing"):
            threading.Timer(0.004, end).start()
        commit(self)
        if at(self, "committed"):
            end()

    KafkaProducer.init_transactions = told_init
    KafkaProducer.begin_transaction = counted_begin
    producer.append_batch = dying_append
    KafkaProducer.flush = dying_flush
    KafkaProducer.send_offsets_to_transaction = dying_offsets
    KafkaProducer.commit_transaction = dying_commit


def main() -> None:
    paths, roles, point, number, first = arguments_of_this_fork()
    count = int(number)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    logging.getLogger("kafka").setLevel(logging.WARNING)
    configs = [load_config(Path(path)) for path in paths.split(",")]
    plant(point, count)
    with Stop().listening() as stopping:
        logging.info(LISTENS)
        services = []
        for config in configs:
            if "ingest" in roles.split(","):
                services.append(open_ingest(config, first == "first", MarkingCoins(point, count)))
            if "bare" in roles.split(","):
                services.append(open_ingest(config, first == "first", MarkingCoins(point, count)))
                services[-1].transport._endpoints.topics[SKETCHES] = names_of(config).sketches
            if "publish" in roles.split(","):
                services.append(open_outbox(config))
            if "rollup" in roles.split(","):
                services.append(open_rollup(config))
        serve(services, stopping)


if __name__ == "__main__":
    main()
