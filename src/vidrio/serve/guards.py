"""What stands before every route: which names the server answers to, how much it reads, what its answers carry.

Plain ASGI: each is a function around an app, and `guarded` is the outermost.
"""

import asyncio
import time
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from fastapi import Request
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vidrio.model.json_text import json_text
from vidrio.serve.requests import Refusal
from vidrio.serve.settings import Settings

LEFT = "the client has left"  # which nobody reads
LARGEST_BODY = 64 * 1024  # bytes of a request of the page
Result = TypeVar("Result")

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
OPEN = ("/translate", "/detect", "/languages", "/suggest", "/frontend/", "/download_file/", "/health")


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


def guarded(app: ASGIApp, settings: Settings) -> ASGIApp:
    """Answers to this server's names only (another site's name may have been rebound to 127.0.0.1), and adds the
    headers."""
    ours = {"127.0.0.1", "localhost", "[::1]", "testserver", *(name.lower() for name in settings.hosts)}

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        path = scope["path"]

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = "max-age=31536000, immutable" if path.startswith("/assets/") else "no-store"
                MutableHeaders(scope=message).update({**HEADERS, "Cache-Control": kept, **open_to(path, settings)})
            await send(message)

        host = Headers(scope=scope).get("host", "").lower()
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        inner = app
        if not {name, "*"} & ours:
            inner = problem(path, 421, "this server does not answer to that name")
        elif scope["method"] == "OPTIONS" and open_to(path, settings):
            inner = Response(status_code=204)
        await inner(scope, receive, sending)

    return guard


def limited(app: ASGIApp, settings: Settings) -> ASGIApp:
    """Reads at most so many bytes of a request, in so many seconds."""

    def limit_of(path: str) -> int:
        if path.startswith("/api/"):
            return LARGEST_BODY
        return settings.file_limit + 65_536 if path == "/translate_file" else settings.body_limit

    async def reading(scope: Scope, receive: Receive, send: Send) -> None:
        limit, end, size, is_whole = limit_of(scope.get("path", "")), time.monotonic() + settings.body_seconds, 0, False

        async def counted() -> Message:
            nonlocal size, is_whole
            if is_whole:
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), end - time.monotonic())
            except TimeoutError:
                raise Refusal(408, "the request did not arrive in time", {"Connection": "close"}) from None
            size += len(message.get("body", b""))
            is_whole = not message.get("more_body", False)
            if message["type"] == "http.disconnect":
                raise Refusal(400, LEFT)
            if size > limit:
                raise Refusal(413, f"the request exceeds {limit} bytes")
            return message

        await app(scope, counted if scope["type"] == "http" else receive, send)

    return reading


async def while_connected(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """What comes of the work, which is given up when the client leaves. The request must have been read."""
    task = asyncio.ensure_future(work)

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        task.cancel()

    watching = asyncio.ensure_future(watch())
    try:
        return await task
    except asyncio.CancelledError:
        if watching.done():
            raise Refusal(400, LEFT) from None
        raise
    finally:
        watching.cancel()
