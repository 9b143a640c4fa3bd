"""What a configuration can cost one item, the refusal above its own limit, and the words that say so."""

from dataclasses import replace
from decimal import Decimal

import pytest
from support.counting_runs import PRESENCE, declared

from sfm_stream.config.config import parse_config
from sfm_stream.errors import BudgetError, ConfigError
from sfm_stream.privacy.budget import Budget, require_within
from sfm_stream.privacy.epsilon import flip_threshold_of
from sfm_stream.privacy.key_rules import SelectedKeys
from sfm_stream.privacy.released_span import ReleasedSpan
from sfm_stream.privacy.statement import statement
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.units import DAY_MS, HOUR_MS, MINUTE_MS

HALF_AN_HOUR = ReleasedSpan(
    "30m", 30 * MINUTE_MS, Decimal("0.5"), flip_threshold_of(Decimal("0.5")), Decimal(0), SketchShape(4096, 24)
)
BUDGET = Budget((HALF_AN_HOUR,), Decimal("0.25"), Decimal("1e-9"), DAY_MS, HOUR_MS)
BITS_ONLY = replace(BUDGET, epsilon_selection=Decimal(0), delta_selection=Decimal(0))


def test_the_formula():
    assert BUDGET.epsilon_per_window(HALF_AN_HOUR) == Decimal("0.75")
    assert BUDGET.epsilon_per_day == 48 * Decimal("0.75") == Decimal(36)
    assert BUDGET.delta_per_day == Decimal("4.8e-8")
    assert (BITS_ONLY.epsilon_per_window(HALF_AN_HOUR), BITS_ONLY.epsilon_per_day, BITS_ONLY.delta_per_day) == (
        Decimal("0.5"), Decimal(24), 0,
    )  # fmt: skip


def test_decimals_stay_exact():
    """Ten times 0.1 is 1, not a hair more: the limit of exactly the worst case is kept."""
    spans = (replace(HALF_AN_HOUR, epsilon=Decimal("0.1")),)
    tenth = Budget(spans, Decimal(0), Decimal(0), 10 * 30 * MINUTE_MS, HOUR_MS)
    assert tenth.epsilon_per_day == 1
    require_within(tenth, Decimal(1))


def test_a_number_is_printed_as_it_was_written():
    """A sum that began with 0 would write 4.8E+2 as 480."""
    ten = Budget((replace(HALF_AN_HOUR, epsilon=Decimal("1E+1")),), Decimal("0E+1"), Decimal(0), DAY_MS, HOUR_MS)
    assert str(ten.epsilon_per_day) == "4.8E+2"
    assert str(BUDGET.delta_per_day) == "4.8E-8"


def test_a_day_of_several_spans_is_the_sum_of_their_releases():
    """What one span costs a day, and what the other does."""
    hour = replace(HALF_AN_HOUR, name="hour", size_ms=60 * MINUTE_MS, epsilon=Decimal("1.5"))
    both = replace(BUDGET, spans=(HALF_AN_HOUR, hour))
    assert both.epsilon_per_day == 48 * Decimal("0.75") + 24 * Decimal("1.75")
    assert both.delta_per_day == 72 * Decimal("1e-9")


def test_at_the_limit_it_starts_and_above_it_refuses_with_both_numbers():
    require_within(BUDGET, Decimal(36))
    with pytest.raises(BudgetError) as refusal:
        require_within(BUDGET, Decimal("35.999"))
    (problem,) = refusal.value.problems
    assert "privacy.max_epsilon_per_item_day is 35.999" in problem
    assert "epsilon 36.00" in problem
    assert "48 windows" in problem
    assert "0.75 a window" in problem
    assert isinstance(refusal.value, ConfigError)


CONFIG = """
[pipeline]
id = "p"
[input]
path = "in.jsonl"
[event]
key = "page"
item = "user"
time = "at"
time_unit = "ms"
[window]
size = "{size}"
grace = "5m"
[privacy]
epsilon = 0.5
{privacy}
max_epsilon_per_item_day = {limit}
[rollup]
zone = "{zone}"
[output]
path = "out.sqlite"
"""
PUBLIC = 'keys = "presence_is_public"'
SELECTED = 'keys = "selected"\nepsilon_selection = 0.25\ndelta_selection = 1e-9'


def configured(tmp_path, size="30m", privacy=PUBLIC, limit="1000", zone="UTC"):
    return parse_config(CONFIG.format(size=size, privacy=privacy, limit=limit, zone=zone), tmp_path)


@pytest.mark.parametrize(
    ("zone", "size", "windows"),
    [
        ("UTC", "30m", 48),
        ("Asia/Tokyo", "1h", 24),
        ("Europe/Berlin", "30m", 50),
        ("America/New_York", "1h", 25),
        ("Europe/Berlin", "5m", 300),
    ],
)
def test_the_longest_day_in_use_counts(tmp_path, zone, size, windows):
    """A day of 25 hours comes once a year and is what an item can lose in a day."""
    budget = configured(tmp_path, size=size, zone=zone).budget
    assert budget.windows_per_day(budget.spans[0]) == windows
    assert budget.epsilon_per_day == windows * Decimal("0.5")


def test_selection_is_part_of_the_worst_case(tmp_path):
    assert configured(tmp_path, privacy=f"{SELECTED}\ncount_share = 0").budget == BUDGET
    assert configured(tmp_path, privacy=SELECTED).budget.epsilon_per_day == BUDGET.epsilon_per_day
    with pytest.raises(BudgetError, match=r"is 30, .* lose epsilon 36.00"):
        configured(tmp_path, privacy=SELECTED, limit="30")


def test_a_day_of_25_hours_decides_whether_it_starts(tmp_path):
    configured(tmp_path, limit="24")
    with pytest.raises(BudgetError, match=r"is 24, .* all 50 windows .* epsilon 25"):
        configured(tmp_path, limit="24", zone="Europe/Berlin")


# The statement


def text(keys, unit="blanked", budget=BITS_ONLY):
    return statement("visits", unit, keys, budget, clock_margin_ms=5_000 if unit == "removed" else None)


def test_the_statement_holds_its_numbers():
    said = text(PRESENCE)
    assert "Pipeline visits." in said
    assert "For each key and window of 30 min," in said
    assert "0.5-differentially private" in said
    assert "at most m * w * 0.5 epsilon" in said
    assert "has 48 windows: at most 24.0 epsilon a day" in said
    assert "delta" not in said, "without selection there is none"


def test_the_statement_says_what_the_bits_and_the_count_of_a_release_cost():
    span = ReleasedSpan("30m", 30 * MINUTE_MS, Decimal(2), 1, Decimal("0.20"), SketchShape(4096, 24))
    said = text(PRESENCE, budget=Budget((span,), Decimal(0), Decimal(0), DAY_MS, HOUR_MS))
    assert "2-differentially private" in said
    assert "flipped bits at epsilon 1.80, and the number of set cells" in said
    assert "noise at epsilon 0.20." in said
    assert "the sum, 2." in said
    assert "number of set cells" not in text(PRESENCE), "no count, no word of it"


def test_the_statement_of_selected_keys_holds_both_epsilons_and_delta():
    said = text(SelectedKeys(Decimal("0.25"), Decimal("1e-9"), None), budget=BUDGET)
    assert "Keys: selected." in said
    assert "epsilon 0.25 and delta 1E-9" in said
    assert "is (0.75, 1E-9)-differentially private for neighbouring" in said, "the first sentence promises no more"
    assert "m * w * 0.75 epsilon, with delta m * w * 1E-9" in said
    assert "36.00 epsilon a day under one key, with delta 4.8E-8" in said


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (PRESENCE, ["Keys: presence is public.", "revealed exactly", "only what a release adds"]),
        (declared("a", "b", "c"), ["Keys: declared.", "list of 3 keys is public", "empty or not"]),
    ],
    ids=["presence", "declared"],
)
def test_the_statement_names_the_mode(keys, words):
    said = text(keys)
    assert all(word in said for word in words)
    assert said.count("Keys: ") == 1


@pytest.mark.parametrize(
    ("unit", "words", "others"),
    [
        ("blanked", ["one item under one key in one window is blanked in place", "taken as public"], ["are removed"]),
        ("removed", ["all records of one item under one key in one window are removed"], ["blanked"]),
    ],
)
def test_the_statement_names_the_unit(unit, words, others):
    said = text(PRESENCE, unit)
    assert all(word in said for word in words)
    assert not any(word in said for word in others)


def test_the_statement_of_several_spans_says_which_window_its_promise_is_of():
    """All records of a day change 288 releases of windows: the sum of one of each is no bound for them."""
    day = ReleasedSpan("day", None, Decimal(1), 1, Decimal(0), SketchShape(4096, 24))
    budget = Budget((*BITS_ONLY.spans, day), Decimal(0), Decimal(0), DAY_MS, HOUR_MS)
    first = text(PRESENCE, "removed", budget).split("\n\n")[0]
    assert "of one span that is a window of this span; for all spans together it is one of 30m, the finest" in first
    assert "the finest" not in text(PRESENCE, "removed")


def test_the_first_sentence_promises_nothing_to_who_is_alone_where_presence_is_public():
    alone = "provided that the key has another item in that window"
    assert alone in text(PRESENCE).split("\n\n")[0]
    assert alone not in text(declared("a"))


def test_the_statement_names_what_the_unit_removed_assumes_of_clocks():
    said = text(PRESENCE, "removed")
    assert "step back by at most 5 s (window.clock_margin)" in said
    assert "a larger step ends the worker" in said
    assert "clock_margin" not in text(PRESENCE, "blanked")


def test_the_statement_says_what_is_not_covered():
    said = text(PRESENCE)
    for words in (
        "second pipeline over the same input",
        "when a release appears follows the data",
        "the markers of transactions hold the time of each commit",
        "an id in two spellings is two items",
        "stops on a limit",
        "memory of the worker",
        "averaged out over many windows",
        "know the hash can inflate a count",
    ):
        assert words in said


@pytest.mark.parametrize(
    ("milliseconds", "words"), [(3_600_000, "1 h"), (900_000, "15 min"), (20_000, "20 s"), (250, "250 ms")]
)
def test_the_statement_has_a_readable_window(milliseconds, words):
    budget = replace(BITS_ONLY, spans=(replace(HALF_AN_HOUR, size_ms=milliseconds),))
    assert f"key and window of {words}," in text(PRESENCE, budget=budget)
