"""Lines of the log: their form, and what never gets there."""

import io
import json
import logging
import re

import pytest

from sfm_stream.observe.logs import configure


@pytest.fixture(autouse=True)
def logging_as_before():
    root, client = logging.getLogger(), logging.getLogger("kafka")
    loop = logging.getLogger("kafka.net.selector")
    before = list(root.handlers), root.level, client.level, loop.level
    yield
    root.handlers[:], root.level = before[:2]
    client.setLevel(before[2])
    loop.setLevel(before[3])


def lines(say, form="text", level="info"):
    out = io.StringIO()
    configure(form, level, out)
    say()
    return out.getvalue().splitlines()


def log(name="sfm_stream.composition.kafka"):
    return logging.getLogger(name)


def test_text_has_time_level_logger_message_and_fields():
    (line,) = lines(lambda: log().info("created topic %s", "views.outbox", extra={"partitions": 3}))
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info sfm_stream\.composition\.kafka: "
        r"created topic views.outbox partitions=3",
        line,
    )


def test_json_has_the_same_as_an_object():
    (line,) = lines(lambda: log().warning("a\nb %d", 7, extra={"partition": 3, "level": "no"}), "json")
    found = json.loads(line)
    assert list(found)[:4] == ["time", "level", "logger", "message"]
    assert found | {"time": ""} == {
        "time": "",
        "level": "warning",
        "logger": "sfm_stream.composition.kafka",
        "message": "a\nb 7",
        "partition": 3,
    }


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_event_is_one_line(form):
    said = lines(lambda: [log().error("a\nb\r\u2028c", extra={"x": "y\nz"}), log().info("next")], form)
    assert len(said) == 2


@pytest.mark.parametrize(("level", "heard"), [("info", 3), ("warning", 2), ("error", 1)])
def test_levels(level, heard):
    def say():
        for each in (log().debug, log().info, log().warning, log().error):
            each("x")

    assert len(lines(say, level=level)) == heard


@pytest.mark.parametrize("level", ["info", "warning", "error"])
@pytest.mark.parametrize("name", ["kafka", "kafka.conn", "kafka.producer.sender"])
def test_the_client_is_never_heard_below_warning(level, name):
    assert not lines(lambda: [log(name).debug("record=b'secret'"), log(name).info("b'secret'")], level=level)
    assert not log(name).isEnabledFor(logging.INFO)
    assert len(lines(lambda: log(name).error("away"), level=level)) == 1


def test_not_even_where_one_of_its_loggers_was_given_a_level():
    log("kafka.fetcher").setLevel(logging.DEBUG)
    try:
        said = lines(lambda: [log("kafka.fetcher").debug("b'secret'"), log("kafka.fetcher").warning("away")])
    finally:
        log("kafka.fetcher").setLevel(logging.NOTSET)
    assert [line.split(" ", 1)[1] for line in said] == ["warning kafka.fetcher: away"]


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_exception_shows_its_type_and_place_and_not_what_it_failed_on(form):
    def say():
        try:
            {}["secret-key"]
        except KeyError:
            log().exception("a worker failed")

    (line,) = lines(say, form)
    assert "KeyError" in line
    assert "test_logs.py:" in line
    assert "secret" not in line


def test_configuring_again_replaces():
    lines(lambda: None)
    assert len(lines(lambda: log().info("x"), "json")) == 1
    assert len(logging.getLogger().handlers) == 1


def test_a_log_that_cannot_be_written_ends_nothing(monkeypatch):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(28, "No space left on device")

        flush = write

    configure("text", "info", Full())
    monkeypatch.setattr("sys.stderr", Full())
    log().warning("not heard")
    monkeypatch.setattr("sys.stderr", None)
    log().warning("not heard either")
