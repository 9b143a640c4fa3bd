"""Answers over logs of hours and days against sets of quarters of an hour.

The releases are in any order, with copies; the markers of a span are in order, as they are in every topic.
"""

from hypothesis import given, settings
from hypothesis import strategies as st
from reference.naive_cover import naive_cover, naive_fill, naive_gaps
from support.memory_topics import Topics
from support.published_topics import T0, question, sketched, span
from support.rollup_runs import DAY_MS, HOUR_MS, QUARTER_MS, marker

from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.answers.rows import rows_of
from sfm_stream.pipeline.rollup.coverage import Absence

DAYS, HOUR, DAY = 3, 4, 96
"""How many days, and the lengths of both spans in quarters."""
SPANS = ("hour", "day")


def release(name, number):
    size_ms = HOUR_MS if name == "hour" else DAY_MS
    return sketched(number * size_ms // QUARTER_MS, window_ms=size_ms, span=name)


def marked(name, count):
    size_ms = HOUR_MS if name == "hour" else DAY_MS
    borders = [T0 + number * size_ms for number in range(count + 1)]
    return [marker(low, low + size_ms, size_ms, span=name, spans=SPANS) for low in borders[:-1]]


@settings(max_examples=60)
@given(
    st.sets(st.integers(0, 24 * DAYS - 1), max_size=40),
    st.sets(st.integers(0, DAYS - 1)),
    st.integers(1, 24 * DAYS),
    st.tuples(st.integers(0, 24 * DAYS - 1), st.integers(1, 24 * DAYS)).filter(lambda each: each[0] < each[1]),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_an_answer_says_what_is_in_it_and_what_is_not(hours, days, decided, asked, presence, random):
    """decided: through which hour; days are decided with their last hour."""
    windows = {(n * HOUR, (n + 1) * HOUR): "hour" for n in hours if n < decided}
    windows |= {(n * DAY, (n + 1) * DAY): "day" for n in days if (n + 1) * 24 <= decided}
    records = [release(name, low // (HOUR if name == "hour" else DAY)) for (low, _), name in windows.items()]
    records += random.sample(records, min(5, len(records)))
    for markers in (marked("hour", decided), marked("day", decided // 24)):
        places = sorted(random.choices(range(len(records) + 1), k=len(markers)))
        for place, each in reversed([*zip(places, markers, strict=True)]):
            records.insert(place, each)
    low, high = asked[0] * HOUR, asked[1] * HOUR
    terms = ReleaseTerms("views", Absence(1 if presence else None))
    rows = list(rows_of(Topics(records), terms, question("range", span(low, high))))

    chosen = naive_cover(windows, low, high)
    assert len(rows) == bool(chosen)
    for row in rows:
        names = [windows[each] for each in chosen]
        assert dict(row.releases) == {name: names.count(name) for name in SPANS if name in names}
        between = naive_gaps(chosen, low, high)
        assert row.windows == len(chosen) + naive_fill(between, (DAY, HOUR))
        missing = {quarter for quarter in between if not presence or quarter >= decided * HOUR}
        said = [((each.start_ms - T0) // QUARTER_MS, (each.end_ms - T0) // QUARTER_MS) for each in row.missing]
        assert [quarter for part in said for quarter in range(*part)] == sorted(missing)
        assert row.missing_ms == len(missing) * QUARTER_MS
        assert row.complete == (decided * HOUR >= high)
        assert (str(row.estimate.status) in ("lower_bound", "saturated", "uninformative")) or not missing
        assert (row.origin == "raw") == (chosen == [(low, high)])
