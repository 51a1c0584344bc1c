"""Vidrio: a Transformer translator that shows every number.

import vidrio
translator = vidrio.load()                           # the default model; or pass a name or folder
translation = translator.translate("Hello world")
print(translation)
vidrio.look_inside(translation)                      # all intermediate values
vidrio.why(translation, "mundo")                     # why this word, as an exact sum
"""

from vidrio._version import __version__ as __version__

TYPE_CHECKING = False  # avoids importing `typing`, which is slow
if TYPE_CHECKING:
    from pathlib import Path

    from vidrio.look.run import Look
    from vidrio.look.why_word import Why
    from vidrio.translate.translation import Translation
    from vidrio.translate.translator import Translator


def load(name: "str | Path | None" = None, workers: int | None = None, *, shortlist: bool = False) -> "Translator":
    """Load a translation model by name or folder, by default `en-es`. `workers` is the number of threads that translate
    in parallel, by default one per core. `shortlist` restricts the search to the tokens on the model's shortlist, if it
    has one."""
    from vidrio.translate.translator import Translator

    return Translator.load(name, workers, shortlist=shortlist)


def look_inside(translation: "Translation", sentence: int = 0) -> "Look":
    """Trace the translation of a sentence, and return all intermediate values by address."""
    from vidrio.look.run import open_model
    from vidrio.look.translated import look_at

    return look_at(open_model(translation.translator.folder), translation, sentence)


def why(translation: "Translation", word: str, rival: str | None = None, sentence: int = 0) -> "Why":
    """Explain a word in a translation: its logit minus that of `rival` (default: the runner-up), as an exact sum."""
    from vidrio.look.why_word import why_word

    return why_word(look_inside(translation, sentence), word, rival)
