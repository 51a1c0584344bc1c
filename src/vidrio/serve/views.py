"""What the page asks for, as a router: its questions (questions.py), the models and the lessons."""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import TypeAdapter, ValidationError

from vidrio.lessons.html import contents, section_html
from vidrio.lessons.run import Language, chosen
from vidrio.serve.access import Access
from vidrio.serve.guards import as_json, while_connected
from vidrio.serve.looking import Looking
from vidrio.serve.questions import ANSWERS
from vidrio.serve.requests import Refusal, hold, json_of
from vidrio.serve.service import Queue
from vidrio.serve.translating import Question

QUESTION = TypeAdapter(Question)


def router(looking: Looking, access: Access, queue: Queue) -> APIRouter:
    """The page's questions, answered by these models."""
    api = APIRouter(prefix="/api")

    @api.get("/models")
    def models() -> Any:
        """What may be looked into."""
        return {"default": looking.default, "models": looking.models}

    @api.get("/lessons")
    def lessons(language: Language = "en") -> Any:
        """The lessons, and the titles of their sections."""
        return contents(language)

    @api.get("/lessons/{name}/{number}")
    def lesson(name: str, number: int, language: Language = "en") -> Any:
        """A section of a lesson, as HTML."""
        (section,) = chosen(name, str(number), language)
        return {"title": section.title, "html": section_html(name, number, language)}

    def answering(answer: Callable[[Looking, Question], Any]) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            key = access.admit(request)
            question = await question_of(request)
            if key.char_limit is not None:
                hold("request", len(question.text), "text limit", key.char_limit)
            work = queue.run([question.text], lambda stopped: as_response(answer(looking, question)))
            return await while_connected(request, work)

        return endpoint

    for name, answer in ANSWERS.items():
        api.add_api_route(f"/{name}", answering(answer), methods=["POST"], description=answer.__doc__)
    return api


async def question_of(request: Request) -> Question:
    """A question of the page."""
    data = await json_of(request)
    try:
        return QUESTION.validate_python(data)
    except ValidationError as error:
        where = ", ".join(sorted({".".join(map(str, problem["loc"])) or problem["msg"] for problem in error.errors()}))
        raise Refusal(422, f"this request cannot be read: {where:.300}") from None


def as_response(answer: Any) -> Response:
    """Bytes, a text, or data as JSON."""
    if isinstance(answer, bytes):
        return Response(answer, media_type="application/octet-stream")
    return PlainTextResponse(answer) if isinstance(answer, str) else as_json(answer)
