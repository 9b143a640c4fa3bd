"""What has to hold of a pipeline's topics, judged from them alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from support.kafka_runs import BUCKETS, MINUTE_MS, START_MS, Run, cell, cells_of, expected_cells
from support.span_windows import Windows

from sfm_stream.wire.codec import CloseMarker, Release, decode
from sfm_stream.wire.keys import decode_key


@dataclass(frozen=True)
class Findings:
    """problems: what is wrong, empty if all is well. aborted: transactions whose records are in the log, not valid."""

    problems: tuple[str, ...]
    aborted: int
    releases: int

    def require(self) -> Findings:
        assert not self.problems, "\n".join(self.problems[:20])
        return self


def judge_spans(
    run: Run,
    windows: Mapping[str, Windows],
    grace_ms: int,
    buckets: Mapping[str, int],
    counts: Callable[[str, str, int], bool] = lambda page, span, start_ms: True,
    withheld: bool = False,
) -> Findings:
    """Judge an epoch of several released spans: every window that is closed.

    windows: of each span, the base span first, in order. buckets: of the spans that have others than those of [sketch].
    counts: whether a page is counted in the window of a span that begins then. withheld: a release may be missing.
    """
    problems: list[str] = []
    public = [decode(value or b"") for _, _, _, value, _, _ in run.read("sketches")]
    problems += _second_payloads(value or b"" for _, _, _, value, _, _ in run.read("sketches", "read_uncommitted"))
    for name, records in (("sketches", public), ("outbox", [decode(r[3] or b"") for r in run.read("outbox")])):
        found = Counter(record.release_id for record in records if isinstance(record, Release))
        problems += [f"{name}: release {i.hex()} is committed {n} times" for i, n in found.items() if n > 1]
    problems += _order_of_spans(public, windows)
    released: dict[tuple[str, str, int], tuple[int, set[tuple[int, int]]]] = {}
    through: dict[tuple[str, int], int] = defaultdict(int)
    for record in public:
        if isinstance(record, CloseMarker):
            through[record.span or "", record.partition] = record.through_ms
        elif isinstance(record, Release):
            [page] = decode_key(record.key)
            released[str(page), record.span or "", record.window.start_ms] = record.partition, cells_of(record)
    wanted: dict[tuple[str, str, int], set[tuple[int, int]]] = defaultdict(set)
    for event in (event for events in run.events.values() for event in events):
        for span, each in windows.items():
            for start, end in each:
                is_closed = end <= through[span, run.partition(event.page)]
                in_time = start <= event.at_ms < end and event.arrival_ms <= end + grace_ms
                if is_closed and in_time and counts(event.page, span, start):
                    wanted[event.page, span, start].add(cell(event.user, buckets.get(span, BUCKETS)))
    missing = set() if withheld else wanted.keys() - released.keys()
    problems += [f"nothing is released of {place}" for place in missing]
    problems += [f"a release of {p}, which has no event" for p, (_, lit) in released.items() if lit and p not in wanted]
    for place in wanted.keys() & released.keys():
        partition, lit = released[place]
        if (partition, lit) != (run.partition(place[0]), wanted[place]):
            problems.append(f"{place} has {len(lit)} cells in partition {partition}, should have {len(wanted[place])}")
    return Findings(tuple(problems), aborted_transactions(run), len(released))


def _order_of_spans(records: Iterable[object], windows: Mapping[str, Windows]) -> list[str]:
    """In each partition one marker for each window of each span, in order, releases before the marker of their window,
    and no window closed before the shorter ones inside it.
    """
    problems: list[str] = []
    closed: dict[tuple[int, str], int] = defaultdict(int)
    base = next(iter(windows))
    for record in records:
        if not isinstance(record, CloseMarker | Release):
            continue
        place = record.partition, record.span or ""
        known = windows[place[1]][closed[place]] if closed[place] < len(windows[place[1]]) else None
        if isinstance(record, Release):
            mine = record.window.start_ms, record.window.end_ms
        else:
            mine = record.start_ms, record.through_ms
            closed[place] += 1
            inside = sum(end <= record.through_ms for _, end in windows[base])
            if closed[record.partition, base] < inside:
                problems.append(f"{place}: marker {mine} before those of {base} inside it")
        if known is not None and mine != known:
            problems.append(f"{place}: {type(record).__name__} of {mine} at {known}")
    return problems


def judge(
    run: Run, *, size_ms: int = MINUTE_MS, epoch: int = 1, start_ms: int = START_MS, until_ms: int = 1 << 62
) -> Findings:
    """Judge an epoch whose input is read to its end; events of windows from start_ms to until_ms are its own."""
    problems: list[str] = []
    public = [decode(value or b"") for _, _, _, value, _, _ in run.read("sketches")]
    mine = [record for record in public if record.epoch == epoch]
    problems += _second_payloads(value or b"" for _, _, _, value, _, _ in run.read("sketches", "read_uncommitted"))
    for name, records in (("sketches", mine), ("outbox", [decode(r[3] or b"") for r in run.read("outbox")])):
        found = Counter(r.release_id for r in records if isinstance(r, Release) and r.epoch == epoch)
        problems += [f"{name}: release {i.hex()} is committed {n} times" for i, n in found.items() if n > 1]
    problems += _markers(mine, size_ms, start_ms)
    problems += _counts(run, mine, size_ms, start_ms, until_ms)
    releases = sum(isinstance(record, Release) for record in mine)
    return Findings(tuple(problems), aborted_transactions(run), releases)


def aborted_transactions(run: Run) -> int:
    """Each transaction leaves its name in the ledger; those that only uncommitted reading shows were aborted."""
    import msgspec

    def names(isolation: str) -> set[str]:
        return {msgspec.json.decode(value or b"")[3] for _, _, _, value, _, _ in run.read("ledger", isolation)}

    return len(names("read_uncommitted") - names("read_committed"))


def _second_payloads(payloads: Iterable[bytes]) -> list[str]:
    """No reader of the public topic, aborted records included, may ever see two draws of one release."""
    seen: dict[bytes, set[bytes]] = defaultdict(set)
    for payload in payloads:
        record = decode(payload)
        if isinstance(record, Release):
            seen[record.release_id].add(payload)
    return [f"release {i.hex()} has {len(found)} payloads" for i, found in seen.items() if len(found) > 1]


def _markers(records: Iterable[object], size_ms: int, start_ms: int) -> list[str]:
    """In each partition one marker for each window, in order, and releases before the marker of their window."""
    problems: list[str] = []
    closed: dict[int, int] = {}
    for record in records:
        if isinstance(record, CloseMarker):
            known = closed.get(record.partition, start_ms)
            if (record.start_ms, record.through_ms) != (known, known + size_ms):
                problems.append(
                    f"partition {record.partition}: marker {record.start_ms}..{record.through_ms} at {known}"
                )
            closed[record.partition] = record.through_ms
        elif isinstance(record, Release) and record.window.start_ms != closed.get(record.partition, start_ms):
            problems.append(
                f"partition {record.partition}: a release of {record.window} at {closed.get(record.partition)}"
            )
    return problems


def _counts(run: Run, records: Iterable[object], size_ms: int, start_ms: int, until_ms: int) -> list[str]:
    """Every event is in exactly one release: cell by cell, and in the partition of its key."""
    found = {}
    for record in records:
        if isinstance(record, Release):
            [page] = decode_key(record.key)
            found[str(page).encode(), record.window.start_ms] = (record.partition, cells_of(record))
    wanted = expected_cells((e for events in run.events.values() for e in events), size_ms, start_ms, until_ms)
    problems = [f"nothing is released of {place}" for place in wanted.keys() - found.keys()]
    problems += [f"a release of {place}, which has no event" for place in found.keys() - wanted.keys()]
    for place in wanted.keys() & found.keys():
        partition, cells = found[place]
        if partition != run.partition(place[0].decode()):
            problems.append(f"{place} is in partition {partition}")
        if cells != wanted[place]:
            problems.append(f"{place} has {len(cells)} cells, should have {len(wanted[place])}")
    return problems
