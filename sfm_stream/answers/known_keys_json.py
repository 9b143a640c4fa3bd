"""The JSON of a page of keys."""

from __future__ import annotations

from sfm_stream.answers.key_notation import key_json, key_text
from sfm_stream.answers.known_keys import KeyPage


def keys_json(page: KeyPage) -> dict[str, object]:
    """keys: each as its fields and as it is shown, which is what --key takes. more: whether others follow."""
    return {"keys": [{"key": key_json(key), "text": key_text(key)} for key in page.keys], "more": page.more}
