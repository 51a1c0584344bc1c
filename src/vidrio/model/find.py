"""The folder of a model's name: a folder, an imported or a packaged model, in this order. The default is en-es."""

import os
from pathlib import Path

from vidrio.errors import ModelError

PACKAGE = Path(__file__).parents[1]  # never written to
DEFAULT = "en-es"
LESSON = "lesson"  # the lessons' model: a few thousand parameters, 16 words
WORKED_EXAMPLES = ("worked-example", "worked-example-printed")  # corrected, and as the post prints it; untrained
LESSONS = {LESSON: "trained", **{name: name for name in WORKED_EXAMPLES}}


def packaged() -> dict[str, Path]:
    """The packaged models, by name."""
    folders = {folder.name: folder for folder in sorted((PACKAGE / "models").iterdir())}
    folders |= {name: PACKAGE / "lessons" / folder for name, folder in LESSONS.items()}
    return {name: folder for name, folder in folders.items() if is_model(folder)}


def imported() -> dict[str, Path]:
    """The imported models, by name."""
    own = own_folder()
    folders = sorted(own.iterdir()) if own.is_dir() else []
    return {folder.name: folder for folder in folders if is_model(folder)}


def own_folder() -> Path:
    """The folder of imported models: VIDRIO_MODELS, or one among the user's data."""
    data = os.environ.get("XDG_DATA_HOME") or os.environ.get("LOCALAPPDATA") or os.path.expanduser("~/.local/share")
    return Path(os.environ.get("VIDRIO_MODELS") or Path(data, "vidrio", "models"))


def available() -> dict[str, Path]:
    """All models with a name. Imported models replace packaged ones of the same name."""
    return packaged() | imported()


def find(name: str | Path | None = None) -> Path:
    """The folder of a model; `None` is the default model, or the lessons' if it is not packaged."""
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
    """Whether the folder has a config, which is written last."""
    return (folder / "config.json").is_file()
