"""Answers of a server, over its JSON API. Its problem documents are errors of this package again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from sfm_stream.answers.asked import Asked
from sfm_stream.client.source import AnswerTerms, JsonObject
from sfm_stream.errors import (
    BrokerAway,
    BrokerError,
    ConflictError,
    IncompatibleError,
    NothingFound,
    QuestionError,
    SfmStreamError,
    StateError,
    UsageError,
)

CONNECT_RETRIES = 3
ANSWER_S = 120.0
"""How long a server may take for an answer."""
_ERRORS: dict[str, type[SfmStreamError]] = {
    "too-much": QuestionError,
    "nothing": NothingFound,
    "unknown": NothingFound,
    "incompatible": IncompatibleError,
    "incident": ConflictError,
    "damaged": StateError,
    "not-now": BrokerAway,
    "fault": BrokerError,
}
"""The last part of a problem's type -> the error that it stands for."""


class HttpSource:
    """An AnswerSource over a server. url: of the server. pipeline: an id; "" for the only one that it serves.

    Raises UsageError naming the remedy where httpx is not installed, BrokerAway where the server cannot be reached.
    """

    def __init__(self, url: str, pipeline: str) -> None:
        try:
            import httpx
        except ImportError:
            raise UsageError(
                "asking a server needs httpx, which is not installed: pip install 'sfm-stream[client]'"
            ) from None
        self._httpx = httpx
        transport = httpx.HTTPTransport(retries=CONNECT_RETRIES)
        try:
            self._client = httpx.Client(base_url=url, transport=transport, timeout=ANSWER_S)
        except httpx.InvalidURL as error:
            raise UsageError(f"this is not the URL of a server, such as http://host:8464: {error}") from None
        try:
            state = self._document(f"/v1/pipelines/{quote(pipeline, safe='')}") if pipeline else self._only_one()
        except BaseException:
            self.close()
            raise
        self._path = f"/v1/pipelines/{quote(state['id'], safe='')}"
        self.terms = AnswerTerms(state["id"], state["zone"], tuple(state["key"]))

    def estimates(self, asked: Asked) -> tuple[list[JsonObject], list[str]]:
        found = self._document(f"{self._path}/estimates", asked.parameters())
        return found["rows"], found["unanswered"]

    def top(self, asked: Asked, count: int) -> list[JsonObject]:
        parameters = [*asked.parameters(), ("limit", str(count))]
        rows: list[JsonObject] = self._document(f"{self._path}/top", parameters)["rows"]
        return rows

    def compare(self, first: Asked, second: Asked) -> list[JsonObject]:
        parameters = [*first.parameters(), *second.parameters("other_")]
        rows: list[JsonObject] = self._document(f"{self._path}/compare", parameters)["rows"]
        return rows

    def pair(self, first: Asked, second: Asked) -> JsonObject:
        return self._document(f"{self._path}/pair", [*first.parameters(), *second.parameters("other_")])

    def keys(self, search: str, after: str | None, limit: int) -> tuple[list[str], bool]:
        parameters = [("search", search), ("limit", str(limit)), *([] if after is None else [("after", after)])]
        page = self._document(f"{self._path}/keys", parameters)
        return [each["text"] for each in page["keys"]], page["more"]

    def completeness(self) -> JsonObject:
        return self._document(f"{self._path}/completeness")

    def statement(self) -> str:
        return str(self._document(f"{self._path}/statement")["statement"])

    def close(self) -> None:
        self._client.close()

    def _only_one(self) -> JsonObject:
        served: Sequence[JsonObject] = self._document("/v1/pipelines")["pipelines"]
        if len(served) != 1:
            names = ", ".join(each["id"] for each in served) or "none"
            raise QuestionError(f"this server has {len(served)} pipelines: {names}; name one", "pipeline")
        return served[0]

    def _document(self, path: str, parameters: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
        """The object at an address. Raises the error that the server names, or BrokerAway where none answers."""
        try:
            response = self._client.get(path, params=list(parameters))
        except self._httpx.HTTPError as error:
            raise BrokerAway(
                f"{self._client.base_url}: no answer ({type(error).__name__}): does the server run?"
            ) from None
        try:
            found = response.json()
        except ValueError:
            found = None
        if response.status_code == self._httpx.codes.OK and isinstance(found, dict):
            return found
        raise _error_of(found, f"{self._client.base_url}: no answer of sfm-stream serve (HTTP {response.status_code})")


def _error_of(problem: object, otherwise: str) -> SfmStreamError:
    """The error that a problem document stands for. otherwise: what to say where it is none."""
    if not isinstance(problem, dict) or not all(isinstance(problem.get(part), str) for part in ("type", "detail")):
        return StateError(otherwise)
    name = problem["type"].rpartition("#")[2]
    wrong = problem.get("parameters") or []
    if name == "question":
        if len(wrong) == 1:
            return QuestionError(wrong[0]["problem"], wrong[0]["parameter"])
        return QuestionError(problem["detail"])
    return _ERRORS.get(name, StateError)(problem["detail"])
