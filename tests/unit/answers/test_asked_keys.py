"""What a written key may mean: every key that it may stand for is looked for, and no other."""

from __future__ import annotations

import pytest

from sfm_stream.answers.asked_keys import asked_key
from sfm_stream.answers.key_notation import ALL
from sfm_stream.errors import QuestionError
from sfm_stream.wire.keys import encode_key


def test_a_number_is_looked_for_as_text_and_where_it_fits_as_an_integer():
    for text, meant in {
        "7": [7, "7"],
        "-7": [-7, "-7"],
        "0": [0, "0"],
        "-0": ["-0"],
        "07": ["07"],
        "--7": ["--7"],
        "٣": ["٣"],
        str(2**63 - 1): [2**63 - 1, str(2**63 - 1)],
        str(2**63): [str(2**63)],
        "9" * 30: ["9" * 30],
    }.items():
        assert asked_key(text, 1).encoded == {encode_key(key) for key in meant}, text


@pytest.mark.parametrize(
    ("text", "fields", "meant"),
    [
        ('"7"', 1, [("7",), ('"7"',)]),
        ("[7]", 1, [(7,), ("[7]",)]),
        ("a,7", 2, [("a", 7), ("a", "7")]),
        ("a / 7", 2, [("a", 7)]),
        ('["a", 7]', 2, [("a", 7), ('["a"', " 7]")]),
        (ALL, 0, [()]),
        ("[]", 0, [()]),
    ],
)
def test_a_key_is_read_as_it_is_shown_as_json_and_with_commas(text, fields, meant):
    key = asked_key(text, fields)
    assert key.text == text
    assert key.encoded == {encode_key(each) for each in meant}


@pytest.mark.parametrize(
    ("text", "fields", "problem"),
    [
        ("a", 0, "event.key is []: everything is counted under one key, leave --key out"),
        ("a", 2, "a key has 2 fields: as it is shown, as a JSON array, or joined by commas"),
        ("\ud800", 1, "a key has 1 field: as it is shown, as a JSON array, or joined by commas"),
        ('["a", "b"]', 3, "a key has 3 fields: as it is shown, as a JSON array, or joined by commas"),
    ],
)
def test_a_text_that_can_be_no_key_is_refused(text, fields, problem):
    with pytest.raises(QuestionError) as refused:
        asked_key(text, fields)
    assert (refused.value.problem, refused.value.part) == (problem, "--key")


def test_a_key_of_many_numbers_is_not_read_in_thousands_of_ways():
    assert len(asked_key(",".join("1" * 10), 10).encoded) == 1024
    with pytest.raises(QuestionError):
        asked_key(",".join("1" * 11), 11)
