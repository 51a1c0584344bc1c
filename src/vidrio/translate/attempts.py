"""A sentence → its translation: tried, and where it did not come through, tried again in another way.

Most sentences are tried once. What came of an attempt tells what to try next; the attempts of all sentences that are
waiting are made together, round after round, so that batches stay as full as in the first one. Then every sentence is
assembled from what came of its attempts.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import repeat
from typing import NamedTuple

from vidrio.hypothesis import Hypothesis, Ids, Noted, Options, SearchAll, best_first, score_of
from vidrio.text.reading.capitals import Form, a_few_small, came_back, other_form
from vidrio.text.reading.parts import CLOSING, Span, around, broken, in_halves
from vidrio.text.reading.prepared import Prepared, Reader, Way, reveal
from vidrio.text.reading.protect import Protected, protected
from vidrio.text.reading.repetition import repeats
from vidrio.text.reading.word_list import WordList
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.translate.engines import Engine
from vidrio.translate.translation import Pieces, Sentence, put_back

NO_REPEAT = 3  # tokens that may not come a second time, where the translation repeated itself
AT_ONCE = 1000  # sentences that are read or judged before somebody may stop it
# In log p, by which a text must be likelier when it is read otherwise, but for a question; and a word or two in small
# letters that did not come back as they were, when they are read as a sentence.
CLEARLY, FAR = 0.5, 1.0
SURE = -2.0  # log p of one or two words; what is likelier is not read otherwise
NEARLY = 0.2  # in score, as likely: a translation without invented words is taken before one that has some
GARBLED = "\ufffd"  # what bytes that make no character are read as
REPETITION, NO_CHARACTERS = "repetitions", "bytes that make no character"  # what a search may have to avoid


class Attempt(NamedTuple):
    """A sentence, and a way to read it and to search for its translation."""

    source: Protected
    whole: bool = False  # the options tell how its translation begins; a part of a sentence is free
    hide_names: bool = True
    otherwise: bool = False  # in its other form, with the accents and capitals that it may lack
    avoid: str = ""
    part: bool = False  # of a sentence, what stands around it is copied


class Outcome(NamedTuple):
    """What came of an attempt."""

    sentence: Sentence | None = None  # with its translation; none, if a symbol was lost
    parts: Sequence[Span] | None = None  # what of it to translate by itself, if not all of it came through
    named: bool = False  # names were hidden
    avoid: str = ""  # what another search for the same has to avoid
    doubted: bool = False  # it can be read otherwise, too

    @property
    def done(self) -> bool:
        """Whether it was the last attempt."""
        return not self.broken and not self.doubted

    @property
    def broken(self) -> bool:
        """Whether something that should have come through did not."""
        return self.parts is not None or bool(self.avoid)


def next_attempts(attempt: Attempt, outcome: Outcome) -> list[Attempt]:
    """What else to try. Parts are the words around a number, an address or a placeholder that did not come through
    (what is copied cannot be lost), or the halves of what did not come to an end."""
    if outcome.avoid:
        return [attempt._replace(avoid=outcome.avoid)]
    if outcome.parts is None:
        return [attempt._replace(otherwise=True, avoid="")] if outcome.doubted else []
    if outcome.named:  # rather a name that the model misspells than words that stand each by themselves around it
        return [attempt._replace(hide_names=False, avoid="")]
    return [Attempt(protected(attempt.source.text[start:end]), part=True) for start, end in outcome.parts]


Tried = dict[Attempt, tuple[Outcome, list[Attempt]]]  # all attempts so far: what came of each, and what is tried next


def assemble(attempt: Attempt, tried: Tried) -> Pieces:
    """What a sentence became: itself, or its parts with what stands between them to be copied."""
    outcome, following = tried[attempt]
    if outcome.done and outcome.sentence is not None:
        return (outcome.sentence,)
    if outcome.parts is not None and not outcome.named and not outcome.avoid:
        parts = [(start, attempt.source.text[start:end]) for start, end in outcome.parts]
        pieces = [assemble(part, tried) for part in following]
        placed = [(start, fit_in(part, of)) for (start, part), of in zip(parts, pieces, strict=True)]
        return put_back(attempt.source.text, placed)[1]
    other = assemble(following[0], tried)
    if outcome.sentence is None or outcome.broken:
        return other
    # The same read otherwise: the likelier one; of a word or two if it is that clearly.
    text, rivals = attempt.source.text, ((outcome.sentence,), other)
    first, second = (sum(of.best.log_prob for of in rival) for rival in rivals)
    if other_form(attempt.source) is Form.QUESTION:
        return rivals[second > first]
    back, also_back = (any(came_back(text, of.alternatives[0]) for of in rival) for rival in rivals)
    if back and also_back:
        return rivals[0]
    enough = FAR if a_few_small(text) and not back else CLEARLY
    return rivals[second > first + enough]


def fitted(part: str, translation: str) -> str:
    """The translation of a part of a sentence, which the model took for a whole one: without the full stop and the
    capital letter that only a whole one has. María is Mary: a name is told by how it begins."""
    if translation.endswith(".") and not translation.endswith("..") and part[-1:] not in CLOSING:
        translation = translation[:-1]
    first, second = translation[:1], translation[1:2]
    names = {word[0] for word in part.split() if word[0].isupper()}
    if part[:1].islower() and first.isupper() and not second.isupper() and first not in names:
        translation = first.lower() + translation[1:]
    return translation


def fit_in(part: str, pieces: Pieces) -> Pieces:
    """What a part of a sentence became, without what only a whole one has."""
    if len(pieces) != 1:  # parts of it had to be translated by themselves, and fit already
        return pieces
    texts = tuple(fitted(part, text) for text in pieces[0].alternatives)
    return (pieces[0]._replace(alternatives=texts),)


@lru_cache(64)
def with_all_found(options: Options) -> Options:
    """The same search, giving all that it finds anyway."""
    return replace(options, n_best=options.beam)


class Searched(NamedTuple):
    """What the search found for a sentence."""

    attempt: Attempt
    prepared: Prepared
    ids: Ids
    hypotheses: Sequence[Hypothesis]
    texts: Sequence[str]
    options: Options


@dataclass(frozen=True, kw_only=True)
class Attempts:
    """Makes attempts, by a model and its options."""

    unknown: int  # the id of the token for what the vocabulary does not hold
    close: Ids  # what closes a source
    reader: Reader
    source: Tokenizer
    target: Tokenizer
    engine: Engine
    options: Options
    turn: AbstractContextManager[object] = field(default_factory=nullcontext)  # one thread at a time prepares
    stopped: Callable[[], bool] = lambda: False  # nobody wants the result any more
    search: SearchAll | None = None  # in place of the engine's, for whole sentences
    words: WordList | None = None  # of the language that it writes
    note: Noted | None = None  # for who looks for words that the model does not know

    def translate(self, sentences: Iterable[Protected], *, hide_names: bool = True) -> list[Pieces]:
        """What becomes of each sentence."""
        whole = bool(self.options.prefix or self.search)
        firsts = [Attempt(sentence, whole, hide_names) for sentence in sentences]
        tried: Tried = {}
        waiting = firsts
        while waiting:
            outcomes = self.try_all(waiting)
            found = {attempt: (outcome, next_attempts(attempt, outcome)) for attempt, outcome in outcomes.items()}
            tried |= found
            new = dict.fromkeys(attempt for _, following in found.values() for attempt in following)
            waiting = [attempt for attempt in new if attempt not in tried]
        return [assemble(attempt, tried) for attempt in firsts]

    def try_all(self, attempts: Iterable[Attempt]) -> dict[Attempt, Outcome]:
        """What comes of each attempt; what can be searched in the same way is searched together."""
        alike: dict[tuple[bool, str], list[Attempt]] = {}
        for attempt in attempts:
            alike.setdefault((attempt.whole, attempt.avoid), []).append(attempt)
        outcomes: dict[Attempt, Outcome] = {}
        for (whole, avoid), some in alike.items():
            outcomes.update(zip(some, self._try(some, self._options(whole, avoid)), strict=True))
        return outcomes

    def _try(self, attempts: Sequence[Attempt], options: Options) -> list[Outcome]:
        """Read, search, decode and judge attempts that differ in their texts and how these are read."""
        own = self.search if attempts[0].whole else None  # in place of the engine's
        free = not options.prefix
        ways = [Way(free, attempt.hide_names, attempt.otherwise) for attempt in attempts]
        # Some at a time, so that nobody waits for long who wants no more of them.
        slices = [slice(start, start + AT_ONCE) for start in range(0, len(attempts), AT_ONCE)]
        prepared: list[Prepared] = []
        sources: list[Ids] = []
        with self.turn:
            for some in slices:
                if self.stopped():
                    raise CancelledError
                prepared += self.reader.prepare_all([attempt.source for attempt in attempts[some]], ways[some])
                given = self.source.encode_batch([read.given for read in prepared[some]])
                sources += [(*ids, *self.close) for ids in given]
        only = own or options.sampling or attempts[0].avoid  # what was asked for; else all that the search finds anyway
        wide = options if only else with_all_found(options)
        searched = own(sources, options) if own else self.engine.search(sources, wide, self.stopped, self.note)
        if attempts[0].avoid:
            searched = self._rescored(sources, searched)
        outcomes: list[Outcome] = []
        for some in slices:
            if self.stopped():
                raise CancelledError
            of_some = [hypotheses[: options.n_best] for hypotheses in searched[some]]
            decoded = iter(
                self.target.decode_batch([hypothesis.ids for hypotheses in of_some for hypothesis in hypotheses])
            )
            texts = [[next(decoded) for _ in hypotheses] for hypotheses in of_some]
            found = [*map(Searched, attempts[some], prepared[some], sources[some], of_some, texts, repeat(options))]
            avoid = [""] * len(found) if own or attempts[0].avoid else self._to_avoid(found)
            judged = self._judged(found, avoid)
            if wide.n_best > 1:
                judged = [
                    self._next_best(of, all_of_it, outcome) if self._may_be_better(outcome) else outcome
                    for outcome, of, all_of_it in zip(judged, found, searched[some], strict=True)
                ]
            outcomes += judged
        return outcomes

    def _may_be_better(self, outcome: Outcome) -> bool:
        """Whether another translation that the search has found may be: something was lost, or a word is invented."""
        if outcome.broken:
            return not outcome.named
        found = outcome.sentence
        if found is None or self.options.sampling or self.search:  # what was drawn, or asked for, stays in its order
            return False
        return self._invented(found.prepared, found.alternatives[0], found.hypotheses[0].ids) > 0

    def _invented(self, read: Prepared, translation: str, ids: Ids) -> int:
        """How many words of a translation are none; a word that is a token is one."""
        if self.words is None or self.target.within_words.isdisjoint(ids):
            return 0
        return len(self.words.invented(f"{read.source.text} {read.given}", translation))

    def _next_best(self, searched: Searched, hypotheses: Sequence[Hypothesis], best: Outcome) -> Outcome:
        """Of the translations with which everything came through the likeliest, or one that is nearly as likely and has
        fewer invented words; what came of the search's best, if it is that or there is none."""
        source = searched.prepared.source
        texts = self.target.decode_batch([hypothesis.ids for hypothesis in hypotheses])
        revealed = [reveal(text, searched.prepared) for text in texts]
        right = [
            (hypothesis, shown)
            for hypothesis, text, shown in zip(hypotheses, texts, revealed, strict=True)
            if hypothesis.ended
            and shown is not None
            and broken(source, shown) is None
            and not any(self._to_avoid([searched._replace(hypotheses=[hypothesis], texts=[text])]))
        ]
        if not right:
            return best
        (likeliest, whole), *_ = right
        # One that is shorter may leave out what the likeliest has no word for.
        shortest = len(whole.split()) - 1
        near = [one for one in right if one[0].score >= likeliest.score - NEARLY and len(one[1].split()) >= shortest]
        # The first of the fewest is the likeliest.
        chosen, text = min(near, key=lambda one: self._invented(searched.prepared, one[1], one[0].ids))
        if chosen is hypotheses[0]:
            return best
        others = [both for both in zip(hypotheses, revealed, strict=True) if both[0] is not chosen]
        kept, kept_texts = zip(*[(chosen, text), *others][: searched.options.n_best], strict=True)
        outcome = self._outcome(searched._replace(hypotheses=kept), kept_texts, None, doubted=best.doubted)
        assert outcome.sentence
        return outcome._replace(sentence=outcome.sentence._replace(passed_over=revealed[0] or texts[0]))

    def _to_avoid(self, searched: Sequence[Searched]) -> list[str]:
        """What repeats itself is searched again, and may not say the same twice; so is what is no text, because the
        bytes in it make no characters. Unless the options have something to say on it."""
        of_bytes = self.target.byte_ids
        may_spell = not of_bytes.isdisjoint(self.options.suppressed)
        may_repeat = bool(self.options.no_repeat_ngram)
        return [
            (NO_CHARACTERS if GARBLED in of.texts[0] else "")
            if not (may_spell or of_bytes.isdisjoint(of.hypotheses[0].ids))
            else REPETITION
            if not may_repeat and repeats(of.ids, of.hypotheses[0].ids)
            else ""
            for of in searched
        ]

    def _judged(self, searched: Sequence[Searched], avoid: Sequence[str]) -> list[Outcome]:
        """Each sentence with its translations; or what to do about it, if it did not come through."""
        texts = [
            of.texts
            if of.prepared.usual and all(text[:1].isupper() for text in of.texts)  # true of most, and quick
            else [reveal(text, of.prepared) for text in of.texts]
            for of in searched
        ]
        parts = [
            None if of.prepared.usual or best is None else broken(of.prepared.source, best)
            for of, (best, *_) in zip(searched, texts, strict=True)
        ]
        doubted = [
            best is not None
            and at is None
            and not (of.options.prefix or of.attempt.otherwise or of.attempt.part)
            and self._is_doubted(of.attempt.source, of.hypotheses[0], best)
            for of, (best, *_), at in zip(searched, texts, parts, strict=True)
        ]
        return [
            Outcome(avoid=what) if what else self._outcome(of, of_it, at, doubted=doubt)
            for what, of, of_it, at, doubt in zip(avoid, searched, texts, parts, doubted, strict=True)
        ]

    def _is_doubted(self, source: Protected, best: Hypothesis, translation: str) -> bool:
        """Whether it may be a question, or lacks accents or capital letters; or a word or two that the model is not
        sure of, or does not translate, and may rather know in another form."""
        if not self.reader.knows_forms:
            return False
        form = other_form(source)
        may_lack = self.reader.accents or source.text.islower()
        if form is Form.QUESTION or (may_lack and self.reader.mended(source) != source):
            return True
        if form is Form.SMALL:
            return best.log_prob < SURE or came_back(source.text, translation)
        return form is Form.ENTRY and best.log_prob < SURE and self.reader.may_be_entry(source.text, translation)

    def _outcome(
        self, searched: Searched, texts: Sequence[str | None], parts: Sequence[Span] | None, *, doubted: bool
    ) -> Outcome:
        read, hypotheses = searched.prepared, searched.hypotheses
        text = read.source.text
        if texts[0] is None:
            return Outcome(None, tuple(around(text, 0, len(text), read.places)), read.named)
        pieces = self.source.pieces(read.given) if self.unknown in searched.ids else ()
        unknown = tuple(read.given[piece.start : piece.end] for piece in pieces if piece.unknown)
        first: dict[str, Hypothesis] = {}  # of those that read alike
        for hypothesis, revealed in zip(hypotheses, texts, strict=True):
            if revealed is not None:
                first.setdefault(revealed, hypothesis)
        found = tuple(first), tuple(first.values())
        sentence = Sentence(text, *found, searched.ids, read, searched.options, unknown, searched.attempt.avoid)
        if parts is None and not hypotheses[0].ended:
            parts = in_halves(text)
        return Outcome(sentence, parts, read.named, "", doubted and parts is None)

    def _options(self, whole: bool, avoid: str) -> Options:
        options = self.options if whole or not self.options.prefix else replace(self.options, prefix=())
        if avoid == NO_CHARACTERS:
            return replace(options, suppressed=(*options.suppressed, *self.target.byte_ids))
        return replace(options, no_repeat_ngram=NO_REPEAT) if avoid == REPETITION else options

    def _rescored(self, sources: Sequence[Sequence[int]], searched: list[list[Hypothesis]]) -> list[list[Hypothesis]]:
        """As likely as the model itself finds them: a search that forbids tokens makes the others likelier."""
        pairs = [
            (ids, hypothesis.ids)
            for ids, hypotheses in zip(sources, searched, strict=True)
            for hypothesis in hypotheses
        ]
        scores = iter(self.engine.score(pairs))

        def rescored(hypothesis: Hypothesis) -> Hypothesis:
            steps = len(hypothesis.ids) + hypothesis.ended
            log_prob = sum(next(scores)[:steps])
            return hypothesis._replace(log_prob=log_prob, score=score_of(log_prob, steps, self.options))

        return [best_first(list(map(rescored, hypotheses))) for hypotheses in searched]
