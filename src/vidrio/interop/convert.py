"""Convert another program's model to a model folder, or a model folder to another program's format. The model's card
and licence are kept. If a conversion fails, nothing is written."""

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from vidrio.data.lock import locked
from vidrio.errors import ModelError
from vidrio.interop import huggingface, marian, registry
from vidrio.interop.foreign import CARD, make_folder, opening_of
from vidrio.interop.to_argos import export_argos
from vidrio.interop.to_ctranslate2 import export_ctranslate2
from vidrio.interop.to_huggingface import export_huggingface
from vidrio.interop.to_marian import export_marian
from vidrio.model import find as models
from vidrio.model.files import write_atomically, write_output
from vidrio.model.folder import About

NAME = re.compile(r"[\w.-]+/[\w.-]+")  # Helsinki-NLP/opus-mt-en-es
FILES = (
    *("vocab.json", "target_vocab.json", "source.spm", "target.spm"),
    *("generation_config.json", "tokenizer_config.json", "README.md", "LICENSE"),
)


def import_model(
    source: str,
    to: Path,
    *,
    target: str = "",
    languages: tuple[str, str] | None = None,
    mirror: registry.Mirror = registry.MOZILLAS,
    int8: bool = True,
) -> About:
    """Import a model as the new model folder `to`. If the import fails, the folder is not created.

    `target` selects the target language of a multilingual model. `languages` overrides the model's language codes.
    If `source` is a language pair, its model is downloaded from `mirror`. Without `int8`, the engine uses float32.
    """
    path, origin = Path(source), source
    with new_folder(to) as (made, beside):
        is_pair = re.fullmatch(registry.PAIR, source) and not path.exists()  # en-fr
        offer = registry.choose(source, mirror.address) if is_pair else None
        if offer:  # keep the downloaded files if the import fails
            path, origin = to.parent / f".{to.name}.fetched", f"{mirror.address}/{offer.files['model']['path']}"
            registry.fetch(offer, path, mirror)
        elif not path.is_dir():
            path = fetched(source, beside / "fetched")
        foreign = (marian if marian.is_folder(path) else huggingface).read_folder(path)
        if offer:
            scores = [{"test": "FLORES-200+", "metric": name, "value": value} for name, value in offer.scores.items()]
            foreign = replace(foreign, languages=offer.languages, scores=scores)
        foreign = replace(foreign, config=replace(foreign.config, int8=int8))
        own, into = foreign.languages
        languages = languages or (own, target or into)
        about = make_folder(foreign, made, origin, opening=opening_of(foreign, target), languages=languages)
    if offer:
        shutil.rmtree(path, ignore_errors=True)
    return about


def export_model(name: str, program: str, to: Path, lines: Sequence[str] = ()) -> None:
    """Export a model to the new folder `to` or, for Argos, to the file `to`. The export for Marian needs `lines` in
    the source language, to calibrate the activation scales."""
    folder = models.find(name)
    if program == "argos":
        write_output(to, export_argos(folder))
        return
    if program == "marian":
        files = export_marian(folder, lines)
    else:
        files = {"hf": export_huggingface, "ctranslate2": export_ctranslate2}[program](folder)
    with new_folder(to) as (made, _):
        if (folder / CARD).is_file():
            files[CARD] = (folder / CARD).read_bytes()
        for file, data in files.items():
            write_atomically(made / file, data)


def fetched(name: str, to: Path) -> Path:
    """Download the files of a MarianMT model, and no others, from the Hugging Face Hub to the folder `to`."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    if not NAME.fullmatch(name) or ".." in name or Path(name).exists():
        raise ModelError(
            f"{name} is not a model that can be imported",
            found="neither a folder, nor a pair such as en-fr, nor a name such as Helsinki-NLP/opus-mt-en-es",
            do="check the path",
        )
    try:
        for file in ("config.json", *huggingface.WEIGHTS, *FILES):
            if file in huggingface.WEIGHTS and any((to / other).is_file() for other in huggingface.WEIGHTS):
                continue  # the parameters have been downloaded in the other format
            try:
                hf_hub_download(name, file, local_dir=to)
            except EntryNotFoundError as error:  # the file does not exist, or the Hub is unreachable
                if isinstance(error, LocalEntryNotFoundError):
                    raise
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError) as error:
        found = str(error).strip().partition("\n")[0]
        raise ModelError(f"{name} cannot be fetched", found=found, do="check the name and the network") from None
    if not (to / "config.json").is_file():
        raise ModelError(f"{name} is not a MarianMT model", found="it has no config.json", do="check the name")
    return to


@contextmanager
def new_folder(to: Path) -> Iterator[tuple[Path, Path]]:
    """Yield a temporary path, which is renamed to `to` on success, and its parent folder, which can hold other
    temporary files and is removed at the end. A lock prevents two commands from creating the same folder."""
    to.parent.mkdir(parents=True, exist_ok=True)
    name, do = to.resolve().name, "wait for it to finish, or choose another folder"
    with locked(to.parent / f".{name}.vidrio-lock", f"writing {to}", do):
        if to.exists() and (not to.is_dir() or any(to.iterdir())):
            raise ModelError(f"{to} already exists", found="it is not empty", do="remove it, or choose another folder")
        beside = to.parent / f".{name}.vidrio-part"
        shutil.rmtree(beside, ignore_errors=True)  # from a command that was killed
        beside.mkdir()
        try:
            yield beside / name, beside
            if to.exists():
                to.rmdir()
            (beside / name).replace(to)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
