"""A sentence → its translation: read, searched, and where it did not come through, read again in another way.

Most sentences are read once. The others tell one after the other what else they want to be read as, and what all of
them want at the same time is searched together, in batches as full as those of the first reading.
"""

import re
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from vidrio.model.config import ModelConfig
from vidrio.search import Hypothesis, Options, SearchAll, best_first, score_of
from vidrio.text.reading.capitals import SEVERAL, came_back
from vidrio.text.reading.parts import Span, around, broken, fitted, in_halves
from vidrio.text.reading.prepared import Masked, reveal
from vidrio.text.reading.reader import Reader
from vidrio.text.reading.repetition import circles
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.translate.engines import Engine
from vidrio.translate.translation import Found, Sentence, put_back

NO_REPEAT = 3  # tokens that may not come a second time, where the translation went round in circles
CLEARLY = 1.0  # in log p, by which one reading must be likelier than another
GARBLED = "\ufffd"  # what bytes that make no character are read as
CIRCLES, BYTES = "circles", "bytes"  # what a search may have to avoid
LINE_BREAK = re.compile(r"\s*[\r\n]\s*")


class Reading(NamedTuple):
    """A sentence, and a way to read it and to search for its translation."""

    text: str
    whole: bool  # the options tell how its translation begins; that of a part begins as it likes
    hide_names: bool = True
    several: int = SEVERAL  # words in small letters from which on they are read as a sentence
    avoid: str = ""


class Read(NamedTuple):
    """What came of it."""

    found: Found = ()  # nothing, if a symbol was lost
    again: list[Span] | None = None  # what of the sentence to translate by itself, if not all of it came through
    named: bool = False  # names were hidden
    avoid: str = ""  # what another search for the same has to avoid


# A sentence asks for readings, or how likely the model finds what it has become, until it knows what it becomes.
Asked = Reading | Found
Answer = Any  # a Read; a log-probability
Steps = Generator[list[Asked], list[Answer], Found]
NOBODY_WAITS = nullcontext()


@dataclass(frozen=True)
class Readings:
    """Translates sentences, each by itself, by a model and its options."""

    config: ModelConfig
    symbols: str  # that the model has learned to copy
    source: Tokenizer
    target: Tokenizer
    bytes: frozenset[int]  # of the target's tokens, those that stand for one
    reader: Reader
    engine: Engine
    options: Options
    turn: AbstractContextManager[object] = NOBODY_WAITS  # for what one thread at a time shall prepare
    stopped: Callable[[], bool] = lambda: False  # nobody wants the result any more
    search: SearchAll | None = None  # in place of the engine's, for whole sentences

    def find(self, sentences: Sequence[str], *, hide_names: bool = True) -> list[Found]:
        """The translation of each sentence, or of parts of it, with what stands between them to be copied."""
        whole = bool(self.options.prefix or self.search)
        work = side_by_side([self._steps(Reading(text, whole, hide_names)) for text in sentences])
        known: dict[Asked, Answer] = {}
        try:
            asked = next(work)
            while True:
                known |= self._answers(dict.fromkeys(one for one in asked if one not in known))
                asked = work.send([known[one] for one in asked])
        except StopIteration as done:
            found: list[Found] = done.value
            return found

    def _steps(self, reading: Reading) -> Steps:
        """What becomes of one sentence. Parts are the words around a number, an address or a placeholder that did not
        come through (what is copied cannot be lost); and its halves, where the translation did not come to an end."""
        text = reading.text
        read: Read
        [read] = yield [reading]
        if read.avoid:
            [read] = yield [reading._replace(avoid=read.avoid)]
        if read.again is None:
            # A word or two in small letters are read as they stand; if one comes back as it was, as a sentence.
            if reading.several > 1 and is_back(text, read.found) and self._forms(reading.whole):
                other = yield from self._steps(reading._replace(several=1))
                if not is_back(text, other):
                    before, after = yield [read.found, other]
                    return other if after > before + CLEARLY else read.found
            return read.found
        if read.named:  # rather a name that the model misspells than words that stand each by themselves around it
            return (yield from self._steps(reading._replace(hide_names=False)))
        parts = [text[a:b] for a, b in read.again]
        found = yield from side_by_side([self._steps(Reading(part, whole=False)) for part in parts])
        placed = zip((a for a, _ in read.again), map(fit_in, parts, found), strict=True)
        return put_back(text, placed)[1]

    def _answers(self, asked: Iterable[Asked]) -> dict[Asked, Answer]:
        """To each its answer; what can be searched in the same way is searched together."""
        ways: dict[tuple[bool, str], list[Reading]] = {}
        doubted: list[Found] = []
        for one in asked:
            if isinstance(one, Reading):
                ways.setdefault((one.whole, one.avoid), []).append(one)
            else:
                doubted.append(one)
        answers: dict[Asked, Answer] = dict(zip(doubted, self._likely(doubted), strict=True)) if doubted else {}
        for way, readings in ways.items():
            answers |= zip(readings, self._read(readings, *way), strict=True)
        return answers

    def _read(self, readings: Sequence[Reading], whole: bool, avoid: str) -> list[Read]:
        options, forms = self._avoiding(whole, avoid), self._forms(whole)
        close = [self.config.special.end] if self.config.source_end else []
        with self.turn:
            masked = [
                self.reader.read(text, self.symbols, forms=forms, hide_names=hide_names, several=several)
                for text, _, hide_names, several, _ in readings
            ]
            given = [LINE_BREAK.sub(" ", one.text) for one in masked]  # text may be wrapped at a fixed width
            sources = [(*ids, *close) for ids in self.source.encode_batch(given)]
        if whole and self.search:
            searched = self.search(sources, options)
        else:
            searched = self.engine.search(sources, options, self.stopped)
        if avoid:
            searched = self._rescored(sources, searched)
        texts = iter(self.target.decode_batch([one.ids for hypotheses in searched for one in hypotheses]))
        return [
            self._judged(*one, [next(texts) for _ in one[-1]])
            for one in zip(readings, masked, given, sources, searched, strict=True)
        ]

    def _judged(
        self,
        reading: Reading,
        masked: Masked,
        given: str,
        ids: Sequence[int],
        hypotheses: Sequence[Hypothesis],
        decoded: Sequence[str],
    ) -> Read:
        """A sentence with its translations; or what to do about it, if it did not come through."""
        sentence = reading.text
        if avoid := "" if reading.avoid else self._to_avoid(reading.whole, ids, hypotheses[0].ids, decoded[0]):
            return Read(avoid=avoid)
        texts = [reveal(text, sentence, masked) for text in decoded]
        if texts[0] is None:
            return Read(again=list(around(sentence, 0, len(sentence), masked.places)), named=masked.named)
        came = [(text, hypothesis) for text, hypothesis in zip(texts, hypotheses, strict=True) if text is not None]
        texts_kept, kept = zip(*came, strict=True)
        one = Sentence(sentence, texts_kept, kept, tuple(ids), self._unknown(given, ids), given=given, masked=masked)
        again = broken(sentence, one.text)
        if again is None and not one.best.ended:
            again = in_halves(sentence)
        return Read((one,), again, masked.named)

    def _to_avoid(self, whole: bool, source: Sequence[int], target: Sequence[int], text: str) -> str:
        """What went round in circles is searched again, and may not say the same twice; so is what is no text, because
        the bytes in it make no characters. Unless the options have something to say on it, or the search is another."""
        if whole and self.search:
            return ""
        if not self.bytes.isdisjoint(target) and self.bytes.isdisjoint(self.options.suppressed):
            return BYTES if GARBLED in text else ""
        return CIRCLES if not self.options.no_repeat_ngram and circles(source, target) else ""

    def _avoiding(self, whole: bool, avoid: str) -> Options:
        options = self.options if whole else replace(self.options, prefix=())
        if avoid == BYTES:
            return replace(options, suppressed=(*options.suppressed, *self.bytes))
        return replace(options, no_repeat_ngram=NO_REPEAT) if avoid == CIRCLES else options

    def _rescored(self, sources: Sequence[Sequence[int]], searched: list[list[Hypothesis]]) -> list[list[Hypothesis]]:
        """As likely as the model itself finds them: a search that forbids tokens makes the others likelier."""
        pairs = [(ids, one.ids) for ids, hypotheses in zip(sources, searched, strict=True) for one in hypotheses]
        told = iter(self.engine.score(pairs))

        def rescored(hypothesis: Hypothesis) -> Hypothesis:
            steps = len(hypothesis.ids) + hypothesis.ended
            log_prob = sum(next(told)[:steps])
            return replace(hypothesis, log_prob=log_prob, score=score_of(log_prob, steps, self.options))

        return [best_first(list(map(rescored, hypotheses))) for hypotheses in searched]

    def _likely(self, found: Sequence[Found]) -> list[float]:
        """Log p of translations, as the model itself finds it."""
        told = iter(self.engine.score([(one.source_ids, one.best.ids) for those in found for one in those]))
        return [sum(sum(next(told)) for _ in those) for those in found]

    def _forms(self, whole: bool) -> bool:
        return self.reader.knows_forms and not (whole and self.options.prefix)

    def _unknown(self, given: str, ids: Sequence[int]) -> tuple[str, ...]:
        if self.config.special.unk not in ids:
            return ()
        return tuple(given[piece.start : piece.end] for piece in self.source.pieces(given) if piece.unknown)


def side_by_side(works: Sequence[Steps]) -> Generator[list[Asked], list[Answer], list[Found]]:
    """Each goes as far as it can by itself; what all of them ask then is asked together."""
    found: dict[int, Found] = {}
    going: list[tuple[int, Steps, list[Answer] | None]] = [(n, work, None) for n, work in enumerate(works)]
    while going:
        asking = []
        for n, work, answers in going:
            try:
                asking.append((n, work, next(work) if answers is None else work.send(answers)))
            except StopIteration as done:
                found[n] = done.value
        told = iter((yield [one for *_, asked in asking for one in asked]) if asking else ())
        going = [(n, work, [next(told) for _ in asked]) for n, work, asked in asking]
    return [found[n] for n in range(len(works))]


def is_back(text: str, sentences: Found) -> bool:
    """Whether a word stands in the translation as it was."""
    return any(came_back(text, sentence.text) for sentence in sentences)


def fit_in(part: str, sentences: Found) -> Found:
    """What a part of a sentence became, without what only a whole one has."""
    if len(sentences) != 1:  # parts of it had to be translated by themselves, and fit already
        return sentences
    texts = tuple(fitted(part, text) for text in sentences[0].alternatives)
    return (sentences[0]._replace(alternatives=texts),)
