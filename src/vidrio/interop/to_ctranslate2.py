"""A model folder → what `ctranslate2.Translator` loads, tokens to tokens, with the tokenizers beside it."""

import json
from pathlib import Path

from vidrio.fast.export import export
from vidrio.interop.to_huggingface import marian_tokenizer, object_bytes
from vidrio.model.files import write_atomically
from vidrio.model.folder import TOKENIZERS, read_config
from vidrio.text.tokens.tokenizer import read_tokenizers

POSITIONS = 1024  # tokens of a source that CTranslate2 takes unless told otherwise; Argos tells it nothing


def export_ctranslate2(folder: Path, to: Path) -> dict[str, bytes]:
    """Write the engine's files into the folder `to`; those of the tokenizers."""
    write_engine(folder, to)
    config, about = read_config(folder)
    source, target = read_tokenizers(folder, config)
    if source.sentence_pieces:
        return marian_tokenizer(config, about, source, target)
    return {name: (folder / name).read_bytes() for name in TOKENIZERS if (folder / name).is_file()}


def write_engine(folder: Path, to: Path) -> None:
    """CTranslate2's own files. Vidrio closes a source itself; others want that told."""
    export(folder, to, positions=POSITIONS)
    (to / "vidrio.json").unlink()
    settings = json.loads((to / "config.json").read_text(encoding="utf-8"))
    settings["add_source_eos"] = read_config(folder)[0].source_end
    write_atomically(to / "config.json", object_bytes(settings))
