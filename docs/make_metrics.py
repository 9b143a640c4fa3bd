"""Writes docs/metrics.md from the definitions of the metrics.

make docs
"""

from __future__ import annotations

from pathlib import Path

from sfm_stream.observe.metrics import DEFINITIONS

PAGE = Path(__file__).with_name("metrics.md")
TEXT = """# Metrics

Written by `make docs` from `sfm_stream/observe/metrics.py`, which defines each of them once. docs/operating.md says
where they are served and what to do about an alert; dashboards, recording rules and alerts are in
[deploy/](../deploy/README.md). There are no other series: none of the process, and none that ends in `_created`.

## Public
Served at `metrics.public` by the roll-up worker. Functions of published records alone: of the last final hour and day,
and the last week and month where these are released, for at most `metrics.max_public_keys` keys of each. A key has no
series for a span in which nothing of it was published, and none after a restart until the next span is published. A key
of one text is shown as it is, any other one as a JSON array.

{public}

## Operator
Served at `metrics.operator` by each worker. Exact, of this process alone, and **outside the guarantee**: whoever reads
them is in the operator's domain. No label holds a key or an item. Series of a partition end when another worker takes
it over.

{operator}

## Of the server of answers
Served by `sfm-stream serve` at `serve.listen`, beside its pages: how far it can read what is published, which
`/v1/pipelines` says too, and what it was asked. Whoever may ask it may know that. Of a pipeline in a file nothing is
ever behind. A route is a template, such as `/v1/pipelines/{{pipeline}}/keys`, or `none` for an address that there is
not and for what is refused before it is looked up: no label holds a key or a query.

{serve}
"""
HEAD = "| metric | kind | labels | meaning |\n|---|---|---|---|"


def page() -> str:
    """The whole page."""
    rows = {"public": [HEAD], "operator": [HEAD], "serve": [HEAD]}
    for metric in DEFINITIONS:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        rows[metric.registry].append(f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} |")
    return TEXT.format(**{registry: "\n".join(lines) for registry, lines in rows.items()})


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
