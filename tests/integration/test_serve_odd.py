"""What nobody should send to a server, or do to the file that it reads: it is answered all the same, and rightly."""

from __future__ import annotations

import re
import shutil

import pytest
from support.embedded_runs import START_MS, asked, run_here, write_config, write_events
from support.served_files import asked_server, make_served, problem

VIEWS = "/v1/pipelines/views"
DAY = {"from": "2026-01-01", "to": "2026-01-02"}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with asked_server(make_served(tmp_path_factory.mktemp("served"))) as client:
        yield client


def make_small(folder):
    """A configuration of one hour that has run."""
    write_events(folder / "in.jsonl", [{"page": "/home", "user": f"{n}", "at": START_MS} for n in range(50)])
    config = write_config(folder, size="1h")
    run_here(config)
    return config


def test_files_that_follow_each_other_at_one_path_are_not_taken_for_one(tmp_path):
    """Each as long as the one before, and with the number that the one before that had on its disk."""
    config, output = make_small(tmp_path), tmp_path / "out.sqlite"
    for number in range(3):
        shutil.copy(output, tmp_path / f"{number}")
        for name in ("out.sqlite", "out.sqlite.released"):
            (tmp_path / name).unlink()
        run_here(config)
    tags = set()
    with asked_server(config) as client:
        for number in (0, 1, 2, 0, 2):
            shutil.copy(tmp_path / f"{number}", tmp_path / "next")
            output.unlink()
            (tmp_path / "next").rename(output)
            answer = client.get(f"{VIEWS}/estimates")
            assert answer.json()["rows"] == asked(config)
            tags.add(answer.headers["etag"])
    assert len(tags) == 5


def test_an_answer_is_kept_under_its_own_address_whatever_the_host_says(client):
    """A pair and a comparison are asked alike."""
    question = {**DAY, "key": "/home", "other_key": '"42"'}
    host = f"localhost:1{VIEWS}/compare?"
    refused = client.get(f"{VIEWS}/pair", params=question, headers={"host": host})
    assert (refused.status_code, refused.json()["type"]) == (421, "/v1/docs#host")
    assert "rows" in client.get(f"{VIEWS}/compare", params=question).json()


@pytest.mark.parametrize("text", ["[" * 10_000, '["\\ud800"]', '"\\ud800"', "[" + "1" * 5000 + "]"])
def test_a_key_that_can_be_none_is_an_answer_without_it(client, text):
    problem(client.get(f"{VIEWS}/estimates", params={"key": text}), 404, "nothing")
    assert client.get("/p/views/key", params={"key": text}).status_code == 200
    assert client.get("/p/views/compare", params={"key": "/home", "other_key": text}).status_code == 200


def test_a_page_says_of_any_key_that_it_has_none_in_words_of_the_page(client):
    hidden = "\u202e\x1b[0m"
    for address, params in (("key", {"key": hidden}), ("compare", {"key": hidden, "other_key": f"{hidden}2"})):
        text = client.get(f"/p/views/{address}", params=params).text
        said = re.search(r"<p[^>]*>([^<]*nothing is published[^<]*)</p>", text)[1]
        assert said.startswith(r"Key \u202e\u001b[0m: nothing is published")


@pytest.mark.parametrize(
    ("text", "offered"), [("42", "&#34;42&#34;"), ("7", None), ('"nowhere"', None), ('"\\""', None)]
)
def test_a_page_offers_other_keys_that_are_written_alike_where_there_are_any(client, text, offered):
    said = re.search(
        r"Other keys are written like this one: (.*?)</p>", client.get("/p/views/key?", params={"key": text}).text
    )
    assert (said and re.findall("<bdi>(.*?)</bdi>", said[1])) == (offered and [offered])


def test_keys_behind_what_can_be_no_key_are_not_listed(client):
    after = {"after": '"\\ud800"'}
    found = problem(client.get(f"{VIEWS}/keys", params=after), 400, "question")
    assert found["parameters"][0]["parameter"] == "after"
    assert client.get("/p/views/keys", params=after).status_code == 400
