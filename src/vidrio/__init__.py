"""Vidrio: a Transformer translator that shows every number.

import vidrio
translator = vidrio.load()                           # the default model, a name or a folder
translation = translator.translate("Hello world")
print(translation)
vidrio.look_inside(translation)                      # all intermediate values
vidrio.why(translation, "mundo")                     # why this word, as an exact sum
"""

from vidrio._version import __version__ as __version__

TYPE_CHECKING = False  # as in `typing`, which takes a while to import
if TYPE_CHECKING:
    from pathlib import Path

    from vidrio.look.run import Look
    from vidrio.look.why_word import Why
    from vidrio.translate.translation import Translation
    from vidrio.translate.translator import Translator


def load(name: "str | Path | None" = None, workers: int | None = None, *, shortlist: bool = False) -> "Translator":
    """Load a model that translates, by name or folder; by default `en-es`. `workers` is the number of threads that
    translate at the same time, by default one per core. With `shortlist`, a model that has a shortlist considers only
    the tokens on it."""
    from vidrio.translate.translator import Translator

    return Translator.load(name, workers, shortlist=shortlist)


def look_inside(translation: "Translation", sentence: int = 0) -> "Look":
    """Trace the translation of one of its sentences: all intermediate values, by address."""
    from vidrio.look.run import open_model
    from vidrio.look.translated import look_at

    return look_at(open_model(translation.translator.folder), translation, sentence)


def why(translation: "Translation", word: str, rival: str | None = None, sentence: int = 0) -> "Why":
    """Explain a word of a translation: its logit minus that of `rival` (by default the runner-up), as an exact sum."""
    from vidrio.look.why_word import why_word

    return why_word(look_inside(translation, sentence), word, rival)
