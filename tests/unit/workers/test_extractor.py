"""One place chooses the extractor, and gives it what the configuration says."""

import re
from pathlib import Path

from reference.memory_batch import MemoryBatch
from support.embedded_runs import START_MS, write_config

from sfm_stream.config.config import load_config
from sfm_stream.events.key_table import KeyTable
from sfm_stream.types import NO_TIME, Reason
from sfm_stream.workers.extractor import extractor_of

PACKAGE = Path(__file__).parents[3] / "sfm_stream"


def test_an_extractor_reads_the_fields_of_the_configuration_up_to_the_latest_time(tmp_path):
    config = load_config(write_config(tmp_path))
    keys = KeyTable()
    record = b'{"page":"/a","user":"u","at":%d}' % START_MS
    later = b'{"page":"/a","user":"u","at":%d}' % (START_MS + 1)
    seen = extractor_of(config, keys, START_MS).columns([MemoryBatch([record, later])])
    assert seen.event_ms.tolist() == [START_MS, NO_TIME]
    assert seen.reasons.tolist() == [Reason.OK, Reason.TIME_IMPLAUSIBLE]
    assert list(keys) == ["/a"]
    assert not extractor_of(config, KeyTable()).columns([MemoryBatch([record, later])]).reasons.any()
    assert extractor_of(config, KeyTable()).key_of(b'{"page":"/b"') is None
    assert extractor_of(config, KeyTable()).key_of(b'{"page":"/b",') == "/b"


def test_nothing_else_makes_an_extractor():
    made = re.compile(r"\b(PythonExtractor|format_of|JsonFormat)\(")
    makers = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if made.search(line) and not line.startswith(("class ", "def "))
    }
    assert makers == {"workers/extractor.py"}
