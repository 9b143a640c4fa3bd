"""One place chooses the extractor, and gives it what the configuration says."""

import re
from pathlib import Path

import pytest
from reference.memory_batch import MemoryBatch
from support.embedded_runs import START_MS, write_config

from sfm_stream.config.config import load_config
from sfm_stream.events.extract import PythonExtractor
from sfm_stream.events.key_table import KeyTable
from sfm_stream.events.native_extractor import NativeExtractor
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


CHOICES = [
    # what the configuration has, what it has instead, whether the compiled kernel reads it
    ("", "", True),
    ('time_unit = "ms"', 'time_unit = "iso8601"', True),
    ('time_unit = "ms"', 'time_unit = "%Y-%m-%d %H:%M:%S %z"', False),
    ("[sketch]", '[sketch]\nhash = "blake2b"\nhash_key_file = "key"', False),
]


@pytest.mark.parametrize(("line", "instead", "compiled"), CHOICES)
def test_the_kernel_in_use_reads_what_it_knows(kernel, tmp_path, line, instead, compiled):
    (tmp_path / "key").write_bytes(bytes(16))
    path = write_config(tmp_path)
    text = path.read_text("utf-8")
    assert line in text
    path.write_text(text.replace(line, instead), "utf-8")
    kind = NativeExtractor if compiled and kernel == "native" else PythonExtractor
    assert type(extractor_of(load_config(path), KeyTable())) is kind


def test_nothing_else_makes_an_extractor():
    made = re.compile(r"\b(PythonExtractor|format_of|JsonFormat)\(")
    makers = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if made.search(line) and not line.startswith(("class ", "def "))
    }
    assert makers == {"workers/extractor.py"}
