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
from typing import NamedTuple, TypeVar

from vidrio.documents.aligned import Aligned, aligned
from vidrio.documents.formats import pieces
from vidrio.documents.markup import Planned, T
from vidrio.documents.terms import Terms, hide, reveal, with_terms
from vidrio.model import find
from vidrio.model.folder import read_config
from vidrio.serve.languages import Pair, languages, route
from vidrio.serve.requests import Refusal, bad, busy
from vidrio.serve.translating import remembered
from vidrio.translate.translation import Translation
from vidrio.translate.translator import Translator

AT_ONCE = 40  # texts of a document that are asked for together, so that a book does not fill the queue
RETRY_AFTER = 5  # seconds
Result = TypeVar("Result")
Stopped = Callable[[], bool]  # says that nobody wants the result any more


def folders_of(names: tuple[str, ...]) -> dict[Pair, Path]:
    """The models by what they translate. Of two for the same pair the one that was named first counts."""
    named = [find.find(name) for name in names]
    available = [folder for name, folder in find.available().items() if name not in find.LESSONS]
    folders: dict[Pair, Path] = {}
    for folder in named or available or [find.find()]:
        config, about = read_config(folder)
        if config.shape == "encoder-decoder":
            pair = (about.source_language or folder.name, about.target_language or f"{folder.name}-target")
            folders.setdefault(pair, folder)
    return folders


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


class Reply(NamedTuple):
    """A translated text, and others that it could have been."""

    text: str
    alternatives: tuple[str, ...] = ()


class Service:
    """Translates for many at the same time."""

    def __init__(self, folders: dict[Pair, Path], queue: Queue) -> None:
        self.queue, self.pairs = queue, list(folders)
        self.languages = {language.code: language for language in languages(self.pairs)}
        self.folders = folders
        self.translator = remembered(len(folders), self._load)

    def _load(self, pair: Pair) -> Translator:
        return Translator.load(self.folders[pair])

    def way(self, source: str, target: str) -> list[Pair]:
        """The pairs to go through; none for a language into itself."""
        for code in (source, target):
            if code not in self.languages:
                raise Refusal(400, f"{code:.20} is not supported")
        way = route(source, target, self.pairs)
        if way is None:
            (start, end) = self.languages[source], self.languages[target]
            raise bad(f"{end.name} ({target}) is not available as a target language from {start.name} ({source})")
        return way

    async def translate(self, way: Sequence[Pair], text: str, alternatives: int = 0, terms: Terms = ()) -> Reply:
        """A text through all models of the way; alternatives are the last one's."""
        hidden = hide(text, terms)
        found = hidden.text
        for pair in way if not alternatives else way[:-1]:
            found = "".join(part.text for part in await self._translations(pair, pieces(found)))
        others: Sequence[str] = ()
        if alternatives:
            [last] = await self._translations(way[-1], [found], alternatives)
            found, others = last.text, [other for other in last.alternatives if other != last.text][:alternatives]
        return Reply(reveal(found, hidden), tuple(reveal(other, hidden) for other in others))

    async def document(
        self, way: Sequence[Pair], document: T, planned: Callable[[T, str], Planned[T]], terms: Terms = ()
    ) -> T:
        """A marked-up text or a file through all models of the way; terms are put in by the last one."""
        for pair in way:
            plan = with_terms(await asyncio.to_thread(planned, document, pair[1]), terms if pair == way[-1] else ())
            found: list[Aligned] = []
            for start in range(0, len(plan.texts), AT_ONCE):
                texts = plan.texts[start : start + AT_ONCE]
                found += map(aligned, texts, await self._translations(pair, texts))
            document = await asyncio.to_thread(plan.render, found)
        return document

    async def _translations(self, pair: Pair, texts: Sequence[str], alternatives: int = 0) -> list[Translation]:
        """Each text by one model."""

        def work(stopped: Stopped) -> list[Translation]:
            translator = self.translator(pair)
            beam = max(translator.options.beam, alternatives + 1)
            return translator.translate(texts, replace(translator.options, beam=beam, n_best=alternatives + 1), stopped)

        return await self.queue.run(texts, work)
