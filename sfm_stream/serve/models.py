"""The answers of the API as models, for its description. What is sent is made by answers/*_json.py.

tests/integration/test_serve_files.py holds real answers to them, field by field.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

Status: TypeAlias = Literal["ok", "empty", "uninformative", "saturated", "lower_bound"]
KeyFields = Annotated[list[str | int], Field(description='The fields of a key; bytes are "0x" and hex digits.')]
Instant = Annotated[str, Field(description="A time of UTC, ISO 8601.")]


class AnswerModel(BaseModel):
    """Says every field that an answer has."""

    model_config = ConfigDict(extra="forbid")


class PartJson(AnswerModel):
    """A span of time. The end is exclusive."""

    since: Annotated[Instant, Field(alias="from")]
    until: Annotated[Instant, Field(alias="to")]


class NumberJson(AnswerModel):
    """A number with its interval."""

    estimate: float
    standard_error: Annotated[float | None, Field(description="null: unknown")]
    low: float
    high: Annotated[float | None, Field(description="null: nothing limits it")]
    confidence: float
    status: Status


class RowJson(NumberJson):
    """The number of distinct items under one key in one span."""

    key: KeyFields
    keys: Annotated[list[KeyFields], Field(description="Of a row for several keys together.")] = []
    grain: str
    since: Annotated[Instant, Field(alias="from")]
    until: Annotated[Instant, Field(alias="to")]
    epsilon: Annotated[float, Field(description="The most that an item under the key can lose over these releases.")]
    origin: Literal["raw", "merged"]
    releases: Annotated[dict[str, int], Field(description="How many of which released span it is made of.")]
    released: int
    windows: Annotated[int, Field(description="How many releases it would be with none missing.")]
    complete: Annotated[bool, Field(description="Nothing more can come.")]
    missing_ms: Annotated[int, Field(description="How much of the span may hold something that is not in the row.")]
    missing: Annotated[list[PartJson] | None, Field(description="Where; null: the record does not say.")]
    epoch: int


class EstimatesJson(AnswerModel):
    """Rows in order of time and key. unanswered: a line for each key that is asked for and has none."""

    pipeline: str
    zone: str
    unanswered: list[str]
    rows: list[RowJson]


class KnownKeyJson(AnswerModel):
    """A published key. text: as it is shown, which the parameter `key` takes."""

    key: KeyFields
    text: str


class KeysJson(AnswerModel):
    """Published keys in the order of their bytes. more: whether others follow; ask with after=<text of the last>."""

    keys: list[KnownKeyJson]
    more: bool


class RankedRowJson(RowJson):
    """A row with the ranks that its interval leaves open."""

    rank_low: int
    rank_high: int
    tied: Annotated[bool, Field(description="Whether its rank is left open.")]
    published: Annotated[int, Field(description="How many keys are ranked.")]
    others_withheld: Annotated[bool, Field(description="Whether withheld keys may stand anywhere among them.")]


class TopJson(AnswerModel):
    """The keys with the largest numbers, the largest first."""

    pipeline: str
    zone: str
    rows: list[RankedRowJson]


class PairJson(AnswerModel):
    """Two sets, and what they share. noise_epsilon: the noise of both sketches together; it is no budget."""

    first: RowJson
    second: RowJson
    both: NumberJson
    only_first: NumberJson
    only_second: NumberJson
    either: NumberJson
    noise_epsilon: float | None


class DifferenceJson(AnswerModel):
    """The second less the first; null where nothing is known, or nothing limits it."""

    value: float | None
    standard_error: float | None
    low: float | None
    high: float | None
    confidence: float
    sign: Annotated[int | None, Field(description="1, -1, or null where the interval leaves it open.")]


class ComparedRowJson(AnswerModel):
    """One key in two spans. change: the difference as a part of the first."""

    key: KeyFields
    first: RowJson | None
    second: RowJson | None
    difference: DifferenceJson
    change: float | None


class ComparisonJson(AnswerModel):
    """A row for each key that has a number in either span."""

    pipeline: str
    zone: str
    rows: list[ComparedRowJson]


class DecidedSpanJson(AnswerModel):
    """A released span, and how far it is decided."""

    span: str
    through: Instant | None
    last: PartJson | None


class OpenPartitionJson(AnswerModel):
    """A partition that is behind the furthest."""

    partition: int
    through: Instant | None


class CompletenessJson(AnswerModel):
    """What is decided of the newest epoch."""

    epoch: int
    zone: str
    through: Instant | None
    spans: list[DecidedSpanJson]
    partitions: int
    open: list[OpenPartitionJson]


class StatementJson(AnswerModel):
    """What the pipeline promises, in words."""

    pipeline: str
    statement: str


class CopyJson(AnswerModel):
    """How far the server's copy of the topics is, in offsets; both 0 for a pipeline on files."""

    done: int
    wanted: int


class PipelineStateJson(AnswerModel):
    """A pipeline that is served. ready: whether questions are answered. problem: what is wrong, "" for nothing."""

    id: str
    zone: str
    key: Annotated[list[str], Field(description="The fields of an event that a key is made of.")]
    item: Annotated[str, Field(description="The field whose distinct values are counted.")]
    epoch: int
    spans: Annotated[list[str], Field(description="The released spans, the finest first.")]
    ready: bool
    problem: str
    copied: CopyJson


class PipelinesJson(AnswerModel):
    """Every pipeline of this server."""

    pipelines: list[PipelineStateJson]
