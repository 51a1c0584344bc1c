"""Translate texts and documents for the API, with one model or a chain of models.

Texts are cut between sentences into slices of a few sentences, so that the requests of all clients take turns.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from vidrio.documents.aligned import aligned, as_source
from vidrio.documents.formats import pieces
from vidrio.documents.markup import Planned, T
from vidrio.documents.terms import Hidden, Terms, hide, reveal, translations_only, with_terms
from vidrio.model import find
from vidrio.model.folder import read_config
from vidrio.serve.languages import Detected, Detector, Pair, languages, route
from vidrio.serve.memo import Memo
from vidrio.serve.queue import PIECE, Queue, Steps, Stopped
from vidrio.serve.requests import Refusal, bad
from vidrio.text.protect import spans
from vidrio.text.sentences import split, undivided
from vidrio.translate.translation import Pieces, Translation, put_back
from vidrio.translate.translator import Translator

AT_ONCE = 40  # the maximum number of texts in a batch
WINDOW = 4_000  # the number of characters searched for sentence ends at a time
SPEED = 8  # parsing this many characters takes as long as translating one


class Slice(NamedTuple):
    """A part of a text."""

    number: int  # the index of the text
    start: int
    text: str


def folders_of(names: tuple[str, ...]) -> dict[Pair, Path]:
    """Return the models' folders by language pair. If two models have the same pair, the first one is used."""
    named = [find.find(name) for name in names]
    available = [folder for name, folder in find.available().items() if name not in find.LESSONS]
    folders: dict[Pair, Path] = {}
    for folder in named or available or [find.find()]:
        config, about = read_config(folder)
        if config.shape == "encoder-decoder":
            pair = (about.source_language or folder.name, about.target_language or f"{folder.name}-target")
            folders.setdefault(pair, folder)
    return folders


class Reply(NamedTuple):
    """A translated text and its alternatives."""

    text: str
    alternatives: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()  # facts that seem lost or invented


class Service:
    """Translates texts and documents for all clients."""

    def __init__(self, folders: dict[Pair, Path], queue: Queue, opened: Memo[Path, Translator]) -> None:
        self.queue, self.pairs, self.folders, self._opened = queue, list(folders), folders, opened
        self.languages = {language.code: language for language in languages(self.pairs)}
        self.detector = Detector(list(self.languages))

    def translator(self, pair: Pair) -> Translator:
        return self._opened(self.folders[pair])

    def detected(self, text: str) -> Detected:
        """Return the language of a text."""
        if not self.languages:
            raise Refusal(400, "auto is not supported")
        return self.detector.ranked(text)[0]

    def way(self, source: str, target: str) -> list[Pair]:
        """Return the chain of language pairs from source to target, which is empty if the two are the same."""
        for code in (source, target):
            if code not in self.languages:
                raise Refusal(400, f"{code:.20} is not supported")
        way = route(source, target, self.pairs)
        if way is None:
            (start, end) = self.languages[source], self.languages[target]
            raise bad(f"{end.name} ({target}) is not available as a target language from {start.name} ({source})")
        return way

    def translate(
        self, way: Sequence[Pair], texts: Sequence[str], alternatives: int, terms: Terms, stopped: Stopped
    ) -> Steps[list[Reply]]:
        """Translate texts with each model of `way` in turn. The last model provides the alternatives."""
        hidden = [hide(text, terms) for text in texts]
        found = [one.text for one in hidden]
        for pair in way[:-1]:
            found = [one.text for one in (yield from self._translations(pair, found, 0, stopped))]
        last = yield from self._translations(way[-1], found, alternatives, stopped)
        return [reply(*one, alternatives) for one in zip(texts, hidden, last, strict=True)]

    def document(
        self,
        way: Sequence[Pair],
        plan: Planned[T],
        planned: Callable[[T, str], Planned[T]],
        terms: Terms,
        stopped: Stopped,
    ) -> Steps[T]:
        """Translate a document with each model of `way` in turn. `plan` is the plan for the first model, and `planned`
        makes the plans for the others. The first plan inserts the terms, and the others keep them unchanged."""
        pair, *others = way
        yield parsing(plan.texts)
        plan = with_terms(plan, terms)
        found = yield from self._translations(pair, plan.texts, 0, stopped)
        document = plan.render(list(map(aligned, plan.texts, found)))
        if not others:
            return document
        following = planned(document, others[0][1])
        return (yield from self.document(others, following, planned, translations_only(terms), stopped))

    def _translations(
        self, pair: Pair, texts: Sequence[str], alternatives: int, stopped: Stopped
    ) -> Steps[list[Translation]]:
        """Translate texts with one model."""
        translator = self.translator(pair)
        beam = max(translator.options.beam, alternatives + 1)
        options = replace(translator.options, beam=beam, n_best=alternatives + 1)
        found: list[list[tuple[int, Pieces]]] = [[] for _ in texts]
        yield parsing(texts)
        for group in groups(sliced(texts, pair[0], stopped)):
            translations = translator.translate([one.text for one in group], options, stopped)
            for one, translation in zip(group, translations, strict=True):
                found[one.number].append((one.start, translation.sentences))
            yield sum(len(one.text) for one in group) * beam // translator.options.beam
        return [Translation(text, *put_back(text, of), translator) for text, of in zip(texts, found, strict=True)]


def parsing(texts: Sequence[str]) -> int:
    """Return how many characters can be translated in the time that it takes to parse these texts."""
    return sum(map(len, texts)) // SPEED


def sliced(texts: Sequence[str], language: str, stopped: Stopped) -> Iterator[Slice]:
    """Yield the slices of each text, cut between sentences. A slice is much longer than PIECE only if a sentence is."""
    for number, text in enumerate(texts):
        if stopped():
            raise CancelledError
        at = 0
        for piece in pieces(text):
            start = 0
            for end in ends(piece, language, stopped):
                yield Slice(number, at + start, piece[start:end])
                start = end
            if start < len(piece):
                yield Slice(number, at + start, piece[start:])
            at += len(piece)


def ends(text: str, language: str, stopped: Stopped) -> Iterator[int]:
    """Yield the positions where sentences of a long text end, at least PIECE characters apart. The text is read in
    windows. In all windows but the last, only sentence ends in the first half are used, because a protected span may
    cross the window's end."""
    start, size = 0, WINDOW
    while len(text) - start > 2 * PIECE:
        if stopped():
            raise CancelledError
        window, begin = text[start : start + size], start
        is_last = begin + size >= len(text)
        for _, end in undivided(split(window, language), spans(window)):
            if begin + end - start >= PIECE and (is_last or end <= size // 2):
                start = begin + end
                yield start
        if is_last:
            return
        size = WINDOW if start > begin else 2 * size


def groups(slices: Iterable[Slice]) -> Iterator[list[Slice]]:
    """Group neighbouring slices into batches."""
    group: list[Slice] = []
    size = 0
    for one in slices:
        if group and (size + len(one.text) > PIECE or len(group) == AT_ONCE):
            yield group
            group, size = [], 0
        group.append(one)
        size += len(one.text)
    if group:
        yield group


def reply(text: str, hidden: Hidden, translation: Translation, alternatives: int) -> Reply:
    """Return the reply to a text. Its case, final punctuation and surrounding spaces match the text's."""
    texts = translation.alternatives[: 1 + alternatives] if alternatives else [translation.text]
    best, *others = dict.fromkeys(as_source(text, reveal(one, hidden)) for one in texts)
    return Reply(best, tuple(others), tuple(reveal(str(warning), hidden) for warning in translation.warnings))
