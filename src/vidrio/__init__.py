"""Vidrio: a Transformer translator made of glass.

import vidrio
translator = vidrio.load()                           # the default model; or a name, or a folder
print(translator.translate("Hello world"))
"""

from vidrio._version import __version__ as __version__

TYPE_CHECKING = False  # as in `typing`, which takes a while to import
if TYPE_CHECKING:
    from pathlib import Path

    from vidrio.look.run import Look
    from vidrio.translate.translation import Translation
    from vidrio.translate.translator import Translator


def load(name: "str | Path | None" = None, workers: int | None = None) -> "Translator":
    """A model that translates, by name or folder. What it needs is imported now, and not before."""
    from vidrio.translate.translator import Translator

    translator = Translator.load(name, workers)
    translator.look = _look
    return translator


def _look(folder: "Path", translation: "Translation", sentence: int) -> "Look":
    """What `Translation.look` gives."""
    from vidrio.look.run import open_model
    from vidrio.look.translated import look_at

    return look_at(open_model(folder), translation, sentence)
