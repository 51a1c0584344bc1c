"""The server, put together: the page and what it asks for (`views.py`), and LibreTranslate's interface (`libre.py`).

It has no state but API keys and files under translation; every request holds all that its answer depends on.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware

from vidrio.documents.terms import read_terms
from vidrio.errors import VidrioError
from vidrio.serve import views
from vidrio.serve.described import STYLE
from vidrio.serve.described import page as described
from vidrio.serve.detect import Detector
from vidrio.serve.files import Files
from vidrio.serve.files_api import files_router
from vidrio.serve.gather import Gatherer
from vidrio.serve.guards import bodies, guarded, problem
from vidrio.serve.keys import Keys
from vidrio.serve.libre import Parts, libre_router
from vidrio.serve.limits import RequestLimits
from vidrio.serve.looking import Looking
from vidrio.serve.metrics import Metrics
from vidrio.serve.pool import Pool, read_specs
from vidrio.serve.refusal import refusal_of
from vidrio.serve.service import Service
from vidrio.serve.settings import DEFAULTS, Settings
from vidrio.translate.translator import Translator

PAGE = Path(str(files("vidrio.serve") / "page"))


def create_app(model: str | None = None, settings: Settings = DEFAULTS) -> FastAPI:
    """The app for a model (and the packaged ones)."""
    names = (model, *settings.models) if model else settings.models
    metrics = Metrics()
    pool = Pool(read_specs(names), settings.memory, lambda folder: Translator.load(folder))
    wait = settings.batch_wait / 1000
    gatherer = Gatherer(threads=settings.threads, wait=wait, most=settings.queue, tell=metrics.batch)
    service = Service(pool, gatherer, metrics.tokens.inc)
    keys = Keys(settings.keys) if settings.keys else None
    terms = read_terms(settings.glossary) if settings.glossary else ()
    parts = Parts(settings, service, Detector(list(service.languages)), metrics, keys, RequestLimits(), terms)
    jobs = Files(settings.files, settings.file_minutes, service) if settings.files else None

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if jobs is not None:
            jobs.go_on()
        asyncio.get_running_loop().run_in_executor(None, pool.begin)
        yield
        if jobs is not None:
            await jobs.stop()
        gatherer.close()

    app = FastAPI(title="Vidrio", docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.settings = settings
    app.add_middleware(GZipMiddleware, minimum_size=20_000, compresslevel=1)
    app.add_middleware(bodies, settings=settings)
    app.add_middleware(guarded, settings=settings, metrics=metrics)
    _tell_errors(app)
    app.include_router(libre_router(parts))
    app.include_router(files_router(parts, jobs))
    if settings.page:
        looking = Looking(model)
        looking.loaded(looking.default)
        app.include_router(views.router(looking), include_in_schema=False)
        _serve_page(app)
    _describe(app)
    return app


def _tell_errors(app: FastAPI) -> None:
    @app.exception_handler(HTTPException)
    def refused(request: Request, error: HTTPException) -> Response:
        return problem(request.url.path, error.status_code, str(error.detail), error.headers)

    @app.exception_handler(VidrioError)
    def failed(request: Request, error: VidrioError) -> Response:
        if not request.url.path.startswith("/api/"):
            return refused(request, refusal_of(error))
        return JSONResponse({"what": error.what, "found": error.found, "do": error.do}, 400)

    @app.exception_handler(RequestValidationError)
    def mistyped(request: Request, error: RequestValidationError) -> Response:
        where = ", ".join(sorted({".".join(map(str, problem["loc"][1:])) for problem in error.errors()}))
        return JSONResponse({"what": "this request cannot be read", "found": where, "do": ""}, 422)


def _serve_page(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    def page() -> Response:
        return FileResponse(PAGE / "index.html")

    if (PAGE / "assets").is_dir():
        app.mount("/assets", StaticFiles(directory=PAGE / "assets"))


def _describe(app: FastAPI) -> None:
    @app.get("/docs", include_in_schema=False)
    def docs() -> Response:
        return HTMLResponse(described(app.openapi()))

    @app.get("/docs.css", include_in_schema=False)
    def style() -> Response:
        return Response(STYLE, media_type="text/css")

    @app.get("/spec", include_in_schema=False)
    def spec() -> Response:
        return JSONResponse(app.openapi())
