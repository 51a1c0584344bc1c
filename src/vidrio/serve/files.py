"""Translate uploaded files. Each result is stored for a limited time, in the folder `settings.files`."""

import asyncio
import re
import time
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePath
from secrets import token_hex
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse
from starlette.datastructures import UploadFile

from vidrio.documents.formats import SUFFIXES, plan_file, suffix_of
from vidrio.errors import ConfigError, VidrioError
from vidrio.serve.access import Access
from vidrio.serve.guards import while_connected
from vidrio.serve.libre import LARGEST_SEARCH, private
from vidrio.serve.queue import Steps, Stopped, overloaded
from vidrio.serve.requests import MULTIPART, Refusal, TranslateFile, bad, described, form_of, hold, kind_of, of_form
from vidrio.serve.service import Service
from vidrio.serve.settings import Settings

JOB = re.compile(r"[0-9a-f]{32}")
OURS = re.compile(rf"{JOB.pattern}|\.{JOB.pattern}\.[0-9a-f]+\.part")  # a result, or a killed server's partial file
SIGNS = re.compile(r"[^\w.() -]+")
AT_ONCE, MAX_WAITING = 2, 8  # files; few, because a document takes more memory than its file
SAMPLE = 50  # the number of texts used to detect a file's language


def files_router(settings: Settings, service: Service, access: Access) -> APIRouter:
    """Return the routes. If the settings name no folder for files, every request is refused."""
    router = APIRouter()
    at_work, turn = asyncio.Semaphore(AT_ONCE + MAX_WAITING), asyncio.Semaphore(AT_ONCE)

    def folder() -> Path:
        if settings.files is None:
            raise Refusal(403, "Files translation are disabled on this server.")
        return settings.files

    @router.post("/translate_file", summary="Translate a file", openapi_extra=described(TranslateFile, MULTIPART))
    async def translate_file(request: Request) -> Any:
        place = folder()
        if kind_of(request) != MULTIPART:
            raise bad("missing file parameter")
        async with form_of(request) as form:
            upload = form.get("file")
            if not isinstance(upload, UploadFile):
                raise bad("missing file parameter")
            if not upload.filename:
                raise bad("empty file")
            fields = of_form(TranslateFile, form)
            key, name = access.admit(request, fields.api_key), clean_name(upload.filename)
            if suffix_of(name) not in SUFFIXES:
                raise bad("file format not supported")
            most = access.characters(key, settings.file_char_limit)
            if at_work.locked():
                raise overloaded()
            async with at_work:
                data = await while_connected(request, translated(upload, name, fields, most))
        written = place / token_hex(16)
        await asyncio.to_thread(write_private, written, data)
        return {"translatedFileUrl": f"{request.base_url}download_file/{written.name}.{quote(name)}"}

    async def translated(upload: UploadFile, name: str, fields: TranslateFile, most: int) -> bytes:
        async with turn:
            data = await upload.read()
            return await service.queue.long.run(lambda stopped: steps(name, data, fields, most, stopped))

    def steps(name: str, data: bytes, fields: TranslateFile, most: int, stopped: Stopped) -> Steps[bytes]:
        planned = partial(plan_file, name)
        plan = planned(data, fields.target)
        characters = sum(map(len, plan.texts))
        hold("request", characters, "text limit", most)
        hold("terms times characters", len(fields.terms) * characters, "limit", LARGEST_SEARCH)
        source = fields.source
        if source == "auto":
            source = service.detected(" ".join(plan.texts[:SAMPLE])).language
        way = service.way(source, fields.target)
        if not way:
            raise bad("source and target are the same language")
        if len(way) > 1 and suffix_of(name) in (".po", ".pot"):
            raise bad("a PO file is translated by one model")
        return (yield from service.document(way, plan, planned, fields.terms, stopped))

    @router.get("/download_file/{name}", summary="Download a translated file")
    def download_file(name: str) -> Response:
        job, _, shown = name.partition(".")
        path = folder() / job
        try:
            is_there = bool(JOB.fullmatch(job)) and path.is_file() and not is_old(path, 60 * settings.file_minutes)
        except FileNotFoundError:  # just deleted
            is_there = False
        if not is_there:
            raise Refusal(404, "File not found")
        return FileResponse(path, media_type="application/octet-stream", filename=clean_name(shown))

    return router


def checked(folder: Path) -> None:
    """Create the folder. Raise ConfigError if files cannot be written to it."""
    probe = folder / token_hex(16)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(probe, b"")
        probe.unlink()
    except (OSError, VidrioError) as error:
        raise ConfigError(f"no files can be kept in {folder}", found=str(error), do="give another folder") from None


def write_private(path: Path, data: bytes) -> None:
    """Write a file atomically. Only the current user can read it."""
    part = path.with_name(f".{path.name}.{token_hex(8)}.part")
    try:
        with open(part, "xb", opener=private) as file:
            file.write(data)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)  # on a full disk, it would take up space
        raise


def is_old(path: Path, seconds: float) -> bool:
    return time.time() - path.stat().st_mtime > seconds


def forget_old(folder: Path, seconds: float) -> None:
    """Delete files that were translated more than `seconds` ago."""
    with suppress(OSError):  # the folder is missing; it may return
        for path in folder.iterdir():
            with suppress(OSError):  # the file was deleted by someone else or, on Windows, is in use
                if OURS.fullmatch(path.name) and is_old(path, seconds):
                    path.unlink()


def clean_name(name: str) -> str:
    """Return the base name of an upload. Characters that are unsafe in shells, paths or headers are replaced."""
    plain = PurePath(name.replace("\\", "/")).name
    return SIGNS.sub("_", plain).strip(". ")[-100:] or "file"
