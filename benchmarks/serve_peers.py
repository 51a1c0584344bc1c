"""`vidrio serve` beside LibreTranslate, and beside CTranslate2 behind FastAPI, all with the same weights, in one run.

    python -m venv ENVIRONMENT
    ENVIRONMENT/bin/pip install libretranslate==1.9.6 torch==2.13.0 spacy
    python benchmarks/serve_peers.py --libretranslate ENVIRONMENT --seconds 60

Each is asked by one client alone and by 64 at once, as serve_load.py does. LibreTranslate gets the packages that
`vidrio export --to argos` writes, and spaCy's splitter of sentences, since it would download its own
(argos_package.py). Whether a peer's answers are right is not looked at.
"""

import argparse
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from argos_package import environment
from serve_load import figures, offline
from served import SENTENCES, peer, report, server, texts

HERE = Path(__file__).parent
MODELS = {"en-es": "en", "es-en": "es"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--file", type=Path, default=SENTENCES, help="English sentences, one a line")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--texts", type=int, default=3000, help="different ones")
    parser.add_argument("--libretranslate", type=Path, help="the environment in which it is")
    given = parser.parse_args()
    asked = texts(given.file, given.texts)
    with server() as there:
        report(server="vidrio", **figures(there, asked, offline(asked), given.seconds, given.clients))
    with peer(sys.executable, str(HERE / "bare_server.py"), "--port") as there:
        report(server="CTranslate2 behind FastAPI", **figures(there, asked, None, given.seconds, given.clients))
    if given.libretranslate:
        with tempfile.TemporaryDirectory() as folder:
            known = environment(Path(folder))
            install(given.libretranslate / "bin/python", Path(known["ARGOS_PACKAGES_DIR"]))
            command = (str(given.libretranslate / "bin/libretranslate"), "--disable-web-ui", "--load-only", "en,es")
            with peer(*command, "--port", environment=known) as there:
                report(server="LibreTranslate", **figures(there, asked, None, given.seconds, given.clients))


def install(python: Path, packages: Path) -> None:
    """Our models, as Argos has them when it has installed them."""
    packages.mkdir(parents=True)
    for model, language in MODELS.items():
        package = packages.parent / f"{model}.argosmodel"
        subprocess.run([sys.executable, "-m", "vidrio", "export", model, str(package), "--to", "argos"], check=True)
        subprocess.run([str(python), str(HERE / "argos_package.py"), str(package), language], check=True)
        with zipfile.ZipFile(package) as archive:
            archive.extractall(packages)


if __name__ == "__main__":
    main()
