"""Serve the page with its API (`views.py`), and LibreTranslate's API (`libre.py`).

Apart from API keys and translated files, the server is stateless: each response depends only on its request.
"""

import asyncio
import ctypes
import logging
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from uvicorn.config import LOGGING_CONFIG

from vidrio.errors import VidrioError
from vidrio.serve import views
from vidrio.serve.access import Access
from vidrio.serve.connections import Connection, most_arriving, most_connections
from vidrio.serve.files import checked, files_router, forget_old
from vidrio.serve.guards import as_json, guarded, limited, problem
from vidrio.serve.libre import libre_router
from vidrio.serve.listener import listening
from vidrio.serve.looking import Looking
from vidrio.serve.looking import folders_of as looking_folders
from vidrio.serve.queue import Queue
from vidrio.serve.requests import refusal_of
from vidrio.serve.service import Service, folders_of
from vidrio.serve.settings import DEFAULTS, Settings
from vidrio.serve.translating import Translating, opened

PAGE = Path(str(files("vidrio.serve") / "page"))
TURN = 0.0001  # seconds after which Python may switch to another thread
GRACE = 30  # seconds that in-flight requests have to finish at shutdown
RUN_SECONDS = 60  # seconds that a run is cached after its last use
TIDY_SECONDS = 2  # seconds between clean-ups of old files and runs
M_MMAP_THRESHOLD = -3  # from glibc's malloc.h
LARGE_BLOCK = 128 << 10  # bytes; larger arrays take most of the memory of a long run

log = logging.getLogger("vidrio.serve")


def create_app(model: str | None = None, settings: Settings = DEFAULTS) -> FastAPI:
    """Create the app. It serves `model` and the models in the settings or, if there are none, all available models."""
    if settings.files is not None:
        checked(settings.files)
    translators = opened(shortlist=settings.shortlist)
    queue = Queue(threads=settings.threads, most=settings.queue)
    service = Service(folders_of((model, *settings.models) if model else settings.models), queue, translators)
    for pair in service.pairs[:1]:  # load a model before the first request
        service.translator(pair)
    access = Access(settings)
    looking = (
        Looking(translating=Translating(looking_folders(model, *settings.models), translators))
        if settings.page
        else None
    )

    app = FastAPI(title="Vidrio", docs_url=None, redoc_url=None, lifespan=tidied(settings, looking))
    app.add_middleware(GZipMiddleware, minimum_size=20_000, compresslevel=1)
    app.add_middleware(limited, settings=settings)
    app.add_middleware(guarded, settings=settings)
    _handle_errors(app)
    app.include_router(libre_router(settings, service, access))
    app.include_router(files_router(settings, service, access))
    app.add_api_route("/spec", app.openapi, include_in_schema=False)
    if looking:
        app.include_router(views.router(looking, access, queue), include_in_schema=False)
        app.add_api_route("/", lambda: FileResponse(PAGE / "index.html"), include_in_schema=False)
        if (PAGE / "assets").is_dir():
            app.mount("/assets", StaticFiles(directory=PAGE / "assets"))
    return app


def tidied(settings: Settings, looking: Looking | None) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """Return the lifespan handler, which deletes old files and runs, and logs the same error at most once a minute."""

    async def tidy() -> None:
        while True:
            if settings.files is not None:
                await asyncio.to_thread(forget_old, settings.files, 60 * settings.file_minutes)
            if looking:
                looking.forget(RUN_SECONDS)
            await asyncio.to_thread(give_back)
            await asyncio.sleep(TIDY_SECONDS)

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        asyncio.get_running_loop().set_exception_handler(once_a_minute())
        tidying = asyncio.create_task(tidy())
        yield
        tidying.cancel()

    return running


def give_back() -> None:
    """Return freed memory to the operating system, because glibc would retain most of it."""
    with suppress(AttributeError, OSError, TypeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


def give_back_large_blocks() -> None:
    """Make glibc release large blocks immediately. By default, it retains progressively larger blocks."""
    with suppress(AttributeError, OSError, TypeError):  # not glibc
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK)


def once_a_minute(clock: Callable[[], float] = time.monotonic) -> Callable[[Any, dict[str, Any]], None]:
    """Return an event-loop error handler that logs the same error at most once a minute."""
    logged = dict[str, float]()

    def report(loop: Any, context: dict[str, Any]) -> None:
        what, now = f"{context['message']}: {context.get('exception')}"[:200], clock()
        if now - logged.get(what, -60) >= 60:
            if len(logged) >= 1000:
                logged.clear()
            logged[what] = now
            log.error("%s", what)

    return report


def _handle_errors(app: FastAPI) -> None:
    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        return problem(request.url.path, error.status_code, str(error.detail), error.headers)

    @app.exception_handler(VidrioError)
    async def failed(request: Request, error: VidrioError) -> Response:
        if not request.url.path.startswith("/api/"):
            return await refused(request, refusal_of(error))
        return as_json({"what": error.what, "found": error.found, "do": error.do}, 400)

    @app.exception_handler(Exception)  # uvicorn prints the traceback
    async def unexpected(request: Request, error: Exception) -> Response:
        return problem(request.url.path, 500, "Unexpected error")

    @app.exception_handler(RequestValidationError)
    async def mistyped(request: Request, error: RequestValidationError) -> Response:
        where = ", ".join(sorted({".".join(map(str, one["loc"])) or one["msg"] for one in error.errors()}))
        return as_json({"what": "this request cannot be parsed", "found": where[:300], "do": ""}, 422)


def serve(model: str | None, host: str, port: int, ready: Callable[[str], None], settings: Settings = DEFAULTS) -> None:
    """Listen on a port, call `ready` with the server's address, and serve requests until Ctrl-C or SIGTERM. In-flight
    requests are then allowed to finish."""
    here = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host)  # the local address, if the server listens on all
    name = f"[{host}]" if ":" in host else host
    give_back_large_blocks()
    sys.setswitchinterval(TURN)  # otherwise, each response repeatedly waits 5 ms for computing threads
    logging.getLogger("python_multipart").setLevel(logging.ERROR)  # otherwise, malformed forms flood stderr
    with listening(host, port, most_arriving(settings.connections)) as listener:
        app = create_app(model, replace(settings, hosts=(*settings.hosts, "*" if here else name)))
        config = configured(app, settings)
        ready(f"http://{here or name}:{listener.getsockname()[1]}/")
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listener])


def configured(app: FastAPI, settings: Settings) -> uvicorn.Config:
    """Return uvicorn's configuration: our connection class, and logs only on stderr."""
    handlers = LOGGING_CONFIG["handlers"]
    to_stderr = {**handlers["access"], "stream": "ext://sys.stderr"}  # stdout is for the address, which programs read
    return uvicorn.Config(
        app,
        log_config={**LOGGING_CONFIG, "handlers": {**handlers, "access": to_stderr}},
        log_level="info" if settings.log else "error",
        access_log=settings.log,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        http=partial(Connection, most=most_connections(settings.connections), idle=({}, {})),  # type: ignore[arg-type]
        ws="none",
        loop="asyncio",
        backlog=1,  # how many connections asyncio accepts before it serves other connections; see Listener.listen
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=list(settings.proxies),
    )
