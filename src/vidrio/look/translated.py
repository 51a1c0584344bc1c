"""What the model reads when a text is translated, and the tokens of the translation, which `look` then traces.

The translator splits a text into sentences and hides what is only copied. A trace should show that translation, not the
result of another search.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from vidrio.engine.engine import Engine
from vidrio.hypothesis import Options
from vidrio.look.run import LoadedModel, Look, Printed, look
from vidrio.look.writing import CommandLine
from vidrio.translate.translation import Sentence, Translation
from vidrio.translate.translator import Translator, cores

COPIED = "translating copies this text as it stands"


@dataclass(frozen=True)
class Reading:
    """What the model reads of a text."""

    text: str  # of the sentence that is shown; empty if nothing is read
    printed: Printed | None = None  # the translation; None: nothing was translated
    copied: str = ""  # a text that is only copied, and so is its own translation
    notes: Sequence[str] = ()  # differences from the original text


def read_as_translated(model: LoadedModel, text: str, options: Options) -> Reading:
    """The first sentence of a text as the translator reads it, and its translation."""
    if model.config.shape != "encoder-decoder":
        return Reading(text)
    if not text.strip():
        return Reading("")
    return reading(model, translator_of(model).translate(text, options))


def translator_of(model: LoadedModel) -> Translator:
    """The translator of an open model."""
    tokenizers = (model.source_tokenizer, model.target_tokenizer)
    return Translator(
        model.path, model.config, model.about, tokenizers, Engine.load(model.path, model.config, workers=cores())
    )


def reading(model: LoadedModel, translation: Translation, shown: int = 0) -> Reading:
    """What the model read of one sentence of a translation."""
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
    """The run of a text that is only copied: nothing is computed."""
    return replace(look(model, ""), text=text, translation=text)


def _others(sentences: Sequence[Sentence], shown: int) -> str:
    """A note that a text has other sentences than the one shown, and how to see them."""
    count, other = len(sentences), sentences[shown + 1 if shown + 1 < len(sentences) else 0]
    return (
        f"translating reads this in {count} sentences (or parts of a long one), each by itself; here is number "
        f"{shown + 1}, “{sentences[shown].source}”; to see another, give it alone: {CommandLine(other.source).look()}"
    )


def how_read(sentence: Sentence) -> str:
    """How a sentence is read, and how its translation is written."""
    read = sentence.masked
    why = [f"{symbol} is {thing}" for symbol, thing in read.things.items()]
    reason = f" ({', '.join(why)})" if why else ""
    return f"read as “{sentence.given}”{reason}; its translation is written “{sentence.text}”"


def look_at(model: LoadedModel, translation: Translation, sentence: int = 0) -> Look:
    """Trace the translation of one sentence. The `notes` of the result say which sentence it is, if there are more, and
    how it was read."""
    read = reading(model, translation, sentence)
    if read.copied:
        return copied(model, read.copied)
    return replace(look(model, read.text, target=read.printed), notes=read.notes)
