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
from vidrio.serve.gather import Gatherer
from vidrio.serve.languages import Pair, known, languages, route
from vidrio.serve.pool import Pool
from vidrio.serve.refusal import Refusal, bad
from vidrio.translate.translation import Translation
from vidrio.translate.translator import Translator


class Reply(NamedTuple):
    """A translated text, and others that it could have been."""

    text: str
    alternatives: tuple[str, ...] = ()


class Service:
    """Translates for many at the same time."""

    def __init__(self, pool: Pool, gatherer: Gatherer, wrote: Callable[[int], object] = lambda tokens: None) -> None:
        self.pool, self.gatherer, self._wrote = pool, gatherer, wrote
        self.pairs = list(pool.folders)
        self.languages = {language.code: language for language in languages(self.pairs)}

    @property
    def status(self) -> str:
        """Whether it can take requests: ok, or why not."""
        if self.gatherer.overloaded:
            return "overloaded"
        states = self.pool.states().values()
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
        translator = await self._translator(pair)
        loop, events, left = asyncio.get_running_loop(), asyncio.Queue[str | None](), threading.Event()

        def tell(piece: str | None) -> bool:
            loop.call_soon_threadsafe(events.put_nowait, piece)
            return left.is_set()

        sentences = translator.live(text, tell)
        try:
            while True:
                sentence = self.gatherer.alone(lambda: next(sentences, None))
                sentence.add_done_callback(lambda done: events.put_nowait(None))
                while piece := await events.get():
                    self._wrote(1)
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

    async def _translator(self, pair: Pair) -> Translator:
        translator = self.pool.at_hand(pair)
        return await asyncio.to_thread(self.pool.translator, pair) if translator is None else translator

    async def _one(self, pair: Pair, text: str, alternatives: int) -> Reply:
        if alternatives:
            [found] = await self.translations(pair, [text], alternatives)
            others = [other for other in found.alternatives if other != found.text]
            return Reply(found.text, tuple(others[:alternatives]))
        parts = await self.translations(pair, pieces(text))
        return Reply("".join(part.text for part in parts))

    async def translations(self, pair: Pair, texts: Sequence[str], alternatives: int = 0) -> list[Translation]:
        """Each text by one model."""
        translator = await self._translator(pair)
        beam = max(translator.options.beam, alternatives + 1)
        options = replace(translator.options, beam=beam, n_best=alternatives + 1)

        def work(some: list[str]) -> list[Translation]:
            return translator.translate(some, options)

        found: list[Translation] = await self.gatherer.translate((pair, alternatives), work, texts)
        self._wrote(sum(len(sentence.best.ids) for translation in found for sentence in translation.sentences))
        return found
