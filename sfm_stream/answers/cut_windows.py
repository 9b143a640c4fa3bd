"""Which windows a question cuts: a release is counted as a whole, so no border of a question may lie inside one."""

from __future__ import annotations

from dataclasses import dataclass, field

from sfm_stream.answers.decided_spans import DecidedSpans
from sfm_stream.answers.span_name import span_name
from sfm_stream.errors import QuestionError
from sfm_stream.readable import instant
from sfm_stream.types import Window
from sfm_stream.wire.codec import CloseMarker


@dataclass(slots=True)
class CutWindows:
    """The windows that a span cuts, of every released span of every epoch.

    The question was checked against base windows of the configured size; those of another epoch may have another. A
    coarser window that is cut is not in the answer, and the finer ones inside it are.
    """

    span: Window
    cut: dict[tuple[int, str], tuple[str, Window]] = field(default_factory=dict)
    """(epoch, name of a span) -> the border of the question that is inside one of its windows, and that window."""

    def note(self, marker: CloseMarker) -> None:
        """Take any marker of the pipeline."""
        low, high, size = marker.start_ms, marker.through_ms, marker.window_ms
        for part, border in (("--from", self.span.start_ms), ("--to", self.span.end_ms)):
            if low < border < high and (inside := (border - low) % size):
                window = Window(border - inside, border - inside + size)
                self.cut.setdefault((marker.epoch, span_name(marker)), (part, window))

    def require_none_of_base(self, decided: DecidedSpans) -> None:
        """Raise QuestionError where a window of the finest span of an epoch is cut. decided: tells which that is."""
        for (epoch, name), (part, window) in sorted(self.cut.items()):
            if name == decided.epochs[epoch].base:
                border = self.span.start_ms if part == "--from" else self.span.end_ms
                start, end = instant(window.start_ms), instant(window.end_ms)
                raise QuestionError(
                    f"{instant(border)} is inside a window of epoch {epoch}, which begins at {start} and ends at "
                    f"{end}: ask from or to one of these",
                    part,
                )
