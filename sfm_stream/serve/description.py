"""The description of the API: OpenAPI, and a page that shows it and asks nothing elsewhere."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from sfm_stream.serve.problems import KINDS, MEDIA_TYPE, Problem

TITLE = "sfm-stream"
_ABOUT = (
    "Private distinct counts of what these pipelines have published. Reading costs no privacy, however often. "
    "Numbers have noise: each has an interval that holds it with 95 % confidence. Every error is a problem document "
    "(RFC 9457) that says what to do."
)
STYLE = """body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif; }
code { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; }
th, td { border: 1px solid #8888; padding: 0.3rem 0.6rem; text-align: left; vertical-align: top; }
:root { color-scheme: light dark; }
"""


def described(app: FastAPI, pipelines: Sequence[str]) -> dict[str, Any]:
    """The OpenAPI document of an application, in which every error is a problem document. pipelines: their ids."""
    document = get_openapi(
        title=TITLE, version=importlib.metadata.version("sfm-stream"), description=_ABOUT, routes=app.routes
    )
    problem = {
        "description": "A problem",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for operation in (operation for path in document["paths"].values() for operation in path.values()):
        operation["responses"].pop("422", None)
        operation["responses"]["default"] = problem
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == "path":
                parameter["schema"] = {"type": "string", "enum": list(pipelines)}
    schemas = document["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    own = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas |= own.pop("$defs", {}) | {"Problem": own}
    return document


def docs_page(document: Mapping[str, Any]) -> str:
    """The description as a page."""
    return "\n".join(_lines(document))


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    title = escape(document["info"]["title"])
    yield f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}: API</title>'
    yield '<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="docs.css"></head><body>'
    yield f"<h1>{title}: API</h1><p>{escape(document['info']['description'])}</p>"
    yield '<p>The same for programs: <a href="openapi.json">openapi.json</a>.</p><h2>Addresses</h2>'
    for path, operations in document["paths"].items():
        yield from _operation(path, operations["get"])
    yield "<h2>Problems</h2><table><tr><th>type</th><th>status</th><th>meaning</th></tr>"
    for kind in KINDS:
        yield f'<tr id="{kind.name}"><td><code>{kind.name}</code></td><td>{kind.status}</td>'
        yield f"<td>{escape(kind.title)}</td></tr>"
    yield "</table></body></html>"


def _operation(path: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h3><code>{escape(path)}</code></h3><p>{escape(operation['description'])}</p>"
    parameters = [each for each in operation.get("parameters", ()) if each["in"] == "query"]
    if parameters:
        yield "<table><tr><th>parameter</th><th>meaning</th></tr>"
        for each in parameters:
            words = [each.get("description") or each["schema"].get("description", "")]
            words += [f"One of {', '.join(choices)}." for choices in _choices(each["schema"])]
            words += ["May be given several times."] if each["schema"].get("type") == "array" else []
            if (usual := each["schema"].get("default")) not in (None, "", [], False):
                words.append(f"Usually {usual}.")
            said = " ".join(word for word in words if word)
            yield f"<tr><td><code>{escape(each['name'])}</code></td><td>{escape(said)}</td></tr>"
        yield "</table>"


def _choices(schema: Mapping[str, Any]) -> Iterator[list[str]]:
    if "enum" in schema:
        yield schema["enum"]
    for inner in schema.get("anyOf", ()):
        yield from _choices(inner)
