"""Translate with a chain of models: Spanish to English, then English to French."""

from collections.abc import Sequence
from itertools import pairwise

from vidrio.errors import ConfigError
from vidrio.translate.translator import Translator


def load_chain(names: Sequence[str | None], workers: int | None = None, *, shortlist: bool = False) -> list[Translator]:
    """Load a chain of models, or only the default model if no names are given. The source language of each model must
    be the target language of the previous one."""
    translators = [Translator.load(name, workers, shortlist=shortlist) for name in names or [None]]
    for one, following in pairwise(translators):
        written, read = one.about.target_language, following.about.source_language
        if written != read or not read:
            raise ConfigError(
                "these models cannot follow each other",
                found=f"{one.folder.name} writes {written or '?'}, {following.folder.name} reads {read or '?'}",
                do="list the models in the order in which they are applied: -m es-en -m en-fr",
            )
    return translators
