"""LibreTranslate's routes for files. What was translated lies in a folder until it is old.

FILES/<job>   a translated file
"""

import asyncio
import re
import time
from functools import partial
from pathlib import Path, PurePath
from secrets import token_hex
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse
from starlette.datastructures import UploadFile

from vidrio.documents.formats import SUFFIXES, plan_file, suffix_of
from vidrio.errors import VidrioError
from vidrio.model.files import write_atomically
from vidrio.serve.guards import while_connected
from vidrio.serve.libre import Parts
from vidrio.serve.refusal import Refusal, bad
from vidrio.serve.requests import TranslateFile, check_length, described, form_of, of_fields

JOB = re.compile(r"[0-9a-f]{32}")
SIGNS = re.compile(r"[^\w.() -]+")


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
        check_length(sum(map(len, texts)), most)
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
