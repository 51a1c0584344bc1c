"""The server, put together and run: the page and what it asks for (`views.py`), and LibreTranslate's interface
(`libre.py`).

It has no state but API keys and translated files; every request holds all that its answer depends on.
"""

import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from uvicorn.config import LOGGING_CONFIG

from vidrio.errors import ConfigError, VidrioError
from vidrio.serve import views
from vidrio.serve.access import Access
from vidrio.serve.guards import guarded, limited, problem
from vidrio.serve.keys import Keys, RequestLimits
from vidrio.serve.languages import Detector
from vidrio.serve.libre import Parts, files_router, libre_router
from vidrio.serve.looking import Looking
from vidrio.serve.requests import refusal_of
from vidrio.serve.service import Queue, Service, folders_of
from vidrio.serve.settings import DEFAULTS, Settings

PAGE = Path(str(files("vidrio.serve") / "page"))
GRACE = 30  # seconds in which requests at work may end


def create_app(model: str | None = None, settings: Settings = DEFAULTS) -> FastAPI:
    """The app for a model (and the packaged ones)."""
    folders = folders_of((model, *settings.models) if model else settings.models)
    service = Service(folders, Queue(threads=settings.threads, most=settings.queue))
    for pair in service.pairs[:1]:  # so that nobody waits for it
        service.translator(pair)
    access = Access(settings, Keys(settings.keys) if settings.keys else None, RequestLimits())
    parts = Parts(
        settings=settings,
        service=service,
        detector=Detector(list(service.languages)),
        access=access,
    )

    app = FastAPI(title="Vidrio", docs_url=None, redoc_url=None)
    app.add_middleware(GZipMiddleware, minimum_size=20_000, compresslevel=1)
    app.add_middleware(limited, settings=settings)
    app.add_middleware(guarded, settings=settings)
    _handle_errors(app)
    app.include_router(libre_router(parts))
    app.include_router(files_router(parts))
    app.add_api_route("/spec", app.openapi, include_in_schema=False)
    if settings.page:
        looking = Looking(model)
        looking.loaded(looking.default)
        app.include_router(views.router(looking, access, service.queue), include_in_schema=False)
        app.add_api_route("/", lambda: FileResponse(PAGE / "index.html"), include_in_schema=False)
        if (PAGE / "assets").is_dir():
            app.mount("/assets", StaticFiles(directory=PAGE / "assets"))
    return app


def _handle_errors(app: FastAPI) -> None:
    @app.exception_handler(HTTPException)
    def refused(request: Request, error: HTTPException) -> Response:
        return problem(request.url.path, error.status_code, str(error.detail), error.headers)

    @app.exception_handler(VidrioError)
    def failed(request: Request, error: VidrioError) -> Response:
        if not request.url.path.startswith("/api/"):
            return refused(request, refusal_of(error))
        return JSONResponse({"what": error.what, "found": error.found, "do": error.do}, 400)

    @app.exception_handler(Exception)  # uvicorn prints the traceback
    def unexpected(request: Request, error: Exception) -> Response:
        return problem(request.url.path, 500, "Unexpected error")

    @app.exception_handler(RequestValidationError)
    def mistyped(request: Request, error: RequestValidationError) -> Response:
        where = ", ".join(sorted({".".join(map(str, problem["loc"][1:])) for problem in error.errors()}))
        return JSONResponse({"what": "this request cannot be read", "found": where, "do": ""}, 422)


def serve(model: str | None, host: str, port: int, ready: Callable[[str], None], settings: Settings = DEFAULTS) -> None:
    """Listen, call `ready` with the address when the server can answer, and answer until Ctrl-C or SIGTERM; requests at
    work are finished first."""
    everywhere = host in ("0.0.0.0", "::")
    name = f"[{host}]" if ":" in host else host
    logging.getLogger("python_multipart").setLevel(logging.ERROR)  # else damaged forms fill stderr
    with listening(host, port) as listener:
        app = create_app(model, replace(settings, hosts=(*settings.hosts, "*" if everywhere else name)))
        handlers = LOGGING_CONFIG["handlers"]
        to_stderr = {**handlers["access"], "stream": "ext://sys.stderr"}  # stdout has the address, for programs to read
        config = uvicorn.Config(
            app,
            log_config={**LOGGING_CONFIG, "handlers": {**handlers, "access": to_stderr}},
            log_level="info" if settings.log else "error",
            access_log=settings.log,
            server_header=False,
            timeout_graceful_shutdown=GRACE,
        )
        ready(f"http://{'127.0.0.1' if everywhere else name}:{listener.getsockname()[1]}/")
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listener])


def listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, UnicodeError) as error:
        do = "use another: --port 5001, or --port 0 for any free port" if port else "use another --host"
        raise ConfigError(f"cannot listen on {host}:{port}", found=str(error), do=do) from None
    # Every connection inherits it. Without, the end of an answer waits 40 ms for the client to confirm its beginning.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
