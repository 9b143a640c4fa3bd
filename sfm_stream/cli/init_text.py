"""The lines of a first configuration that no plan decides, with comments for whoever goes on with it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from sfm_stream.cli.init_answers import Answers
from sfm_stream.planning.configuration import Given


def given_lines(answers: Answers) -> Given:
    """The lines of these answers. What they need is there."""
    on_cluster = bool(answers.bootstrap)
    target = (
        () if on_cluster else ("[output]", f"path = {_text(answers.output_path)}   # never replace it by an older copy")
    )
    return Given(tuple(_source(answers)), tuple(_window(answers)), tuple(_keys(answers)), target)


def _source(answers: Answers) -> Iterator[str]:
    yield "# Every setting is explained in docs/configuration.md; sfm-stream config show has all of them."
    yield "[pipeline]"
    yield f"id = {_text(answers.pipeline)}"
    if answers.bootstrap:
        yield "[kafka]"
        yield f"bootstrap = {_list(answers.bootstrap)}"
        yield f"topic = {_text(answers.topic or '')}"
        yield f"timestamps = {_text(answers.clock)}   # what message.timestamp.type of the topic is"
        yield "replication = 3   # of the topics that a first start creates"
    else:
        yield "[input]"
        yield f"path = {_text(answers.source or '')}"
        if answers.grows:
            yield "complete = false   # it grows, and is read in order of time"
        else:
            yield "complete = true   # it is whole: counted in any order, and released at its end"
    yield "[event]"
    yield f"key = {_text(answers.keys[0]) if len(answers.keys) == 1 else _list(answers.keys)}   # what it is counted by"
    yield f"item = {_text(answers.item or '')}   # whose distinct values are counted"
    if answers.time is None:
        yield '# time = "..."   # left out: an event counts at the time stamp that its record has on the topic'
        return
    yield f"time = {_text(answers.time)}"
    yield f"time_unit = {_text(answers.unit or 'ms')}"
    if answers.is_naive:
        yield 'naive_time = "utc"   # its times have no offset: say here in which zone they are'


def _window(answers: Answers) -> Iterator[str]:
    if answers.source and not answers.grows:
        yield "# start = 2026-01-01T00:00:00Z   # with both borders neither they nor the guarantee hang on"
        yield "# end = 2026-02-01T00:00:00Z     # the first and the last record"
    else:
        yield f"grace = {_text(answers.grace or '5m')}   # how late a record may be and still count"


def _keys(answers: Answers) -> Iterator[str]:
    yield 'keys = "declared"'
    listed = ", ".join(_key(each, answers) for each in answers.declared)
    yield f"declared = [{listed}]   # the public list: each has a release in every window, empty or not"


def _key(written: str, answers: Answers) -> str:
    """A declared key: text, an integer where the field holds these, or a list from JSON where there are several."""
    if len(answers.keys) > 1:
        return _list(json.loads(written))
    is_integer = answers.keys[0] in answers.integers and re.fullmatch("-?[0-9]{1,19}", written)
    return str(int(written)) if is_integer else _text(written)


def _list(values: list[str] | tuple[str, ...]) -> str:
    return f"[{', '.join(map(_text, values))}]"


def _text(value: object) -> str:
    """A basic string, or a number."""
    return (
        str(value) if isinstance(value, int) else json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    )
