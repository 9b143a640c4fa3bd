"""Several spans of an input that is counted whole, in any order, killed between any two releases."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.naive_spans import NaiveSpan, fixed, naive_spans
from reference.naive_windows import Row
from support.counting_runs import PRESENCE, SMALL, Log, Same, batches_of, drain
from support.span_runs import assert_in_order, lit_cells, marked, spans_plan
from support.whole_runs import begin, read, run_whole

from sfm_stream.errors import StateError
from sfm_stream.pipeline.counting.position import decode_state, encode_state
from sfm_stream.types import Commit
from sfm_stream.units import FOREVER_MS
from sfm_stream.windows.grid import FixedGrid
from sfm_stream.windows.whole import Whole
from sfm_stream.wire.keys import encode_key

ANY = 10**9
"""Nothing is late and nothing lies in the future."""


def naive_of(plan, rows, start, until):
    """Configured borders cut to whole windows; in place of one that is not, the window of the first or last record."""
    times = [row.event for row in rows]
    spans = []
    for span in plan.spans:
        size = span.size_ms
        low = min(times) // size * size if start is None else start
        high = max(max(times) // size * size + size, low) if until is None else until
        if start is not None and until is None:
            high = max(times) // size * size + size
        spans.append(fixed(span.name, size, low, high, 2000))
    return spans


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 300), st.sampled_from("ab"), st.integers(0, 31)), min_size=1, max_size=25),
    st.sampled_from([None, 0, 30]),
    st.sampled_from([None, 130, 240]),
    st.lists(st.integers(0, 25), max_size=3),
    st.lists(st.integers(1, 9), max_size=3),
    st.sampled_from([1, 1 << 40]),
)
def test_each_span_has_its_windows_and_each_window_its_items(events, start, until, cuts, kills, room):
    rows = [Row(offset, time, time, key, cell) for offset, (time, key, cell) in enumerate(events)]
    given_ = start is not None
    windows = Whole(FixedGrid(10), 0, 0, start or 0, FOREVER_MS, None, given_, until, given_)
    plan = replace(spans_plan(PRESENCE, max_transaction_bytes=room), windows=windows)
    if start is None and until is not None and min(row.event for row in rows) >= until:
        return
    log, _ = run_whole(plan, batches_of(rows, cuts), Same(255), kills)
    spans: list[NaiveSpan] = naive_of(plan, rows, start, until)
    _, cells, _ = naive_spans(spans, rows, ANY, ANY)
    assert lit_cells(log.records) == {(name, begin, encode_key(key)): lit for (name, begin, key), lit in cells.items()}
    closed = {span.name: span.released(0, 2000) for span in spans}
    assert marked(log.records) == {name: windows for name, windows in closed.items() if windows}
    assert_in_order(plan, log.records)


def test_coarser_windows_that_outgrow_the_memory_stop_it_and_a_larger_limit_goes_on():
    """What two coarser windows take of each base window is held twice more, after the last record was read."""
    rows = [Row(n, n % 240, n % 240, f"k{n}", n % SMALL.cells) for n in range(2400)]
    plan = replace(spans_plan(coarser=("120ms", "240ms"), size=10), windows=Whole(FixedGrid(10), 0, 0, 0, 240, None))
    counter = begin(plan, Same(255))
    read(counter, [rows])
    counter.base.store.compact()  # what waits in a queue takes more than the distinct cells that are left of it
    held = counter.raw_bytes
    tight = replace(plan, limits=replace(plan.limits, max_raw_bytes=held * 9 // 8))
    counter, log = begin(tight, Same(255)), Log()
    read(counter, [rows])
    with pytest.raises(StateError, match=r"raw sketches hold .*Raise it"):
        drain(counter, log)
    done = decode_state(Commit(0, counter.state.offset, encode_state(counter.state)))
    counter = begin(plan, Same(255), done)
    read(counter, [rows])
    rest = Log()
    drain(counter, rest)
    once, _ = run_whole(plan, [rows], Same(255))
    assert [*log.records, *rest.records] == once.records
