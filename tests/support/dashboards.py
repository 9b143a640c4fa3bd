"""Expressions of the dashboards as they are asked: with a choice in the place of each of Grafana's variables."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "grafana"
CHOSEN = {"job": ".+", "instance": ".+", "key": ".+", "grain": "hour"}


def panels(name: str) -> list[dict[str, Any]]:
    """The panels of a dashboard that ask for something."""
    loaded = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return [panel for panel in loaded["panels"] if panel.get("targets")]


def expressions(panel: dict[str, Any]) -> list[str]:
    """What a panel asks for. Raises KeyError for a variable that no dashboard has."""
    asked = [target["expr"] for target in panel["targets"]]
    return [re.sub(r"\$(\w+)", lambda found: CHOSEN[found[1]], each) for each in asked]
