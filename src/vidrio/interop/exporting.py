"""A model folder → a folder (or package) for another program. All of it or nothing; card and licence come along."""

import json
from pathlib import Path

from vidrio.fast.export import export
from vidrio.interop.importing import new_folder
from vidrio.interop.to_argos import export_argos
from vidrio.interop.to_huggingface import export_huggingface
from vidrio.model import find as models
from vidrio.model.files import write_atomically
from vidrio.model.folder import TOKENIZERS, read_config
from vidrio.model.json_text import json_text

CARD = "README.md"


def export_model(name: str, program: str, to: Path) -> None:
    """Write what `program` loads into the new folder `to` (or, for Argos, the package `to`)."""
    folder = models.find(name)
    if program == "argos":
        export_argos(folder, to)
        return
    with new_folder(to) as (made, _):
        made.mkdir()
        if program == "onnx":
            from vidrio.interop.to_onnx import export_onnx

            export_onnx(folder, made)
        else:
            (export_huggingface if program == "hf" else export_ctranslate2)(folder, made)
        if (folder / CARD).is_file():
            write_atomically(made / CARD, (folder / CARD).read_bytes())


def export_ctranslate2(folder: Path, to: Path) -> None:
    """What `ctranslate2.Translator` loads, tokens to tokens, with the tokenizers beside it."""
    config, _ = read_config(folder)
    to.rmdir()
    export(folder, to)
    (to / "vidrio.json").unlink()
    told = json.loads((to / "config.json").read_text(encoding="utf-8"))
    told["add_source_eos"] = config.source_end  # Vidrio does that itself, others do not
    write_atomically(to / "config.json", f"{json_text(told, indent=2)}\n".encode())
    for file in TOKENIZERS:
        if (folder / file).is_file():
            write_atomically(to / file, (folder / file).read_bytes())
