"""What the page asks for, as a router: its questions (questions.py), the models and the lessons."""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse

from vidrio.lessons.html import contents, section_html
from vidrio.lessons.run import Language, chosen
from vidrio.serve.guards import as_json
from vidrio.serve.looking import Looking
from vidrio.serve.questions import ANSWERS
from vidrio.serve.translating import Question


def router(looking: Looking) -> APIRouter:
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

    def answering(answer: Callable[[Looking, Question], Any]) -> Callable[[Question], Response]:
        return lambda question: as_response(answer(looking, question))

    for name, answer in ANSWERS.items():
        endpoint = answering(answer)
        endpoint.__annotations__ = {"question": Question}
        api.add_api_route(f"/{name}", endpoint, methods=["POST"], description=answer.__doc__)
    return api


def as_response(answer: Any) -> Response:
    """Bytes, a text, or data as JSON."""
    if isinstance(answer, bytes):
        return Response(answer, media_type="application/octet-stream")
    return PlainTextResponse(answer) if isinstance(answer, str) else as_json(answer)
