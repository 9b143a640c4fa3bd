"""The releases of a due window of one span: which keys appear, one draw for each of them, in order of key."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from sfm_stream.events.key_table import KeyTable
from sfm_stream.pipeline.counting.plan import CountingPlan
from sfm_stream.privacy.coins import Coins
from sfm_stream.privacy.discrete_laplace import DiscreteLaplace
from sfm_stream.privacy.flip import flip_bits, noisy_count
from sfm_stream.privacy.key_rules import DeclaredKeys, SelectedKeys
from sfm_stream.privacy.released_span import ReleasedSpan
from sfm_stream.privacy.selection import select
from sfm_stream.sketch.compiled_coins import draw
from sfm_stream.sketch.raw import PcsaSketch
from sfm_stream.sketch.sfm import NoisyCount, SfmSketch
from sfm_stream.types import Record, Window
from sfm_stream.units import SKETCHES
from sfm_stream.windows.store import OpenWindow
from sfm_stream.wire.codec import CloseMarker, Release, encode
from sfm_stream.wire.keys import MARKER_KEY, encode_key, encode_keys
from sfm_stream.wire.release_form import ReleaseForm


class ReleaseDraw:
    """Decides which keys of a window appear and draws their releases. Knows nothing of positions or transactions."""

    def __init__(self, plan: CountingPlan, span: ReleasedSpan, partition: int, keys: KeyTable, coins: Coins) -> None:
        self._plan, self._span, self._partition, self._keys, self._coins = plan, span, partition, keys, coins
        self._name = span.name if plan.names else None
        self._noise = DiscreteLaplace.of(span.count_epsilon) if span.count_epsilon else None
        # (canonical key, key id, start of the first window that it counts in), ascending by key.
        self._declared: list[tuple[bytes, int, int]] = []
        # The candidates of one window by its start: a window that takes several steps asks again.
        self._listed: tuple[int | None, list[tuple[bytes, int]]] = (None, [])
        self._form: tuple[Window, bool, ReleaseForm] | None = None
        """(window, whether its releases have a count, their form), of the last release that was drawn."""
        if isinstance(plan.keys, DeclaredKeys):
            since = plan.keys.effective
            self._declared = sorted((encode_key(key), keys.id_of(key), since[key]) for key in keys)

    def decisions(
        self, window: Window, content: OpenWindow | None, after: bytes | None
    ) -> Iterator[tuple[bytes, Record | None]]:
        """(canonical key, its release or None where it is withheld), ascending by key, for keys after `after`.

        Every coin is drawn here, once, when the iterator reaches the key.
        """
        shape = self._span.shape
        cells = content.cells_by_key(shape) if content is not None else None
        blank = np.zeros(shape.nbytes, np.uint8)
        if self._listed[0] != window.start_ms:
            self._listed = (window.start_ms, self._candidates(window, content))
        listed = self._listed[1]
        for key, key_id in listed[bisect_right(listed, after, key=itemgetter(0)) if after is not None else 0 :]:
            yield key, self._release(window, key, cells.bits(key_id) if cells else blank)

    def marker(self, window: Window) -> Record:
        """The close marker of a window: it says that the window is decided for ever."""
        plan = self._plan
        marker = CloseMarker(
            pipeline=plan.pipeline,
            epoch=plan.epoch,
            partition=self._partition,
            partitions=plan.partitions,
            start_ms=window.start_ms,
            through_ms=window.end_ms,
            window_ms=window.end_ms - window.start_ms,
            fingerprint=plan.fingerprint,
            span=self._name,
            spans=plan.names,
        )
        return Record(SKETCHES, self._partition, MARKER_KEY, encode(marker), window.end_ms)

    def _candidates(self, window: Window, content: OpenWindow | None) -> list[tuple[bytes, int]]:
        """(canonical key, key id) of every key that may have a release in this window, ascending by key."""
        if isinstance(self._plan.keys, DeclaredKeys):
            return [(key, key_id) for key, key_id, since in self._declared if since <= window.start_ms]
        if content is None:
            return []
        key_ids = content.key_ids().tolist()
        return sorted(zip(encode_keys(self._keys[key_id] for key_id in key_ids), key_ids, strict=True))

    def _release(self, window: Window, key: bytes, bits: NDArray[np.uint8]) -> Record | None:
        """The release of a key, or None where selection withholds it. bits: its raw sketch, packed. SECRET.

        Coins of selection come before those of the bits, and those of the count behind them.
        """
        plan, span = self._plan, self._span
        if isinstance(plan.keys, SelectedKeys):
            raw = PcsaSketch.of_bits(span.shape, bits, plan.item_hash)
            if not select(raw.popcount(), plan.keys.table, self._coins):
                return None
        noisy = flip_bits(bits, span.flip_threshold, self._coins, draw=draw).data
        count = noisy_count(bits, self._noise, self._coins) if self._noise is not None else None
        value = self._form_of(window, key, noisy, count).write(key, noisy, count)
        return Record(SKETCHES, self._partition, key, value, window.end_ms)

    def _form_of(self, window: Window, key: bytes, noisy: memoryview, count: int | None) -> ReleaseForm:
        """The form of the releases of a window, made of the first of them, which is checked field by field."""
        if self._form is None or self._form[:2] != (window, count is not None):
            plan, span = self._plan, self._span
            counted = None if count is None else NoisyCount(count, span.count_epsilon)
            like = Release(
                pipeline=plan.pipeline,
                epoch=plan.epoch,
                partition=self._partition,
                partitions=plan.partitions,
                window=window,
                key=key,
                unit=plan.unit,
                sketch=SfmSketch(span.shape, span.flip_threshold, plan.item_hash.name, bytes(noisy), counted),
                span=self._name,
            )
            self._form = (window, count is not None, ReleaseForm(like))
        return self._form[2]
