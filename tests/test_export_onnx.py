"""Our models in ONNX Runtime: encoder and decoder compute and translate, step by step, as `glass/` does."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnxruntime import InferenceSession
from tokenizers import Tokenizer

from doc_blocks import REPOSITORY, blocks_of
from marian_models import write_marian
from test_export import TEXTS, ours, write_ours
from test_import_release import write_release
from vidrio.cli import main
from vidrio.glass.paper.decoding import encode
from vidrio.glass.paper.transformer import build, decode, logits
from vidrio.interop.importing import import_model
from vidrio.model.find import find
from vidrio.model.folder import read_config, read_parameters
from vidrio.text.tokens.tokenizer import read_tokenizers

[EXAMPLE] = [block.code for block in blocks_of(REPOSITORY / "docs/interop.md") if "InferenceSession" in block.code]
LARGEST_DIFFERENCE = 1e-4  # of a logit, float32 against float64; they are as large as 40
SHAPES = {
    "pre": {"norm": "pre"},
    "pre, biased, swish, halves, unscaled": {
        **{"norm": "pre", "attention_bias": True, "output_bias": True, "activation": "swish"},
        **{"positions": "sinusoidal-halves", "scale_embeddings": False},
    },
    "post, nothing tied, wide heads, learned positions": {
        **{"norm": "post", "tying": "none", "d_head": 5, "positions": "learned", "norm_epsilon": 1e-3},
    },
    "post, one table for the target, gelu, 3 + 1, no end, no positions": {
        **{"norm": "post", "tying": "output", "activation": "gelu", "n_encoder_layers": 3, "n_decoder_layers": 1},
        **{"source_end": False, "positions": "none"},
    },
}


def example(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The function `translate` of the page's example, for the folder `en-es-onnx` in `folder`."""
    monkeypatch.chdir(folder)
    defined: dict[str, Any] = {}
    exec(compile(EXAMPLE, "docs/interop.md", "exec"), defined)
    return defined["translate"]


def exported(model: str, place: Path) -> Path:
    assert main(["export", model, "--to", "onnx", str(place / "en-es-onnx")]) == 0
    return place / "en-es-onnx"


def sources(folder: Path, texts: list[str]) -> list[list[int]]:
    config, _ = read_config(folder)
    source, _ = read_tokenizers(folder, config)
    return [[*source.encode(text), *config.source_close] for text in texts]


def greedy(folder: Path, texts: list[str]) -> list[list[int]]:
    return ours(folder, texts, 1)[0]


@pytest.mark.parametrize("shape", SHAPES)
def test_it_computes_and_translates_as_glass(
    shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_ours(tmp_path / "ours", **SHAPES[shape])
    to = exported(str(folder), tmp_path)
    assert "CC BY 4.0" in (to / "README.md").read_text()
    tokenizer = Tokenizer.from_file(str(to / "tokenizer.json"))
    assert [encoding.ids for encoding in tokenizer.encode_batch(TEXTS)] == sources(folder, TEXTS)
    assert np.abs(batched(folder, to) - alone(folder)).max() < LARGEST_DIFFERENCE
    translations = greedy(folder, TEXTS[:20])
    assert list(map(example(tmp_path, monkeypatch), sources(folder, TEXTS[:20]))) == translations
    assert len(set(map(tuple, translations))) > 2


BATCH = [TEXTS[0], "The", TEXTS[1]]
TARGETS = [[10, 20, 30, 11], [12, 22, 32, 13], [14, 24, 34, 15]]


def alone(folder: Path) -> np.ndarray:
    """Logits of the last token of three sentences, by `glass/`."""
    config, _ = read_config(folder)
    machine = build(config, read_parameters(folder))
    memories = [encode(machine, source) for source in sources(folder, BATCH)]
    rows = [decode(machine, target, memory)[-1:] for target, memory in zip(TARGETS, memories, strict=True)]
    return np.concatenate([logits(machine, row) for row in rows])


def batched(folder: Path, to: Path) -> np.ndarray:
    """The same by ONNX Runtime, all at once: the sentences are padded, by an id that the mask hides."""
    encoder, decoder = (InferenceSession(to / f"{name}.onnx") for name in ("encoder", "decoder"))
    rows = sources(folder, BATCH)
    longest = max(map(len, rows))
    mask = np.array([[place < len(row) for place in range(longest)] for row in rows])
    asked = {"mask": mask}
    found = encoder.run(None, {"ids": np.array([row + [7] * (longest - len(row)) for row in rows]), **asked})
    asked |= dict(zip([put.name for put in encoder.get_outputs()], found, strict=True))
    puts = [put for put in decoder.get_inputs() if put.name.startswith("kept.")]
    kept = {put.name: np.zeros([3, put.shape[1], 0, put.shape[3]], np.float32) for put in puts}
    logits_BV = np.zeros(0)
    for token in zip(*TARGETS, strict=True):
        logits_BV, *longer = decoder.run(None, {"ids": np.array(token)[:, None], **asked, **kept})
        kept = dict(zip(kept, longer, strict=True))
    return logits_BV


def test_an_imported_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_marian(tmp_path / "hf", separate=True, max_position_embeddings=48)
    import_model(str(tmp_path / "hf"), tmp_path / "ours")
    to = exported(str(tmp_path / "ours"), tmp_path)
    for name in ("source.spm", "target.spm"):
        assert (to / name).read_bytes() == (tmp_path / "hf" / name).read_bytes()
    translations = greedy(tmp_path / "ours", TEXTS[:12])
    assert list(map(example(tmp_path, monkeypatch), sources(tmp_path / "ours", TEXTS[:12]))) == translations


def test_an_imported_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_release(tmp_path / "release")
    import_model(str(tmp_path / "release"), tmp_path / "ours")
    to = exported(str(tmp_path / "ours"), tmp_path)
    assert "Licence: Attribution 4.0 International" in (to / "README.md").read_text()
    start = read_config(tmp_path / "ours")[0].special.start
    translate, texts = example(tmp_path, monkeypatch), ["The", *TEXTS[:2]]
    monkeypatch.setitem(translate.__globals__["search"], "max_new_tokens", 12)  # random models rarely end
    for source, ids in zip(sources(tmp_path / "ours", texts), greedy(tmp_path / "ours", texts), strict=True):
        assert start not in (made := translate(source))
        assert made[:12] == ids[:12]


@pytest.mark.slow
@pytest.mark.parametrize("shape", [*SHAPES, "MarianMT", "en-es", "es-en"])
def test_it_translates_200_sentences_as_glass(shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shape in SHAPES:
        folder = write_ours(tmp_path / "ours", **SHAPES[shape])
    elif shape == "MarianMT":
        write_marian(tmp_path / "hf", max_position_embeddings=48)
        import_model(str(tmp_path / "hf"), tmp_path / "ours")
        folder = tmp_path / "ours"
    else:
        folder = find(shape)
    exported(str(folder), tmp_path)
    assert list(map(example(tmp_path, monkeypatch), sources(folder, TEXTS))) == greedy(folder, TEXTS)


def test_what_cannot_be_exported_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_ours(tmp_path / "ours", shape="decoder", source_vocabulary=0)
    assert main(["export", str(tmp_path / "ours"), "--to", "onnx", str(tmp_path / "onnx")]) == 1
    assert "only an encoder-decoder" in capsys.readouterr().err
    assert not (tmp_path / "onnx").exists()
