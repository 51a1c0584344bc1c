"""Vidrio: a Transformer translator made of glass.

import vidrio
translator = vidrio.load()                           # the default model; or a name, or a folder
print(translator.translate("Hello world"))
"""

from vidrio._version import __version__ as __version__

TYPE_CHECKING = False  # as in `typing`, which takes a while to import
if TYPE_CHECKING:
    from pathlib import Path

    from vidrio.translate.translator import Translator


def load(name: "str | Path | None" = None, *, engine: str = "auto", workers: int | None = None) -> "Translator":
    """A model that translates, by name or folder. What it needs is imported now, and not before."""
    from vidrio.translate.translator import Translator

    return Translator.load(name, engine=engine, workers=workers)
