"""Which model a name or a path means. Packaged models lie in `models/`, imported ones in a folder of the user's.

vidrio translate --model my-model …    a folder
vidrio translate --model en-fr …       an imported model
vidrio translate --model es-en …       a packaged model, unless one of that name was imported
vidrio translate …                     the packaged en-es, English to Spanish; the lesson's while there is none
"""

import os
from pathlib import Path

from vidrio.errors import ModelError

PACKAGE = Path(__file__).parents[1]  # as it is installed; nothing is ever written into it
DEFAULT = "en-es"
LESSON = "lesson"  # the lessons' model: a few thousand numbers, a handful of words
# The worked example as it is, and as the post prints it.
WORKED_EXAMPLES = ("worked-example", "worked-example-printed")  # untrained, so nothing translates
LESSONS = {LESSON: "trained", **{name: name for name in WORKED_EXAMPLES}}


def packaged() -> dict[str, Path]:
    """The models that come with the package, by name."""
    folders = {folder.name: folder for folder in sorted((PACKAGE / "models").iterdir())}
    folders |= {name: PACKAGE / "lessons" / folder for name, folder in LESSONS.items()}
    return {name: folder for name, folder in folders.items() if is_model(folder)}


def imported() -> dict[str, Path]:
    """The models that `vidrio import` has put where `own_folder` says, by name."""
    own = own_folder()
    folders = sorted(own.iterdir()) if own.is_dir() else []
    return {folder.name: folder for folder in folders if is_model(folder)}


def own_folder() -> Path:
    """Where a user's models lie: VIDRIO_MODELS, or a folder where the system keeps a user's data."""
    data = os.environ.get("XDG_DATA_HOME") or os.environ.get("LOCALAPPDATA") or os.path.expanduser("~/.local/share")
    return Path(os.environ.get("VIDRIO_MODELS") or Path(data, "vidrio", "models"))


def available() -> dict[str, Path]:
    """All models with a name; an imported one takes the place of a packaged one."""
    return packaged() | imported()


def find(name: str | Path | None = None) -> Path:
    """The folder of a model. A folder of that name comes before a model of that name; `None` is the default model."""
    ready = available()
    if name is None:
        name = DEFAULT if DEFAULT in ready else LESSON
    elif is_model(Path(name)):
        return Path(name)
    if str(name) in ready:
        return ready[str(name)]
    found = "no config.json in it" if Path(name).is_dir() else "a file" if Path(name).exists() else "no such folder"
    raise ModelError(f"{name} is not a model", found=found, do=f"give a model folder, or one of: {', '.join(ready)}")


def is_model(folder: Path) -> bool:
    """A folder is a model as soon as its config is there: it is written last."""
    return (folder / "config.json").is_file()
