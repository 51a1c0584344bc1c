"""LibreTranslate's routes for files, and one more that tells how far a file is."""

import asyncio
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse, JSONResponse
from starlette.datastructures import UploadFile

from vidrio.documents.formats import SUFFIXES, plan_file, suffix_of
from vidrio.serve.asks import form_of, needed, terms_of
from vidrio.serve.files import Files, clean_name
from vidrio.serve.libre import Parts
from vidrio.serve.refusal import Refusal, bad
from vidrio.serve.schemas import FILE, body


def files_router(parts: Parts, files: Files | None) -> APIRouter:
    """The routes; without a folder for files they say that there are none."""
    router = APIRouter()

    def there() -> Files:
        if files is None:
            raise Refusal(403, "Files translation are disabled on this server.")
        return files

    @router.post("/translate_file", summary="Translate a file", openapi_extra=body(FILE, "multipart/form-data"))
    async def translate_file(request: Request) -> Response:
        jobs = there()
        form = await form_of(request)
        try:
            fields: dict[str, Any] = {name: value for name, value in form.items() if isinstance(value, str)}
            upload = form.get("file")
            if not isinstance(upload, UploadFile):
                raise bad("missing file parameter")
            if not upload.filename:
                raise bad("empty file")
            source, target = needed(fields, "source"), needed(fields, "target")
            name = clean_name(upload.filename)
            most = parts.admit(request, fields)
            if suffix_of(name) not in SUFFIXES:
                raise bad("file format not supported")
            data = await upload.read()
        finally:
            await form.close()
        if source == "auto":
            text = await asyncio.to_thread(_sample, name, data)
            source = (await asyncio.to_thread(parts.detector.ranked, text))[0].language
        way = parts.service.way(source, target)
        if not way:
            raise bad("source and target are the same language")
        job = await jobs.accept(name, data, way, parts.terms_for(way, terms_of(fields)), most)
        here = str(request.base_url)
        told = {"translatedFileUrl": f"{here}download_file/{job}.{quote(name)}"}
        if fields.get("wait") == "false":
            return JSONResponse({**told, "statusUrl": f"{here}translate_file/{job}"}, 202)
        await jobs.wait(job)
        if error := jobs.state(job).error:
            raise bad(error)
        return JSONResponse(told)

    @router.get("/translate_file/{job}", summary="How far a file is")
    def status(job: str) -> Any:
        state = there().state(job)
        return {
            "progress": round(state.progress, 3),
            "done": state.done,
            **({"error": state.error} if state.error else {}),
        }

    @router.get("/download_file/{name}", summary="A file that was translated")
    def download_file(name: str) -> Response:
        job, _, shown = name.partition(".")
        jobs = there()
        state = jobs.state(job)
        if state.error:
            raise bad(state.error)
        if not state.done:
            raise Refusal(404, "The file is not translated yet", 5)
        kept = clean_name(shown)
        return FileResponse(jobs.result(job), media_type="application/octet-stream", filename=kept)

    return router


def _sample(name: str, data: bytes) -> str:
    """Some of a file's text, to tell its language by."""
    return " ".join(ask.text for ask in plan_file(name, data, "").asks[:50])
