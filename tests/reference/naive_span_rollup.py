"""What a roll-up must publish of epochs with several released spans, from a plain walk over the log.

Oracle for rollup/, which it imports nothing of. The log is a list of events in order:
    ("release", epoch, span, start_ms, end_ms, key, bits)      bits: a string of "0" and "1"
    ("marker", epoch, span, start_ms, through_ms)
"""

from __future__ import annotations

from dataclasses import dataclass

HOUR_MS = 3_600_000
QUARTER_MS = HOUR_MS // 4
NAMES = {QUARTER_MS: "quarter", HOUR_MS: "hour"}


@dataclass(frozen=True)
class Expected:
    origin: str
    span: str
    released: int
    decided: int
    windows: int
    complete: bool
    revision: int
    counts: tuple[int, ...]


def sources(spans, filled_by_ms):
    """Grain to (the span it is made of, "raw" or "merged"). spans: name to size, None where a calendar decides.

    filled_by_ms: days are unions of windows of sizes that divide this.
    """
    raw = {NAMES.get(size, name) if size else name: name for name, size in spans.items()}
    found = {
        grain: (name, "raw") for grain, name in raw.items() if grain in ("quarter", "hour", "day", "week", "month")
    }
    for grain, filled in (("quarter", QUARTER_MS), ("hour", HOUR_MS), ("day", filled_by_ms)):
        fit = [(size, name) for name, size in spans.items() if size and filled % size == 0]
        wanted = grain != "quarter" or filled_by_ms == QUARTER_MS
        if grain not in found and fit and wanted:
            found[grain] = (max(fit)[1], "merged")
    return found


def roll_up(log, epochs, filled_by_ms, days, expire_ms=0):
    """({(epoch, grain, start, end, key): Expected}, counts of outcomes) once all of the log is read.

    epochs: number to its spans, as in `sources`, the base span first. days: borders of local days around the log. What
    is merged, is not final and ends at or before expire_ms is in it too, as it stands.
    """
    kept, decided = {}, {}
    outcomes = {"merged": 0, "duplicate": 0, "conflict": 0, "already_final": 0, "markers": 0}
    base = {epoch: next(iter(spans)) for epoch, spans in epochs.items()}
    made_of = {epoch: sources(spans, filled_by_ms) for epoch, spans in epochs.items()}

    def reached(epoch, span):
        return max((through for _, through in decided.get((epoch, span), [])), default=-1)

    def begun(epoch):
        return min((start for start, _ in decided.get((epoch, base[epoch]), [])), default=None)

    def ended(epoch, span):
        later = [begun(n) for n in epochs if n > epoch and begun(n) is not None]
        if not later or reached(epoch, base[epoch]) < min(later):
            return False
        size = epochs[epoch][span]
        return span == base[epoch] or bool(size and reached(epoch, span) >= min(later) // size * size)

    def final(epoch, span, end):
        return ended(epoch, span) or reached(epoch, span) >= end

    def known(epoch):
        return any(number == epoch for number, _ in decided)

    def finest_end(epoch, span, start, end):
        lengths = {"quarter": QUARTER_MS, "hour": HOUR_MS}
        grains = [g for g, (of, _) in made_of[epoch].items() if of == span]
        length = next((ms for grain, ms in lengths.items() if grain in grains), None)
        return end if length is None else start // length * length + length

    def take(event):
        _, epoch, span, start, end, key, bits = event
        before = kept.get((epoch, span, start, key))
        if final(epoch, span, finest_end(epoch, span, start, end)):
            outcomes["already_final"] += 1
        elif before is not None:
            outcomes["duplicate" if before[1] == bits else "conflict"] += 1
        else:
            kept[epoch, span, start, key] = end, bits
            outcomes["merged"] += 1

    waiting = []
    for event in log:
        epoch = event[1]
        if event[0] == "release":
            if known(epoch):
                take(event)
            else:
                waiting.append(event)
            continue
        _, epoch, span, start, through = event
        for held in [w for w in waiting if w[1] == epoch]:
            take(held)
        waiting = [w for w in waiting if w[1] != epoch]
        decided.setdefault((epoch, span), []).append((start, through))
        outcomes["markers"] += 1

    groups = {}
    for (epoch, span, start, key), (end, bits) in kept.items():
        for grain, (source, origin) in made_of[epoch].items():
            if source != span:
                continue
            if origin == "raw":
                place = (start, end)
            elif grain == "day":
                low = max(border for border in days if border <= start)
                place = (low, min(border for border in days if border > start))
            else:
                length = QUARTER_MS if grain == "quarter" else HOUR_MS
                place = (start // length * length, start // length * length + length)
            groups.setdefault((epoch, grain, *place, key, span, origin), []).append(bits)
    found = {}
    for (epoch, grain, low, high, key, span, origin), parts in groups.items():
        complete = final(epoch, span, high)
        if not complete and (high > expire_ms or origin == "raw"):
            continue
        fixed = epochs[epoch][span]
        size = high - low if origin == "raw" else fixed
        marked = {
            at
            for start, through in decided.get((epoch, span), [])
            for at in (range(start, through, fixed) if fixed else [start])
            if low <= at < high
        }
        ones = tuple(sum(int(part[cell]) for part in parts) for cell in range(len(parts[0])))
        revision = len(parts) + len(marked) + complete
        found[epoch, grain, low, high, key] = Expected(
            origin, span, len(parts), len(marked), (high - low) // size, complete, revision, ones
        )
    return found, outcomes
