"""Find models. A name can be the path of a folder, an imported model or a packaged model, tried in this order."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from vidrio.errors import ConfigError, ModelError

PACKAGE = Path(__file__).parents[1]  # vidrio never writes to this folder
DEFAULT = "en-es"
LESSON = "lesson"  # the model used in lessons: a few thousand parameters, 16 words
WORKED_EXAMPLES = ("worked-example", "worked-example-printed")  # untrained; corrected, and as printed in the post
LESSONS = {LESSON: "trained", **{name: name for name in WORKED_EXAMPLES}}


def packaged() -> dict[str, Path]:
    """Return the folders of packaged models, by name."""
    folders = {folder.name: folder for folder in sorted((PACKAGE / "models").iterdir())}
    folders |= {name: PACKAGE / "lessons" / folder for name, folder in LESSONS.items()}
    return {name: folder for name, folder in folders.items() if is_model(folder)}


def imported() -> dict[str, Path]:
    """Return the folders of imported models, by name."""
    own = own_folder()
    folders = sorted(own.iterdir()) if own.is_dir() else []
    return {folder.name: folder for folder in folders if is_model(folder)}


def own_folder() -> Path:
    """Return the folder of imported models: VIDRIO_MODELS, or by default a folder in the user's data directory."""
    data = os.environ.get("XDG_DATA_HOME") or os.environ.get("LOCALAPPDATA") or os.path.expanduser("~/.local/share")
    return Path(os.environ.get("VIDRIO_MODELS") or Path(data, "vidrio", "models"))


def available() -> dict[str, Path]:
    """Return all models by name. Imported models override packaged ones with the same name."""
    return packaged() | imported()


def find(name: str | Path | None = None) -> Path:
    """Return the folder of a model. The default is en-es or, if en-es is not available, the lesson model."""
    ready = available()
    if name is None:
        name = DEFAULT if DEFAULT in ready else LESSON
    elif is_model(Path(name)):
        return Path(name)
    if str(name) in ready:
        return ready[str(name)]
    found = "no config.json in it" if Path(name).is_dir() else "a file" if Path(name).exists() else "no such folder"
    raise ModelError(f"{name} is not a model", found=found, do=f"use a model folder, or one of: {', '.join(ready)}")


def by_name(folders: Iterable[Path], known: Mapping[str, Path]) -> dict[str, Path]:
    """Return folders by name, in order. A model that is not among the known ones is named after its folder. Raise
    ConfigError if two models have the same name."""
    names = {folder: name for name, folder in known.items()}
    found = dict[str, Path]()
    for folder in folders:
        name = names.get(folder, folder.resolve().name)
        if found.setdefault(name, folder).resolve() != folder.resolve():
            raise ConfigError(f"two models have the name {name}", found=str(folder), do="rename the folder")
    return found


def is_model(folder: Path) -> bool:
    """Return whether the folder has a config, which is the last file to be written."""
    return (folder / "config.json").is_file()
