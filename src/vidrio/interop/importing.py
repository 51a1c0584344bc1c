"""A path or a name → a model folder, whatever program the model was made by."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vidrio.data.progress import Progress
from vidrio.errors import DataError, ModelError
from vidrio.interop import huggingface, release
from vidrio.interop.download import fetch
from vidrio.interop.foreign import Foreign, make_folder, opening_of
from vidrio.model.folder import About

HUB = "https://huggingface.co"
NAME = re.compile(r"[\w.-]+/[\w.-]+")  # Helsinki-NLP/opus-mt-en-es
NEEDED = ("config.json", "vocab.json", "source.spm", "target.spm")
OPTIONAL = ("README.md", "generation_config.json", "tokenizer_config.json", "target_vocab.json", "LICENSE")


def import_model(
    source: str,
    to: Path,
    progress: Progress | None = None,
    *,
    target: str = "",
    languages: tuple[str, str] | None = None,
    mirror: str = "",
) -> About:
    """Make the model folder `to`, or nothing. `target` is a language, for a model that translates into several;
    `languages` are what to call both."""
    path = Path(source)
    with new_folder(to) as (made, beside):
        if not path.is_dir():
            path = fetched(source, beside / "fetched", progress or Progress(), mirror=mirror)
        foreign = opened(path)
        own, into = foreign.languages
        languages = languages or (own, target or into)
        return make_folder(foreign, made, source, opening=opening_of(foreign, target), languages=languages)


def fetched(name: str, to: Path, progress: Progress, *, mirror: str = "") -> Path:
    """The files of a MarianMT model on the Hugging Face hub, in the folder `to`; nothing else is fetched."""
    if not NAME.fullmatch(name) or ".." in name or Path(name).exists():
        raise ModelError(
            f"{name} is not a model that can be imported",
            found="neither a folder nor the name of a model such as Helsinki-NLP/opus-mt-en-es",
            do="unpack it, if it is a zip, or check the path",
        )

    def get(file: str) -> bool:
        """Whether it could be fetched."""
        try:
            fetch(f"{HUB}/{name}/resolve/main/{file}", to / file, progress, mirror=mirror)
        except DataError as error:
            if "404" in str(error):
                return False
            raise
        return True

    to.mkdir()
    missing = [file for file in NEEDED if not get(file)]
    if missing or not any(map(get, huggingface.WEIGHTS)):
        found = f"it has no {', '.join(missing) or ' or '.join(huggingface.WEIGHTS)}"
        raise ModelError(f"{name} is not a MarianMT model", found=found, do="check the name")
    for file in OPTIONAL:
        get(file)
    return to


def opened(folder: Path) -> Foreign:
    """A folder of another program's model, by what is in it."""
    for name in ("decoder.yml", "config.yml"):
        if (folder / name).is_file():
            return release.read_folder(folder, folder / name)
    if (folder / "config.json").is_file():
        return huggingface.read_folder(folder)
    names = ", ".join(sorted(path.name for path in folder.iterdir())[:12])
    raise ModelError(
        f"{folder} is not a model that can be imported",
        found=f"neither config.json nor decoder.yml; {names or 'it is empty'}",
        do="give the folder of a MarianMT model or a Marian release (docs/interop.md)",
    )


@contextmanager
def new_folder(to: Path) -> Iterator[tuple[Path, Path]]:
    """A folder that gets the name `to` when all went well, and one beside it that goes away."""
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise ModelError(f"{to} already exists", found="it is not empty", do="give another folder")
    to.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=to.parent, prefix=f".{to.name}.", suffix=".part") as temporary:
        made = Path(temporary) / to.resolve().name
        yield made, Path(temporary)
        if to.exists():
            to.rmdir()
        made.replace(to)
