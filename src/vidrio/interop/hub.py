"""Models by their names on the Hugging Face hub: the files that make a MarianMT model are fetched, nothing else is."""

import re
from pathlib import Path

from vidrio.data.progress import Progress
from vidrio.errors import DataError, ModelError
from vidrio.interop.download import fetch
from vidrio.interop.huggingface import WEIGHTS

HUB = "https://huggingface.co"
NAME = re.compile(r"[\w.-]+/[\w.-]+")  # Helsinki-NLP/opus-mt-en-es
NEEDED = ("config.json", "vocab.json", "source.spm", "target.spm")
OPTIONAL = ("README.md", "generation_config.json", "tokenizer_config.json", "target_vocab.json", "LICENSE")


def fetched(name: str, to: Path, progress: Progress, *, mirror: str = "") -> Path:
    """The files of a model by its name, in the folder `to`."""
    if not NAME.fullmatch(name) or ".." in name:
        raise ModelError(
            f"there is no {name}",
            found="neither a folder nor a zip, nor the name of a model such as Helsinki-NLP/opus-mt-en-es",
            do="check the path",
        )
    to.mkdir()

    def get(file: str) -> bool:
        """Whether it could be fetched."""
        try:
            fetch(f"{HUB}/{name}/resolve/main/{file}", to / file, progress, mirror=mirror)
        except DataError as error:
            if "404" in str(error):
                return False
            raise
        return True

    for file in NEEDED:
        if not get(file):
            raise ModelError(f"{name} is not a MarianMT model", found=f"it has no {file}", do="check the name")
    if not any(get(file) for file in WEIGHTS):
        raise ModelError(f"{name} has no parameters", found=f"neither {' nor '.join(WEIGHTS)}", do="check the name")
    for file in OPTIONAL:
        get(file)
    return to
