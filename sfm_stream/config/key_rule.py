"""The key rule of a configuration: which keys appear in a release, and the keys that are declared."""

from __future__ import annotations

from sfm_stream.config.tables import Settings
from sfm_stream.config.values import KeyEntry
from sfm_stream.errors import ConfigError
from sfm_stream.privacy.epsilon import parse_epsilon
from sfm_stream.privacy.key_rules import DeclaredKeys, KeyRule, PresenceIsPublic, SelectedKeys
from sfm_stream.privacy.selection import parse_delta, selection_table
from sfm_stream.readable import instant
from sfm_stream.types import KeyValue
from sfm_stream.units import INT64_MAX, INT64_MIN
from sfm_stream.windows.grid import Grid
from sfm_stream.wire.keys import encode_key


def key_rule(settings: Settings, grid: Grid | None, problems: list[str]) -> KeyRule:
    """The rule of privacy.keys.

    grid: of the base span; None where window.size is wrong. problems: of declared keys, each is added here. Raises
    ConfigError where there can be no rule.
    """
    privacy = settings.privacy
    selection = (privacy.epsilon_selection, privacy.delta_selection)
    if privacy.keys != "selected" and selection != (None, None):
        raise ConfigError('privacy.epsilon_selection and delta_selection: only for privacy.keys = "selected"')
    if privacy.keys != "declared" and (privacy.declared or privacy.declared_from):
        raise ConfigError('privacy.declared: only for privacy.keys = "declared"')
    if privacy.keys == "presence_is_public":
        return PresenceIsPublic()
    if privacy.keys == "declared":
        return _declared_keys(settings, grid, problems)
    if privacy.epsilon_selection is None or privacy.delta_selection is None:
        raise ConfigError(
            'privacy.epsilon_selection and privacy.delta_selection: both are needed for privacy.keys = "selected"'
        )
    epsilon = parse_epsilon(privacy.epsilon_selection, "epsilon_selection")
    delta = parse_delta(privacy.delta_selection)
    return SelectedKeys(epsilon, delta, selection_table(epsilon, delta))


def _declared_keys(settings: Settings, grid: Grid | None, problems: list[str]) -> DeclaredKeys:
    privacy = settings.privacy
    effective_ms: dict[KeyValue, int] = {} if settings.event.key else {(): 0}
    lists = [(0, privacy.declared)] + [(later.since, later.keys) for later in privacy.declared_from]
    for since_ms, entries in lists:
        if since_ms and grid is not None and grid.floor(since_ms) != since_ms:
            problems.append(
                f"privacy.declared_from.since: {instant(since_ms)} is not a border of windows of {settings.window.size}"
            )
        for entry in entries:
            key = _key(settings, entry, problems)
            if key in effective_ms and key != ():
                problems.append("privacy.declared: a key is listed twice")
            effective_ms[key] = since_ms
    if not effective_ms:
        raise ConfigError('privacy.declared: the list of keys is needed for privacy.keys = "declared"')
    return DeclaredKeys(effective_ms)


def _key(settings: Settings, entry: KeyEntry, problems: list[str]) -> KeyValue:
    fields = settings.event.key
    parts = tuple(entry) if isinstance(entry, list) else (entry,)
    if len(parts) != len(fields):
        problems.append(f"privacy.declared: a key of {len(parts)} fields where event.key has {len(fields)}")
    if any(isinstance(part, int) and not INT64_MIN <= part <= INT64_MAX for part in parts):
        raise ConfigError("privacy.declared: an integer key outside int64")
    if len(encode_key(parts)) > settings.event.max_key_bytes:
        problems.append("privacy.declared: a key longer than event.max_key_bytes")
    return parts[0] if len(fields) == 1 else parts
