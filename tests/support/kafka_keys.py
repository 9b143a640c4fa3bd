"""Which keys a pipeline on a real cluster has to publish: kinds of keys, their events, and an oracle of plain sets.

Windows are numbered from 0. Windows 0 to 7 are of epoch 1, those from 8 on of epoch 2. Each kind has keys that are
always there, one of few items, one that comes with window 7, one that goes with epoch 2, and one that nobody declares
before epoch 2. Events of a key also lie where they do not belong, and must be in no release.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgpack  # type: ignore[import-untyped]
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.partitioner import murmur2 as java_murmur2
from support.kafka_runs import START_MS, Run, cell, cells_of

from sfm_stream.wire.codec import CloseMarker, Release, decode

MODES = ["declared", "selected", "presence_is_public"]
SIZE_MS, GRACE_MS = 600_000, 30_000
LATER, SECOND_EPOCH, WINDOWS = 7, 8, 12
MANY, SURELY, HARDLY = 24, 12, 2
"""Items of a key; cells from which selection is certain up to 2^-64; cells up to which it happens once in 10^9."""
NEVER = 1000
Key = tuple[str | int, ...]
Lit = dict[tuple[int, bytes, int], frozenset[tuple[int, int]]]
"""(partition, canonical key, window) to the cells of a release."""


@dataclass(frozen=True)
class Kind:
    """fields: event.key of the configuration. A key is the tuple of its parts."""

    name: str
    fields: str
    steady: tuple[Key, ...]
    gone: tuple[Key, ...] = ()
    small: tuple[Key, ...] = ()
    late: tuple[Key, ...] = ()
    stranger: tuple[Key, ...] = ()

    def record_key(self, key: Key) -> bytes:
        """What a producer sends: text as UTF-8, an integer as digits, else the canonical bytes."""
        return str(key[0]).encode() if len(key) == 1 else canonical(key)

    def toml(self, keys: Iterable[Key]) -> str:
        return json.dumps([key[0] if len(key) == 1 else list(key) for key in keys])

    def event(self, key: Key, user: str, at_ms: int) -> bytes:
        return json.dumps({**dict(zip(("page", "n"), key, strict=False)), "user": user, "at": at_ms}).encode()


KINDS = [
    Kind("text", '"page"', (("a",), ("",), ("/é",)), (("old",),), (("few",),), (("new",),), (("other",),)),
    Kind("integer", '"page"', ((0,), (-7,), (1 << 62,)), ((8,),), ((5,),), ((77,),), ((6,),)),
    Kind(
        "composite", '["page", "n"]', (("a", 1), ("a", 2), (3, "1")), (("old", 1),), (("few", 1),), (("new", 1),),
        (("a", 3),),
    ),
    Kind("none", "[]", ((),)),
]  # fmt: skip
LATE_NONE = Kind("none", "[]", (), late=((),))
"""The one key of `key = []` as one that comes later, which takes a pipeline of its own."""


def canonical(key: Key) -> bytes:
    return bytes(msgpack.packb(list(key)))


def start_of(window: int) -> int:
    return START_MS + window * SIZE_MS


def utc(window: int) -> str:
    return datetime.fromtimestamp(start_of(window) / 1000, UTC).isoformat()


@dataclass
class Pipeline:
    """One pipeline of a mode and kind. events: (where it lies, key, user, window) of everything that was produced."""

    mode: str
    kind: Kind
    run: Run
    events: list[tuple[int, Key, str, int]] = field(default_factory=list)

    @classmethod
    def make(cls, bootstrap: str, folder: Path, mode: str, kind: Kind, partitions: int, **settings: object) -> Pipeline:
        fixed = {"size": "10m", "grace": "30s", "key": kind.fields, "room": 4096, "margin": "2d", **settings}
        return cls(mode, kind, Run(bootstrap, folder, partitions, fixed))

    def config(self, epoch: int = 1, later: bool = False) -> Path:
        """later: the key that comes with window 7 is in the list by now."""
        privacy = [f"epsilon = {epoch + 1}", f'keys = "{self.mode}"']
        kind = self.kind
        if self.mode == "selected":
            privacy += ["epsilon_selection = 6", "delta_selection = 1e-12"]
        elif self.mode == "declared":
            since = LATER if later else NEVER
            privacy.append(f"declared = {kind.toml(self.declared(0 if epoch == 1 else SECOND_EPOCH))}")
            if epoch == 1 and kind.late and (later or not kind.steady):
                entry = f"[[privacy.declared_from]]\nsince = {utc(since)}\nkeys = {kind.toml(kind.late)}"
                return self._write(epoch, "\n".join(privacy), entry)
        return self._write(epoch, "\n".join(privacy), "")

    def _write(self, epoch: int, privacy: str, table: str) -> Path:
        name = f"{self.run.id}.toml"
        return self.run.config(
            name, epoch=epoch, start=utc(0 if epoch == 1 else SECOND_EPOCH), privacy=privacy, limits=table
        )

    def declared(self, window: int) -> set[Key]:
        """The list that holds for a window, and the keys that need no list in the other modes."""
        kind = self.kind
        if window >= SECOND_EPOCH:
            return {*kind.steady, *kind.small, *kind.late, *kind.stranger}
        return {*kind.steady, *kind.gone, *kind.small, *(kind.late if window >= LATER else ())}

    def owner(self, key: Key) -> int:
        digest: int = java_murmur2(self.kind.record_key(key))
        return (digest & 0x7FFFFFFF) % self.run.partitions

    def users(self, window: int) -> Iterator[tuple[int, Key, str]]:
        """Where the events of a window lie. Some keys that are always there are silent in some windows."""
        kind = self.kind
        large = [key for number, key in enumerate(kind.steady) if (window + number) % 4 != 3]
        large += kind.gone
        # Events of a key that is not declared yet; in other modes they would be the key's first ones.
        if window >= LATER or (self.mode == "declared" and window == LATER - 1):
            large += kind.late
        for key in large:
            yield from ((self.owner(key), key, f"u{window}.{number}") for number in range(MANY))
        for key in (*kind.small, *kind.stranger):
            yield self.owner(key), key, f"only {window}"
        for key in (*kind.steady, *kind.late) if self.run.partitions > 1 else ():
            wrong = (self.owner(key) + 1) % self.run.partitions
            yield from ((wrong, key, f"astray {number}") for number in range(2))

    def produce(self, producer: KafkaProducer, first: int, last: int) -> None:
        """Events of these windows and a first part of those of the next, and in each partition what closes `last`.

        Of the first window only what is not there yet. Flush the producer behind it.
        """
        records = []
        for window in range(first, last + 2):
            for number, (place, key, user) in enumerate(self.users(window)):
                early = number % 2 == 0
                if (window == last + 1 and not early) or (window == first > 0 and early):
                    continue
                at_ms = start_of(window) + (1000 if early else 60_000)
                records.append((at_ms, self.kind.record_key(key), self.kind.event(key, user, at_ms), place))
                self.events.append((place, key, user, window))
        tick_ms = start_of(last + 1) + GRACE_MS + 1000
        records += [(tick_ms, b"", b"nothing that counts", place) for place in range(self.run.partitions)]
        records.sort(key=lambda record: record[0])
        for at_ms, record_key, value, place in records:
            producer.send(self.run.topic, key=record_key, value=value, partition=place, timestamp_ms=at_ms)

    # What has to be, and what is wrong

    def wanted(self, first: int, last: int) -> Lit:
        """The releases of these windows."""
        found: dict[tuple[Key, int], set[tuple[int, int]]] = defaultdict(set)
        for place, key, user, window in self.events:
            if place == self.owner(key):
                found[key, window].add(cell(user))
        if self.mode == "declared":
            places = {(key, window) for window in range(first, last + 1) for key in self.declared(window)}
        else:
            places = {(key, window) for key, window in found if first <= window <= last}
        if self.mode == "selected":
            assert all(len(found[place]) <= HARDLY or len(found[place]) >= SURELY for place in places)
            places = {place for place in places if len(found[place]) >= SURELY}
        return {(self.owner(key), canonical(key), window): frozenset(found[key, window]) for key, window in places}

    def problems(self, public: Public, first: int, last: int) -> list[str]:
        """What is wrong with the public records of these windows, which are of one epoch."""
        epoch = 1 if last < SECOND_EPOCH else 2
        found: Lit = {}
        closed: list[tuple[int, int]] = []
        wrong: list[str] = []
        for place, record in public.records[f"{self.run.id}.sketches"]:
            start_ms = record.start_ms if isinstance(record, CloseMarker) else record.window.start_ms
            window = (start_ms - START_MS) // SIZE_MS
            if not first <= window <= last:
                continue
            if (record.epoch, record.partition) != (epoch, place):
                wrong.append(f"in partition {place} a record of {record.epoch, record.partition}")
            if (place, window) in closed:
                wrong.append(f"in partition {place} a record behind the marker of window {window}")
            if isinstance(record, CloseMarker):
                closed.append((place, window))
                continue
            if (place, record.key, window) in found:
                wrong.append(f"a second release of {place, record.key, window}")
            found[place, record.key, window] = frozenset(cells_of(record))
        if sorted(closed) != [
            (place, window) for place in range(self.run.partitions) for window in range(first, last + 1)
        ]:
            wrong.append(f"markers of {closed}")
        want = self.wanted(first, last)
        wrong += [f"nothing of {place}" for place in want.keys() - found.keys()]
        wrong += [f"a release of {place}" for place in found.keys() - want.keys()]
        wrong += [f"other cells of {place}" for place in want.keys() & found.keys() if want[place] != found[place]]
        return wrong

    def second_draws(self) -> list[str]:
        """Releases that are twice in the outbox, or of which anyone could read two payloads."""
        kept = (decode(value or b"") for _, _, key, value, _, _ in self.run.read("outbox") if key)
        counts = Counter(record.release_id for record in kept if isinstance(record, Release))
        payloads: dict[bytes, set[bytes]] = defaultdict(set)
        for _, _, _, value, _, _ in self.run.read("sketches", "read_uncommitted"):
            record = decode(value or b"")
            if isinstance(record, Release):
                payloads[record.release_id].add(value or b"")
        twice = sum(count > 1 for count in counts.values())
        readable = sum(len(seen) > 1 for seen in payloads.values())
        return [f"{twice} releases twice in the outbox, {readable} with two payloads"] if twice or readable else []


class Public:
    """What some pipelines have published, read on and on by one consumer. records: topic to what is in it, in order."""

    def __init__(self, bootstrap: str, pipelines: Iterable[Pipeline]) -> None:
        self.partitions = {f"{each.run.id}.sketches": each.run.partitions for each in pipelines}
        self.records: dict[str, list[tuple[int, Release | CloseMarker]]] = defaultdict(list)
        self._ends: dict[tuple[str, int, int], int] = {}
        self._consumer = KafkaConsumer(
            bootstrap_servers=bootstrap, isolation_level="read_committed", enable_auto_commit=False
        )

    def close(self) -> None:
        self._consumer.close()

    def closed(self, last: int, epoch: int) -> bool:
        """Whether every partition is closed up to a window."""
        if not self._consumer.assignment():
            if any(not self._consumer.partitions_for_topic(topic) for topic in self.partitions):
                return False
            places = [TopicPartition(topic, n) for topic, count in self.partitions.items() for n in range(count)]
            self._consumer.assign(places)
            self._consumer.seek_to_beginning(*places)
        for place, records in self._consumer.poll(timeout_ms=500).items():
            for each in records:
                record = decode(each.value)
                assert isinstance(record, Release | CloseMarker)
                self.records[place.topic].append((place.partition, record))
                if isinstance(record, CloseMarker):
                    self._ends[place.topic, place.partition, record.epoch] = record.through_ms
        ends = ((topic, number, epoch) for topic, count in self.partitions.items() for number in range(count))
        return all(self._ends.get(end, 0) >= start_of(last + 1) for end in ends)
