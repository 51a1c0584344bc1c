"""What the routes ask for: a text in another language, through one model or several, for many clients at once.

Each model is loaded when it is first asked for. A request is one call in a thread of its own, and the system lets them
take turns; how many characters wait is bounded, and a client that leaves ends its work.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from vidrio.documents.aligned import Aligned, aligned
from vidrio.documents.formats import pieces
from vidrio.documents.markup import Planned, T
from vidrio.documents.terms import Terms, hide, reveal, with_terms
from vidrio.model import find
from vidrio.model.folder import read_config
from vidrio.serve.languages import Pair, known, languages, route
from vidrio.serve.requests import Refusal, bad, busy
from vidrio.translate.translation import Translation
from vidrio.translate.translator import Translator

AT_ONCE = 40  # texts of a document that are asked for together, so that a book does not fill the queue
RETRY_AFTER = 5  # seconds
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
Result = TypeVar("Result")
Stopped = Callable[[], bool]  # says that nobody wants the result any more


# --- models -----------------------------------------------------------------------------------------------------------


def folders_of(names: tuple[str, ...]) -> dict[Pair, Path]:
    """The models by what they translate. Of two for the same pair the one that was named first counts."""
    named = [find.find(name) for name in names]
    packaged = [folder for name, folder in find.packaged().items() if name not in find.LESSONS]
    folders: dict[Pair, Path] = {}
    for folder in named or packaged or [find.find()]:
        config, about = read_config(folder)
        if config.shape == "encoder-decoder":
            pair = (about.source_language or folder.name, about.target_language or f"{folder.name}-target")
            folders.setdefault(pair, folder)
    return folders


class Models:
    """Used on the event loop only; models are loaded in threads."""

    def __init__(self, folders: dict[Pair, Path]) -> None:
        self.folders = folders
        self._loaded: dict[Pair, asyncio.Future[Translator]] = {}

    async def translator(self, pair: Pair) -> Translator:
        """The model for a pair. All who ask while it is loaded wait for the same; after a failure it is tried again."""
        loading = self._loaded.get(pair)
        if loading is None or (loading.done() and loading.exception()):
            loading = self._loaded[pair] = asyncio.ensure_future(asyncio.to_thread(Translator.load, self.folders[pair]))
        return await asyncio.shield(loading)  # one that leaves does not end the loading for the others

    def states(self) -> dict[str, str]:
        """What each model is: not loaded, loading, ready, or failed when it was last loaded."""
        return {"-".join(pair): self._state(pair) for pair in self.folders}

    def _state(self, pair: Pair) -> str:
        loading = self._loaded.get(pair)
        if loading is None:
            return "not loaded"
        if not loading.done():
            return "loading"
        return "failed" if loading.exception() else "ready"


# --- requests at work and waiting -------------------------------------------------------------------------------------


class Queue:
    """`threads` requests at a time; more wait, at most `most` characters of them all together."""

    def __init__(self, *, threads: int, most: int) -> None:
        self._most, self._pool = most, ThreadPoolExecutor(threads, thread_name_prefix="translate")
        self.waiting = 0  # characters that wait or are worked on

    @property
    def is_full(self) -> bool:
        """Whether a text of some length would be refused."""
        return self.waiting >= 0.9 * self._most

    async def run(self, texts: Sequence[str], work: Callable[[Stopped], Result]) -> Result:
        """What `work` makes of these texts."""
        characters, left = sum(map(len, texts)), threading.Event()
        if self.waiting and self.waiting + characters > self._most:  # alone, a text may be as long as it likes
            raise busy(503, "The server is busy, try again later", RETRY_AFTER)
        self.waiting += characters
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work, left.is_set)
        finally:
            left.set()
            self.waiting -= characters

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


class Metrics:
    """The figures of one app, for Prometheus."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ours: dict[str, Any] = {"namespace": "vidrio", "registry": self.registry}
        self.requests = Counter("http_requests", "Requests answered", ("path", "status"), **ours)
        self.seconds = Histogram(
            "http_seconds", "Seconds until the answer was sent", ("path",), buckets=SECONDS, **ours
        )
        self.in_flight = Gauge("http_in_flight", "Requests at work", **ours)
        self.waiting = Gauge("queue_characters", "Characters that wait or are worked on", **ours)
        self.characters = Counter("characters", "Characters translated", **ours)
        self.tokens = Counter("tokens", "Tokens written", **ours)

    def text(self) -> bytes:
        return generate_latest(self.registry)


# --- translating ------------------------------------------------------------------------------------------------------


class Reply(NamedTuple):
    """A translated text, and others that it could have been."""

    text: str
    alternatives: tuple[str, ...] = ()


class Service:
    """Translates for many at the same time."""

    def __init__(self, models: Models, queue: Queue, metrics: Metrics) -> None:
        self.models, self.queue, self.metrics = models, queue, metrics
        self.pairs = list(models.folders)
        self.languages = {language.code: language for language in languages(self.pairs)}

    @property
    def status(self) -> str:
        """Whether it can take requests: ok, or why not."""
        if self.queue.is_full:
            return "overloaded"
        states = self.models.states().values()
        return "ok" if "ready" in states else next((why for why in ("loading", "failed") if why in states), "ok")

    def way(self, source: str, target: str) -> list[Pair]:
        """The pairs to go through; none for a language into itself."""
        codes = list(self.languages)
        source, target = known(source, codes), known(target, codes)
        for code in (source, target):
            if code not in codes:
                raise Refusal(400, f"{code:.20} is not supported")
        way = route(source, target, self.pairs)
        if way is None:
            (start, end) = self.languages[source], self.languages[target]
            raise bad(f"{end.name} ({target}) is not available as a target language from {start.name} ({source})")
        return way

    async def translate(self, way: Sequence[Pair], text: str, alternatives: int = 0, terms: Terms = ()) -> Reply:
        """A text through all models of the way; alternatives are the last one's."""
        hidden = hide(text, terms)
        reply = Reply(hidden.text)
        for number, pair in enumerate(way):
            reply = await self._one(pair, reply.text, alternatives if number == len(way) - 1 else 0)
        return Reply(reveal(reply.text, hidden), tuple(reveal(other, hidden) for other in reply.alternatives))

    async def document(
        self, way: Sequence[Pair], document: T, planned: Callable[[T, str], Planned[T]], terms: Terms = ()
    ) -> T:
        """A marked-up text or a file through all models of the way; terms are put in by the last one."""
        for pair in way:
            plan = with_terms(await asyncio.to_thread(planned, document, pair[1]), terms if pair == way[-1] else ())
            found: list[Aligned] = []
            for start in range(0, len(plan.texts), AT_ONCE):
                texts = plan.texts[start : start + AT_ONCE]
                found += map(aligned, texts, await self.translations(pair, texts))
            document = await asyncio.to_thread(plan.render, found)
        return document

    async def _one(self, pair: Pair, text: str, alternatives: int) -> Reply:
        if alternatives:
            [found] = await self.translations(pair, [text], alternatives)
            others = [other for other in found.alternatives if other != found.text]
            return Reply(found.text, tuple(others[:alternatives]))
        parts = await self.translations(pair, pieces(text))
        return Reply("".join(part.text for part in parts))

    async def translations(self, pair: Pair, texts: Sequence[str], alternatives: int = 0) -> list[Translation]:
        """Each text by one model."""
        translator = await self.models.translator(pair)
        beam = max(translator.options.beam, alternatives + 1)
        options = replace(translator.options, beam=beam, n_best=alternatives + 1)
        found = await self.queue.run(texts, lambda stopped: translator.translate(texts, options, stopped))
        self.metrics.characters.inc(sum(map(len, texts)))
        self.metrics.tokens.inc(sum(len(one.best.ids) for translation in found for one in translation.sentences))
        return found
