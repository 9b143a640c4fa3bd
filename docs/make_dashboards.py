"""Writes the dashboards of deploy/grafana/ from the metrics and from what dashboard_panels.py says of them.

make docs
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from docs.dashboard_panels import OPERATOR, PUBLIC, Panel, Query, Row
from sfm_stream.observe.metrics import DEFINITIONS, Definition

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"
FOLDER = DEPLOY / "grafana"
Json: TypeAlias = dict[str, Any]
ROWS: dict[str, tuple[Row, ...]] = {"operator": OPERATOR, "public": PUBLIC}
"""Name of a dashboard, which is that of its trust domain, to what it shows."""
TITLES = {"operator": "sfm-stream: operator", "public": "sfm-stream: published estimates"}
TEXTS = {
    "operator": "Exact numbers, **outside the privacy guarantee**: for the operator alone. Readers of the output have "
    "a dashboard of their own, on a Prometheus of their own.",
    "public": "Estimates of distinct items, made of published records alone. Whoever may see one may see all: nothing "
    "here costs anybody privacy.",
}
_COLUMNS, _HEIGHT = 24, 8
_SOURCE: Json = {"type": "prometheus", "uid": "${source}"}
_TIME_UNIT = "dateTimeAsIso"


def recorded() -> dict[str, str]:
    """Name of each recorded series to its expression."""
    groups = yaml.safe_load((DEPLOY / "recording.yml").read_text("utf-8"))["groups"]
    return {rule["record"]: rule["expr"] for group in groups for rule in group["rules"]}


def shown(panel: Panel) -> list[Definition]:
    """The metrics that a panel is made of, by way of recorded series too."""
    rules = recorded()
    texts = [query.expression for query in panel.queries]
    texts += [expression for name, expression in rules.items() if any(name in text for text in texts)]
    named = {name for text in texts for name in re.findall(r"(?<!:)\bsfm_\w+(?!:)", text)}
    named |= {re.sub("_(bucket|count|sum)$", "", name) for name in named}
    return [definition for definition in DEFINITIONS if definition.name in named]


def dashboard(name: str) -> Json:
    """A dashboard as Grafana reads it."""
    return {
        "uid": f"sfm-stream-{name}",
        "title": TITLES[name],
        "description": TEXTS[name].replace("**", ""),
        "tags": ["sfm-stream", name],
        "schemaVersion": 39,
        "version": 1,
        "editable": False,
        "graphTooltip": 1,
        "timezone": "browser",
        "refresh": "30s",
        "time": {"from": "now-6h" if name == "operator" else "now-7d", "to": "now"},
        "templating": {"list": [_source_variable(), *_VARIABLES[name]]},
        "panels": list(_placed(name)),
    }


def _placed(name: str) -> Iterator[Json]:
    """All panels, each with its number and its place: rows from top to bottom, panels from left to right."""
    text = {"mode": "markdown", "content": TEXTS[name]}
    yield {"id": 1, "type": "text", "title": "", "gridPos": _place(0, 0, _COLUMNS, 2), "options": text}
    top, number = 2, 1
    for row in ROWS[name]:
        number += 1
        heading = {"id": number, "type": "row", "title": row.title, "collapsed": False, "panels": []}
        yield heading | {"gridPos": _place(0, top, _COLUMNS, 1)}
        top, left = top + 1, 0
        for panel in row.panels:
            number += 1
            if left + panel.width > _COLUMNS:
                top, left = top + _HEIGHT, 0
            yield {"id": number, "gridPos": _place(left, top, panel.width, _HEIGHT)} | _panel(panel)
            left += panel.width
        top += _HEIGHT


def _place(left: int, top: int, width: int, height: int) -> Json:
    return {"x": left, "y": top, "w": width, "h": height}


def _panel(panel: Panel) -> Json:
    helps = [f"{metric.name}: {metric.help}" for metric in shown(panel)]
    common: Json = {
        "title": panel.title,
        "description": "\n\n".join([*([panel.note] if panel.note else []), *helps]),
        "datasource": _SOURCE,
        "targets": [_target(*each, panel) for each in zip("ABCDE", panel.queries, strict=False)],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
    }
    match panel.kind:
        case "stat":
            reduced = {"calcs": ["lastNotNull"], "fields": "", "values": False}
            return common | {"type": "stat", "options": {"reduceOptions": reduced, "colorMode": "value"}}
        case "table":
            return common | _table(panel.queries)
        case "band":
            repeated = {"repeat": "key", "repeatDirection": "h"}
            fill = {"id": "custom.fillBelowTo", "value": "at least"}
            thin = {"id": "custom.lineWidth", "value": 0}
            ends = [
                {"matcher": {"id": "byName", "options": "at most"}, "properties": [thin, fill]},
                {"matcher": {"id": "byName", "options": "at least"}, "properties": [thin]},
            ]
            common["fieldConfig"]["overrides"] = ends
            return common | {"type": "timeseries", "options": _lines()} | repeated
        case _:
            return common | {"type": "timeseries", "options": _lines()}


def _lines() -> Json:
    legend = {"displayMode": "list", "placement": "bottom", "showLegend": True}
    return {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}


def _defaults(panel: Panel) -> Json:
    steps: list[Json] = [{"color": "green", "value": None}]
    if panel.wrong_above is not None:
        steps.append({"color": "red", "value": panel.wrong_above})
    defaults: Json = {"unit": panel.unit, "thresholds": {"mode": "absolute", "steps": steps}}
    if panel.kind in ("timeseries", "band"):
        style = "off" if panel.wrong_above is None else "line"
        # A series stands still between two publications, and a dashed line would say otherwise.
        defaults["custom"] = {"lineInterpolation": "stepAfter", "thresholdsStyle": {"mode": style}}
    return defaults


def _target(letter: str, query: Query, panel: Panel) -> Json:
    at_once = panel.kind in ("stat", "table")
    return {
        "refId": letter,
        "datasource": _SOURCE,
        "expr": query.expression,
        "legendFormat": query.legend or "__auto",
        "editorMode": "code",
        "instant": at_once,
        "range": not at_once,
        "format": "table" if panel.kind == "table" else "time_series",
    }


def _table(queries: Sequence[Query]) -> Json:
    """A row for each set of labels, a column for each query; one query has its labels alone and its value."""
    hidden = dict.fromkeys(["Time", "__name__", "job", "instance", "grain"], True)
    if len(queries) == 1:
        organized = {"excludeByName": {"Time": True, "__name__": True}, "renameByName": {}, "indexByName": {}}
        return {"type": "table", "transformations": [{"id": "organize", "options": organized}]}
    names = {f"Value #{letter}": query.legend for letter, query in zip("ABCDE", queries, strict=False)}
    organized = {"excludeByName": hidden, "renameByName": names, "indexByName": {}}
    times = [name for name, query in names.items() if query.startswith("end of")]
    return {
        "type": "table",
        "transformations": [{"id": "merge", "options": {}}, {"id": "organize", "options": organized}],
        "fieldConfig": {
            "defaults": {"unit": "short"},
            "overrides": [
                {
                    "matcher": {"id": "byName", "options": names[time]},
                    "properties": [{"id": "unit", "value": _TIME_UNIT}],
                }
                for time in times
            ],
        },
    }


def _source_variable() -> Json:
    return {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0}


def _variable(name: str, label: str, values: str, several: bool = True) -> Json:
    """A list to choose from: the values of a label. several: more than one may be chosen, and all are at first."""
    variable: Json = {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": values, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": several,
        "includeAll": several,
        "hide": 0,
    }
    return variable | ({"current": {"text": "All", "value": "$__all"}} if several else {})


_VARIABLES: dict[str, list[Json]] = {
    "operator": [
        _variable("job", "pipeline", "label_values(sfm_assigned_partitions, job)"),
        _variable("instance", "worker", 'label_values(sfm_assigned_partitions{job=~"$job"}, instance)'),
    ],
    "public": [
        _variable("job", "pipeline", "label_values(sfm_estimate, job)"),
        _variable("grain", "span", 'label_values(sfm_estimate{job=~"$job"}, grain)', several=False),
        _variable("key", "key", 'label_values(sfm_estimate{job=~"$job", grain="$grain"}, key)'),
    ],
}


def text_of(name: str) -> str:
    """The file of a dashboard."""
    return json.dumps(dashboard(name), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in ROWS:
        (FOLDER / f"{each}.json").write_text(text_of(each), "utf-8")
