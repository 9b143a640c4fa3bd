"""The least that a reader of a file of events does: decode each line into a struct.   file_loop.py PATH"""

from __future__ import annotations

import sys

import msgspec


class Event(msgspec.Struct):
    page: str
    user: str
    ts: int


def main() -> None:
    decode, seen = msgspec.json.Decoder(Event).decode, 0
    with open(sys.argv[1], "rb") as lines:
        for line in lines:
            decode(line)
            seen += 1
    print(seen)


if __name__ == "__main__":
    main()
