"""What the routes ask for: a text in another language, through one model or several."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from vidrio.documents.aligned import Aligned, answer
from vidrio.documents.markup import Planned, T
from vidrio.documents.plain import pieces
from vidrio.documents.terms import Terms, hide, reveal, with_terms
from vidrio.serve.languages import Pair, known, languages, route
from vidrio.serve.metrics import Metrics
from vidrio.serve.models import Models
from vidrio.serve.queue import Queue
from vidrio.serve.refusal import Refusal, bad
from vidrio.translate.translation import Translation

AT_ONCE = 40  # texts of a document that are asked for together, so that a book does not fill the queue


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
            for start in range(0, len(plan.asks), AT_ONCE):
                asks = plan.asks[start : start + AT_ONCE]
                translations = await self.translations(pair, [ask.text for ask in asks])
                found += await asyncio.to_thread(list, map(answer, translations, asks))
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
