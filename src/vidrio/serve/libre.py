"""LibreTranslate's interface, so that the clients that people have work unchanged.

Written from its description; what a field means, how it is refused and in which words is what its clients rely on.
Translated files lie in a folder until they are old: FILES/<job>.
"""

import asyncio
import re
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from secrets import token_hex
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse, JSONResponse
from starlette.datastructures import UploadFile

from vidrio.documents.aligned import as_source
from vidrio.documents.formats import SUFFIXES, plan_file, suffix_of
from vidrio.documents.html import plan_html
from vidrio.documents.markdown import plan_markdown
from vidrio.errors import VidrioError
from vidrio.model.files import is_plain_file, write_atomically
from vidrio.model.json_text import json_text
from vidrio.serve.access import Access
from vidrio.serve.guards import as_json, while_connected
from vidrio.serve.languages import Detected, Detector
from vidrio.serve.requests import (
    Asked,
    Detect,
    Refusal,
    Suggest,
    Translate,
    TranslateFile,
    bad,
    described,
    form_of,
    hold,
    of_fields,
    read,
)
from vidrio.serve.service import Reply, Service
from vidrio.serve.settings import Settings

PLANS = {"html": lambda text, target: plan_html(text), "markdown": lambda text, target: plan_markdown(text)}
LARGEST_SUGGESTIONS = 10 << 20  # bytes of the file of suggestions
JOB = re.compile(r"[0-9a-f]{32}")
SIGNS = re.compile(r"[^\w.() -]+")


@dataclass(frozen=True)
class Parts:
    """What the routes work with."""

    settings: Settings
    service: Service
    detector: Detector
    access: Access

    def admit(self, request: Request, asked: Asked, requests: int = 1) -> int:
        """The most characters that this request may have."""
        key = self.access.admit(request, asked.api_key, requests)
        return self.settings.char_limit if key.char_limit is None else key.char_limit


def libre_router(parts: Parts) -> APIRouter:
    router, settings, service = APIRouter(), parts.settings, parts.service

    @router.get("/languages", summary="The languages, each with those that it can be translated into")
    def languages() -> Any:
        return [language._asdict() for language in service.languages.values()]

    @router.post("/translate", summary="Translate a text, or several", openapi_extra=described(Translate))
    async def translate(request: Request) -> Response:
        ask = await read(Translate, request)
        hold("alternatives", ask.alternatives, "limit", settings.alternatives_limit)
        hold("request", len(ask.texts), "batch limit", settings.batch_limit)
        hold("request", sum(map(len, ask.texts)), "text limit", parts.admit(request, ask, len(ask.texts)))
        return as_json(await while_connected(request, _translated(parts, ask)))

    @router.post("/detect", summary="The language of a text, the likeliest first", openapi_extra=described(Detect))
    async def detect(request: Request) -> Any:
        ask = await read(Detect, request)
        hold("request", len(ask.q), "text limit", parts.admit(request, ask))
        ranked = await asyncio.to_thread(parts.detector.ranked, ask.q)
        return [{"confidence": one.confidence, "language": one.language} for one in ranked]

    @router.post("/suggest", summary="Suggest a better translation", openapi_extra=described(Suggest))
    async def suggest(request: Request) -> Any:
        if settings.suggestions is None:
            raise Refusal(403, "Suggestions are disabled on this server.")
        ask = await read(Suggest, request)
        parts.admit(request, ask)
        suggestion = ask.model_dump(exclude={"api_key"})
        path = settings.suggestions
        if path.exists() and (not is_plain_file(path) or path.stat().st_size > LARGEST_SUGGESTIONS):
            raise Refusal(503, "The server takes no more suggestions")
        with path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(f"{json_text(suggestion)}\n")
        return {"success": True}

    @router.get("/frontend/settings", summary="What a page around this server has to know")
    def frontend_settings() -> Any:
        source, target = next(iter(service.pairs), ("", ""))
        known = service.languages
        return {
            "charLimit": settings.char_limit,
            "frontendTimeout": 500,
            "apiKeys": parts.access.keys is not None,
            "keyRequired": settings.key_required,
            "suggestions": settings.suggestions is not None,
            "filesTranslation": settings.files is not None,
            "supportedFilesFormat": list(SUFFIXES) if settings.files is not None else [],
            "language": {
                "source": {"code": source, "name": known[source].name if source in known else source},
                "target": {"code": target, "name": known[target].name if target in known else target},
            },
        }

    @router.get("/health", summary="Whether the server can take requests")
    def health() -> Response:
        full, waiting = service.queue.is_full, service.queue.waiting
        return JSONResponse({"status": "overloaded" if full else "ok", "waiting": waiting}, 503 if full else 200)

    return router


async def _translated(parts: Parts, ask: Translate) -> dict[str, Any]:
    """The answer to `POST /translate`."""
    detected = await _detected(parts.detector, ask)
    found = [_reply(parts, ask, text, one.language) for text, one in zip(ask.texts, detected, strict=True)]
    replies = await asyncio.gather(*found)
    answer: dict[str, Any] = {"translatedText": [reply.text for reply in replies]}
    if ask.source == "auto":
        answer["detectedLanguage"] = [one._asdict() for one in detected]
    if ask.alternatives:
        answer["alternatives"] = [reply.alternatives for reply in replies]
    return answer if isinstance(ask.q, list) else {name: value[0] for name, value in answer.items()}


async def _detected(detector: Detector, ask: Translate) -> list[Detected]:
    """The language of each text, as it was given or found."""
    if ask.source != "auto":
        return [Detected(ask.source, 100.0)] * len(ask.texts)
    return await asyncio.to_thread(lambda: [detector.ranked(text)[0] for text in ask.texts])


async def _reply(parts: Parts, ask: Translate, text: str, source: str) -> Reply:
    way = parts.service.way(source, ask.target)
    if not way:
        return Reply(text)
    if ask.format in PLANS:
        return Reply(await parts.service.document(way, text, PLANS[ask.format], ask.terms))
    reply = await parts.service.translate(way, text, ask.alternatives, ask.terms)
    alternatives = (as_source(text, other) for other in reply.alternatives)
    best = as_source(text, reply.text)
    return Reply(best, tuple(other for other in dict.fromkeys(alternatives) if other != best))


# --- files ------------------------------------------------------------------------------------------------------------


def files_router(parts: Parts) -> APIRouter:
    """The routes; without a folder for files they refuse."""
    router, folder, service = APIRouter(), parts.settings.files, parts.service
    at_once = asyncio.Semaphore(2)

    def there() -> Path:
        if folder is None:
            raise Refusal(403, "Files translation are disabled on this server.")
        return folder

    @router.post(
        "/translate_file", summary="Translate a file", openapi_extra=described(TranslateFile, "multipart/form-data")
    )
    async def translate_file(request: Request) -> Any:
        place = there()
        form = await form_of(request)
        try:
            upload = form.get("file")
            if not isinstance(upload, UploadFile):
                raise bad("missing file parameter")
            if not upload.filename:
                raise bad("empty file")
            asked, name = of_fields(TranslateFile, form), clean_name(upload.filename)
            most = parts.admit(request, asked)
            if suffix_of(name) not in SUFFIXES:
                raise bad("file format not supported")
            data = await upload.read()
        finally:
            await form.close()
        texts = (await asyncio.to_thread(_plan, name, data, "")).texts
        hold("request", sum(map(len, texts)), "text limit", most)
        source = asked.source
        if source == "auto":
            source = (await asyncio.to_thread(parts.detector.ranked, " ".join(texts[:50])))[0].language
        way = service.way(source, asked.target)
        if not way:
            raise bad("source and target are the same language")
        async with at_once:
            data = await while_connected(request, service.document(way, data, partial(_plan, name), asked.terms))
        job = token_hex(16)
        forget_old(place, 60 * parts.settings.file_minutes)
        await asyncio.to_thread(write_atomically, place / job, data)
        return {"translatedFileUrl": f"{request.base_url}download_file/{job}.{quote(name)}"}

    @router.get("/download_file/{name}", summary="A file that was translated")
    def download_file(name: str) -> Response:
        job, _, shown = name.partition(".")
        if not JOB.fullmatch(job) or not (there() / job).is_file():
            raise Refusal(404, "File not found")
        return FileResponse(there() / job, media_type="application/octet-stream", filename=clean_name(shown))

    return router


def _plan(name: str, data: bytes, target: str) -> Any:
    try:
        return plan_file(name, data, target)
    except VidrioError as error:
        raise bad(f"{error.what}, {error.found}".rstrip(", ")) from None


def forget_old(folder: Path, seconds: float) -> None:
    """Delete what was translated long ago."""
    for path in folder.glob("*"):
        if JOB.fullmatch(path.name) and time.time() - path.stat().st_mtime > seconds:
            path.unlink(missing_ok=True)


def clean_name(name: str) -> str:
    """The last part of an upload's name, in signs that mean nothing to a shell, a path or a header."""
    plain = PurePath(name.replace("\\", "/")).name
    return SIGNS.sub("_", plain).strip(". ")[-100:] or "file"
