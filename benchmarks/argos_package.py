"""A Vidrio model as an Argos Translate package, so that Argos can be measured on the same weights.

    python benchmarks/argos_package.py MODEL en-es.argosmodel --check FILE

Run it with the Python of an environment that has argostranslate (docs/benchmarks.md tells how to make one). MODEL is a
model folder with one tokenizer and its fast/. Our BPE becomes a SentencePiece model; FILE, a sentence a line, tells how
many sentences it splits as ours does.

Argos splits texts into sentences by models that it downloads. The package brings spaCy's splitter by rules, which
needs none, and `environment` makes Argos use that.
"""

import argparse
import json
import os
import tempfile
import zipfile
from pathlib import Path

CHECKED = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("package", type=Path)
    parser.add_argument("--check", type=Path, help="sentences, one a line")
    given = parser.parse_args()
    write_package(given.model, given.package)
    if given.check:
        lines = given.check.read_text(encoding="utf-8").splitlines()[:CHECKED]
        same = sum(ours == theirs for ours, theirs in segmentations(given.model, lines))
        print(f"{same} of {len(lines)} sentences are split into the same pieces")


def write_package(folder: Path, package: Path) -> None:
    """Write the .argosmodel: a zip of one folder."""
    import spacy  # type: ignore[import-not-found]

    tokenizer_file = folder / "tokenizer.json"
    if not tokenizer_file.is_file():
        raise SystemExit(f"{folder} has no tokenizer.json: Argos can have one tokenizer only, for both languages")
    config = read_json(folder / "config.json")
    source, target = config["about"]["source_language"], config["about"]["target_language"]
    engine = {**read_json(folder / "fast/config.json"), "add_source_eos": config["model"]["source_end"]}
    metadata = {
        "package_version": "1.0",
        "argos_version": "1.9.0",
        "from_code": source,
        "from_name": source,
        "to_code": target,
        "to_name": target,
    }
    with tempfile.TemporaryDirectory() as temporary, zipfile.ZipFile(package, "w") as archive:
        spacy.blank(source).to_disk(Path(temporary) / "spacy")
        name = f"translate-{source}_{target}"
        archive.writestr(f"{name}/metadata.json", json.dumps(metadata))
        archive.writestr(f"{name}/sentencepiece.model", sentencepiece_model(read_json(tokenizer_file)))
        archive.writestr(f"{name}/model/config.json", json.dumps(engine))
        for file in (folder / "fast/model.bin", *(folder / "fast").glob("*_vocabulary.json")):
            archive.write(file, f"{name}/model/{file.name}")
        for file in sorted((Path(temporary) / "spacy").rglob("*")):
            archive.write(file, f"{name}/{file.relative_to(temporary)}")


def sentencepiece_model(tokenizer: dict) -> bytes:  # type: ignore[type-arg]
    """Our BPE in SentencePiece's form: what is merged earlier has the higher score.

    It merges wherever the whole is a piece, ours only what was learned as a merge, hence the check. The rest of ours
    is left out: composed accents (NFC), and the escapes of texts that imitate special tokens.
    """
    from sentencepiece import sentencepiece_model_pb2  # type: ignore[import-not-found]

    model = tokenizer["model"]
    if model["type"] != "BPE" or not model["merges"]:
        raise SystemExit("only a BPE tokenizer can be made into a SentencePiece model here")
    rank: dict[str, int] = {}
    for place, (left, right) in enumerate(model["merges"]):
        rank.setdefault(left + right, place)
    special = {token["content"] for token in tokenizer["added_tokens"] if token["special"]}
    proto = sentencepiece_model_pb2.ModelProto()
    kinds = proto.SentencePiece
    for piece in sorted(model["vocab"], key=model["vocab"].__getitem__):
        kind = kinds.CONTROL if piece in special else kinds.NORMAL
        kind = kinds.BYTE if len(piece) == 6 and piece.startswith("<0x") else kind
        kind = kinds.UNKNOWN if piece == model["unk_token"] else kind
        proto.pieces.add(piece=piece, score=-rank.get(piece, len(rank)), type=kind)
    proto.trainer_spec.model_type = proto.trainer_spec.BPE
    proto.trainer_spec.vocab_size = len(proto.pieces)
    proto.trainer_spec.byte_fallback = model["byte_fallback"]
    proto.normalizer_spec.name = "identity"
    proto.normalizer_spec.add_dummy_prefix = True
    proto.normalizer_spec.remove_extra_whitespaces = False
    return bytes(proto.SerializeToString())


def segmentations(folder: Path, lines: list[str]) -> list[tuple[list[str], list[str]]]:
    """For each line our pieces and those of the SentencePiece model."""
    import sentencepiece
    from tokenizers import Tokenizer

    ours = Tokenizer.from_file(str(folder / "tokenizer.json"))
    proto = sentencepiece_model(read_json(folder / "tokenizer.json"))
    theirs = sentencepiece.SentencePieceProcessor(model_proto=proto)
    return [(ours.encode(line, add_special_tokens=False).tokens, theirs.encode(line, out_type=str)) for line in lines]


def environment(home: Path) -> dict[str, str]:
    """Environment variables for Argos: all its folders in `home`, sentences split by spaCy, nothing downloaded."""
    # Argos takes this file as the sign that its downloaded spaCy model is there. It never reads it: the package has
    # a spaCy folder of its own.
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


def read_json(path: Path) -> dict:  # type: ignore[type-arg]
    return dict(json.loads(path.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
