"""The folder that an export fills: what it was made from, whether it is whole, and how it gets into its place."""

import os
from dataclasses import asdict, dataclass
from pathlib import Path

from vidrio.errors import ModelError
from vidrio.model.files import read_json, sha256
from vidrio.model.json_record import record
from vidrio.model.json_text import json_text

MANIFEST = "vidrio.json"
SOURCES = ("config.json", "model.safetensors", "tokenizer.json", "target-tokenizer.json")


@dataclass(frozen=True)
class Manifest:
    """What an export tells of itself."""

    quantisation: str
    made_from: dict[str, str]  # file of the model folder: sha256
    files: dict[str, str]  # file of the export: sha256
    float32_difference: float  # the largest difference from glass/ of a token's log-probability, before quantisation
    quantised_difference: float  # the mean difference, after it
    ctranslate2: str


def write_manifest(fast: Path, manifest: Manifest) -> None:
    (fast / MANIFEST).write_text(json_text(asdict(manifest), indent=2) + "\n", encoding="utf-8")


def read_manifest(fast: Path) -> Manifest:
    data = read_json(fast / MANIFEST, what=f"the exported model {fast}")
    try:
        manifest = record(Manifest, data)
        elsewhere = [name for name in manifest.files if name in (".", "..") or set(name) & set("/\\\0")]
        if elsewhere or "model.bin" not in manifest.files:
            raise TypeError(f"its files are {', '.join(manifest.files)[:200]!r}")
        return manifest
    except TypeError as error:
        raise ModelError(
            f"{fast / MANIFEST} cannot be read", found=str(error), do=f"delete {fast}; it is made again"
        ) from None


def checksums(folder: Path, names: tuple[str, ...]) -> dict[str, str]:
    """Of those files that exist."""
    return {name: sha256(folder / name) for name in names if (folder / name).is_file()}


def check_whole(fast: Path) -> Manifest:
    """Refuse an export whose files are not the ones that were written: CTranslate2 would crash, or worse, go on."""
    manifest = read_manifest(fast)
    beside = sorted(file.name for file in fast.iterdir() if file.name not in (*manifest.files, MANIFEST))
    read_too = [name for name in beside if name.endswith((".json", ".txt", ".bin"))]
    if read_too:  # a vocabulary in another form would come before ours
        raise ModelError(
            f"{fast} holds what was not written with it",
            found=", ".join(read_too)[:200],
            do=f"delete {fast}; it is made again from the model",
        )
    found = checksums(fast, tuple(manifest.files))
    for name, expected in manifest.files.items():
        if found.get(name) != expected:
            raise ModelError(
                f"{fast / name} is damaged" if name in found else f"{fast / name} is missing",
                found=f"sha256 {found.get(name, 'of no file')}, it was written with {expected}",
                do=f"delete {fast}; it is made again from the model",
            )
    return manifest


def promised(folder: Path, made_from: dict[str, str] | None = None) -> Manifest | None:
    """What the files of a model come to, if its manifest tells; a packaged model has nothing else in its `fast/`."""
    manifest = _manifest(folder / "fast")
    return manifest if manifest and manifest.made_from == (made_from or checksums(folder, SOURCES)) else None


def _manifest(fast: Path) -> Manifest | None:
    try:
        return read_manifest(fast)
    except ModelError:  # none there, or of another version
        return None


def is_current(folder: Path, fast: Path) -> bool:
    """Whether an export exists and was made from just this model."""
    manifest, present = _manifest(fast), [name for name in SOURCES if (folder / name).is_file()]
    if not manifest or not (fast / "model.bin").is_file() or not set(present) <= set(manifest.made_from):
        return False
    # A big file that is older than the export has not changed since; hashing it would cost more than translating.
    written = (fast / MANIFEST).stat().st_mtime_ns
    changed = [name for name in present if (folder / name).stat().st_mtime_ns > written or name == "config.json"]
    return all(sha256(folder / name) == manifest.made_from[name] for name in changed)


def move_into_place(new: Path, place: Path) -> None:
    """Put a finished folder in its place; what stood there goes away only when the new one is whole on disk."""
    import tempfile

    for file in new.iterdir():
        with file.open("rb") as handle:
            os.fsync(handle.fileno())
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}.", suffix=".old") as old:
        if place.exists():
            os.replace(place, Path(old) / place.name)
        try:
            os.replace(new, place)
        except OSError:
            if not (place / MANIFEST).is_file():  # or another process has just put the same there
                raise
