"""Count how often LibreTranslate, with a package from `vidrio export --to argos`, translates exactly like the engine.

    python -m venv ENVIRONMENT
    ENVIRONMENT/bin/pip install libretranslate==1.9.6 torch==2.13.0 spacy
    python benchmarks/libretranslate_agreement.py MODEL... --libretranslate ENVIRONMENT [--texts 200]

Use your own models or imported OPUS-MT models, because Argos does not support the case tokens of the packaged models.
Each text is a single sentence. Like Argos, the engine searches with beam 4 and a length penalty of 0.2. The other steps
of `vidrio translate`, such as hiding names, cannot be part of a package and are skipped. The script lists the
translations that differ.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path

from argos_package import environment
from served import peer
from shared import TATOEBA
from vidrio.engine.engine import Engine
from vidrio.hypothesis import default_options
from vidrio.model.find import find
from vidrio.model.folder import read_config
from vidrio.text.tokens.tokenizer import read_tokenizers

SEVERAL = re.compile(r"[.?!…]\W* ")  # several sentences, which LibreTranslate would split


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("models", nargs="+")
    parser.add_argument("--libretranslate", type=Path, required=True, help="the environment in which it is installed")
    parser.add_argument(
        "--file", type=Path, default=TATOEBA, help="file of texts; its extension is replaced with the source language"
    )
    parser.add_argument("--texts", type=int, default=200)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        known = environment(Path(folder))
        models = {model: languages_of(model) for model in given.models}
        install(models, given.libretranslate / "bin/python", Path(known["ARGOS_PACKAGES_DIR"]))
        languages = ",".join(sorted({language for pair in models.values() for language in pair}))
        command = (str(given.libretranslate / "bin/libretranslate"), "--disable-web-ui", "--load-only", languages)
        with peer(*command, "--port", environment=known) as there:
            client = there.client()
            for model, (source, target) in models.items():
                lines = given.file.with_suffix(f".{source}").read_text(encoding="utf-8").splitlines()
                lines = [line for line in lines if not SEVERAL.search(line)]
                texts = lines[:: max(1, len(lines) // given.texts)][: given.texts]
                pairs = []
                for text in texts:
                    status, answer = client.ask("/translate", {"q": text, "source": source, "target": target})
                    assert status == 200, answer
                    pairs.append(answer["translatedText"])
                same = 0
                for text, theirs, mine in zip(texts, pairs, ours(model, texts), strict=True):
                    same += theirs == mine
                    if theirs != mine:
                        print(f"  {text!r}: LibreTranslate {theirs!r}, ours {mine!r}")
                print(f"{model}: {same} of {len(texts)} translations are the same", flush=True)


def languages_of(model: str) -> tuple[str, str]:
    _, about = read_config(find(model))
    return about.source_language, about.target_language


def install(models: dict[str, tuple[str, str]], python: Path, packages: Path) -> None:
    """Export the models and unpack them into Argos's package folder."""
    packages.mkdir(parents=True)
    for model, (language, _) in models.items():
        package = packages.parent / f"{find(model).name}.argosmodel"
        subprocess.run([sys.executable, "-m", "vidrio", "export", model, str(package), "--to", "argos"], check=True)
        add_splitter = str(Path(__file__).with_name("argos_package.py"))
        subprocess.run([str(python), add_splitter, str(package), language], check=True)
        with zipfile.ZipFile(package) as archive:
            archive.extractall(packages)


def ours(model: str, texts: list[str]) -> list[str]:
    folder = find(model)
    config, _ = read_config(folder)
    source, target = read_tokenizers(folder, config)
    most = min(256, config.max_positions // 2)
    options = replace(default_options(config), beam=4, length_penalty=0.2, max_length=most)
    engine = Engine.load(folder, config)
    found = engine.search([[*source.encode(text), *config.source_close] for text in texts], options)
    return [target.decode(best.ids) for best, *_ in found]


if __name__ == "__main__":
    main()
