"""Partitioners against Kafka's own test vectors, other implementations and real producers."""

import json
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner import murmur2 as kafka_python_murmur2

from sfm_stream.errors import UsageError
from sfm_stream.events.partitioner import PARTITIONERS, murmur2, partition_key
from sfm_stream.wire.keys import encode_key

UTILS_TEST = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
"""The cases of UtilsTest.testMurmur2 of Apache Kafka, where the hash is a signed int."""
GOLDEN = json.loads(Path(__file__).parents[2].joinpath("golden", "partitions.json").read_text("utf-8"))
NAMES = {"consistent": "crc32", "consistent_random": "crc32", "default": "murmur2"}


@pytest.mark.parametrize(("data", "signed"), UTILS_TEST.items())
def test_murmur2_is_that_of_the_java_client(data, signed):
    assert murmur2(data) == signed % (1 << 32)


@given(st.binary(max_size=70))
def test_murmur2_is_that_of_kafka_python(data):
    assert murmur2(data) == kafka_python_murmur2(data)


@given(st.binary(max_size=40), st.integers(1, 10_000))
def test_partitions_are_hashes_modulo_their_number(key, partitions):
    by_murmur = (kafka_python_murmur2(key) & 0x7FFFFFFF) % partitions
    expected = {"murmur2": by_murmur, "murmur2_random": by_murmur, "crc32": zlib.crc32(key) % partitions}
    assert {name: place(key, partitions) for name, place in PARTITIONERS.items()} == expected


@pytest.mark.parametrize(
    "run", GOLDEN["runs"], ids=lambda run: f"{run['client']}-{run['partitioner']}-{run['partitions']}"
)
def test_real_producers_chose_these_partitions(run):
    place = PARTITIONERS[NAMES.get(run["partitioner"], run["partitioner"])]
    chosen = {key: int(digit, 36) for key, digit in zip(GOLDEN["keys"], run["placed"], strict=True) if digit != "."}
    assert len(chosen) > 800
    assert {key: place(bytes.fromhex(key), run["partitions"]) for key in chosen} == chosen


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("", b""),
        ("é/中", "é/中".encode()),
        (0, b"0"),
        (-17, b"-17"),
        ((1 << 63) - 1, b"9223372036854775807"),
        (b"\xff", encode_key(b"\xff")),
        ((), encode_key(())),
        (("a",), encode_key(("a",))),
        (("a", 7), encode_key(("a", 7))),
    ],
)
def test_the_record_key_of_a_counting_key(key, expected):
    assert partition_key(key) == expected


@pytest.mark.parametrize("key", ["\ud800", ("\ud800", 1)])
def test_a_key_without_bytes_is_refused_and_not_told(key):
    with pytest.raises(UsageError) as caught:
        partition_key(key)
    assert caught.value.__context__ is None
    assert "ud800" not in str(caught.value)
