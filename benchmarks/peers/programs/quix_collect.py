"""quixstreams, with what made it quickest: `collect`, and closing windows by the partition's time."""

from __future__ import annotations

import os
from datetime import timedelta

from quixstreams import Application


def main() -> None:
    app = Application(
        broker_address=os.environ["BOOTSTRAP"],
        consumer_group=os.environ["GROUP"],
        auto_offset_reset="earliest",
        state_dir=os.environ["STATE"],
        loglevel="WARNING",
    )
    events = app.topic(
        os.environ["TOPIC"],
        key_deserializer="str",
        value_deserializer="json",
        timestamp_extractor=lambda value, headers, timestamp, kind: value["ts"],
    )
    users = app.dataframe(events).apply(lambda value: value["user"])
    window = users.tumbling_window(timedelta(minutes=1), grace_ms=timedelta(seconds=5)).collect()
    closed = window.final(closing_strategy="partition").apply(
        lambda window, key, timestamp, headers: {
            "page": key,
            "start": window["start"],
            "n": len(set(window["value"])),
        },
        metadata=True,
    )
    closed.to_topic(app.topic(os.environ["OUT"], value_serializer="json"))
    app.run()


if __name__ == "__main__":
    main()
