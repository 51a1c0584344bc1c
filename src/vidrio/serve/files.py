"""Files under translation. What is accepted lies on the disk before the client is told so, and is gone on with after a
restart; nothing is translated twice by several processes that share the folder.

    FILES/<job>/upload      as it came
    FILES/<job>/job.json    its name and languages; once it is there, the file is accepted
    FILES/<job>/translated  the result, or
    FILES/<job>/error.json  why there is none
"""

import asyncio
import logging
import re
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from secrets import token_hex
from typing import Any, NamedTuple

from filelock import FileLock, Timeout

from vidrio.documents.aligned import Aligned, Ask
from vidrio.documents.formats import plan_file
from vidrio.documents.terms import Terms, with_terms
from vidrio.errors import ModelError, VidrioError
from vidrio.model.files import read_json, write_atomically
from vidrio.model.json_text import json_text
from vidrio.serve.asks import check_length
from vidrio.serve.languages import Pair
from vidrio.serve.refusal import Refusal, bad
from vidrio.serve.service import Service

JOB = re.compile(r"[0-9a-f]{32}")
AT_ONCE = 40  # texts that are asked for together; between them the progress is told
MOST = 200  # files that may wait
log = logging.getLogger("vidrio.serve")
SIGNS = re.compile(r"[^\w.() -]+")


class State(NamedTuple):
    """How far a file is, 0 to 1; done or failed."""

    progress: float
    done: bool = False
    error: str = ""


class Files:
    """The files of a server."""

    def __init__(self, folder: Path, minutes: float, service: Service) -> None:
        self.folder, self._seconds, self._service = folder, 60 * minutes, service
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._progress: dict[str, float] = {}
        self._at_once = asyncio.Semaphore(2)

    async def accept(self, name: str, data: bytes, way: Sequence[Pair], terms: Terms, most: int) -> str:
        """Take a file. It is looked through first: what cannot be translated is refused now."""
        self._forget_old()
        if len(self._tasks) >= MOST:
            raise Refusal(503, "The server is busy, try again later", 60)
        try:
            plan = await asyncio.to_thread(plan_file, name, data, way[-1][1])
        except VidrioError as error:
            words = "file format not supported" if "is not supported" in error.what else f"{error.what}, {error.found}"
            raise bad(words.rstrip(", ")) from None
        check_length(sum(len(ask.text) for ask in plan.asks), most)
        job = token_hex(16)
        description = json_text({"name": name, "way": way, "terms": terms})
        await asyncio.to_thread(write_atomically, self.folder / job / "upload", data)
        await asyncio.to_thread(write_atomically, self.folder / job / "job.json", description.encode())
        self._begin(job)
        return job

    def go_on(self) -> None:
        """Begin what an earlier server has accepted and not finished."""
        for path in self.folder.glob("*/job.json"):
            if JOB.fullmatch(path.parent.name) and not self.state(path.parent.name).done:
                self._begin(path.parent.name)

    async def stop(self) -> None:
        """Leave what is at work to the next start."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def wait(self, job: str) -> None:
        """Until a file is done; who waits no longer does not end it."""
        if job in self._tasks:
            await asyncio.shield(self._tasks[job])

    def state(self, job: str) -> State:
        folder = self._folder(job)
        if (folder / "error.json").is_file():
            return State(1, True, str(read_json(folder / "error.json", what="an error").get("error")))
        if (folder / "translated").is_file():
            return State(1, True)
        return State(self._progress.get(job, 0.0))

    def result(self, job: str) -> Path:
        return self._folder(job) / "translated"

    def _folder(self, job: str) -> Path:
        if not JOB.fullmatch(job) or not (self.folder / job / "job.json").is_file():
            raise Refusal(404, "File not found")
        return self.folder / job

    def _begin(self, job: str) -> None:
        task = asyncio.get_running_loop().create_task(self._work(job))
        self._tasks[job] = task
        task.add_done_callback(lambda done: self._tasks.pop(job, None))

    async def _work(self, job: str) -> None:
        folder = self._folder(job)
        async with self._at_once:
            try:
                with FileLock(folder / "lock", timeout=0):
                    await self._translate(job, folder)
            except Timeout:
                return  # another process is at it
            except (OSError, ModelError):
                # The operator's to mend; it stays accepted, and is tried again at the next start.
                log.exception("file %s waits", job)
            except Exception as error:
                what = error.what if isinstance(error, VidrioError) else "Unexpected error"
                log.exception("file %s cannot be translated", job)
                write_atomically(folder / "error.json", json_text({"error": what}).encode())
            finally:
                self._progress.pop(job, None)

    async def _translate(self, job: str, folder: Path) -> None:
        description: dict[str, Any] = read_json(folder / "job.json", what="a file that was accepted")
        data, way = (folder / "upload").read_bytes(), [(start, end) for start, end in description["way"]]
        terms = tuple((term, target) for term, target in description["terms"])
        for number, pair in enumerate(way):
            plan = await asyncio.to_thread(plan_file, description["name"], data, pair[1])
            plan = with_terms(plan, terms if number == len(way) - 1 else ())
            translated: list[Aligned] = []
            for start in range(0, len(plan.asks), AT_ONCE):
                translated += await self._patiently(pair, plan.asks[start : start + AT_ONCE])
                self._progress[job] = (number + len(translated) / max(1, len(plan.asks))) / len(way)
            data = await asyncio.to_thread(plan.render, translated)
        await asyncio.to_thread(write_atomically, folder / "translated", data)
        (folder / "upload").unlink(missing_ok=True)

    async def _patiently(self, pair: Pair, asks: Sequence[Ask]) -> list[Aligned]:
        """A file that was accepted waits where a new request would be refused."""
        while True:
            try:
                return await self._service.answers(pair, asks)
            except Refusal as refused:
                await asyncio.sleep(min(5.0, refused.retry_after or 1.0))

    def _forget_old(self) -> None:
        """Delete what was done long ago, and what was never accepted because a server was killed while it came."""
        for folder in self.folder.glob("*"):
            with suppress(OSError):  # another process deletes, too
                done = (folder / "translated").exists() or (folder / "error.json").exists()
                ended = done or not (folder / "job.json").exists()
                old = time.time() - folder.stat().st_mtime > self._seconds
                if JOB.fullmatch(folder.name) and folder.name not in self._tasks and ended and old:
                    shutil.rmtree(folder, ignore_errors=True)


def clean_name(name: str) -> str:
    """The last part of an upload's name, in signs that mean nothing to a shell, a path or a header."""
    plain = PurePath(name.replace("\\", "/")).name
    return SIGNS.sub("_", plain).strip(". ")[-100:] or "file"
