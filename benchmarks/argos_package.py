"""Add a sentence splitter to a package from `vidrio export --to argos`, so that Argos can be measured offline.

    python benchmarks/argos_package.py en-es.argosmodel en

Run this with the Python of an environment that contains argostranslate and spaCy (see libretranslate_agreement.py). By
default, Argos downloads a model to split sentences. This script adds spaCy's rules to the package instead, and the
variables from `environment` make Argos use them.
"""

import argparse
import os
import tempfile
import zipfile
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("package", type=Path)
    parser.add_argument("language")
    given = parser.parse_args()
    add_splitter(given.package, given.language)


def add_splitter(package: Path, language: str) -> None:
    """Add spaCy's rules for a language to the folder in the package."""
    import spacy  # type: ignore[import-not-found]

    with tempfile.TemporaryDirectory() as temporary, zipfile.ZipFile(package, "a") as archive:
        name = archive.namelist()[0].partition("/")[0]
        spacy.blank(language).to_disk(Path(temporary) / "spacy")
        for file in sorted((Path(temporary) / "spacy").rglob("*")):
            archive.write(file, f"{name}/{file.relative_to(temporary)}")


def environment(home: Path) -> dict[str, str]:
    """Return environment variables that keep Argos's folders in `home`, select spaCy, and prevent downloads."""
    # Argos checks that this file of its own spaCy model exists, but then uses the spaCy folder in the package.
    sign = home / "cache/argos-translate/spacy/senter/model"
    sign.parent.mkdir(parents=True, exist_ok=True)
    sign.touch()
    return {
        **os.environ,
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "ARGOS_PACKAGES_DIR": str(home / "packages"),
        "ARGOS_CHUNK_TYPE": "SPACY",
    }


if __name__ == "__main__":
    main()
