"""Text from data in which something hides: characters that are not seen, or that move others."""

from __future__ import annotations

HOSTILE = {
    "esc": "\x1b[31mred",
    "c1": "a\x9b31mb",
    "delete": "a\x7fb",
    "line": "a\nok: 1",
    "return": "a\rb",
    "nul": "a\0b",
    "rlo": "a\u202egpj.exe",
    "isolate": "\u2067a\u2069",
    "zero width": "pay\u200bpal",
    "joiner": "a\u200db",
    "bom": "\ufeffa",
    "no-break": "a\u00a0b",
    "paragraph": "a\u2029b",
    "filler": "\u3164",
    "braille blank": "\u2800",
    "variant": "a\ufe0fb",
    "grapheme joiner": "a\u034fb",
    "tag": "a\U000e0041b",
    "private": "a\ue000b",
}
PLAIN = ("/", "/pricing", "/x/[/y]", "/post/[id]", ":smile:", "日本語", "Zürich", "a b", "a/b", "1 x")
"""Texts that are shown as they are."""
