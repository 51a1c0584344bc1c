"""Define the page's routes: its requests (questions.py), the models and the lessons."""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse
from pydantic import TypeAdapter, ValidationError

from vidrio.lessons.html import contents, section_html
from vidrio.lessons.run import Language, chosen
from vidrio.model.folder import read_config
from vidrio.serve.access import Access
from vidrio.serve.guards import as_json, while_connected
from vidrio.serve.looking import Looking
from vidrio.serve.questions import ANSWERS
from vidrio.serve.queue import Lane, Queue, Steps, Stopped, in_one_step
from vidrio.serve.requests import hold, json_of
from vidrio.serve.translating import Question

QUESTION = TypeAdapter(Question)
# Requests for which the reference implementation computes more than one run.
SEARCHES = ("search", "learning", "forced", "why_words", "why_heads", "why_rows")
AS_IT_IS = {"Content-Encoding": "identity"}  # numbers hardly compress, and compressing them would delay other clients


def router(looking: Looking, access: Access, queue: Queue) -> APIRouter:
    """Return the page's routes."""
    api = APIRouter(prefix="/api")
    folders = looking.translating.folders
    walked = {name for name, folder in folders.items() if read_config(folder)[0].shape != "encoder-decoder"}

    @api.get("/models")
    def models() -> Any:
        """Return the models that can be inspected."""
        return {"default": looking.default, "models": looking.models}

    @api.get("/lessons")
    def lessons(language: Language = "en") -> Any:
        """Return the lessons and the titles of their sections."""
        return contents(language)

    @api.get("/lessons/{name}/{number}")
    def lesson(name: str, number: int, language: Language = "en") -> Any:
        """Return a section of a lesson, as HTML."""
        (section,) = chosen(name, str(number), language)
        return {"title": section.title, "html": section_html(name, number, language)}

    def answering(name: str, answer: Callable[[Looking, Question], Any]) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            key = access.key_of(request)
            question = await question_of(request)
            run = question.request(looking.default)
            is_kept = looking.is_kept(run)
            access.count(request, key, 0 if is_kept else 1)  # the page sends many requests about one run
            hold("request", len(question.text), "text limit", access.characters(key))
            is_slow = bool(run.changes or run.numbers) or run.model in walked
            lane = lane_of(queue, name, is_kept=is_kept, is_slow=is_slow)

            def work(stopped: Stopped) -> Steps[Response]:
                return in_one_step(lambda: as_response(answer(looking.until(stopped), question)))

            with queue.admitted(len(question.text) + len(question.answer) + len(question.other)):
                return await while_connected(request, lane.run(work, len(question.text)))

        return endpoint

    for name, answer in ANSWERS.items():
        api.add_api_route(f"/{name}", answering(name, answer), methods=["POST"], description=answer.__doc__)
    return api


def lane_of(queue: Queue, name: str, *, is_kept: bool, is_slow: bool) -> Lane:
    """Return the lane for a request. `is_kept` means that the request's run is cached. What-ifs and searches are
    computed one at a time, because each takes up to 100 MB."""
    if name in SEARCHES:
        return queue.glass
    if is_kept or name == "translate":
        return queue.short
    return queue.glass if is_slow else queue.runs


async def question_of(request: Request) -> Question:
    """Parse a request from the page."""
    data = await json_of(request)
    try:
        return QUESTION.validate_python(data)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None


def as_response(answer: Any) -> Response:
    """Return a response that contains bytes, text, or other data as JSON."""
    if isinstance(answer, bytes):
        return Response(answer, media_type="application/octet-stream", headers=AS_IT_IS)
    return PlainTextResponse(answer) if isinstance(answer, str) else as_json(answer)
