"""What of a TEXT the model reads when it is translated: `look`, `why` and `check` show just that."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from vidrio.look.run import Opened
    from vidrio.search import Options
    from vidrio.translate.translation import Sentence

typed_option = click.option("--as-typed", "typed", is_flag=True, help="Read TEXT itself, not what translating reads.")


def as_read(model: "Opened", text: str, options: "Options", *, typed: bool) -> str:
    """The text as the translator gives it to the model: names behind symbols, capitals as small letters. A line on
    stderr says so, where that is not the text itself."""
    from vidrio.translate.engines import Glass
    from vidrio.translate.translator import Translator

    if typed or model.config.shape != "encoder-decoder":
        return text
    tokenizers = (model.source_tokenizer, model.target_tokenizer)
    translator = Translator(model.path, model.config, model.about, tokenizers, Glass(model.machine))
    given = translator.given(text)
    if given == [text] or not given:
        return text
    sentences = translator.translate(text, options).sentences if len(given) == 1 else ()
    if len(sentences) != 1:
        what = f"{len(given)} sentences" if len(given) > 1 else "parts"
        click.echo(f"note: translating reads it in {what}, each by itself; here it is read as one", err=True)
        return text
    if model.source_tokenizer.encode(sentences[0].given) == model.source_tokenizer.encode(text):
        return text
    click.echo(f"{told(sentences[0])}; --as-typed reads the text itself", err=True)
    return sentences[0].given


def told(sentence: "Sentence") -> str:
    """How a sentence is read, and how its translation is written."""
    from vidrio.draw.show import visible
    from vidrio.text.reading.capitals import Form

    read = sentence.prepared
    form = [] if read.form is Form.PLAIN else [read.form.value]
    hidden = zip(read.symbols, read.places, strict=True)
    why = [*form, *(f"{symbol} is {sentence.source[place.start : place.end]}" for symbol, place in hidden)]
    reason = f" ({visible(', '.join(why))})" if why else ""
    return f"read as “{visible(sentence.given)}”{reason}; its translation is written “{visible(sentence.text)}”"
