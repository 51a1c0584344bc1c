"""Implement LibreTranslate's API from its API description, so that its clients work unchanged.

The clients rely on the meaning of each field and on the wording of error messages.
"""

import os
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request, Response

from vidrio.documents.formats import SUFFIXES
from vidrio.documents.html import plan_html
from vidrio.documents.markdown import plan_markdown
from vidrio.documents.markup import Planned, together
from vidrio.model.config import LARGEST_BEAM
from vidrio.model.files import is_plain_file
from vidrio.model.json_text import json_text
from vidrio.serve.access import Access
from vidrio.serve.guards import as_json, while_connected
from vidrio.serve.languages import NAMES, Detected
from vidrio.serve.queue import Steps, Stopped, in_one_step
from vidrio.serve.requests import Detect, Refusal, Suggest, Translate, described, hold, read
from vidrio.serve.service import Reply, Service
from vidrio.serve.settings import Settings

PLANS = {"html": plan_html, "markdown": plan_markdown}
LARGEST_SUGGESTIONS = 10 << 20  # maximum bytes in the suggestions file
LARGEST_SEARCH = 10_000_000  # maximum terms × characters; searching for this many takes a tenth of a second
DETECTING = 10  # detecting a language takes as long as translating this many characters


def libre_router(settings: Settings, service: Service, access: Access) -> APIRouter:
    router = APIRouter()

    @router.get("/languages", summary="List the languages and their targets")
    async def languages() -> Any:
        return [language._asdict() for language in service.languages.values()]

    @router.post("/translate", summary="Translate one or more texts", openapi_extra=described(Translate))
    async def translate(request: Request) -> Response:
        ask = await read(Translate, request, settings.batch_limit)
        key = access.key_of(request, ask.api_key)
        hold("alternatives", ask.alternatives, "limit", min(settings.alternatives_limit, LARGEST_BEAM - 1))
        characters = sum(map(len, ask.texts))
        hold("request", characters, "text limit", access.characters(key))
        hold("terms times characters", len(ask.terms) * characters, "limit", LARGEST_SEARCH)
        access.count(request, key, len(ask.texts))
        size = characters + sum(len(term) + len(translation) for term, translation in ask.terms)
        with service.queue.admitted(size) as lane:
            work = lane.run(lambda stopped: _translated(service, ask, stopped), size)
            return as_json(await while_connected(request, work))

    @router.post(
        "/detect", summary="Detect the language of a text, most probable first", openapi_extra=described(Detect)
    )
    async def detect(request: Request) -> Any:
        ask = await read(Detect, request)
        key = access.admit(request, ask.api_key)
        hold("request", len(ask.q), "text limit", access.characters(key))
        with service.queue.admitted(len(ask.q)) as lane:
            work = lane.run(lambda stopped: in_one_step(lambda: service.detector.ranked(ask.q)))
            ranked = await while_connected(request, work)
        return [{"confidence": one.confidence, "language": one.language} for one in ranked]

    @router.post("/suggest", summary="Suggest a better translation", openapi_extra=described(Suggest))
    async def suggest(request: Request) -> Any:
        if settings.suggestions is None:
            raise Refusal(403, "Suggestions are disabled on this server.")
        ask = await read(Suggest, request)
        key = access.admit(request, ask.api_key)
        size = len(ask.q) + len(ask.s) + len(ask.source) + len(ask.target)
        hold("request", size, "text limit", access.characters(key))
        path = settings.suggestions
        if path.exists() and (not is_plain_file(path) or path.stat().st_size > LARGEST_SUGGESTIONS):
            raise Refusal(503, "The server takes no more suggestions")
        with open(path, "a", encoding="utf-8", opener=private) as file:
            file.write(f"{json_text(ask.model_dump(exclude={'api_key'}))}\n")
        return {"success": True}

    @router.get("/frontend/settings", summary="Limits and features, for a user interface")
    async def frontend_settings() -> Any:
        source, target = next(iter(service.pairs), ("", ""))
        return {
            "charLimit": settings.char_limit,
            "frontendTimeout": 500,
            "apiKeys": settings.keys is not None,
            "keyRequired": settings.key_required,
            "suggestions": settings.suggestions is not None,
            "filesTranslation": settings.files is not None,
            "supportedFilesFormat": list(SUFFIXES) if settings.files is not None else [],
            "language": {
                "source": {"code": source, "name": NAMES.get(source, source)},
                "target": {"code": target, "name": NAMES.get(target, target)},
            },
        }

    @router.get("/health", summary="Whether the server accepts requests")
    async def health() -> Response:
        full, waiting = service.queue.is_full, service.queue.waiting
        return as_json({"status": "overloaded" if full else "ok", "waiting": waiting}, 503 if full else 200)

    return router


def _translated(service: Service, ask: Translate, stopped: Stopped) -> Steps[dict[str, Any]]:
    """Return the response to `POST /translate`."""
    detected = [Detected(ask.source, 100.0)] * len(ask.texts)
    if ask.source == "auto":
        for place, text in enumerate(ask.texts):
            detected[place] = service.detected(text)
            yield DETECTING
    replies = [Reply(text) for text in ask.texts]
    for source in dict.fromkeys(one.language for one in detected):
        places = [place for place, one in enumerate(detected) if one.language == source]
        texts = [ask.texts[place] for place in places]
        found = yield from _replies(service, ask, texts, source, stopped)
        for place, reply in zip(places, found, strict=True):
            replies[place] = reply
    answer: dict[str, Any] = {"translatedText": [reply.text for reply in replies]}
    if ask.source == "auto":
        answer["detectedLanguage"] = [one._asdict() for one in detected]
    if ask.alternatives:
        answer["alternatives"] = [reply.alternatives for reply in replies]
    if any(reply.warnings for reply in replies):
        answer["warnings"] = [reply.warnings for reply in replies]
    return answer if isinstance(ask.q, list) else {name: value[0] for name, value in answer.items()}


def _replies(
    service: Service, ask: Translate, texts: list[str], source: str, stopped: Stopped
) -> Steps[Sequence[Reply]]:
    """Translate texts that are all in one language."""
    way = service.way(source, ask.target)
    if not way:
        return [Reply(text) for text in texts]
    if ask.format == "text":
        return (yield from service.translate(way, texts, ask.alternatives, ask.terms, stopped))
    plan = PLANS[ask.format]

    def planned(texts: list[str], target: str) -> Planned[list[str]]:
        return together([plan(text) for text in texts], list)

    document = yield from service.document(way, planned(texts, ask.target), planned, ask.terms, stopped)
    return [Reply(text) for text in document]


def private(path: str, flags: int) -> int:
    """Open a file. A new file can be read only by the current user."""
    return os.open(path, flags, 0o600)
