"""Translates a text as `vidrio translate` does, so that `look` traces the translation that users see.

The translator splits a text into sentences, and replaces words that it copies verbatim with placeholder symbols.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from vidrio.engine.engine import Engine
from vidrio.hypothesis import Options
from vidrio.look.run import LoadedModel, Look, Printed, look
from vidrio.look.writing import CommandLine
from vidrio.translate.translation import Sentence, Translation
from vidrio.translate.translator import Translator, cores

COPIED = "this text is copied unchanged"


@dataclass(frozen=True)
class Reading:
    """The model's input for a text."""

    text: str  # the input for the sentence to trace; empty if there is none
    printed: Printed | None = None  # the translation, or None if nothing was translated
    copied: str = ""  # the text, if it is copied unchanged without running the model
    notes: Sequence[str] = ()  # how the input differs from the original text


def read_as_translated(model: LoadedModel, text: str, options: Options) -> Reading:
    """Translate a text, and return the model's input for the first sentence, with its translation."""
    if model.config.shape != "encoder-decoder":
        return Reading(text)
    if not text.strip():
        return Reading("")
    return reading(model, translator_of(model).translate(text, options))


def translator_of(model: LoadedModel) -> Translator:
    """Return a translator for a loaded model."""
    tokenizers = (model.source_tokenizer, model.target_tokenizer)
    return Translator(
        model.path, model.config, model.about, tokenizers, Engine.load(model.path, model.config, workers=cores())
    )


def reading(model: LoadedModel, translation: Translation, shown: int = 0) -> Reading:
    """Return the model's input for one sentence of a translation."""
    if not translation.sentences:
        return Reading("", copied=translation.source)
    sentence = translation.sentences[shown]
    several = len(translation.sentences) > 1
    notes = [_others(translation.sentences, shown)] if several else []
    whole = sentence.source if several else translation.source
    if model.source_tokenizer.encode(sentence.given) != model.source_tokenizer.encode(whole):
        around = "" if several or sentence.source == whole.strip() else "; what stands around it is copied"
        notes.append(f"{how_read(sentence)}{around}")
    elif sentence.text != model.target_tokenizer.decode(sentence.best.ids):
        notes.append(f"its translation is written “{sentence.text}”")
    printed = Printed(sentence.best, sentence.options, translation.translator.engine)
    return Reading(sentence.given, printed, notes=notes)


def copied(model: LoadedModel, text: str) -> Look:
    """Return the run of a text that is copied unchanged. The run has no values."""
    return replace(look(model, ""), text=text, translation=text)


def _others(sentences: Sequence[Sentence], shown: int) -> str:
    """Return a note about the other sentences of the text, and how to see them."""
    count, other = len(sentences), sentences[shown + 1 if shown + 1 < len(sentences) else 0]
    return (
        f"the translator splits this into {count} sentences (or parts of a long one); here is number "
        f"{shown + 1}, “{sentences[shown].source}”; to see another, enter it alone: {CommandLine(other.source).look()}"
    )


def how_read(sentence: Sentence) -> str:
    """Describe how a sentence was preprocessed, and give its final translation."""
    read = sentence.masked
    why = [f"{symbol} is {thing}" for symbol, thing in read.things.items()]
    reason = f" ({', '.join(why)})" if why else ""
    return f"read as “{sentence.given}”{reason}; its translation is written “{sentence.text}”"


def look_at(model: LoadedModel, translation: Translation, sentence: int = 0) -> Look:
    """Trace the translation of one sentence. The `notes` of the result state how it was preprocessed and, if there are
    several sentences, which one it is."""
    read = reading(model, translation, sentence)
    if read.copied:
        return copied(model, read.copied)
    return replace(look(model, read.text, target=read.printed), notes=read.notes)
