"""Several keys as one set over logs of hours and days, against sets of quarters of an hour for each key."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from reference.naive_cover import naive_cover, naive_fill, naive_gaps
from support.memory_topics import Topics
from support.published_topics import T0, question, sketched, span
from support.rollup_runs import DAY_MS, HOUR_MS, QUARTER_MS, marker

from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.answers.rows import rows_of
from sfm_stream.estimation.estimate import estimate
from sfm_stream.pipeline.rollup.coverage import Absence
from sfm_stream.sketch.tally import Tally
from sfm_stream.wire.codec import decode_release
from sfm_stream.wire.keys import encode_key

DAYS, HOUR, DAY = 2, 4, 96
"""How many days, and the lengths of both spans in quarters."""
KEYS = "abc"
"""Keys that may have releases; one more is asked for that never has any."""


def release(key, low, high):
    name, size_ms = ("hour", HOUR_MS) if high - low == HOUR else ("day", DAY_MS)
    return sketched(low, key, items=30 + 5 * KEYS.index(key), window_ms=size_ms, span=name)


def markers(decided):
    for name, size_ms, count in (("hour", HOUR_MS, decided), ("day", DAY_MS, decided // 24)):
        for number in range(count):
            low = T0 + number * size_ms
            yield marker(low, low + size_ms, size_ms, span=name, spans=("hour", "day"))


of_key = st.tuples(st.sets(st.integers(0, 24 * DAYS - 1), max_size=12), st.sets(st.integers(0, DAYS - 1)))


@settings(max_examples=60)
@given(
    st.tuples(of_key, of_key, of_key),
    st.one_of(st.none(), st.sets(st.sampled_from([*KEYS, "never"]), min_size=1)),
    st.integers(1, 24 * DAYS),
    st.tuples(st.integers(0, 24 * DAYS - 1), st.integers(1, 24 * DAYS)).filter(lambda each: each[0] < each[1]),
    st.booleans(),
)
def test_one_row_has_the_releases_of_all_keys(released, wanted, decided, asked, presence):
    """decided: through which hour; days are decided with their last hour. wanted: keys that are asked for, or all."""
    windows = {
        key: [(n * HOUR, (n + 1) * HOUR) for n in hours if n < decided]
        for key, (hours, _) in zip(KEYS, released, strict=True)
    }
    for key, (_, days) in zip(KEYS, released, strict=True):
        windows[key] += [(n * DAY, (n + 1) * DAY) for n in days if (n + 1) * 24 <= decided]
    records = [release(key, *window) for key in KEYS for window in windows[key]] + list(markers(decided))
    low, high = asked[0] * HOUR, asked[1] * HOUR
    keys = None if wanted is None else {encode_key(key) for key in wanted}
    terms = ReleaseTerms("views", Absence(1 if presence else None))
    joined = replace(question("range", span(low, high), keys), joined=True)
    rows = list(rows_of(Topics(records), terms, joined))

    chosen = {key: naive_cover(windows[key], low, high) for key in KEYS if wanted is None or key in wanted}
    found = {key: cover for key, cover in chosen.items() if cover}
    assert len(rows) == bool(found)
    for row in rows:
        assert [part for (part,) in row.keys] == sorted(found)
        assert row.released == sum(map(len, found.values()))
        sketches = [decode_release(release(key, *window)).sketch for key, cover in found.items() for window in cover]
        value = estimate(sketches[0] if len(sketches) == 1 else Tally.of(sketches)).value
        assert row.estimate.value == value
        covers = list(found.values()) + [[]] * (len(wanted or ()) - len(found))
        between = [naive_gaps(cover, low, high) for cover in covers]
        assert row.windows == sum(
            len(cover) + naive_fill(gap, (DAY, HOUR)) for cover, gap in zip(covers, between, strict=True)
        )
        holes = set().union(*between) | (set(range(low, high)) if wanted is None else set())
        missing = {quarter for quarter in holes if not presence or quarter >= decided * HOUR}
        said = [((each.start_ms - T0) // QUARTER_MS, (each.end_ms - T0) // QUARTER_MS) for each in row.missing]
        assert [quarter for part in said for quarter in range(*part)] == sorted(missing)
        assert row.missing_ms == len(missing) * QUARTER_MS
        assert (str(row.estimate.status) in ("lower_bound", "saturated", "uninformative")) or not missing
        whole = len(sketches) == 1 and [(low, high)] in found.values()
        assert row.origin == ("raw" if whole else "merged")
        if decided * HOUR < high and not whole:
            assert not row.complete
        if decided * HOUR >= high:
            assert row.complete
