"""Another program's model → a model folder, and back: all of it or nothing, with its card and licence."""

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
from vidrio.model.files import write_atomically
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
    """Make the model folder `to`, or nothing. `target` is a language, for a model that translates into several;
    `languages` are what to call both; `mirror` is where the models of language pairs are fetched; without `int8` the
    engine multiplies in float32."""
    path, origin = Path(source), source
    with new_folder(to) as (made, beside):
        is_pair = re.fullmatch(registry.PAIR, source) and not path.exists()  # en-fr
        offer = registry.choose(source, mirror.address) if is_pair else None
        if offer:  # what was fetched stays for another try
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
    """Write what `program` loads into the new folder `to` (or, for Argos, the package `to`). Lines of the source
    language are for Marian, whose scales of activations depend on them."""
    folder = models.find(name)
    if program == "argos":
        export_argos(folder, to)
        return
    with new_folder(to) as (made, _):
        if program == "marian":
            files = export_marian(folder, lines)
        else:
            files = {"hf": export_huggingface, "ctranslate2": export_ctranslate2}[program](folder, made)
        if (folder / CARD).is_file():
            files[CARD] = (folder / CARD).read_bytes()
        for file, data in files.items():
            write_atomically(made / file, data)


def fetched(name: str, to: Path) -> Path:
    """The files of a MarianMT model on the Hugging Face hub, in the folder `to`; nothing else is fetched."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, LocalEntryNotFoundError

    if not NAME.fullmatch(name) or ".." in name or Path(name).exists():
        raise ModelError(
            f"{name} is not a model that can be imported",
            found="neither a folder, nor a pair such as en-fr, nor a name such as Helsinki-NLP/opus-mt-en-es",
            do="check the path",
        )
    try:
        for file in ("config.json", *huggingface.WEIGHTS, *FILES):
            if file in huggingface.WEIGHTS and any((to / other).is_file() for other in huggingface.WEIGHTS):
                continue  # the same numbers, in another form
            try:
                hf_hub_download(name, file, local_dir=to)
            except EntryNotFoundError as error:  # it has no such file, unless the hub could not be asked
                if isinstance(error, LocalEntryNotFoundError):
                    raise
    except (HfHubHTTPError, LocalEntryNotFoundError) as error:
        found = str(error).strip().partition("\n")[0]
        raise ModelError(f"{name} cannot be fetched", found=found, do="check the name and the network") from None
    if not (to / "config.json").is_file():
        raise ModelError(f"{name} is not a MarianMT model", found="it has no config.json", do="check the name")
    return to


@contextmanager
def new_folder(to: Path) -> Iterator[tuple[Path, Path]]:
    """A folder that gets the name `to` when all went well, and one beside it that goes away. One command at a time."""
    to.parent.mkdir(parents=True, exist_ok=True)
    name, do = to.resolve().name, "wait until it has ended, or choose another folder"
    with locked(to.parent / f".{name}.vidrio-lock", f"writing {to}", do):
        if to.exists() and (not to.is_dir() or any(to.iterdir())):
            raise ModelError(f"{to} already exists", found="it is not empty", do="remove it, or choose another folder")
        beside = to.parent / f".{name}.vidrio-part"
        shutil.rmtree(beside, ignore_errors=True)  # what a killed command has left
        beside.mkdir()
        try:
            yield beside / name, beside
            if to.exists():
                to.rmdir()
            (beside / name).replace(to)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
