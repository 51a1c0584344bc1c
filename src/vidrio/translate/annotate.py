"""What costs another pass through the model: the probability of each token, alignment, confidence.

Alignment and confidence need NumPy, so they are imported when they are asked for."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vidrio.errors import InputError
from vidrio.hypothesis import Hypothesis
from vidrio.text.reading.words import Place
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.translate.engines import Engine
from vidrio.translate.translation import Sentence, Translation, Word

if TYPE_CHECKING:
    from vidrio.translate.confidence import Confidence

Look = Callable[[Path, Translation, int], Any]  # a model's folder, a translation, which sentence → the run


class ModelAnnotator:
    """Tells more of the translations of a model. `look` comes from above, where the glass is."""

    def __init__(
        self, folder: Path, end: int, tokenizers: tuple[Tokenizer, Tokenizer], engine: Engine, look: Look | None
    ) -> None:
        self.folder, self.engine, self._end = folder, engine, end
        self._source, self._target = tokenizers
        self._look = look

    def with_token_scores(self, translations: Sequence[Translation]) -> list[Translation]:
        """The same, every token with its log-probability (the fast engine's search leaves them out)."""
        pairs = [(s.source_ids, s.best.ids) for translation in translations for s in translation.sentences]
        log_probs = iter(self.engine.score(pairs))

        def scored(sentence: Sentence) -> Sentence:
            taken = len(sentence.best.ids) + sentence.best.ended  # a hypothesis that was cut took no end token
            best = sentence.best._replace(token_log_probs=tuple(next(log_probs)[:taken]))
            return sentence._replace(hypotheses=(best, *sentence.hypotheses[1:]))

        return _each(translations, scored)

    def with_alignment(self, translations: Sequence[Translation]) -> list[Translation]:
        """The same, with the words of each sentence aligned."""
        from vidrio.translate.alignment import links, source_tokens

        pairs = [(s.source_ids, s.best.ids) for translation in translations for s in translation.sentences]
        attention = iter(self.engine.attend(pairs))

        def aligned(sentence: Sentence) -> Sentence:
            source = source_tokens(sentence.prepared, self._source)
            found = links((sentence.source, source), (sentence.text, self._target_tokens(sentence)), next(attention))
            return sentence._replace(alignment=found)

        return _each(translations, aligned)

    def with_confidence(self, translations: Sequence[Translation]) -> list[Translation]:
        """The same, each sentence and word with the confidence that the model's folder tells how to judge."""
        from vidrio.translate.confidence import sentence_feature

        confidence = self.calibration

        def judged(sentence: Sentence) -> Sentence:
            words = tuple(
                word._replace(confidence=confidence.word(probability))
                for word, probability in self.word_features(sentence)
            )
            feature = sentence_feature(sentence.best.token_log_probs)
            return sentence._replace(confidence=confidence.sentence(feature), words=words)

        return _each(self.with_token_scores(translations), judged)

    @cached_property
    def calibration(self) -> "Confidence":
        """What the model's folder tells of its confidence."""
        from vidrio.translate.confidence import read

        return read(self.folder)

    def word_features(self, sentence: Sentence) -> list[tuple[Word, float]]:
        """The words of a translation whose tokens have scores, each with its probability."""
        from vidrio.translate.confidence import word_features

        return word_features(sentence.text, self._target_tokens(sentence), sentence.best.token_log_probs)

    def token_names(self, hypothesis: Hypothesis) -> list[str]:
        """The tokens of a translation, the end token included if it ended."""
        return list(map(self._target.token, (*hypothesis.ids, *[self._end] * hypothesis.ended)))

    def look(self, translation: Translation, sentence: int) -> Any:
        """Every number on the way of one sentence, computed again by `glass/`."""
        if self._look is None:
            raise InputError("this translator was loaded without the glass", do="load it by vidrio.load")
        return self._look(self.folder, translation, sentence)

    def _target_tokens(self, sentence: Sentence) -> list[Place]:
        from vidrio.translate.alignment import target_tokens

        return target_tokens(sentence.best.ids, sentence.prepared, self._target)


def _each(translations: Sequence[Translation], change: Callable[[Sentence], Sentence]) -> list[Translation]:
    return [replace(one, sentences=tuple(map(change, one.sentences))) for one in translations]
