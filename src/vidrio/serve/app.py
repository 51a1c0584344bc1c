"""The server: the page, and what it asks for. One small FastAPI app without a state of its own.

    GET  /               the page, and its files under /assets
    GET  /api/models     what may be looked into
    POST /api/machine    a model's quantities, along the way of the data
    POST /api/translate  only the translation, at once
    POST /api/run        one sentence looked into: tokens, steps with the likeliest next words, what changes did
    POST /api/agreement  whether the glass, searching by itself, finds what the fast engine found
    POST /api/search     every hypothesis of the beam and what became of it, and greedy search beside it
    POST /api/kept       what a decoding step reused, and what it computed anew
    POST /api/tokens     every step from the text to its tokens
    POST /api/notebook   a Jupyter notebook that makes this run again
    POST /api/tensors    numbers by address, binary (a safetensors file)
    POST /api/receipt    one number: its arithmetic, where it comes from, where it goes
    POST /api/copy       the same arithmetic to paste elsewhere

Every request holds all that its answer depends on. Texts go into JSON and numbers only, never into markup.
"""

from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, ConfigDict, Field
from safetensors.numpy import save
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vidrio.errors import VidrioError
from vidrio.model.json_text import json_text
from vidrio.serve import number, views
from vidrio.serve.looking import Asked, Looking, Run

LONGEST_TEXT = 4_000  # characters
LARGEST_BODY = 64 * 1024  # bytes, refused before anything is parsed
MOST_TENSORS = 512  # in one request
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


Short = Annotated[str, Field(max_length=300)]


class Look(BaseModel):
    """Which run: the text, the model, what is changed in it."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, Field(max_length=LONGEST_TEXT)] = ""
    model: Annotated[str, Field(max_length=200)] = ""
    sentence: Annotated[int, Field(ge=0, le=LONGEST_TEXT)] = 0
    changes: Annotated[list[tuple[Short, Short]], Field(max_length=64)] = []
    beam: Annotated[int | None, Field(ge=1, le=16)] = None
    numbers: Annotated[str, Field(max_length=20)] = ""


class LookStep(Look):
    """Which decoding step of it."""

    step: Annotated[int, Field(ge=0, le=LONGEST_TEXT)] = 0


class LookAt(Look):
    """Which number of it."""

    address: Annotated[str, Field(max_length=300)]


class Copy(LookAt):
    kind: Annotated[str, Field(max_length=20)]


class Tensors(Look):
    """Which quantities of it."""

    addresses: Annotated[list[Short], Field(max_length=MOST_TENSORS)]
    if_there: bool = False  # leave out what this run has not: an empty text, a layer norm that was taken away


def create_app(model: str | None = None, hosts: tuple[str, ...] = ()) -> FastAPI:
    """The app for a model (and the packaged ones). `hosts`: names besides this machine's own under which it answers."""
    looking = Looking(model)
    looking.loaded(looking.default)
    app = FastAPI(title="Vidrio", openapi_url=None, docs_url=None, redoc_url=None)
    app.add_middleware(GZipMiddleware, minimum_size=20_000, compresslevel=1)
    app.add_middleware(SmallBodies)
    app.middleware("http")(_guarded({"127.0.0.1", "localhost", "[::1]", "testserver", *hosts}))

    def asked(look: Look) -> Asked:
        model = look.model or looking.default
        return Asked(look.text, model, look.sentence, tuple(look.changes), look.beam, look.numbers)

    def run(look: Look) -> Run:
        return looking.run(asked(look))

    @app.get("/api/models")
    def models() -> Any:
        return {"default": looking.default, "models": list(looking.folders)}

    @app.post("/api/machine")
    def machine(look: Look) -> Any:
        loaded = looking.loaded(asked(look).model, look.numbers)
        return _json(views.machine_data(loaded, run(look) if look.changes else None))

    @app.post("/api/translate")
    def translate(look: Look) -> Any:
        translation = looking.translated(asked(look))
        return _json({"translation": translation.text if translation else None})

    @app.post("/api/run")
    def one_run(look: Look) -> Any:
        return _json(views.run_data(asked(look), run(look)))

    @app.post("/api/agreement")
    def agreement(look: Look) -> Any:
        return _json(views.agreement_data(looking, asked(look)))

    @app.post("/api/search")
    def search(look: Look) -> Any:
        return _json(views.search_data(looking, asked(look)))

    @app.post("/api/kept")
    def kept(look: LookStep) -> Any:
        return _json(views.kept_data(looking, asked(look), look.step))

    @app.post("/api/tokens")
    def tokens(look: Look) -> Any:
        return _json(views.tokenising_data(looking, asked(look)))

    @app.post("/api/notebook")
    def notebook(look: Look) -> Any:
        return Response(views.notebook_text(looking, asked(look)), media_type="application/x-ipynb+json")

    @app.post("/api/tensors")
    def tensors(look: Tensors) -> Any:
        trace = run(look).trace
        wanted = [a for a in look.addresses if not look.if_there or views.holds(trace, a)]
        arrays = {address: views.array_at(trace, address) for address in wanted}
        return Response(save(arrays), media_type="application/octet-stream")

    @app.post("/api/receipt")
    def receipt(look: LookAt) -> Any:
        loaded = looking.loaded(asked(look).model, look.numbers)
        return _json(number.receipt_data(loaded, run(look), look.address))

    @app.post("/api/copy")
    def copy(look: Copy) -> Any:
        return PlainTextResponse(number.copy_text(run(look), look.address, look.kind))

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


def _json(data: Any) -> Response:
    """Not by the framework: JSON has no NaN, and half a character cannot be encoded."""
    return Response(json_text(data), media_type="application/json")


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
