"""ASGI middleware for all routes. It checks host names and origins, limits request bodies, and adds headers.

Each function wraps an app. `guarded` is the outermost layer.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vidrio.model.json_text import json_text
from vidrio.serve.requests import Refusal
from vidrio.serve.settings import Settings

LARGEST_BODY = 64 * 1024  # maximum bytes in a request from the page
LARGEST_BODIES = 64 << 20  # maximum bytes of all bodies being received
Result = TypeVar("Result")

HEADERS = {
    # Allow nothing inline and nothing from other origins, so that injected markup can do no harm.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# LibreTranslate's routes, which other sites may call if `settings.cors` allows it. The server sets no cookies, so sites
# cannot act on a user's behalf.
OPEN = ("/translate", "/detect", "/languages", "/suggest", "/frontend/", "/download_file/", "/health")


class Left(Exception):
    """The client has disconnected, so no response is needed."""


def problem(path: str, status: int, error: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error response, with the message in "what" for the page and in "error" for LibreTranslate's clients."""
    return as_json({"what" if path.startswith("/api/") else "error": error}, status, headers)


def as_json(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response. Unlike the framework's encoder, ours accepts NaN and lone surrogates."""
    return Response(json_text(data), status, headers, "application/json")


def open_to(path: str, settings: Settings) -> dict[str, str]:
    """Return the CORS headers for a path. The page's own routes have none."""
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


def is_foreign(origin: str, host: str) -> bool:
    """Return whether a page on another website sent the request. Browsers send Origin even with forms and plain text,
    which need no preflight. Extensions and apps send origins with other schemes; other programs send none."""
    scheme, _, site = origin.lower().partition("://")
    return origin == "null" or (scheme in ("http", "https") and site != host)


def guarded(app: ASGIApp, settings: Settings) -> ASGIApp:
    """Reject requests for other host names, to prevent DNS rebinding, and requests from other websites unless
    `settings.cors` allows them. Add the headers to each response."""
    ours = {"127.0.0.1", "localhost", "[::1]", *(name.lower() for name in settings.hosts)}

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        path = scope["path"]
        opened = open_to(path, settings)

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = "max-age=31536000, immutable" if path.startswith("/assets/") else "no-store"
                MutableHeaders(scope=message).update({**HEADERS, "Cache-Control": kept, **opened})
            await send(message)

        headers = Headers(scope=scope)
        host, origin = headers.get("host", "").lower(), headers.get("origin", "")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        inner = app
        if not {name, "*"} & ours:
            inner = problem(path, 421, "this server does not answer to that name; vidrio serve --name allows it")
        elif is_foreign(origin, host) and not (opened and settings.cors in ("*", origin)):
            inner = problem(path, 403, "requests from other websites are refused; vidrio serve --cors allows one")
        elif scope["method"] == "OPTIONS" and opened:
            inner = Response(status_code=204)
        await inner(scope, receive, sending)

    return guard


class Arriving:
    """A request whose body is being received."""

    def __init__(self, end: float) -> None:
        self.end, self.size, self.is_whole = end, 0, False
        self.timeout: asyncio.Timeout | None = None

    def give_up(self) -> None:
        self.end = 0
        if self.timeout:
            with suppress(RuntimeError):  # the request is not waiting, and since `end` is 0, it cannot wait again
                self.timeout.reschedule(0)


def limited(app: ASGIApp, settings: Settings) -> ASGIApp:
    """Limit the size of each body and the time within which it must arrive. If the bodies being received take too much
    memory together, refuse the oldest one."""
    arriving = dict[Arriving, None]()

    def limit_of(path: str) -> int:
        if path.startswith("/api/"):
            return LARGEST_BODY
        return settings.file_limit + 65_536 if path == "/translate_file" else settings.body_limit

    async def reading(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        limit, mine = limit_of(scope["path"]), Arriving(asyncio.get_running_loop().time() + settings.body_seconds)

        async def counted() -> Message:
            if mine.is_whole:
                return await receive()
            try:
                async with asyncio.timeout_at(mine.end) as mine.timeout:
                    message = await receive()
            except TimeoutError:
                raise Refusal(408, "the request did not arrive in time", {"Connection": "close"}) from None
            mine.size += len(message.get("body", b""))
            mine.is_whole = not message.get("more_body", False)
            if message["type"] == "http.disconnect":
                raise Left
            if mine.size > limit:
                raise Refusal(413, f"the request exceeds {limit} bytes")
            arriving[mine] = None
            if sum(one.size for one in arriving) > LARGEST_BODIES:
                first = next(iter(arriving))
                del arriving[first]
                first.give_up()
            if mine.is_whole:
                arriving.pop(mine, None)
            return message

        try:
            with suppress(Left):
                await app(scope, counted, send)
        finally:
            arriving.pop(mine, None)

    return reading


async def while_connected(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Run the work and return its result, or cancel it if the client disconnects. Call this after reading the body."""
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
            raise Left from None
        raise
    finally:
        watching.cancel()
