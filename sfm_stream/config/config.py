"""Config: a validated configuration, and what follows from it. The whole file is checked before anything is opened.

Every problem names its setting. Relative paths in the file are relative to the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from sfm_stream.config.derived import derived, event_schema
from sfm_stream.config.rules import STDIN
from sfm_stream.config.setting_errors import explained
from sfm_stream.config.tables import (
    EventTable,
    InputTable,
    KafkaTable,
    LimitsTable,
    LogsTable,
    MetricsTable,
    OutputTable,
    PipelineTable,
    RollupTable,
    Settings,
    WindowTable,
    WorkerTable,
)
from sfm_stream.config.toml_text import toml_table, toml_text
from sfm_stream.errors import ConfigError, UsageError
from sfm_stream.events.event_schema import MAX_TIME_MS, EventSchema
from sfm_stream.pipeline.counting.plan import CountingPlan, Limits
from sfm_stream.pipeline.rollup.calendar import Calendar
from sfm_stream.privacy.budget import Budget
from sfm_stream.privacy.epsilon import plain
from sfm_stream.privacy.key_rules import KeyRule, PresenceIsPublic, SelectedKeys
from sfm_stream.privacy.released_span import ReleasedSpan, names_in_records, widest
from sfm_stream.privacy.statement import statement
from sfm_stream.readable import decimal_text
from sfm_stream.sketch.hashing import ItemHash
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.units import FOREVER_MS
from sfm_stream.windows.grid import Grid, grid_of
from sfm_stream.windows.tumbling import Tumbling, last_border
from sfm_stream.windows.whole import Whole

if TYPE_CHECKING:
    from sfm_stream.pipeline.rollup.coverage import Absence

__all__ = ["STDIN", "Config", "load_config", "parse_config"]


@dataclass(frozen=True, slots=True)
class Config:
    """A validated configuration. `settings` is the whole file, defaults filled in; the rest follows from it.

    The tables of the file are here by their own names: config.pipeline.id, config.window.size.
    """

    settings: Settings
    folder: Path
    item_hash: ItemHash
    keys: KeyRule
    calendar: Calendar
    budget: Budget
    security: Mapping[str, Any] = field(repr=False)
    """Keyword arguments for the client of a cluster, secrets among them."""

    @property
    def pipeline(self) -> PipelineTable:
        return self.settings.pipeline

    @property
    def event(self) -> EventTable:
        return self.settings.event

    @property
    def window(self) -> WindowTable:
        return self.settings.window

    @property
    def rollup(self) -> RollupTable:
        return self.settings.rollup

    @property
    def limits(self) -> LimitsTable:
        return self.settings.limits

    @property
    def metrics(self) -> MetricsTable:
        return self.settings.metrics

    @property
    def logs(self) -> LogsTable:
        return self.settings.logs

    @property
    def worker(self) -> WorkerTable:
        return self.settings.worker

    @property
    def on_cluster(self) -> bool:
        """Whether events come from a topic of a cluster; else from a file."""
        return self.settings.kafka is not None

    @property
    def kafka(self) -> KafkaTable:
        """The table [kafka]. Raises ConfigError for a pipeline on files."""
        if self.settings.kafka is None:
            raise ConfigError("kafka: this command needs the settings of a cluster; for files there is sfm-stream run")
        return self.settings.kafka

    @property
    def files(self) -> tuple[InputTable, OutputTable]:
        """The tables [input] and [output]. Raises ConfigError for a pipeline on a cluster."""
        source, output = self.settings.input, self.settings.output
        if source is None or output is None:
            raise ConfigError(
                "this configuration is for a cluster: use ingest and rollup, or give [input] and [output]"
            )
        return source, output

    @property
    def unit(self) -> str:
        """The privacy unit: "removed" or "blanked" (docs/privacy.md).

        "removed" holds if no time inside a record decides about other records: the log gives the arrival times, or the
        input is counted whole between two configured borders.
        """
        window = self.window
        fixed = self.whole and window.start is not None and window.end is not None
        return "removed" if self._log_gives_arrivals or fixed else "blanked"

    @property
    def whole(self) -> bool:
        """Whether the input is counted whole, in any order, and released at its end."""
        source = self.settings.input
        return source is not None and (source.order or ("any" if source.complete else "time")) == "any"

    @property
    def clock_margin_ms(self) -> int | None:
        """How far arrival times may step back; None where the log does not give them."""
        return self.window.clock_margin if self._log_gives_arrivals else None

    @property
    def statement(self) -> str:
        """The privacy statement, in paragraphs of plain text."""
        return statement(self.pipeline.id, self.unit, self.keys, self.budget, self.clock_margin_ms, self.whole)

    @property
    def _log_gives_arrivals(self) -> bool:
        kafka = self.settings.kafka
        return kafka is not None and kafka.timestamps == "log_append_time"

    def in_order_of_time(self) -> Config:
        """This configuration with input.order = "time"."""
        source = self.files[0].model_copy(update={"order": "time"})
        return replace(self, settings=self.settings.model_copy(update={"input": source}))

    def without_counts(self) -> Config:
        """This configuration with privacy.count_share = 0: the releases that it made before there were counts."""
        privacy = self.settings.privacy.model_copy(update={"count_share": Decimal(0)})
        settings = self.settings.model_copy(update={"privacy": privacy})
        return Config(settings, self.folder, *derived(settings, self.folder))

    @property
    def absence(self) -> Absence:
        """What it means that a key has no release in a window. This configuration knows it of its own epoch only."""
        # Its module loads the estimator, which most commands do not need.
        from sfm_stream.pipeline.rollup.coverage import Absence

        return Absence(self.pipeline.epoch if isinstance(self.keys, PresenceIsPublic) else None)

    @property
    def cells(self) -> SketchShape:
        """The shape in which the cells of items are extracted; those of every released span are made of them."""
        return widest(self.budget.spans)

    @property
    def grid(self) -> Grid:
        """The borders of the base span."""
        return self.grids[0]

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The borders of each released span, in their order."""
        return tuple(grid_of(span.name, self.calendar.zone) for span in self.budget.spans)

    @property
    def input_path(self) -> str:
        path = self.files[0].path
        return path if path == STDIN else str(self.folder / path)

    @property
    def output_path(self) -> Path:
        return self.folder / self.files[1].path

    def event_schema(self, latest_ms: int = MAX_TIME_MS) -> EventSchema:
        """The schema of the events. latest_ms: upper end of plausible event times, fixed at the first start."""
        return event_schema(self.settings, latest_ms)

    def plan(self, partitions: int, start_ms: int | None, end_ms: int = FOREVER_MS) -> CountingPlan:
        """What to count between the first and the last window border of the epoch.

        start_ms: the first border; None if the first record of an input that is counted whole decides it.
        """
        return CountingPlan(
            pipeline=self.pipeline.id,
            epoch=self.pipeline.epoch,
            partitions=partitions,
            spans=self.budget.spans,
            item_hash=self.item_hash,
            windows=self._windows(start_ms, end_ms),
            unit=self.unit,
            keys=self.keys,
            fingerprint=self.fingerprint(partitions),
            limits=Limits(**self.limits.model_dump()),
            coarser=self.grids[1:],
        )

    def _windows(self, start_ms: int | None, end_ms: int) -> Tumbling:
        window, end_ms = self.window, last_border(self.grid, end_ms)
        if self.whole:
            known, given = start_ms is not None, window.start is not None
            return Whole(self.grid, 0, 0, start_ms or 0, end_ms, None, known, window.end, given)
        if start_ms is None:
            raise UsageError("windows in order of time need a first border")
        return Tumbling(self.grid, window.grace_ms, self._skew_ms, start_ms, end_ms, self.clock_margin_ms)

    @property
    def _skew_ms(self) -> int:
        # In files arrival time is event time: no event lies in the future of its own arrival.
        return self.window.max_future_skew if self.on_cluster else 0

    @property
    def own_fingerprint(self) -> str | None:
        """The fingerprint of a pipeline on files; None on a cluster, where the partitions of the topic enter it."""
        return None if self.on_cluster else self.fingerprint(1)

    def fingerprint(self, partitions: int) -> str:
        """The fingerprint: 32 hex digits over all settings that must not change within an epoch. It is public."""
        selected = self.keys if isinstance(self.keys, SelectedKeys) else None
        base, *coarser = self.budget.spans
        parts = {
            "pipeline": self.pipeline.id,
            "shape": str(base.shape),
            "hash": self.item_hash.name,
            "k": base.flip_threshold,
            **({"count_share": decimal_text(share)} if (share := self.settings.privacy.count_share) else {}),
            "window_ms": base.size_ms,
            "keys": self.settings.privacy.keys,
            "selection": [plain(selected.epsilon), plain(selected.delta)] if selected else None,
            "event": [*self.event.key, self.event.item, self.event.time, self.event.time_unit],
            "float_items": self.event.float_items,
            **({} if self.event.naive_time in ("refuse", "utc") else {"naive_time": self.event.naive_time}),
            "unit": self.unit,
            # With a larger margin, records that a step of a broker's clock had made late would count after all.
            **({} if self.clock_margin_ms is None else {"clock_margin_ms": self.clock_margin_ms}),
            **({"order": "any", "window_end_ms": self.window.end} if self.whole else {}),
            # What earlier versions did not have is left out where it is not used, so that their epochs go on.
            **({"window": self._length_parts(base)} if names_in_records(self.budget.spans) else {}),
            **({"spans": [self._span_parts(span) for span in coarser]} if coarser else {}),
            "partitions": partitions,
            **({"partitioner": self.settings.kafka.partitioner} if self.settings.kafka else {}),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]

    def _span_parts(self, span: ReleasedSpan) -> list[object]:
        return [*self._length_parts(span), str(span.shape), span.flip_threshold, decimal_text(span.count_epsilon)]

    def _length_parts(self, span: ReleasedSpan) -> list[str]:
        """The name of a span as its records have it ("1h" and "hour" are two), and the zone that decides its length."""
        return [span.name, *([] if span.size_ms else [self.calendar.zone])]


def load_config(path: Path) -> Config:
    """The configuration in a TOML file. Raises ConfigError with every problem found, each with its setting."""
    return parse_config(toml_text(path), path.parent, str(path))


def parse_config(text: str, folder: Path, name: str = "configuration") -> Config:
    """As load_config, from text; relative paths are taken from `folder`."""
    table = toml_table(text, name, Decimal)
    try:
        settings = Settings.model_validate(table)
    except ValidationError as error:
        raise ConfigError(*explained(error)) from None
    return Config(settings, folder, *derived(settings, folder))
