"""A model folder → a folder (or package) for another program. All of it or nothing; card and licence come along."""

from pathlib import Path

from vidrio.interop.foreign import CARD
from vidrio.interop.importing import new_folder
from vidrio.interop.to_argos import export_argos
from vidrio.interop.to_ctranslate2 import export_ctranslate2
from vidrio.interop.to_huggingface import export_huggingface
from vidrio.model import find as models
from vidrio.model.files import write_atomically


def export_model(name: str, program: str, to: Path) -> None:
    """Write what `program` loads into the new folder `to` (or, for Argos, the package `to`)."""
    folder = models.find(name)
    if program == "argos":
        export_argos(folder, to)
        return
    with new_folder(to) as (made, _):
        files = {"hf": export_huggingface, "ctranslate2": export_ctranslate2}[program](folder, made)
        if (folder / CARD).is_file():
            files[CARD] = (folder / CARD).read_bytes()
        for file, data in files.items():
            write_atomically(made / file, data)
