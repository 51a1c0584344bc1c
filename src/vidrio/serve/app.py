"""The server: the page, and what it asks for. One small FastAPI app without a state of its own.

    GET  /       the page, and its files under /assets
    *    /api/   what the page asks for (views.py)

Every request holds all that its answer depends on. Texts go into JSON and numbers only, never into markup.
"""

from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vidrio.errors import VidrioError
from vidrio.serve import views
from vidrio.serve.looking import Looking

LARGEST_BODY = 64 * 1024  # bytes, refused before anything is parsed
PAGE = Path(str(files("vidrio.serve") / "page"))

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


def create_app(model: str | None = None, hosts: tuple[str, ...] = ()) -> FastAPI:
    """The app for a model (and the packaged ones). `hosts`: names besides this machine's own under which it answers."""
    looking = Looking(model)
    looking.loaded(looking.default)
    app = FastAPI(title="Vidrio", openapi_url=None, docs_url=None, redoc_url=None)
    app.add_middleware(GZipMiddleware, minimum_size=20_000, compresslevel=1)
    app.add_middleware(SmallBodies)
    app.middleware("http")(_guarded({"127.0.0.1", "localhost", "[::1]", "testserver", *hosts}))

    app.include_router(views.router(looking))

    @app.exception_handler(VidrioError)
    def refused(request: Request, error: VidrioError) -> Response:
        return JSONResponse({"what": error.what, "found": error.found, "do": error.do}, 400)

    @app.exception_handler(RequestValidationError)
    def mistyped(request: Request, error: RequestValidationError) -> Response:
        where = ", ".join(sorted({".".join(map(str, problem["loc"][1:])) for problem in error.errors()}))
        return JSONResponse({"what": "this request cannot be read", "found": where, "do": ""}, 422)

    @app.exception_handler(HTTPException)
    def not_here(request: Request, error: HTTPException) -> Response:
        return JSONResponse({"what": error.detail}, error.status_code)

    @app.get("/")
    def page() -> Response:
        return FileResponse(PAGE / "index.html")

    if (PAGE / "assets").is_dir():
        app.mount("/assets", StaticFiles(directory=PAGE / "assets"))
    return app


def _guarded(hosts: set[str]) -> Callable[..., Awaitable[Response]]:
    """Only requests to this very server (a name that was rebound to 127.0.0.1 is another), and headers on answers."""

    async def guard(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        host = request.headers.get("host", "")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if "*" not in hosts and name.lower() not in hosts:
            response: Response = JSONResponse({"what": "this server does not answer to that name"}, 421)
        else:
            response = await go_on(request)
        response.headers.update(HEADERS)
        kept = "max-age=31536000, immutable" if request.url.path.startswith("/assets/") else "no-store"
        response.headers["Cache-Control"] = kept
        return response

    return guard


class SmallBodies:
    """Refuses a large body while it comes in, before anything reads it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        body, more = b"", scope["method"] not in ("GET", "HEAD")
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > LARGEST_BODY:
                too_large = JSONResponse({"what": f"a request has at most {LARGEST_BODY} bytes"}, 413)
                return await too_large(scope, receive, send)
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return waiting.pop() if waiting else await receive()

        return await self.app(scope, again, send)
