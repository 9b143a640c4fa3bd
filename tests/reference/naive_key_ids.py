"""Ids of keys as a table gives them, by looking at every id: which a key has, which are free, and in which order."""

from __future__ import annotations

from collections.abc import Iterable


class NaiveKeyIds:
    """keys: of each id from 0 on its key, None where it is free. free: in the order in which they were freed."""

    def __init__(self) -> None:
        self.keys: list[object] = []
        self.free: list[int] = []

    def id_of(self, key: object) -> int:
        """-1 where there is none. Keys of different types are different keys."""
        same = [number for number, held in enumerate(self.keys) if held is not None and repr(held) == repr(key)]
        return same[0] if same else -1

    def intern(self, key: object) -> int:
        """The last id that was freed, else a new one."""
        if self.free:
            number = self.free.pop()
            self.keys[number] = key
            return number
        self.keys.append(key)
        return len(self.keys) - 1

    def retain(self, live: Iterable[int]) -> None:
        """Free all other ids; what lies above the last that is in use is forgotten."""
        for number, key in enumerate(self.keys):
            if key is not None and number not in live:
                self.keys[number] = None
                self.free.append(number)
        while self.keys and self.keys[-1] is None:
            self.free.remove(len(self.keys) - 1)
            self.keys.pop()
