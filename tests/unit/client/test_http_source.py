"""What a server could not answer is an error of the package again, with its words."""

import json

import pytest

from sfm_stream.client.http_source import _error_of
from sfm_stream.errors import (
    BrokerAway,
    BrokerError,
    ConflictError,
    FormatError,
    IncompatibleError,
    NothingFound,
    QuestionError,
    StateError,
    StorageError,
)
from sfm_stream.serve import problems
from sfm_stream.serve.refusals import NotNow, TooMuchAsked


@pytest.mark.parametrize(
    ("error", "becomes"),
    [
        (QuestionError("no time", "--from"), QuestionError),
        (QuestionError("nothing to compare with"), QuestionError),
        (TooMuchAsked("9 rows, and 3 are allowed"), QuestionError),
        (NothingFound("no such key"), NothingFound),
        (IncompatibleError("epochs differ in shape"), IncompatibleError),
        (ConflictError("two payloads of a release"), ConflictError),
        (FormatError("key", "is none", "topic sketches, offset 3"), StateError),
        (NotNow("being copied, 3 of 9"), BrokerAway),
        (StorageError("no room"), BrokerError),
        (BrokerError("refused"), BrokerError),
    ],
)
def test_an_error_of_a_server_is_one_of_its_kind_with_its_words(error, becomes):
    found = _error_of(json.loads(problems.response_to(error).body), "no problem document")
    assert type(found) is becomes
    assert str(found) == problems.in_words_of_the_api(str(error))


@pytest.mark.parametrize("problem", [None, [], {"type": "/v1/docs#nothing"}, {"type": 1, "detail": "x"}])
def test_what_is_no_problem_document_is_said_to_be_none(problem):
    found = _error_of(problem, "no answer of sfm-stream serve (HTTP 502)")
    assert (type(found), str(found)) == (StateError, "no answer of sfm-stream serve (HTTP 502)")
