"""Rules for settings that depend on each other: each gives the problems that it finds, with the settings' names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sfm_stream.config.tables import Settings
from sfm_stream.windows.grid import Grid

STDIN = "-"
OWN_TOPICS = ("outbox", "ledger", "sketches", "rollups", "dead-letters")
"""The topics that a pipeline writes, without its id and the dot before them."""


def window_problems(settings: Settings, grid: Grid | None) -> Iterator[str]:
    """Problems of the first border. grid: of the base span, None where that is not known."""
    window = settings.window
    if grid is not None and window.start is not None and grid.floor(window.start) != window.start:
        yield f"window.start: not a border of windows of {window.size}"
    if window.start is not None and window.start < 0:
        yield "window.start: before 1970"


def order_problems(settings: Settings, grid: Grid | None) -> Iterator[str]:
    """Problems of input.order, and of the settings that belong to one order only. grid: of the base span."""
    source, window = settings.input, settings.window
    if source is not None and source.order == "any" and not source.complete:
        yield (
            'input.order: "any" needs input.complete = true, as only an input that ends can be counted whole; set '
            'that, or order = "time"'
        )
    if source is not None and source.complete and source.order != "time":
        if window.end is not None and grid is not None and grid.floor(window.end) != window.end:
            yield f"window.end: not a border of windows of {window.size}"
        if window.end is not None and window.end <= (window.start or 0):
            yield "window.end: not after window.start"
        return
    if window.grace is None:
        yield "window.grace: needed, as windows close in order of time: how far out of order a record may arrive"
    if window.end is not None:
        yield (
            'window.end: only for an input that is counted whole (input.complete = true, input.order = "any"); '
            "elsewhere windows close in order of time, and an epoch ends where the next one begins"
        )


def file_problems(settings: Settings, folder: Path) -> Iterator[str]:
    """Problems of [input], [output] and [kafka]: where events come from and where releases go."""
    source, output, kafka = settings.input, settings.output, settings.kafka
    if kafka is not None and (source or output):
        yield "kafka: stands in place of [input] and [output]; leave those out"
    elif kafka is None and (source is None or output is None):
        yield "input, output: both are needed, or [kafka] in their place"
    elif source and output and source.path != STDIN and (folder / source.path) == (folder / output.path):
        yield "output.path: the same file as input.path"


def topic_problems(settings: Settings) -> Iterator[str]:
    """Problems of a pipeline on a cluster: the names of its topics, and where its epoch begins."""
    kafka, pipeline = settings.kafka, settings.pipeline
    if kafka is None:
        return
    for own in (f"{pipeline.id}.{name}" for name in OWN_TOPICS):
        if kafka.topic == own:
            yield "kafka.topic: a topic that the pipeline itself writes"
        elif kafka.topic.replace(".", "_") == own.replace(".", "_"):
            yield (
                f"kafka.topic: beside {kafka.topic} there can be no {own}, which the pipeline writes: Kafka "
                "takes '.' and '_' for the same there. Choose another pipeline.id"
            )
    if pipeline.epoch > 1 and settings.window.start is None:
        yield "window.start: needed for an epoch after the first"
