"""An output that is an older copy of itself, made between two steps of the window that was released last."""

from __future__ import annotations

import shutil

import pytest
from support.embedded_runs import START_MS, NoFlips, releases, run_here, write_config, write_events

from sfm_stream.config.config import load_config
from sfm_stream.errors import StateError
from sfm_stream.transport.files.sqlite_log import SqliteLog
from sfm_stream.units import SKETCHES
from sfm_stream.wire.keys import MARKER_KEY

SPANS = '[[spans]]\nsize = "day"\nepsilon = 1\n'


class Killed(BaseException):
    pass


def kill_behind(patch, count):
    """The process dies behind the first commit with which more releases than this are there."""
    append, left = SqliteLog.append, [count]

    def append_and_die(self, worker, step):
        done = append(self, worker, step)
        left[0] -= sum(record.topic == SKETCHES and record.key != MARKER_KEY for record in step.publish)
        if left[0] < 0:
            raise Killed
        return done

    patch.setattr(SqliteLog, "append", append_and_die)


@pytest.mark.parametrize("spans", ["", SPANS], ids=["windows", "days"])
def test_a_copy_from_within_the_last_window_is_refused_and_a_restart_there_is_not(tmp_path, monkeypatch, spans):
    """With the border alone both look alike, and the rest of the window would be drawn a second time."""
    write_events(tmp_path / "in.jsonl", ({"page": f"p{n}", "user": n, "at": START_MS + n} for n in range(60)))
    app = write_config(tmp_path, max_transaction_bytes=4096)
    app.write_text(app.read_text() + spans)
    output = tmp_path / "out.sqlite"
    before = 60 if spans else 0
    with monkeypatch.context() as patch:
        kill_behind(patch, before)
        with pytest.raises(Killed):
            run_here(app, NoFlips())
    held = len(releases(output))
    assert before < held < before + 60, "within the last window"
    shutil.copy(output, tmp_path / "copy.sqlite")
    run_here(app, NoFlips())
    assert len(releases(output)) == before + 60, "a restart goes on"
    shutil.copy(tmp_path / "copy.sqlite", output)
    with pytest.raises(StateError, match=r"holds not all of them.*older copy"):
        run_here(app, NoFlips())
    assert len(releases(output)) == held
    text = app.read_text().replace("epoch = 1", "epoch = 2").replace("start = 2026-01-01T00", "start = 2026-01-02T00")
    app.write_text(text)
    assert load_config(app).pipeline.epoch == 2
    for _ in range(2):
        run_here(app, NoFlips())
    assert len(releases(output)) == held, "a new epoch behind it is the remedy"
