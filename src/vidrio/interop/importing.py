"""A path or a name → a model folder, whatever program the model was made by."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vidrio.data.progress import Progress
from vidrio.errors import ModelError
from vidrio.interop import hub, huggingface, release
from vidrio.interop.foreign import Foreign, make_folder, opening_of
from vidrio.model.folder import About


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
        if path.is_file():
            path = release.unpacked(path, beside / "unpacked")
        elif not path.exists():
            path = hub.fetched(source, beside / "fetched", progress or Progress(), mirror=mirror)
        foreign = opened(path)
        own, into = foreign.languages
        languages = languages or (own, target or into)
        return make_folder(foreign, made, source, opening=opening_of(foreign, target), languages=languages)


def opened(folder: Path) -> Foreign:
    """A folder of another program's model, by what is in it."""
    if (settings := release.settings_file(folder)) is not None:
        return release.read_folder(folder, settings)
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
