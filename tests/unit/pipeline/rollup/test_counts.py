"""Roll-ups of releases with noisy counts, estimated for real: what a record keeps of them, and whose estimate it is."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from support.rollup_cases import T0, UTC
from support.rollup_runs import HOUR_MS, QUARTER_MS, marker, release, run_of, whole

from sfm_stream.errors import IncompatibleError
from sfm_stream.estimation.estimate import estimate, estimate_many
from sfm_stream.pipeline.rollup import publication
from sfm_stream.sketch.sfm import NoisyCount
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally
from sfm_stream.wire.codec import decode_release, decode_rollup

EPSILON = Decimal("0.25")
SHAPE = SketchShape(64, 8)


@pytest.fixture(autouse=True)
def _real(_cheap, monkeypatch):
    monkeypatch.setattr(publication, "estimate_many", estimate_many)


def counted(number, size=QUARTER_MS, name="15m", epsilon=EPSILON, value=None):
    """The release of window `number`, whose count is -3 .. and different in each window."""
    count = NoisyCount(40 * number - 3 if value is None else value, epsilon)
    start = T0 + number * size
    return release(start, window_ms=size, shape=SHAPE, count=count, span=name, k=1 << 62)


def closed(low, high, size=QUARTER_MS, name="15m"):
    return marker(T0 + low * size, T0 + high * size, size, span=name, spans=(name,))


def figures(record):
    return record.value, record.standard_error, record.low, record.high, record.status


def rounded(found):
    values = (found.value, found.standard_error, found.low, found.high)
    return *(float(f"{value:.6g}") for value in values), str(found.status)


def test_a_merged_record_keeps_what_each_release_says_and_names_its_span_and_price():
    payloads = [counted(number) for number in range(4)]
    (hour,) = [r for r in run_of(UTC, [*payloads, closed(0, 4)]).finish() if r.grain == "hour"]
    tally = Tally.of([decode_release(payload).sketch for payload in payloads])
    assert (hour.tally, hour.tally.sizes) == (tally, tally.sizes)
    assert [count.value for count in hour.tally.sizes.counts if count] != []
    assert (hour.origin, hour.span, hour.count_epsilon, hour.windows) == ("merged", "15m", EPSILON, 4)
    assert figures(hour) == rounded(estimate(tally))


def test_a_record_of_one_release_has_the_estimate_of_that_release_with_its_count():
    payload = counted(2, value=90)
    sketch = decode_release(payload).sketch
    (hour,) = [r for r in run_of(UTC, [payload, closed(0, 4)]).finish() if r.grain == "hour"]
    assert (hour.origin, hour.released) == ("merged", 1)
    assert figures(hour) == rounded(estimate(sketch))
    assert figures(hour) != rounded(estimate(replace(sketch, count=None))), "the count was not used"


def test_a_release_of_an_hour_is_passed_on_as_that_hour():
    payload = counted(0, size=HOUR_MS, name="1h", value=90)
    sketch = decode_release(payload).sketch
    (hour,) = [r for r in run_of(UTC, [payload, closed(0, 1, HOUR_MS, "1h")]).finish() if r.grain == "hour"]
    assert (hour.origin, hour.span, hour.windows, hour.count_epsilon) == ("raw", "1h", 1, EPSILON)
    assert hour.tally.sizes.counts == (sketch.count,)
    assert figures(hour) == rounded(estimate(sketch))


def test_a_day_rebuilt_after_a_restart_knows_every_release_again():
    log = []
    for hour in range(24):
        log += [counted(4 * hour + quarter) for quarter in range(hour % 4)]
        log.append(closed(4 * hour, 4 * hour + 4))
    undisturbed = run_of(UTC, log)
    undisturbed.finish()
    run = run_of(UTC, log, max_bytes=1)
    while run.read(7):
        while (step := run.rollup.step()) is not None:
            run.take(step)
            run.restart()
    assert run.newest == undisturbed.newest
    (day,) = [record for record in whole(map(decode_rollup, run.history), log) if record.grain == "day"]
    assert len(day.tally.sizes.counts) == day.released == 36


def test_releases_of_one_span_that_paid_differently_for_their_counts_do_not_mix():
    run = run_of(UTC, [counted(0), counted(1, epsilon=Decimal("0.5")), closed(0, 4)])
    with pytest.raises(IncompatibleError, match=r"epsilon of the count of the releases differs, 0\.25 against 0\.5"):
        run.read()
    run = run_of(UTC, [counted(0), release(T0 + QUARTER_MS, shape=SHAPE, span="15m", k=1 << 62), closed(0, 4)])
    with pytest.raises(IncompatibleError, match=r"epsilon of the count of the releases differs, 0\.25 against None"):
        run.read()


def test_of_very_many_releases_a_record_keeps_their_price_and_not_what_each_says(monkeypatch):
    """At windows of seconds the sizes would take more room than the tally, and a record has to fit into a topic."""
    monkeypatch.setattr("sfm_stream.sketch.sizes_sum.MAX_RELEASES", 3)
    run = run_of(UTC, [*map(counted, range(4)), closed(0, 4)])
    (hour,) = [record for record in run.finish() if record.grain == "hour"]
    assert (hour.released, hour.tally.sizes, hour.count_epsilon) == (4, None, EPSILON)


def test_records_of_version_1_are_estimated_alike_before_and_after_a_restart():
    """They do not keep what each release said: so no estimate of them uses it."""
    log = [release(T0 + number * QUARTER_MS) for number in range(4)]
    (hour,) = [r for r in run_of(UTC, [*log, marker(T0, T0 + HOUR_MS)]).finish() if r.grain == "hour"]
    tally = Tally.of([decode_release(payload).sketch for payload in log])
    assert (hour.span, hour.tally.sizes) == (None, None)
    assert figures(hour) == rounded(estimate(replace(tally, sizes=None)))
