"""What the dashboards of deploy/grafana/ show: the rows and panels of each, as expressions over the metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sfm_stream.observe import metrics
from sfm_stream.observe.metrics import Definition


@dataclass(frozen=True, slots=True)
class Query:
    """An expression, and what its series are called: a template of Grafana's over their labels."""

    expression: str
    legend: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel. width: of 24 columns. unit: as Grafana calls it. wrong_above: from which value on a figure is red.

    may_be_empty: nothing to show is a good sign. note: what its metrics do not say themselves.
    """

    title: str
    queries: tuple[Query, ...]
    kind: Literal["timeseries", "stat", "table", "band"] = "timeseries"
    unit: str = "short"
    width: int = 8
    wrong_above: float | None = None
    may_be_empty: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under one heading."""

    title: str
    panels: tuple[Panel, ...]


def of(metric: Definition | str, more: str = "") -> str:
    """A series of the jobs that are chosen; a recorded one by its name. more: further conditions."""
    name = metric if isinstance(metric, str) else metric.name
    return f'{name}{{job=~"$job"{more and f", {more}"}}}'


_KEYS = 'grain="$grain", key=~"$key"'
_AT = 'instance=~"$instance"'
_WORKER = "{{worker}} {{instance}}"
_PARTITION = "partition {{partition}}"
_SERVED = metrics.SERVED_SECONDS.name

OPERATOR = (
    Row(
        "Now",
        (
            Panel(
                "Second payloads",
                (Query(f"sum({of(metrics.CONFLICTS)})", ""),),
                "stat",
                width=4,
                wrong_above=1,
                note="A privacy incident: stop, see the runbook.",
            ),
            Panel("Positions restored", (Query(f"sum({of(metrics.RESTORED)})", ""),), "stat", width=4, wrong_above=1),
            Panel(
                "Workers without an answer",
                (Query('count(up{job=~"$job"} == 0) or vector(0)', ""),),
                "stat",
                width=4,
                wrong_above=1,
            ),
            Panel(
                "Stopped for a person",
                (Query(f"count({of(metrics.STOPPED)} > 0) or vector(0)", ""),),
                "stat",
                width=4,
                wrong_above=1,
            ),
            Panel(
                "Partitions in work",
                (Query(of("job_worker:sfm_assigned_partitions:sum"), "{{worker}}"),),
                "stat",
                width=8,
            ),
            Panel(
                "Alerts",
                (Query('ALERTS{job=~".*sfm-stream.*|", alertstate=~"pending|firing"}', "{{alertname}} {{severity}}"),),
                "table",
                width=24,
                may_be_empty=True,
                note="What to do stands in docs/operating.md, in a section for each.",
            ),
        ),
    ),
    Row(
        "Input",
        (
            Panel(
                "Records read and counted",
                (
                    Query(of("job_topic:sfm_events_read:rate5m"), "read of {{topic}}"),
                    Query(of("job_topic:sfm_events_counted:rate5m"), "counted of {{topic}}"),
                ),
                unit="cps",
                note="Replayed records are read and counted again.",
            ),
            Panel(
                "Dropped, by reason",
                (Query(of("job_topic_reason:sfm_events_dropped:rate5m"), "{{reason}}"),),
                unit="cps",
            ),
            Panel(
                "Dropped, of what is read",
                (Query(of("job_topic:sfm_events_dropped:ratio_rate15m"), "{{topic}}"),),
                unit="percentunit",
                wrong_above=0.05,
            ),
            Panel("Lag", (Query(of("job_worker:sfm_position_lag_records:sum"), "{{worker}}"),)),
            Panel("Lag by partition", (Query(of(metrics.LAG, _AT), "{{worker}} " + _PARTITION),)),
            Panel(
                "Age of what is read",
                (Query(of(metrics.CLOCK_DELAY, _AT), _PARTITION),),
                unit="s",
                note="High without lag: the partition is idle.",
            ),
        ),
    ),
    Row(
        "Windows and secret state",
        (
            Panel(
                "Age of the last window that was closed",
                (
                    Query(of("job_partition:sfm_closed_through_age_seconds:max"), _PARTITION),
                    Query(f"max by (job) ({of(metrics.CLOSE_DUE)})", "expected at most"),
                ),
                unit="s",
            ),
            Panel(
                "Held back",
                (
                    Query(of(metrics.HELD_SECONDS, _AT), _PARTITION),
                    Query(f"max by (job) ({of(metrics.HELD_DUE)})", "expected at most"),
                ),
                unit="s",
            ),
            Panel("Records held back", (Query(of("job_worker:sfm_hold_back_records:sum"), "{{worker}}"),)),
            Panel("Open windows", (Query(of(metrics.OPEN_WINDOWS, _AT), _PARTITION),), width=6),
            Panel("Open keys", (Query(of(metrics.OPEN_KEYS, _AT), _PARTITION),), width=6),
            Panel(
                "Secret state",
                (Query(of(metrics.RAW_BYTES, _AT), _PARTITION),),
                unit="bytes",
                width=6,
            ),
            Panel(
                "Secret state, of what it may be",
                (Query(of(metrics.RAW_RATIO, _AT), _PARTITION),),
                unit="percentunit",
                width=6,
                wrong_above=0.8,
            ),
        ),
    ),
    Row(
        "Output",
        (
            Panel(
                "Transactions, by outcome",
                (Query(of("job_worker_outcome:sfm_transactions:rate5m"), "{{worker}} {{outcome}}"),),
                unit="cps",
            ),
            Panel("Releases", (Query(f"sum by (job) (rate({of(metrics.RELEASES)}[5m]))", "releases"),), unit="cps"),
            Panel(
                "Records committed",
                (Query(f"sum by (job, worker) (rate({of(metrics.PUBLISHED)}[5m]))", "{{worker}}"),),
                unit="cps",
            ),
            Panel(
                "Read twice",
                (
                    Query(f"sum by (job) ({of(metrics.DUPLICATES)})", "same payload"),
                    Query(f"sum by (job) ({of(metrics.CONFLICTS)})", "second payload"),
                ),
            ),
            Panel(
                "Batches read",
                (Query(f"sum by (job, worker) (rate({of(metrics.BATCHES)}[5m]))", "{{worker}}"),),
                unit="cps",
            ),
            Panel(
                "Published keys without series",
                (Query(f"sum by (job, grain) ({metrics.LEFT_OUT.name})", "{{job}} {{grain}}"),),
                note="Of the public listeners, which have a job of their own.",
            ),
        ),
    ),
    Row(
        "Server of answers",
        (
            Panel(
                "Pipelines that can be asked",
                (Query(f"sum by (job, pipeline) ({metrics.SERVED_READY.name})", "{{pipeline}}"),),
                "stat",
                note="Of all servers: they have a job of their own.",
            ),
            Panel(
                "Not in its copy yet",
                (Query(f"max by (job, pipeline) ({metrics.SERVED_BEHIND.name})", "{{pipeline}}"),),
            ),
            Panel(
                "Kept from reading or following",
                (Query(f"max by (job, pipeline) ({metrics.SERVED_TROUBLED.name})", "{{pipeline}}"),),
                "stat",
                wrong_above=1,
            ),
            Panel(
                "Requests, by status",
                (Query(f"sum by (job, status) (rate({_SERVED}_count[5m]))", "{{status}}"),),
                unit="reqps",
                width=12,
            ),
            Panel(
                "95 % are answered within",
                (
                    Query(
                        f"histogram_quantile(0.95, sum by (job, route, le) (rate({_SERVED}_bucket[5m])))", "{{route}}"
                    ),
                ),
                unit="s",
                width=12,
            ),
        ),
    ),
    Row(
        "Processes",
        (
            Panel(
                "Partitions of each worker",
                (Query(of(metrics.ASSIGNED, _AT), _WORKER),),
            ),
            Panel(
                "Turns of its loop",
                (Query(f"rate({of(metrics.TURNS, _AT)}[5m])", _WORKER),),
                unit="cps",
            ),
            Panel(
                "Since its last turn",
                (Query(f"time() - {of(metrics.LAST_TURN, _AT)}", _WORKER),),
                unit="s",
                wrong_above=120,
            ),
            Panel(
                "What computes",
                (Query(of(metrics.KERNEL, _AT), ""),),
                "table",
                width=12,
            ),
            Panel(
                "Stopped, with its exit code",
                (Query(of(metrics.STOPPED, _AT), ""),),
                "table",
                width=12,
                may_be_empty=True,
            ),
        ),
    ),
)

PUBLIC = (
    Row(
        "Last spans",
        (
            Panel(
                "Keys",
                (
                    Query(of(metrics.ESTIMATE, _KEYS), "estimate"),
                    Query(of(metrics.LOW, _KEYS), "at least"),
                    Query(of(metrics.HIGH, _KEYS), "at most"),
                    Query(of(metrics.LOWER_BOUND, _KEYS), "lower bound"),
                    Query(f"1000 * {of(metrics.SPAN_END, _KEYS)}", "end of the span"),
                ),
                "table",
                width=24,
                note="95 % of such intervals hold the true number. At most +Inf: there is no bound.",
            ),
            Panel(
                "End of the last span",
                (Query(f"1000 * max by (job, grain) ({of(metrics.SPAN_END)})", "{{grain}}"),),
                "stat",
                unit="dateTimeAsIso",
                width=8,
            ),
            Panel(
                "Keys that are only a lower bound",
                (Query(f"sum by (job, grain) ({of(metrics.LOWER_BOUND)})", "{{grain}}"),),
                "stat",
                width=8,
            ),
            Panel("Keys without series", (Query(of(metrics.LEFT_OUT), "{{grain}}"),), "stat", width=8),
        ),
    ),
    Row(
        "Estimates over time",
        (
            Panel(
                "Estimates",
                (Query(of(metrics.ESTIMATE, _KEYS), "{{key}}"),),
                width=24,
                note="A span is shown from its publication until the next one is published.",
            ),
            Panel(
                "$key",
                (
                    Query(f"{of(metrics.HIGH, _KEYS)} < Inf", "at most"),
                    Query(of(metrics.ESTIMATE, _KEYS), "estimate"),
                    Query(of(metrics.LOW, _KEYS), "at least"),
                ),
                "band",
                width=24,
                note="With its interval of 95 % confidence; no upper end where there is no bound.",
            ),
        ),
    ),
)
