"""Writes the page, Python, the engine, models and lessons as static files, for `vidrio site`.

The name of each large file includes its checksum, so that browsers can cache the file indefinitely. `service.js` lists
the files that the page needs at startup, so that the page works offline. See docs/site.md.
"""

import gzip
import shutil
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

from vidrio._version import __version__
from vidrio.errors import ConfigError, ModelError, about_file
from vidrio.lessons.html import contents, section_html
from vidrio.lessons.run import NAMES, Language, sections
from vidrio.model import find
from vidrio.model.folder import read_config
from vidrio.model.json_text import json_text
from vidrio.site.classes import classes
from vidrio.site.first import first_run
from vidrio.site.packing import pack
from vidrio.text.sentences import OWN
from vidrio.text.tokens.tokenizer import read_tokenizers

HERE, PACKAGE = Path(__file__).parent, find.PACKAGE
PAGE, RUNTIME, SHIMS = PACKAGE / "serve" / "page", HERE / "runtime", HERE / "browser"
# Modules that the page needs. Training, document translation and the command line do not run in a browser.
ROOMS = (
    *("_version.py", "engine", "errors.py", "glass", "hypothesis.py", "look", "model", "search.py", "serve", "text"),
    *("translate", "site"),
)
OF_MODEL = ("config.json", "model.safetensors", "tokenizer.json", "target-tokenizer.json")
LOADED = {  # files loaded when Python starts in the browser
    "wasm": "pyodide.asm.wasm.gz",
    "code": "pyodide.asm.js.gz",
    "loader": "pyodide.js.gz",
    "stdlib": "python_stdlib.zip.gz",
    "packages": "packages.pack.gz",
}
MANIFEST = {
    "name": "Vidrio",
    "short_name": "Vidrio",
    "description": "A translator made of glass: every number in it can be inspected.",
    "start_url": "./",
    "display": "standalone",
    "background_color": "#ffffff",
    "theme_color": "#ffffff",
}


def write_site(to: Path, names: Iterable[str], note: Callable[[str], None]) -> tuple[str, dict[str, int]]:
    """Write the site into a new or empty folder, completely or not at all. Returns its version and its size by part."""
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        found = "files in it" if to.is_dir() else "a file"
        raise ConfigError(f"{to} is not an empty folder", found=found, do="choose another folder, or empty this one")
    folders = _models(names)
    to = to.resolve()
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        found = f"{error.filename} is a file"
        raise ConfigError(f"{to} cannot be written", found=found, do="choose a path within a folder") from None
    with about_file(to), TemporaryDirectory(prefix=f".{to.name}.", dir=to.parent) as place:
        building = Path(place) / "site"
        (building / "files").mkdir(parents=True)
        written = _write(building, folders, note)
        if to.exists():  # keep the folder itself, which may be a shell's working directory
            for path in sorted(building.iterdir(), key=lambda path: path.name == "index.html"):
                path.rename(to / path.name)
        else:
            building.rename(to)
    return written


def _models(names: Iterable[str]) -> dict[str, Path]:
    """Return the folders of the models to include, by name: those requested, in order, then those of the lessons."""
    packaged = find.packaged()
    first = [name for name in packaged if name not in find.LESSONS]
    chosen = [find.find(name) for name in tuple(names) or first]
    for folder in chosen:
        _check(folder)
    return find.by_name([*chosen, *(packaged[name] for name in find.LESSONS if name in packaged)], packaged)


def _check(folder: Path) -> None:
    """Raise an error if a model is damaged, or if its source language cannot be split into sentences in a browser."""
    config, about = read_config(folder)
    read_tokenizers(folder, config)
    code = about.source_language.lower().replace("_", "-").partition("-")[0]
    if code not in ("", *OWN):
        raise ModelError(
            f"{folder} cannot be used in a browser",
            found=f"its source language is {code}, whose sentence splitter does not run in a browser",
            do="use vidrio serve instead",
        )


def _write(to: Path, folders: Mapping[str, Path], note: Callable[[str], None]) -> tuple[str, dict[str, int]]:
    sizes: dict[str, int] = {}

    def store(name: str, packed: bytes) -> str:
        """Write a compressed file under a name that includes its checksum. Servers send .bin files as they are."""
        path = f"files/{name}.{sha256(packed).hexdigest()[:12]}.bin"
        (to / path).write_bytes(packed)
        sizes[path] = len(packed)
        return path

    note("Python")
    runtime = {what: store(what, (RUNTIME / name).read_bytes()) for what, name in LOADED.items()}
    app = store("app", _compressed(_app()))
    run = store("first", _compressed(first_run(folders)))
    models = {}
    for name, folder in folders.items():
        if name not in find.LESSONS:
            note(name)
            files = {file: (folder / file).read_bytes() for file in OF_MODEL if (folder / file).is_file()}
            models[name] = store(name, _compressed(files))
    note("page")
    shell = _write_page(to)
    first = next(iter(folders))
    site = {"default": first, "names": list(folders), "models": models, "runtime": runtime, "app": app}
    site |= {"first": run, "sizes": sizes}
    version = sha256(json_text([site, shell]).encode()).hexdigest()[:12]
    (to / "site.json").write_text(json_text({"version": version, **site}), "utf-8")
    service = (HERE / "service.js").read_text("utf-8")
    for name, value in {"VERSION": version, "SHELL": [".", "site.json", run, *shell], "FILES": list(sizes)}.items():
        service = service.replace(f'"{name}"', json_text(value))
    (to / "service.js").write_text(service, "utf-8")
    of_models = {name: sizes[path] for name, path in models.items()}
    page, python = sum((to / name).stat().st_size for name in shell), sum(sizes.values()) - sum(of_models.values())
    return version, {"page": page, "Python and the engine": python, **of_models}


def _write_page(to: Path) -> dict[str, str]:
    """Write the page, marked as running without a server, and return the checksums of its files."""
    shutil.copytree(PAGE / "assets", to / "assets")
    shutil.copy(PAGE / "alone" / "worker.js", to / "worker.js")
    [icon] = (path.name for path in (PAGE / "assets").glob("icon*.svg"))
    icons = [{"src": f"assets/{icon}", "sizes": "any", "type": "image/svg+xml", "purpose": "any"}]
    (to / "manifest.webmanifest").write_text(json_text({**MANIFEST, "icons": icons}), "utf-8")
    for language in get_args(Language):
        texts = {f"{n}/{i}": section_html(n, i, language) for n in NAMES for i in range(len(sections(n)))}
        lessons = json_text({"contents": contents(language), "sections": texts})
        (to / f"lessons.{language}.json").write_text(lessons, "utf-8")
    html = (PAGE / "index.html").read_text("utf-8")
    html = html.replace("<html ", f'<html data-site="{__version__}" ', 1)
    html = html.replace("</head>", '  <link rel="manifest" href="manifest.webmanifest">\n  </head>', 1)
    (to / "index.html").write_text(html, "utf-8")
    (to / "LICENSES.md").write_text((RUNTIME / "LICENSES.md").read_text("utf-8"), "utf-8")
    paths = sorted(path for path in to.rglob("*") if path.is_file() and path.parent.name != "files")
    return {path.relative_to(to).as_posix(): sha256(path.read_bytes()).hexdigest() for path in paths}


def _app() -> dict[str, bytes]:
    """Return our Python sources, the substitutes for libraries, the engine and the lessons' models, by path."""
    ours = [path for room in ROOMS for path in _all(PACKAGE / room, "*.py")]
    ours += _all(PACKAGE / "text", "*.json")  # lexicons
    ours += _all(PACKAGE / "engine" / "built", "*.wasm")
    ours += [path for folder in find.LESSONS.values() for path in _all(PACKAGE / "lessons" / folder, "*")]
    files = {path.relative_to(PACKAGE.parent).as_posix(): path.read_bytes() for path in ours}
    files |= {path.relative_to(SHIMS).as_posix(): path.read_bytes() for path in _all(SHIMS, "*.py")}
    files["vidrio/__init__.py"] = b""  # the public Python API, which the page does not use
    files["classes.json"] = json_text(classes()).encode()
    return files


def _all(place: Path, pattern: str) -> list[Path]:
    """Return a file, or all files in a folder that match a pattern."""
    return sorted(path for path in (place, *place.rglob(pattern)) if path.is_file())


def _compressed(files: Mapping[str, bytes]) -> bytes:
    return gzip.compress(pack(files), 9, mtime=0)
