"""Standard input as lines: a real pipe into a real process."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from typing import Any

READER = """
import json, sys
from sfm_stream.transport.files.lines import LineInput
from sfm_stream.types import InputEnd
from sfm_stream.errors import SfmStreamError
complete, offset, chunk, told = json.loads(sys.argv[1])
print("ready", flush=True)
lines = LineInput("-", complete=complete, max_line_bytes=100, chunk_bytes=chunk)
waits, records, came = 0, [], False
try:
    if offset is not None:
        lines.seek(0, offset)
    while not isinstance(batch := lines.read(0), InputEnd):
        if batch is None:
            waits += 1
            if told and came:
                print("waits", flush=True)
            came = False
        else:
            came = True
            records += zip(batch.offsets().tolist(), [value.decode() for value in batch.values()])
    print(json.dumps({"records": records, "complete": batch.complete, "waits": waits, "size": lines.size()}))
except SfmStreamError as error:
    print(json.dumps({"error": str(error)}))
"""


def through_stdin(
    pieces: list[bytes], *, complete: bool = True, offset: int | None = None, pauses: bool = False
) -> dict[str, Any]:
    """What a process made of standard input, a pipe fed piece by piece. pauses: each once the last has been read."""
    command = [sys.executable, "-c", READER, json.dumps([complete, offset, 1 << 16, pauses])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()  # it is up: pauses before that would not be seen as such
        for piece in pieces:
            process.stdin.write(piece)
            process.stdin.flush()
            if pauses:
                assert process.stdout.readline() == b"waits\n"
        process.stdin.close()
        return dict(json.loads(process.stdout.read()))


def test_standard_input_in_pieces_with_pauses() -> None:
    found = through_stdin([b"first\nsec", b"ond\n", b"third\nrest"], pauses=True)
    assert found["records"] == [[0, "first"], [6, "second"], [13, "third"], [19, "rest"]]
    assert found["complete"] is True
    assert found["waits"] > 0
    assert found["size"] is None


def test_standard_input_not_complete_keeps_the_begun_line_unread() -> None:
    found = through_stdin([b"first\nbegun"], complete=False)
    assert found["records"] == [[0, "first"]]
    assert found["complete"] is False


def test_standard_input_may_be_gzip_and_goes_on_at_an_offset() -> None:
    data = b"".join(b"line %d\n" % n for n in range(50_000))
    offset = data.index(b"line 40000\n")
    for stored in (data, gzip.compress(data)):
        found = through_stdin([stored], offset=offset)
        assert found["records"][0] == [offset, "line 40000"]
        assert len(found["records"]) == 10_000


def test_standard_input_fed_with_less_than_was_committed_stops() -> None:
    assert "byte 500" in through_stdin([b"only this\n"], offset=500)["error"]
