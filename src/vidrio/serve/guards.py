"""What stands before every route: which names the server answers to, how much it reads, what its answers carry.

Plain ASGI: each is a function around an app. `guarded` is the outermost; `bodies` reads what a client sends, whole and
within bounds, and gives up the work of a client that leaves.
"""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vidrio.model.json_text import json_text
from vidrio.serve.metrics import Metrics
from vidrio.serve.settings import Settings

LARGEST_BODY = 64 * 1024  # bytes of a request of the page
IN_FLIGHT = 8  # times the largest upload may be held in memory by all requests together

HEADERS = {
    # Nothing from elsewhere, nothing inline: a text that looks like markup stays a text.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# LibreTranslate's routes, which scripts of other sites may use. There are no cookies, so nothing is done in anybody's
# name.
OPEN = ("/translate", "/detect", "/languages", "/suggest", "/frontend/", "/download_file/", "/stream", "/health")


def problem(path: str, status: int, error: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """A refusal in the words of whoever asked: the page's {"what"}, or LibreTranslate's {"error"}."""
    return JSONResponse({"what" if path.startswith("/api/") else "error": error}, status, dict(headers or {}))


def as_json(data: Any) -> Response:
    """Not by the framework: JSON has no NaN, and half a character cannot be encoded."""
    return Response(json_text(data), media_type="application/json")


def open_to(path: str, settings: Settings) -> dict[str, str]:
    """What lets other sites' scripts ask; never on the page's own routes."""
    if not settings.cors or not path.startswith(OPEN):
        return {}
    return {
        "Access-Control-Allow-Origin": settings.cors,
        "Access-Control-Allow-Headers": "Authorization, Content-Type",
        "Access-Control-Allow-Methods": "GET, POST",
        "Access-Control-Expose-Headers": "Content-Type, Retry-After",
        "Access-Control-Max-Age": str(60 * 60 * 24),
        "Cross-Origin-Resource-Policy": "cross-origin",
    }


def guarded(app: ASGIApp, settings: Settings, metrics: Metrics) -> ASGIApp:
    """Answers to this server's names only, adds the headers, and counts."""
    # A name that was rebound to 127.0.0.1 is another server's.
    ours = {"127.0.0.1", "localhost", "[::1]", "testserver", *(name.lower() for name in settings.hosts)}

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await app(scope, receive, send)
        path, began, status = scope["path"], time.perf_counter(), 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                kept = "max-age=31536000, immutable" if path.startswith("/assets/") else "no-store"
                MutableHeaders(scope=message).update({**HEADERS, "Cache-Control": kept, **open_to(path, settings)})
            await send(message)

        host = Headers(scope=scope).get("host", "").lower()
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        inner: ASGIApp = app
        if not {name, "*"} & ours:
            inner = problem(path, 421, "this server does not answer to that name")
        elif scope["method"] == "OPTIONS" and open_to(path, settings):
            inner = Response(status_code=204)
        try:
            with metrics.in_flight.track_inprogress():
                await inner(scope, receive, sending)
        finally:
            route = getattr(scope.get("route"), "path", "") or "other"
            metrics.requests.labels(route, status).inc()
            metrics.seconds.labels(route).observe(time.perf_counter() - began)

    return guard


def bodies(app: ASGIApp, settings: Settings) -> ASGIApp:
    """Reads a body before anything looks at it: at most so many bytes, of all clients together, in so many seconds."""
    held, most = 0, IN_FLIGHT * max(settings.body_limit, settings.file_limit)

    def limit_of(path: str) -> int:
        if path.startswith("/api/"):
            return LARGEST_BODY
        return settings.file_limit + 65_536 if path == "/translate_file" else settings.body_limit

    async def read(receive: Receive, path: str, parts: list[bytes]) -> Response | None:
        """Fill `parts`; a refusal if they are too much."""
        nonlocal held
        size, limit = 0, limit_of(path)
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise asyncio.CancelledError
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            held += len(parts[-1])
            if size > limit:
                return problem(path, 413, f"a request has at most {limit} bytes")
            if held > most:
                return problem(path, 503, "The server is busy, try again later", {"Retry-After": "5"})
            if not message.get("more_body", False):
                return None

    async def bounded(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal held
        if scope["type"] != "http":
            return await app(scope, receive, send)
        parts: list[bytes] = []
        try:
            try:
                refused = await asyncio.wait_for(read(receive, scope["path"], parts), settings.body_seconds)
            except TimeoutError:
                refused = problem(scope["path"], 408, "the request did not arrive in time", {"Connection": "close"})
            except asyncio.CancelledError:
                return None
            if refused is not None:
                return await refused(scope, receive, send)
            await while_there(app, scope, receive, send, parts)
        finally:
            held -= sum(map(len, parts))

    return bounded


async def while_there(app: ASGIApp, scope: Scope, receive: Receive, send: Send, parts: list[bytes]) -> None:
    """Run the app on a body that was read, until the client leaves."""
    waiting: list[Message] = [{"type": "http.request", "body": b"".join(parts), "more_body": False}]
    left = asyncio.ensure_future(receive())  # after the body, only this can come: the client has left

    async def again() -> Message:
        return waiting.pop() if waiting else await asyncio.shield(left)

    working = asyncio.ensure_future(app(scope, again, send))
    try:
        await asyncio.wait((working, left), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await working
        else:
            working.cancel()
            await asyncio.wait((working,))
    finally:
        working.cancel()
        left.cancel()
