"""What the page asks for: the glass behind JSON, by address.

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

from typing import Annotated, Any

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field
from safetensors.numpy import save

from vidrio.model.json_text import json_text
from vidrio.serve import number, views
from vidrio.serve.looking import Asked, Looking, Run

LONGEST_TEXT = 4_000  # characters
MOST_TENSORS = 512  # in one request


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


def glass_router(looking: Looking) -> APIRouter:
    """The routes, for the models that may be looked into."""
    router = APIRouter(prefix="/api")

    def asked(look: Look) -> Asked:
        model = look.model or looking.default
        return Asked(look.text, model, look.sentence, tuple(look.changes), look.beam, look.numbers)

    def run(look: Look) -> Run:
        return looking.run(asked(look))

    @router.get("/models")
    def models() -> Any:
        return {"default": looking.default, "models": list(looking.folders)}

    @router.post("/machine")
    def machine(look: Look) -> Any:
        loaded = looking.loaded(asked(look).model, look.numbers)
        return _json(views.machine_data(loaded, run(look) if look.changes else None))

    @router.post("/translate")
    def translate(look: Look) -> Any:
        translation = looking.translated(asked(look))
        return _json({"translation": translation.text if translation else None})

    @router.post("/run")
    def one_run(look: Look) -> Any:
        return _json(views.run_data(asked(look), run(look)))

    @router.post("/agreement")
    def agreement(look: Look) -> Any:
        return _json(views.agreement_data(looking, asked(look)))

    @router.post("/search")
    def search(look: Look) -> Any:
        return _json(views.search_data(looking, asked(look)))

    @router.post("/kept")
    def kept(look: LookStep) -> Any:
        return _json(views.kept_data(looking, asked(look), look.step))

    @router.post("/tokens")
    def tokens(look: Look) -> Any:
        return _json(views.tokenising_data(looking, asked(look)))

    @router.post("/notebook")
    def notebook(look: Look) -> Any:
        return Response(views.notebook_text(looking, asked(look)), media_type="application/x-ipynb+json")

    @router.post("/tensors")
    def tensors(look: Tensors) -> Any:
        trace = run(look).trace
        wanted = [a for a in look.addresses if not look.if_there or views.holds(trace, a)]
        arrays = {address: views.array_at(trace, address) for address in wanted}
        return Response(save(arrays), media_type="application/octet-stream")

    @router.post("/receipt")
    def receipt(look: LookAt) -> Any:
        loaded = looking.loaded(asked(look).model, look.numbers)
        return _json(number.receipt_data(loaded, run(look), look.address))

    @router.post("/copy")
    def copy(look: Copy) -> Any:
        return PlainTextResponse(number.copy_text(run(look), look.address, look.kind))

    return router


def _json(data: Any) -> Response:
    """Not by the framework: JSON has no NaN, and half a character cannot be encoded."""
    return Response(json_text(data), media_type="application/json")
