"""Which clock stamped the batches of a log, and where those of another clock end."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from sfm_stream.transport.kafka.batch_clock import end_of_other_clock

OWN = {"create_time": "CreateTime", "log_append_time": "LogAppendTime"}


@dataclass
class Log:
    """Batches of ten records, as they are asked for. kinds: o is of the clock of `timestamps`, x of the other one."""

    kinds: str
    timestamps: str
    read: list[int] = field(default_factory=list)

    def __iter__(self):
        for number, kind in enumerate(self.kinds):
            self.read.append(number)
            yield Batch(number, OWN[self.timestamps] if kind == "o" else OTHER[self.timestamps])


OTHER = {"create_time": "LogAppendTime", "log_append_time": "CreateTime"}


@dataclass
class Batch:
    """Its latest record, which is not the last, was stamped at seven and a hundred times its number."""

    number: int
    timestamp_type: str

    @property
    def next_offset(self) -> int:
        return 10 * self.number + 10

    def arrivals(self):
        return np.array([100 * self.number + 7, 1])


@pytest.mark.parametrize("timestamps", OWN)
@pytest.mark.parametrize(
    ("kinds", "beyond_first", "last"),
    [
        ("", True, None),
        ("ooo", True, None),
        ("oxo", False, None),
        ("oxo", True, 1),
        ("xoo", False, 0),
        ("xoxoo", False, 2),
        ("xx", False, 1),
        ("oox", True, 2),
    ],
)
def test_the_last_batch_of_the_other_clock_and_when_a_broker_says_that_it_was_written(
    timestamps, kinds, beyond_first, last
):
    log = Log(kinds, timestamps)
    told = end_of_other_clock(log, timestamps, beyond_first=beyond_first)
    if last is None:
        assert told is None
        assert len(log.read) == (len(kinds) if beyond_first else min(1, len(kinds)))
        return
    stamped_by_broker = last if timestamps == "create_time" else last + 1
    assert told == (10 * last + 10, 100 * stamped_by_broker + 7 if stamped_by_broker < len(kinds) else None)


@pytest.mark.parametrize("timestamps", OWN)
def test_of_a_batch_whose_records_are_all_gone_no_time_is_known(timestamps, monkeypatch):
    monkeypatch.setattr(Batch, "arrivals", lambda batch: np.array([], np.int64))
    assert end_of_other_clock(Log("oxo", timestamps), timestamps, beyond_first=True) == (20, None)
