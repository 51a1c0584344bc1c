"""Test the export for Marian: imported weights come out unchanged, and the alphas are calibrated."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import marian_golden
from vidrio.cli import main
from vidrio.interop.convert import export_model, import_model
from vidrio.interop.marian_files import read_bin, settings_of
from vidrio.interop.to_marian import obstacles
from vidrio.model.folder import read_config, read_parameters, write_config, write_parameters
from vidrio.translate.translator import Translator

GOLDEN = Path(__file__).parent / "golden/marian"
MODEL, SPM, LEX = "model.enes.intgemm.alphas.bin", "vocab.enes.spm", "lex.50.50.enes.s2t.bin"
LINES = marian_golden.sentences(30, 5)


@pytest.fixture
def imported(tmp_path: Path) -> Path:
    import_model(str(GOLDEN), tmp_path / "ours")
    return tmp_path / "ours"


def test_what_was_imported_comes_out_as_it_was(imported: Path, tmp_path: Path) -> None:
    """Check that arrays have the same order and, except for alphas, the same bytes. The other files are identical."""
    text = tmp_path / "lines.txt"
    text.write_text("\n".join(LINES))
    assert main(["export", str(imported), "--to", "marian", "--text", str(text), str(tmp_path / "back")]) == 0
    back = tmp_path / "back"
    for name in (SPM, LEX):
        assert (back / name).read_bytes() == (GOLDEN / name).read_bytes()
    before, after = (read_bin(folder / MODEL) for folder in (GOLDEN, back))
    assert list(before) == list(after)
    for name in before:
        one, other = before[name], after[name]
        if name.startswith("special:"):
            continue
        assert one.shape == other.shape
        if "QuantMultA" not in name:
            assert np.array_equal(one.flat, other.flat)
            scales = [item.quantisation for item in (one, other) if item.quantisation]
            assert not scales or scales[1] == pytest.approx(scales[0], rel=1e-6)
    told, own = (
        settings_of(read_bin(folder / MODEL)["special:model.yml"].flat.tobytes().decode()) for folder in (GOLDEN, back)
    )
    del own["version"]
    assert own == {key: told[key] for key in own}, "what is left out has a default in Marian"
    assert f"models: [{MODEL}]\n" in (back / "config.intgemm8bitalpha.yml").read_text()
    import_model(str(back), tmp_path / "again")
    translations = [Translator.load(folder).translate(LINES[:5]) for folder in (imported, tmp_path / "again")]
    assert [one.text for one in translations[0]] == [one.text for one in translations[1]]


def test_alphas_are_measured_on_the_given_lines(imported: Path, tmp_path: Path) -> None:
    """Compute the alpha of the first matrices from their inputs, the embeddings plus positions."""
    lines = ["The house.", "People walked under the old bridge."]
    export_model(str(imported), "marian", tmp_path / "back", lines)
    config, _ = read_config(imported)
    embed, tokenizer = read_parameters(imported)["embed"], Translator.load(imported).source
    largest = []
    for line in lines:
        ids = [*tokenizer.encode(line), config.special.end]
        wave = np.exp(-np.log(10_000) * np.arange(32) / 31)
        angle = np.arange(len(ids))[:, None] * wave
        x = embed[ids] * 8 + np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
        largest.append(np.abs(x).max())
    expected = 127 / (np.mean(largest) + 1.1 * np.std(largest))
    items = read_bin(tmp_path / "back" / MODEL)
    for letter in "qkv":
        assert items[f"encoder_l1_self_W{letter}_QuantMultA"].flat[0] == pytest.approx(expected, rel=0.02)
    tied = items["Wemb_QuantMultA"]
    assert tied.quantisation
    assert items["none_QuantMultA"].flat[0] == pytest.approx(tied.flat[0] / tied.quantisation, rel=1e-6)


def test_a_model_trained_on_in_float_is_quantised(imported: Path, tmp_path: Path) -> None:
    """Check that no number changes by more than half a step, where a step is 1/127 of its matrix's largest number."""
    config, about = read_config(imported)
    draw = np.random.default_rng(0)
    numbers = {
        name: (value + draw.normal(0, 0.01, value.shape)).astype(np.float32)
        for name, value in read_parameters(imported).items()
    }
    write_parameters(imported, numbers)
    write_config(imported, config, about)
    export_model(str(imported), "marian", tmp_path / "back", LINES)
    import_model(str(tmp_path / "back"), tmp_path / "again")
    found = read_parameters(tmp_path / "again")
    for name, value in numbers.items():
        assert np.abs(found[name] - value).max() <= np.abs(value).max() / 127 * 0.51


def test_what_was_trained_further_goes_back(imported: Path, tmp_path: Path) -> None:
    """The command names no languages, so the new model has those of the imported one."""
    pairs, text = tmp_path / "pairs.tsv", tmp_path / "lines.txt"
    texts = marian_golden.sentences(240, 6)
    pairs.write_text("".join(f"{one}\t{other}\n" for one, other in zip(texts, reversed(texts), strict=True)))
    text.write_text("\n".join(LINES))
    command = ["train", str(pairs), "--from", str(imported), "--to", str(tmp_path / "tuned"), "--steps", "2"]
    assert main([*command, "--rate", "0.1", "--warmup", "1", "--threads", "1", "--keep-numbers"]) == 0
    assert main(["export", str(tmp_path / "tuned"), "--to", "marian", "--text", str(text), str(tmp_path / "back")]) == 0
    before, after = (read_bin(folder / MODEL) for folder in (GOLDEN, tmp_path / "back"))
    assert list(before) == list(after)
    assert not np.array_equal(before["encoder_l1_ffn_W1"].flat, after["encoder_l1_ffn_W1"].flat)


OBSTACLES = {
    "another epsilon": ({"norm_epsilon": 1e-5}, "layer-norm ε"),
    "other positions": ({"positions": "sinusoidal-halves"}, "positions"),
    "unscaled": ({"scale_embeddings": False}, "not scaled"),
    "pre-norm": ({"norm": "pre"}, "norms come 'pre'"),
}


@pytest.mark.parametrize("case", OBSTACLES)
def test_what_marian_has_no_word_for_is_refused(imported: Path, tmp_path: Path, case: str) -> None:
    changes, says = OBSTACLES[case]
    config, about = read_config(imported)
    assert not [*obstacles(config, about, ())]
    assert says in "; ".join(obstacles(replace(config, **changes), about, ()))


def test_a_model_with_another_tokenizer_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "lines.txt"
    text.write_text("Hello\n")
    assert main(["export", "en-es", "--to", "marian", "--text", str(text), str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert all(part in said for part in ("norms come 'pre'", "start token", "SentencePiece"))
    assert not (tmp_path / "out").exists()
    assert main(["export", "en-es", "--to", "marian", str(tmp_path / "out")]) == 2
    assert "--text" in capsys.readouterr().err


def test_without_a_line_to_calibrate_on(imported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "empty.txt"
    text.write_text("")
    assert main(["export", str(imported), "--to", "marian", "--text", str(text), str(tmp_path / "out")]) == 1
    assert "no lines to calibrate on" in capsys.readouterr().err
