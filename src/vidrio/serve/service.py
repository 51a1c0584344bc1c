"""What the routes ask for: a text in another language, through one model or several."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from vidrio.documents.aligned import Aligned, Ask, answer
from vidrio.documents.markup import Plan
from vidrio.documents.plain import pieces
from vidrio.documents.terms import Terms, hide, reveal, with_terms
from vidrio.serve.languages import Pair, known, languages, route
from vidrio.serve.metrics import Metrics
from vidrio.serve.models import Models
from vidrio.serve.queue import Queue
from vidrio.serve.refusal import Refusal, bad
from vidrio.translate.translation import Translation


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

    async def stream(self, way: Sequence[Pair], text: str, terms: Terms = ()) -> AsyncIterator[tuple[str, str]]:
        """The translation of a text as it is found: `token`, a piece of what is being written, and `text`, a sentence
        that is done, with what follows it. It is searched greedily: what has been said cannot be taken back."""
        hidden = hide(text, terms)
        for part in pieces(hidden.text) if way else ():
            for pair in way[:-1]:
                part = (await self._one(pair, part, 0)).text
            async for what, piece in self._live(way[-1], part):
                yield what, reveal(piece, hidden)
        if not way:
            yield "text", text

    async def _live(self, pair: Pair, text: str) -> AsyncIterator[tuple[str, str]]:
        translator = await self.models.translator(pair)
        loop, events, left = asyncio.get_running_loop(), asyncio.Queue[str | None](), threading.Event()

        def tell(piece: str | None) -> bool:
            loop.call_soon_threadsafe(events.put_nowait, piece)
            return left.is_set()

        sentences = translator.live(text, tell)
        try:
            while True:
                sentence = self.queue.in_thread(lambda: next(sentences, None))
                sentence.add_done_callback(lambda done: events.put_nowait(None))
                while piece := await events.get():
                    self.metrics.tokens.inc()
                    yield "token", piece
                if (found := await sentence) is None:
                    return
                yield "text", found
        finally:
            left.set()
            sentence.cancel()

    async def document(self, way: Sequence[Pair], text: str, planned: Callable[[str], Plan], terms: Terms = ()) -> str:
        """A marked-up text through all models of the way; terms are put in by the last one."""
        for pair in way:
            plan = with_terms(planned(text), terms if pair == way[-1] else ())
            text = plan.render(await self.answers(pair, plan.asks))
        return text

    async def answers(self, pair: Pair, asks: Sequence[Ask]) -> list[Aligned]:
        """The texts of a document."""
        translations = await self.translations(pair, [ask.text for ask in asks])
        return await asyncio.to_thread(lambda: list(map(answer, translations, asks)))

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
