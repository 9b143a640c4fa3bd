"""The privacy statement: what a configuration promises, in words for people and with the numbers that apply."""

from __future__ import annotations

from sfm_stream.privacy.budget import Budget
from sfm_stream.privacy.epsilon import plain
from sfm_stream.privacy.key_rules import DeclaredKeys, KeyRule, PresenceIsPublic, SelectedKeys
from sfm_stream.privacy.released_span import ReleasedSpan
from sfm_stream.units import HOUR_MS, MINUTE_MS, SECOND_MS

_REMOVED = "all records of one item under one key in one window are removed"
_BLANKED = "the item in all records of one item under one key in one window is blanked in place; "
_UNFOUND = "a record in which no reading finds a time, and a line of more than 17 MiB"
_UNITS = {
    ("removed", False): _REMOVED,
    ("removed", True): f"{_REMOVED}; which windows there are is configured (window.start, window.end)",
    ("blanked", False): (
        f"{_BLANKED}when a record arrived is taken as public, because in this input arrival time is part of the "
        f"record, and in a file so is, as it stands, {_UNFOUND}"
    ),
    ("blanked", True): (
        f"{_BLANKED}the times of records are taken as public, because the first and the last of them decide which "
        "windows there are (window.start and window.end, both configured, would decide it instead), and so is, as it "
        f"stands, {_UNFOUND}"
    ),
}


def statement(
    pipeline: str,
    unit: str,
    keys: KeyRule,
    budget: Budget,
    clock_margin_ms: int | None = None,
    whole: bool = False,
) -> str:
    """The statement in paragraphs of plain text: what is protected, which keys appear, the cost, what is not covered.

    unit: the privacy unit, "removed" or "blanked". clock_margin_ms: how far arrival times may step back; None where the
    log does not give them. whole: the input is counted whole, in any order.
    """
    lines = [
        f"Pipeline {pipeline}. {_promises(keys, budget)} for neighbouring inputs in which {_UNITS[unit, whole]}."
        + _which_window(budget),
        *([] if clock_margin_ms is None else [_assumption(clock_margin_ms)]),
        _keys(keys),
        *(_parts(span, len(budget.spans) > 1) for span in budget.spans if span.count_epsilon),
        f"{_loss(budget)}: at most {plain(budget.epsilon_per_day)} epsilon a day under one key"
        + (f", with delta {plain(budget.delta_per_day)}" if budget.delta_selection else "")
        + ". An item that is always active can be averaged out over many windows.",
        "Roll-ups, merges and estimates are computed from releases alone and cost nothing more.",
        "Not covered: a second pipeline over the same input adds its own cost, which this configuration cannot see; "
        "an id in two spellings is two items; when a release appears follows the data, and on a cluster the markers of "
        "transactions hold the time of each commit; a worker that stops on a limit shows that the limit was met; "
        "whoever can read the input, the memory of the worker, its logs, or the positions and raw bytes of its output "
        "file is inside the trust domain; contributors who know the hash can inflate a count, not the loss of others.",
    ]
    return "\n\n".join(lines)


def _promises(keys: KeyRule, budget: Budget) -> str:
    """The guarantee of one release of each span, with its numbers."""
    alone = isinstance(keys, PresenceIsPublic)
    provided = (
        ", provided that the key has another item in that window (else presence tells of the item)," if alone else ""
    )
    if len(budget.spans) == 1:
        (span,) = budget.spans
        return f"For each key and {_window(span)}, what is published is {_private(budget, span)}{provided}"
    each = "; ".join(f"of each {_window(span)}: {_private(budget, span)}" for span in budget.spans)
    return (
        f"What is published for each key is ({each}){provided} and of all spans together differentially private with "
        f"the sum of these epsilons{' and deltas' if budget.delta_selection else ''},"
    )


def _which_window(budget: Budget) -> str:
    """The window of the unit, where there are windows of several spans."""
    if len(budget.spans) == 1:
        return ""
    return (
        f" For what is published of one span that is a window of this span; for all spans together it is one of "
        f"{budget.spans[0].name}, the finest: over a longer time each window in it is paid for, as is said below."
    )


def _private(budget: Budget, span: ReleasedSpan) -> str:
    epsilon = plain(budget.epsilon_per_window(span))
    if budget.delta_selection:
        return f"({epsilon}, {plain(budget.delta_selection)})-differentially private"
    return f"{epsilon}-differentially private"


def _loss(budget: Budget) -> str:
    """What an item loses, by the windows in which it is active, and how many of them a day has."""
    if len(budget.spans) == 1:
        (span,) = budget.spans
        return (
            f"An item active in w windows of a day under m keys loses at most m * w * "
            f"{plain(budget.epsilon_per_window(span))} epsilon"
            + (f", with delta m * w * {plain(budget.delta_selection)}" if budget.delta_selection else "")
            + f". The longest day in use has {budget.windows_per_day(span)} windows"
        )
    prices = ", ".join(f"{plain(budget.epsilon_per_window(span))} for each {_window(span)}" for span in budget.spans)
    counts = ", ".join(f"{budget.windows_per_day(span)} of {span.name}" for span in budget.spans)
    return (
        f"An item loses, under each of its keys, at most this epsilon in every window in which it is active: {prices}"
        + (f", each with delta {plain(budget.delta_selection)}" if budget.delta_selection else "")
        + f". The longest day in use touches so many windows: {counts}"
    )


def _parts(span: ReleasedSpan, one_of_several: bool) -> str:
    """What a release with a noisy count is made of."""
    whose = f" of {span.name}" if one_of_several else ""
    return (
        f"A release{whose} has two parts with coins of their own: flipped bits at epsilon {plain(span.bits_epsilon)}, "
        f"and the number of set cells with discrete Laplace noise at epsilon {plain(span.count_epsilon)}. An item "
        f"changes at most one bit, and the number by at most 1: both together cost it the sum, {plain(span.epsilon)}."
    )


def _assumption(clock_margin_ms: int) -> str:
    """What the guarantee assumes of the clocks of brokers."""
    margin = _span(clock_margin_ms)
    return (
        f"This assumes that the arrival times which brokers give step back by at most {margin} (window.clock_margin), "
        f"and that the clocks of brokers and of this host differ by no more. Windows close {margin} later for it; a "
        "larger step ends the worker, which is visible and may hang on one record."
    )


def _keys(keys: KeyRule) -> str:
    """Which keys appear in what is published."""
    if isinstance(keys, DeclaredKeys):
        return (
            f"Keys: declared. The list of {len(keys.effective)} keys is public; each has a release in every window, "
            "empty or not, so that a release says nothing by being there."
        )
    if isinstance(keys, SelectedKeys):
        return (
            f"Keys: selected. Whether a key appears in a window is decided by private selection at epsilon "
            f"{plain(keys.epsilon)} and delta {plain(keys.delta)}, on top of that: a key of few items is most "
            "likely withheld."
        )
    return (
        "Keys: presence is public. Which keys had at least one item in a window is revealed exactly, as the operator "
        "asserts that it may be; epsilon bounds only what a release adds."
    )


def _window(span: ReleasedSpan) -> str:
    return f"{span.name} of the zone" if span.size_ms is None else f"window of {_span(span.size_ms)}"


def _span(milliseconds: int) -> str:
    """A length of time in its largest whole unit."""
    for unit, size in (("h", HOUR_MS), ("min", MINUTE_MS), ("s", SECOND_MS)):
        if milliseconds % size == 0:
            return f"{milliseconds // size} {unit}"
    return f"{milliseconds} ms"
