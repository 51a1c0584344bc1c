"""A Marian release, imported, translates as Marian's parameters do in CTranslate2, by CTranslate2's own converter."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
import yaml
from ctranslate2.converters import MarianConverter

from marian_models import ENGLISH, SPANISH, searched, sentence_piece_model, sentences, vocabulary
from vidrio.cli import main
from vidrio.errors import ModelError
from vidrio.hypothesis import default_options
from vidrio.interop.convert import import_model
from vidrio.model.folder import read_config, read_parameters
from vidrio.text.tokens.tokenizer import read_tokenizers

D, HEADS, F, LAYERS = 16, 2, 24, 2
SETTINGS: dict[str, Any] = {
    **{"type": "transformer", "enc-depth": LAYERS, "dec-depth": LAYERS, "transformer-heads": HEADS},
    **{
        "transformer-dim-ffn": F,
        "transformer-ffn-activation": "swish",
        "transformer-decoder-autoreg": "self-attention",
    },
    **{"transformer-preprocess": "", "transformer-postprocess": "dan", "transformer-postprocess-emb": "d"},
    **{"transformer-ffn-depth": 2, "transformer-train-position-embeddings": False, "layer-normalization": False},
    **{"tied-embeddings-all": True, "tied-embeddings": False, "tied-embeddings-src": False, "version": "v1.10.0"},
    **{"transformer-aan-activation": "swish", "transformer-depth-scaling": False, "transformer-tied-layers": []},
    **{
        "transformer-no-projection": False,
        "transformer-postprocess-top": "",
        "dim-emb": D,
        "skip": False,
        "transformer-guided-alignment-layer": "last",
    },
}


def write_release(folder: Path, *, tied: bool = True, settings: dict[str, Any] | None = None, seed: int = 0) -> None:
    """Random parameters by Marian's names."""
    folder.mkdir(parents=True)
    draw = np.random.default_rng(seed)
    source, target = sentence_piece_model(ENGLISH, 170), sentence_piece_model(SPANISH)
    (folder / "source.spm").write_bytes(source)
    (folder / "target.spm").write_bytes(target)
    ids = vocabulary([source, target])
    del ids["<pad>"]
    (folder / "opus.vocab.yml").write_text(yaml.safe_dump(ids, allow_unicode=True), encoding="utf-8")
    arrays: dict[str, np.ndarray] = {}

    def matrix(name: str, rows: int, columns: int) -> None:
        arrays[name] = draw.normal(0, rows**-0.5, (rows, columns)).astype(np.float32)

    def vector(name: str, size: int, around: float = 0) -> None:
        arrays[name] = (around + 0.2 * draw.normal(size=(1, size))).astype(np.float32)

    def norm(name: str) -> None:
        vector(f"{name}_ln_scale", D, 1)
        vector(f"{name}_ln_bias", D)

    for table in ("Wemb",) if tied else ("encoder_Wemb", "decoder_Wemb"):
        arrays[table] = draw.normal(0, 0.5, (len(ids), D)).astype(np.float32)
    for side, parts in (("encoder", ("self",)), ("decoder", ("self", "context"))):
        for layer in range(1, LAYERS + 1):
            stem = f"{side}_l{layer}"
            for part in parts:
                for letter in "qkvo":
                    matrix(f"{stem}_{part}_W{letter}", D, D)
                    vector(f"{stem}_{part}_b{letter}", D)
                norm(f"{stem}_{part}_Wo")
            matrix(f"{stem}_ffn_W1", D, F)
            vector(f"{stem}_ffn_b1", F)
            matrix(f"{stem}_ffn_W2", F, D)
            vector(f"{stem}_ffn_b2", D)
            norm(f"{stem}_ffn_ffn")
    vector("decoder_ff_logit_out_b", len(ids))
    if not tied:
        matrix("decoder_ff_logit_out_W", D, len(ids))
    sizes = {"dim-vocabs": [len(ids), len(ids)], "tied-embeddings-all": tied}
    told = yaml.safe_dump({**SETTINGS, **sizes, **(settings or {})})
    arrays["special:model.yml"] = np.frombuffer(told.encode() + b"\0", np.int8)
    np.savez(folder / "opus.npz", **arrays)
    decoder = {"models": ["opus.npz"], "vocabs": ["opus.vocab.yml"] * 2, "beam-size": 6, "normalize": 1}
    (folder / "decoder.yml").write_text(yaml.safe_dump(decoder), encoding="utf-8")
    (folder / "LICENSE").write_text("Attribution 4.0 International\n", encoding="utf-8")


def by_ctranslate2(release: Path, place: Path) -> ctranslate2.Translator:
    """By its own reading of the files; but with the table of positions and the ε that Marian itself has."""
    path = str(release / "opus.vocab.yml")
    spec = MarianConverter(str(release / "opus.npz"), [path, path])._load()
    pair = np.arange(D // 2)
    angle = np.arange(512)[:, None] * np.exp(-pair * np.log(10000.0) / (D / 2 - 1))  # as Marian's source has it
    table = np.concatenate([np.sin(angle), np.cos(angle)], axis=1).astype(np.float32)
    spec.encoder.position_encodings.encodings = spec.decoder.position_encodings.encodings = table
    spec.config.layer_norm_epsilon = 1e-6
    spec.validate()
    spec.optimize()
    place.mkdir()
    spec.save(str(place))
    return ctranslate2.Translator(str(place), intra_threads=1)


@pytest.mark.parametrize("tied", [True, False])
def test_it_translates_as_ctranslate2_reads_it(tied: bool, tmp_path: Path) -> None:
    release = tmp_path / "release"
    write_release(release, tied=tied)
    about = import_model(str(release), tmp_path / "ours", languages=("en", "es"))
    assert (about.source_language, about.target_language) == ("en", "es")
    assert about.provenance["licence"] == "Attribution 4.0 International"
    config, _ = read_config(tmp_path / "ours")
    assert config.positions == "sinusoidal-marian"
    assert (config.decoding.beam, config.decoding.length_penalty) == (6, 1.0)
    source, _ = read_tokenizers(tmp_path / "ours", config)
    texts = sentences(12)
    translator = by_ctranslate2(release, tmp_path / "ct2")
    for beam in (1, 6):
        options = replace(default_options(config), beam=beam, max_length=12)
        ours = searched(tmp_path / "ours", [[*source.encode(text), config.special.end] for text in texts], options)
        theirs = translator.translate_batch(
            [source.tokens(text) for text in texts], beam_size=beam, max_decoding_length=12, max_batch_size=1
        )
        ids = {token: i for i, token in enumerate(source.vocabulary())}
        assert [list(best.ids) for best, *_ in ours] == [
            [ids[token] for token in result.hypotheses[0]] for result in theirs
        ]


def test_its_positions_are_computed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """So they have a formula."""
    write_release(tmp_path / "release")
    import_model(str(tmp_path / "release"), tmp_path / "ours", languages=("en", "es"))
    short = ["--max-length", "4", ENGLISH[0]]
    assert main(["why", "-m", str(tmp_path / "ours"), "src.positions[2,11]", *short]) == 0
    told = capsys.readouterr().out
    assert "cos of the same in column D/2+i" in told
    assert "not learned" not in told
    assert not any(name.endswith(".pos") for name in read_parameters(tmp_path / "ours"))
    assert main(["export", str(tmp_path / "ours"), "--to", "hf", str(tmp_path / "hf")]) == 1
    assert "its positions are 'sinusoidal-marian'; the ε of its norms is 1e-06" in capsys.readouterr().err


UNSUPPORTED = {
    "SSRU": ({"transformer-decoder-autoreg": "rnn"}, "transformer-decoder-autoreg 'rnn'"),
    "another array": ({"dec-depth": 1}, "parameters that it does not know: decoder_l2_self_Wq"),
    "gelu": ({"transformer-ffn-activation": "gelu"}, "gelu"),
    "heads": ({"transformer-heads": 3}, "3 heads in a width of 16"),
    "a width": ({"transformer-dim-ffn": 25}, "encoder_l1_ffn_W1"),
    "a text": ({"enc-depth": "six"}, "enc-depth"),
}


@pytest.mark.parametrize("case", UNSUPPORTED)
def test_what_is_not_supported_is_refused_by_name(case: str, tmp_path: Path) -> None:
    changes, says = UNSUPPORTED[case]
    write_release(tmp_path / "release", settings=changes)
    with pytest.raises(ModelError, match=says):
        import_model(str(tmp_path / "release"), tmp_path / "ours")
    assert not (tmp_path / "ours").exists()
