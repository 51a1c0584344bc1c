"""A path or a name → a model folder, whatever program the model was made by."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vidrio.data.progress import Progress
from vidrio.errors import ModelError
from vidrio.interop import hub, huggingface
from vidrio.interop.foreign import Foreign, make_folder
from vidrio.model.folder import About


def import_model(
    source: str, to: Path, progress: Progress | None = None, *, target: str = "", mirror: str = ""
) -> About:
    """Make the model folder `to`, or nothing. `target` is a language, for a model that translates into several."""
    path = Path(source)
    with new_folder(to) as (made, beside):
        if not path.exists():
            path = hub.fetched(source, beside / "fetched", progress or Progress(), mirror=mirror)
        return make_folder(opened(path), made, name=Path(source).resolve().name, target=target, origin=source)


def opened(folder: Path) -> Foreign:
    """A folder of another program's model, by what is in it."""
    if (folder / "config.json").is_file():
        return huggingface.read_folder(folder)
    names = ", ".join(sorted(path.name for path in folder.iterdir())[:12]) if folder.is_dir() else "a file"
    raise ModelError(
        f"{folder} is no model that can be imported",
        found=f"no config.json; {names or 'it is empty'}",
        do="give the folder of a MarianMT model (docs/interop.md)",
    )


@contextmanager
def new_folder(to: Path) -> Iterator[tuple[Path, Path]]:
    """A folder that gets the name `to` when all went well, and one beside it that goes away."""
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise ModelError(f"{to} is there already, and not empty", do="give another folder with --to")
    to.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=to.parent, prefix=f".{to.name}.", suffix=".part") as temporary:
        made = Path(temporary) / to.resolve().name
        yield made, Path(temporary)
        if to.exists():
            to.rmdir()
        made.replace(to)
