"""What every request passes before the application, and every answer after it.

Only GET and HEAD; only under names that this server is asked by, so that no page elsewhere can reach it by a name that
was made to point here (DNS rebinding); no address of a length that nobody needs. Every answer has headers that keep a
browser from doing more with it than showing it. Logged are method, route, status and duration: no key and no query.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from ipaddress import ip_address

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfm_stream.clock import monotonic_s
from sfm_stream.serve import problems

_log = logging.getLogger(__name__)
_MAX_QUERY_BYTES = 32 << 10
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HOST = re.compile(rb"(\[[^\s/?#@\[\]\\]+\]|[^\s:/?#@\[\]\\]*)(?::[0-9]*)?")
"""A Host header: a name or an address, and perhaps a port. What holds more could pass for a path."""
_CONTENT = "; ".join(
    (
        *("default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'"),
        *("form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"),
    )
)
_HEADERS = {
    "cache-control": "no-cache",
    "content-security-policy": _CONTENT,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}

Answered = Callable[[str, int, float], None]
"""Called with the route, the status and the duration in seconds of each answer."""


class Guard:
    """Stands in front of an application. listen: the address of the server. hosts: serve.hosts."""

    def __init__(self, app: ASGIApp, listen: str, hosts: tuple[str, ...], answered: Answered) -> None:
        self._app, self._answered = app, answered
        self._is_loopback = listen.rpartition(":")[0].lower() in _LOOPBACK or listen.startswith("127.")
        names = _LOOPBACK | {listen.rpartition(":")[0].lower()} | {name.lower() for name in hosts}
        self._names = names if self._is_loopback or hosts else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        started_s, statuses = monotonic_s(), list[int]()
        method = scope["method"]

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
                given = {name.lower() for name, _ in message["headers"]}
                added = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message["headers"] = [*message["headers"], *(each for each in added if each[0] not in given)]
            await send(message)

        inner = {**scope, "method": "GET"} if method == "HEAD" else scope
        try:
            # Refused is what concerns a request; that of a HEAD has no body: the server sees to that.
            await (self._refusal(inner) or self._app)(inner, receive, guarded)
        except Exception:
            # Shown by type and place: the message may hold a key.
            _log.exception("an answer failed")
            if not statuses:
                refusal = problems.response_of(problems.UNEXPECTED, "The log of the server says where it happened.")
                await refusal(inner, receive, guarded)
        route = getattr(inner.get("route"), "path", "none")
        seconds, status = monotonic_s() - started_s, statuses[0] if statuses else 500
        fields = {"method": method[:16], "route": route, "status": status, "ms": round(1000 * seconds)}
        _log.info("answered", extra=fields)
        self._answered(route, status, seconds)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        if scope["method"] not in ("GET", "HEAD", "OPTIONS"):
            return problems.response_of(problems.METHOD, "Nothing can be changed here: ask with GET.")
        if len(scope["query_string"]) > _MAX_QUERY_BYTES:
            most = f"{_MAX_QUERY_BYTES >> 10} KiB"
            return problems.response_of(problems.TOO_LONG, f"A query has up to {most}: ask for fewer keys at once.")
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        name = _name(hosts[0]) if len(hosts) == 1 else None
        if name is None or not self._is_ours(name):
            return problems.response_of(
                problems.HOST,
                "The Host header is none of the names of this server. To ask it under another name, as through a "
                "proxy, add that name to serve.hosts.",
            )
        return None

    def _is_ours(self, name: str) -> bool:
        """An address is no name that could be made to point here; a kubelet and a Prometheus ask a pod by its own."""
        return self._names is None or name in self._names or (not self._is_loopback and _is_address(name))


def _name(host: bytes) -> str | None:
    """The name in a Host header, without the port; None where the header is none."""
    found = _HOST.fullmatch(host)
    return found and found[1].decode("latin-1").lower()


def _is_address(name: str) -> bool:
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
