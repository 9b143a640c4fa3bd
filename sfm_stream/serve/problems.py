"""Problem documents (RFC 9457): what a request gets that has no answer, with what to do about it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
from fastapi import Response
from pydantic import BaseModel, ConfigDict

from sfm_stream.errors import (
    BrokerError,
    ConflictError,
    IncompatibleError,
    NothingFound,
    QuestionError,
    SfmStreamError,
    StorageError,
    UsageError,
)
from sfm_stream.readable import visible
from sfm_stream.serve.refusals import NotNow, TooMuchAsked

MEDIA_TYPE = "application/problem+json"
_OPTION_WITH_VALUE = re.compile(
    r'--(key|from|to|last|by) ("[^"]*"|(?:window|quarter|hour|day|week|month|range)\b|[0-9]+(?:h|d|w|mo)\b)'
)
_OPTION = re.compile(r"--(key|from|to|last|by|joined|limit)\b")


class WrongParameter(BaseModel):
    """A part of the query that is wrong."""

    parameter: str
    problem: str


class Problem(BaseModel):
    """Why there is no answer. `type` says what kind it is, `detail` what to do about it."""

    model_config = ConfigDict(extra="forbid")

    type: str
    title: str
    status: int
    detail: str
    parameters: list[WrongParameter] = []


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of problem. name: the last part of its type, an anchor of the API's documentation."""

    name: str
    status: int
    title: str
    headers: Mapping[str, str] = field(default_factory=dict)


_LATER = {"retry-after": "5"}
QUESTION = Kind("question", 400, "The question makes no sense as it is asked")
TOO_MUCH = Kind("too-much", 400, "The question asks for more than this server answers")
NOTHING = Kind("nothing", 404, "Nothing that is published answers the question")
UNKNOWN = Kind("unknown", 404, "There is nothing at this address")
INCOMPATIBLE = Kind("incompatible", 409, "What is published cannot be combined")
INCIDENT = Kind("incident", 500, "A privacy incident: a release has two payloads")
DAMAGED = Kind("damaged", 500, "What is published cannot be read")
NOT_NOW = Kind("not-now", 503, "No answer yet", _LATER)
FAULT = Kind("fault", 503, "A disk or the cluster fails", _LATER)
UNEXPECTED = Kind("unexpected", 500, "An error of the server")
METHOD = Kind("method", 405, "Only GET and HEAD are answered", {"allow": "GET, HEAD"})
HOST = Kind("host", 421, "This server is not asked under this name")
TOO_LONG = Kind("too-long", 414, "The address is too long")
KINDS = (
    *(QUESTION, TOO_MUCH, NOTHING, UNKNOWN, INCOMPATIBLE, INCIDENT, DAMAGED, NOT_NOW, FAULT),
    *(UNEXPECTED, METHOD, HOST, TOO_LONG),
)
_OF_ERRORS: tuple[tuple[type[SfmStreamError], Kind], ...] = (
    (ConflictError, INCIDENT),
    (NothingFound, NOTHING),
    (NotNow, NOT_NOW),
    (TooMuchAsked, TOO_MUCH),
    (IncompatibleError, INCOMPATIBLE),
    (UsageError, QUESTION),
    (StorageError, FAULT),
    (BrokerError, FAULT),
    (SfmStreamError, DAMAGED),
)


def response_of(kind: Kind, detail: str, wrong: Sequence[WrongParameter] = ()) -> Response:
    """The problem document of a kind."""
    problem = Problem(
        type=f"/v1/docs#{kind.name}",
        title=kind.title,
        status=kind.status,
        detail=visible(detail),
        parameters=list(wrong),
    )
    left_out = None if wrong else {"parameters"}
    body = msgspec.json.encode(problem.model_dump(exclude=left_out))
    return Response(body, kind.status, {**kind.headers, "cache-control": "no-store"}, MEDIA_TYPE)


def response_to(error: SfmStreamError) -> Response:
    """The problem document of an error. What names an option of the command line names the parameter instead."""
    kind = next(kind for of_errors, kind in _OF_ERRORS if isinstance(error, of_errors))
    detail, wrong = in_words_of_the_api(str(error)), list[WrongParameter]()
    if isinstance(error, QuestionError) and error.part:
        name = error.part.removeprefix("--")
        wrong = [WrongParameter(parameter=name, problem=visible(in_words_of_the_api(error.problem)))]
    return response_of(kind, detail, wrong)


def in_words_of_the_api(text: str) -> str:
    """A message of the command line, such as "ask --by hour", with the names of parameters: "ask by=hour"."""
    return _OPTION.sub(r"\1", _OPTION_WITH_VALUE.sub(r"\1=\2", text))
