"""What reading lines means, with everything in memory and nothing clever."""

from __future__ import annotations


def naive_lines(data: bytes, complete: bool, max_line_bytes: int) -> tuple[list[tuple[int, bytes]], int]:
    """(offset, value) of every record, and the offset where reading stops."""
    records = []
    at = 0
    for line in data.split(b"\n"):
        end = at + len(line)
        terminated = end < len(data)
        if not terminated and not complete:
            break
        content = line[:-1] if line.endswith(b"\r") else line
        if content:
            records.append((at, content[:max_line_bytes]))
        at = end + 1 if terminated else end
    return records, at
