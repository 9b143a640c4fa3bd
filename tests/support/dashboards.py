"""Expressions of the dashboards as they are asked: with a choice in the place of each of Grafana's variables."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "grafana"
ANY = {"job": ".+", "instance": ".+", "key": ".+", "grain": "hour"}


def panels(name: str) -> list[dict[str, Any]]:
    """The panels of a dashboard that ask for something."""
    return [panel for panel in _loaded(name)["panels"] if panel.get("targets")]


def expressions(panel: dict[str, Any], chosen: Mapping[str, str] = ANY) -> list[str]:
    """What a panel asks for. Raises KeyError for a variable of which nothing is chosen."""
    return [_filled(target["expr"], chosen) for target in panel["targets"]]


def choices(name: str, values: Callable[[str, str], list[str]]) -> dict[str, str]:
    """What Grafana puts in the place of each variable of a dashboard: everything, or where it has to be one the first.

    values: the values of a label over an expression, as the data source has them.
    """
    chosen: dict[str, str] = {}
    for variable in _loaded(name)["templating"]["list"]:
        if variable["type"] == "query":
            asked = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
            assert asked, variable
            found = sorted(values(_filled(asked[1], chosen), asked[2]))
            chosen[variable["name"]] = "|".join(map(re.escape, found)) if variable["multi"] else found[0]
    return chosen


def _loaded(name: str) -> dict[str, Any]:
    return dict(json.loads((FOLDER / f"{name}.json").read_text("utf-8")))


def _filled(expression: str, chosen: Mapping[str, str]) -> str:
    return re.sub(r"\$(\w+)", lambda found: chosen[found[1]].replace("\\", "\\\\"), expression)
