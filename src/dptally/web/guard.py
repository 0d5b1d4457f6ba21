"""What stands before every request: the names it may use, how large and how frequent it may be, and what the browser
is told about the answer.

A page on loopback can be reached by any web site that the user visits. Three checks keep it to its own pages: the Host
header must be a known name (a foreign site that rebinds its name sends its own), an Origin header must be the page's
own, and a form must carry the token that only a page of this process has shown. There are no cookies, so that nothing
is sent by the browser on its own.
"""

from __future__ import annotations

import hmac
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from threading import Lock
from typing import Any

from dptally.web.settings import Settings
from dptally.web.workers import Refusal

__all__ = ["HEADERS", "Buckets", "Guard", "same"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADERS = {
    "content-security-policy": (
        "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; object-src 'none'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with "no-referrer" a browser hides the origin of our own forms, too
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::\d{1,5})?")
_LONGEST_URL = 30_000  # bytes
_CLIENTS = 1_000


def same(given: str, secret: str) -> bool:
    """Whether two texts are equal, in a time that does not tell how far."""
    return hmac.compare_digest(given.encode("utf-8"), secret.encode("utf-8"))


class Buckets:
    """So many requests in a second for each client, and twice as many at once."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._most, self._clock = rate, 2.0 * rate, clock
        self._left: dict[str, tuple[float, float]] = {}
        self._lock = Lock()

    def take(self, client: str) -> bool:
        """Whether this client may ask now."""
        with self._lock:
            now = self._clock()
            left, then = self._left.pop(client, (self._most, now))
            left = min(self._most, left + (now - then) * self._rate)
            allowed = left >= 1.0
            self._left[client] = (left - 1.0 if allowed else left, now)
            if len(self._left) > _CLIENTS:  # the one that has been silent for longest starts anew
                self._left.pop(next(iter(self._left)))
            return allowed


class Guard:
    """An application behind the checks; refusals are plain text."""

    def __init__(self, inner: Application, settings: Settings) -> None:
        self._inner, self._settings = inner, settings
        self._buckets = Buckets(settings.rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._inner(scope, receive, send)
            return  # no web sockets here
        refused = self._refusal(scope)
        if refused is not None:
            await _answer(send, *refused)
            return
        await self._inner(scope, _bounded(receive, self._settings.largest), _headed(send))

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = _headers(scope)
        host = headers.get("host", [])
        if len(host) != 1 or not self._known(host[0]):
            return 421, "this server does not answer to that name; see dptally serve --name"
        ours = {f"http://{host[0]}", f"https://{host[0]}"}
        if not ours.issuperset(headers.get("origin", [])) or _foreign(headers):
            return 403, "the request comes from another site"
        length = headers.get("content-length", ["0"])[0]
        if not length.isdigit() or int(length) > self._settings.largest:
            return 413, f"at most {self._settings.largest} bytes are read"
        if _length(scope) > _LONGEST_URL:
            return 414, f"an address has at most {_LONGEST_URL} bytes"
        client = scope.get("client")
        if not self._buckets.take(client[0] if client else ""):
            return 429, "too many requests; ask again in a second"
        return None

    def _known(self, host: str) -> bool:
        found = _HOST.fullmatch(host)
        return found is not None and found["name"].strip("[]").lower() in self._settings.names


def _headers(scope: Scope) -> dict[str, list[str]]:
    """The values of each header, by its name in small letters."""
    headers: dict[str, list[str]] = {}
    for key, value in scope["headers"]:
        headers.setdefault(key.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return headers


def _length(scope: Scope) -> int:
    """How many bytes the address has; some servers repeat the query in the path."""
    path, _, _ = (scope.get("raw_path") or b"").partition(b"?")
    return len(path) + len(scope.get("query_string") or b"")


def _foreign(headers: dict[str, list[str]]) -> bool:
    """A browser says that another site asks. Following a link is allowed: it reads nothing back."""
    site, mode = headers.get("sec-fetch-site", [""])[0], headers.get("sec-fetch-mode", [""])[0]
    return site in ("cross-site", "same-site") and mode != "navigate"


def _bounded(receive: Receive, largest: int) -> Receive:
    """The body; one that did not say how long it is ends where it is longer than is read."""
    seen = 0

    async def next_message() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > largest:
            raise Refusal(413, f"at most {largest} bytes are read")
        return message

    return next_message


def _headed(send: Send) -> Send:
    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = {key.lower() for key, _ in message["headers"]}
            more = [(k.encode(), v.encode()) for k, v in HEADERS.items() if k.encode() not in given]
            if b"cache-control" not in given:
                more.append((b"cache-control", b"no-store"))
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return with_headers


async def _answer(send: Send, status: int, text: str) -> None:
    body = f"{text}\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    headers += [(b"connection", b"close")] if status == 413 else []
    headed = _headed(send)
    await headed({"type": "http.response.start", "status": status, "headers": headers})
    await headed({"type": "http.response.body", "body": body})
