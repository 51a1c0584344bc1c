"""What the page asks for, as a router: one sentence looked into, its numbers by address, the receipt of one of them.

Every request holds all that its answer depends on.
"""

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field
from safetensors.numpy import save

from vidrio.errors import InputError
from vidrio.hypothesis import Sampling
from vidrio.lessons.html import contents, section_html
from vidrio.lessons.run import chosen
from vidrio.look import history, run_data
from vidrio.look.receipt import copied, receipt_data
from vidrio.serve.guards import as_json
from vidrio.serve.looking import Asked, Looking, Run

LONGEST_TEXT = 4_000  # characters
MOST_TENSORS = 512  # in one request

Short = Annotated[str, Field(max_length=300)]


class Look(BaseModel):
    """A request: which run (the text, the model, what is changed in it), and what of it is asked for."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, Field(max_length=LONGEST_TEXT)] = ""
    model: Annotated[str, Field(max_length=200)] = ""
    sentence: Annotated[int, Field(ge=0, le=LONGEST_TEXT)] = 0
    changes: Annotated[list[tuple[Short, Short]], Field(max_length=64)] = []
    beam: Annotated[int | None, Field(ge=1, le=16)] = None
    numbers: Annotated[str, Field(max_length=20)] = ""
    # A decoding step, and by which probabilities its token would be drawn
    step: Annotated[int, Field(ge=0, le=LONGEST_TEXT)] = 0
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    # A number, and as what it is copied; quantities, and whether to leave out what this run has not
    address: Short = ""
    kind: Short = ""
    addresses: Annotated[list[Short], Field(max_length=MOST_TENSORS)] = []
    if_there: bool = False
    answer: Annotated[str, Field(max_length=LONGEST_TEXT)] = ""  # the right one


def router(looking: Looking) -> APIRouter:
    """The page's questions, answered by these models."""
    api = APIRouter(prefix="/api")

    def asked(look: Look) -> Asked:
        model = look.model or looking.default
        return Asked(look.text, model, look.sentence, tuple(look.changes), look.beam, look.numbers)

    def run(look: Look) -> Run:
        return looking.run(asked(look))

    @api.get("/models")
    def models() -> Any:
        """What may be looked into."""
        return {"default": looking.default, "models": looking.models}

    @api.get("/lessons")
    def lessons() -> Any:
        """The lessons, and the titles of their sections."""
        return contents()

    @api.get("/lessons/{name}/{number}")
    def lesson(name: str, number: int) -> Any:
        """A section of a lesson, as HTML."""
        (section,) = chosen(name, str(number))
        return {"title": section.title, "html": section_html(name, section)}

    @api.post("/machine")
    def machine(look: Look) -> Any:
        """A model's quantities, along the way of the data."""
        loaded = looking.loaded(asked(look).model, look.numbers)
        glass = run(look).look.model if look.changes else loaded.glass
        return as_json(run_data.machine_data(glass, loaded.name, loaded.engine))

    @api.post("/translate")
    def translate(look: Look) -> Any:
        """Only the translation, at once."""
        translation = looking.translated(asked(look))
        return as_json({"translation": translation.text if translation else None})

    @api.post("/run")
    def one_run(look: Look) -> Any:
        """One sentence: tokens, steps with the likeliest next words, what changes did."""
        seen = run(look)
        sentences = [{"source": s.source, "given": s.given, "text": s.text} for s in seen.sentences]
        told = run_data.answer(seen.tried, look.text, sentences, look.sentence, seen.translation)
        return as_json({**told, "milliseconds": seen.milliseconds})

    @api.post("/search")
    def search(look: Look) -> Any:
        """Every hypothesis of the beam and what became of it, and greedy search beside it."""
        own, greedy = asked(look), replace(asked(look), beam=1)
        if look.changes:
            return as_json(run_data.search_data(looking.run(own).look, looking.run(greedy).look))
        return as_json(run_data.search_data(looking.searched(own), looking.searched(greedy)))

    @api.post("/choose")
    def choose(look: Look) -> Any:
        """One choice: logits, probabilities, and what temperature, top-k and top-p leave of them."""
        sampling = Sampling(temperature=look.temperature, top_k=look.top_k, top_p=look.top_p)
        seen = run(look).look
        if look.step >= len(seen.chosen_ids):
            raise InputError(f"there is no decoding step {look.step}", found=f"{len(seen.chosen_ids)} steps")
        return as_json(run_data.choosing_data(seen, look.step, sampling))

    @api.post("/tokens")
    def tokens(look: Look) -> Any:
        """Every step from the text to its tokens."""
        return as_json(run_data.tokenising_data(run(look).look))

    @api.post("/tensors")
    def tensors(look: Look) -> Any:
        """Numbers by address, as a safetensors file."""
        trace = run(look).trace
        wanted = [a for a in look.addresses if not look.if_there or run_data.holds(trace, a)]
        arrays = {address: run_data.array_at(trace, address) for address in wanted}
        return Response(save(arrays), media_type="application/octet-stream")

    @api.post("/positions")
    def positions(look: Look) -> Any:
        """The table of positions, and how long its waves are."""
        arrays = run_data.positions_at(run(look).look.model.machine, look.address)
        return Response(save(arrays), media_type="application/octet-stream")

    @api.post("/receipt")
    def receipt(look: Look) -> Any:
        """One number: its arithmetic, where it comes from, where it goes."""
        return as_json(receipt_data(run(look).look, look.address))

    @api.post("/copy")
    def copy(look: Look) -> Any:
        """The same arithmetic to paste elsewhere."""
        return PlainTextResponse(copied(run(look).trace, look.address, look.kind))

    @api.post("/learning")
    def learning(look: Look) -> Any:
        """The same sentence at every age of the model, and the curves of its training."""
        unchanged = replace(asked(look), changes=())
        seen, model = looking.run(unchanged).look, looking.learned(unchanged.model)
        ages = history.ages_data(model, seen.text, seen.chosen_ids)
        return as_json({"ages": ages, "curves": history.curves_data(model.path / "run")})

    @api.post("/forced")
    def forced(look: Look) -> Any:
        """What the right answer costs, token by token."""
        read = looking.run(asked(look)).look.text
        return as_json(history.forced_data(looking.learned(asked(look).model), read, look.answer))

    @api.post("/life")
    def life(look: Look) -> Any:
        """One parameter at every age."""
        return as_json(history.life_data(run(look).look, look.address))

    return api
