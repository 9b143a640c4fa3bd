"""What has to hold of a pipeline's topics, judged from them alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from support.kafka_runs import MINUTE_MS, START_MS, Run, cells_of, expected_cells

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
