"""An output that was restored from a copy, replaced or deleted: refused with the numbers, and the remedy releases
nothing a second time. The commands on real files, as an operator would have them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.embedded_runs import (
    HOUR_MS,
    MINUTE_MS,
    START_MS,
    command,
    releases,
    run_here,
    write_config,
    write_events,
)

from sfm_stream.errors import StateError
from sfm_stream.transport.files.released_borders import ReleasedBorders

BORDER = "2026-01-01T02:00:00Z"
"""The end of the last window that the app has released once both hours are read."""
BORDER_MS = START_MS + 2 * HOUR_MS
KILL_WORKER = Path(__file__).with_name("kill_worker.py")


def append(app: Path, first_minute: int, minutes: int) -> None:
    with (app.parent / "in.jsonl").open("a") as more:
        for n in range(first_minute, first_minute + minutes):
            more.write(json.dumps({"page": f"p{n % 3}", "user": f"u{n}", "at": START_MS + n * MINUTE_MS}) + "\n")


def change(app: Path, *pairs: tuple[str, str]) -> None:
    text = app.read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    app.write_text(text)


def ids(output: Path) -> list[tuple[object, ...]]:
    """What an item pays for: a second release of a window and key costs it again, whatever its id."""
    return [(release.window, release.key) for release in releases(output)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """One hour of a growing input is counted, and a copy of the output is made: copy.sqlite. Not to be changed."""
    folder = tmp_path_factory.mktemp("made")
    write_events(folder / "in.jsonl", ())
    app = write_config(folder, complete="false", grace="0s")
    append(app, 0, 62)
    assert command("run", app).returncode == 0
    shutil.copy(folder / "out.sqlite", folder / "copy.sqlite")
    return folder


@pytest.fixture(scope="module")
def made_and_grown(made, tmp_path_factory):
    """A second hour is counted too. Not to be changed."""
    folder = tmp_path_factory.mktemp("grown")
    shutil.copytree(made, folder, dirs_exist_ok=True)
    app = folder / "app.toml"
    append(app, 62, 60)
    assert command("run", app).returncode == 0
    shutil.copy(app.parent / "out.sqlite", app.parent / "last.sqlite")
    assert max(release.window.end_ms for release in releases(app.parent / "last.sqlite")) == BORDER_MS
    return folder


@pytest.fixture
def app(made, tmp_path):
    """Of `made`, in a folder of this test's own."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "app.toml"


@pytest.fixture
def grown(made_and_grown, tmp_path):
    """Of `made_and_grown`, in a folder of this test's own."""
    shutil.copytree(made_and_grown, tmp_path, dirs_exist_ok=True)
    return tmp_path / "app.toml"


def lose(app: Path, how: str) -> None:
    output = app.parent / "out.sqlite"
    if how == "an older copy":
        shutil.copy(app.parent / "copy.sqlite", output)
    elif how == "deleted":
        output.unlink()
    elif how == "emptied":
        output.write_bytes(b"")
    elif how == "another pipeline's":
        other = write_config(app.parent, "other.toml", id="other", output="other.sqlite")
        assert command("run", other).returncode == 0
        os.replace(app.parent / "other.sqlite", output)


@pytest.mark.parametrize("how", ["an older copy", "deleted", "emptied", "another pipeline's"])
def test_it_is_refused_with_the_numbers_and_a_new_epoch_behind_them_draws_nothing_twice(grown, how):
    output = grown.parent / "out.sqlite"
    lose(grown, how)
    kept = ids(output) if how == "an older copy" else []
    for _ in range(2):  # what a refused run leaves behind does not make the next one go on
        done = command("run", grown)
        assert done.returncode == 4, done.stdout
        assert "released windows up to 2026-01-01T02:00:00Z" in done.stderr
        assert "restored from an older copy, replaced or deleted" in done.stderr
        held = "those up to 2026-01-01T01:00:00Z" if kept else "none of them"
        assert held in done.stderr
    named = re.search(r"Raise pipeline\.epoch above (\d+) and set window\.start to (\S+) ", done.stderr)
    assert named is not None
    assert named[1] == "1"
    append(grown, 122, 60)
    # A new epoch alone, and a start before the border, are not enough; the remedy is.
    change(grown, ("epoch = 1", "epoch = 2"))
    assert command("run", grown).returncode == 4
    change(grown, ("start = 2026-01-01T00:00:00Z", "start = 2026-01-01T01:45:00Z"))
    done = command("run", grown)
    assert done.returncode == 4
    assert named[2] in done.stderr
    change(grown, ("start = 2026-01-01T01:45:00Z", f"start = {named[2]}"))
    for _ in range(2):
        done = command("run", grown)
        assert done.returncode == 0, done.stderr
    before, after = ids(grown.parent / "last.sqlite"), ids(output)
    new = [release for release in releases(output) if release.epoch == 2 and release.pipeline == "views"]
    assert new
    assert min(release.window.start_ms for release in new) == BORDER_MS
    assert not {(r.window, r.key) for r in new} & set(before)
    assert len(after) == len({(r.release_id) for r in releases(output)})
    # The old epoch has ended for good.
    change(grown, ("epoch = 2", "epoch = 1"), (f"start = {named[2]}", "start = 2026-01-01T00:00:00Z"))
    assert command("run", grown).returncode == 4


def test_an_epoch_that_began_after_the_copy_was_made_is_known(grown):
    """Its windows lie behind all that the first epoch released, so only its own note tells of them."""
    output = grown.parent / "out.sqlite"
    append(grown, 122, 60)
    change(grown, ("epoch = 1", "epoch = 2"), ("start = 2026-01-01T00:00:00Z", f"start = {BORDER}"))
    assert command("run", grown).returncode == 0
    shutil.copy(grown.parent / "last.sqlite", output)
    change(grown, ("epoch = 2", "epoch = 1"), (f"start = {BORDER}", "start = 2026-01-01T00:00:00Z"))
    done = command("run", grown)
    assert done.returncode == 4
    assert "epoch 2 of pipeline views has released" in done.stderr
    assert "above 2 and set window.start to 2026-01-01T03:00:00Z" in done.stderr
    assert "none of them" in done.stderr


def test_an_output_without_notes_goes_on_and_is_noted(grown):
    """As one that was written before there were notes, or moved without them."""
    (grown.parent / "out.sqlite.released").unlink()
    assert command("run", grown).returncode == 0
    assert ReleasedBorders(str(grown.parent / "out.sqlite")).borders == {
        "ingest/views/1": BORDER_MS,
        "ingest/views/1/sketches": 32,
    }
    lose(grown, "an older copy")
    assert command("run", grown).returncode == 4


def test_a_first_window_that_is_still_open_is_nothing_released(tmp_path):
    write_events(tmp_path / "in.jsonl", [{"page": "p", "user": "u", "at": START_MS}])
    app = write_config(tmp_path, complete="false")
    for _ in range(2):
        assert command("run", app).returncode == 0
    assert not (tmp_path / "out.sqlite.released").exists()
    (tmp_path / "out.sqlite").unlink()
    assert command("run", app).returncode == 0


def test_who_knows_that_nothing_was_handed_on_deletes_both(grown):
    (grown.parent / "out.sqlite").unlink()
    (grown.parent / "out.sqlite.released").unlink()
    assert command("run", grown).returncode == 0
    assert ids(grown.parent / "out.sqlite") == ids(grown.parent / "last.sqlite")


@pytest.mark.parametrize("damage", [b"", b"{", b'{"version":1,"borders":{"ingest/views/1":5},"digest":"00"}'])
def test_notes_that_cannot_be_read_stop_the_run(grown, damage):
    notes = grown.parent / "out.sqlite.released"
    notes.write_bytes(damage)
    done = command("run", grown)
    assert done.returncode == 4
    assert f"{notes}: it cannot be read" in done.stderr
    assert "Traceback" not in done.stderr
    assert notes.read_bytes() == damage
    # The remedy, where the output is the one that was written last.
    notes.unlink()
    assert command("run", grown).returncode == 0
    assert ReleasedBorders(str(grown.parent / "out.sqlite")).borders == {
        "ingest/views/1": BORDER_MS,
        "ingest/views/1/sketches": 32,
    }


def test_damage_names_a_remedy_that_draws_nothing_twice(grown):
    output = grown.parent / "out.sqlite"
    output.write_bytes(b"\xff" * output.stat().st_size)
    done = command("run", grown)
    assert done.returncode == 4
    assert "raise pipeline.epoch and set window.start behind all" in done.stderr
    output.write_bytes(b"\xff" * 100)
    done = command("run", grown)
    assert done.returncode == 4
    assert "raise pipeline.epoch and set window.start behind all" in done.stderr


def test_a_link_to_the_output_shares_its_notes(grown):
    (grown.parent / "link.sqlite").symlink_to("out.sqlite")
    change(grown, ('path = "out.sqlite"', 'path = "link.sqlite"'))
    lose(grown, "an older copy")
    done = command("run", grown)
    assert done.returncode == 4
    assert "released windows up to" in done.stderr


def test_a_second_name_of_the_output_is_refused(grown):
    os.link(grown.parent / "out.sqlite", grown.parent / "second.sqlite")
    for name in ("out.sqlite", "second.sqlite"):
        grown.write_text(re.sub(r'path = "[a-z]+\.sqlite"', f'path = "{name}"', grown.read_text()))
        done = command("run", grown)
        assert done.returncode == 4, done.stderr
        assert "2 names (hard links)" in done.stderr
    (grown.parent / "second.sqlite").unlink()
    change(grown, ('path = "second.sqlite"', 'path = "out.sqlite"'))
    assert command("run", grown).returncode == 0


def test_pipelines_in_one_output_have_borders_of_their_own(grown):
    other = write_config(grown.parent, "other.toml", id="other", complete="false", grace="0s")
    append(grown, 122, 60)
    assert command("run", grown).returncode == 0
    assert command("run", other).returncode == 0
    assert command("run", grown).returncode == 0
    borders = ReleasedBorders(str(grown.parent / "out.sqlite")).borders
    ends = {worker: end for worker, end in borders.items() if not worker.endswith("/sketches")}
    assert ends == {"ingest/views/1": START_MS + 3 * HOUR_MS, "ingest/other/1": START_MS + 3 * HOUR_MS}


def test_a_kill_between_a_commit_and_its_note_is_mended(app):
    output = app.parent / "out.sqlite"
    before = ReleasedBorders(str(output)).borders["ingest/views/1"]
    append(app, 62, 15)
    call = [sys.executable, str(KILL_WORKER), str(app), "before-note", "1"]
    env = os.environ | {"PYTHONPATH": str(KILL_WORKER.parent.parent)}
    assert subprocess.run(call, env=env, timeout=300, check=False).returncode == -signal.SIGKILL
    released = max(release.window.end_ms for release in releases(output))
    assert ReleasedBorders(str(output)).borders["ingest/views/1"] == before < released
    # Opened once, with nothing to publish, it is noted; then the older copy is known to be one.
    assert json.loads(command("run", app, "--json").stdout)["releases"] == 0
    assert ReleasedBorders(str(output)).borders["ingest/views/1"] == released
    lose(app, "an older copy")
    with pytest.raises(StateError, match="second time"):
        run_here(app)
