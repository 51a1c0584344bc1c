"""Test fine-tuning, which starts from a trained model."""

import json
import shutil
from pathlib import Path

import pytest

from small_run import PAIRS, train_small, vidrio_train
from vidrio.cli import main
from vidrio.errors import RunError
from vidrio.interop.convert import import_model
from vidrio.learn.task import Start
from vidrio.model.folder import read_config, read_parameters, write_config
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.translate.translator import Translator


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    return train_small(tmp_path_factory.mktemp("first"))


def train_on(folder, *options):
    pairs = [(f"{source} now", f"{target} ahora") for source, target in PAIRS]
    if not (folder / "more.tsv").exists():  # a second training must find the same file
        (folder / "more.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in pairs), encoding="utf-8")
    return vidrio_train(folder, "more.tsv", "--to", "second", "--languages", "en,es", *options)


def losses(folder):
    lines = (folder / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [record["loss"] for record in map(json.loads, lines) if record["kind"] == "step"]


def test_it_begins_where_the_model_stands(learned, tmp_path):
    config, about = read_config(learned)
    write_config(learned, config, about := type(about)(**{**vars(about), "symbols": "①②"}))
    options = ("--steps", "30", "--rate", "0.001", "--precision", "float32", "--threads", "1", "--dropout", "0")
    code, said = train_on(tmp_path, "--from", str(learned), *options)
    assert code == 0, said
    assert f"starting with the parameters of {learned.name}" in said
    second = tmp_path / "second"
    config_now, about_now = read_config(second)
    assert config_now == config
    assert about_now.symbols == "①②"
    assert about_now.provenance["from"] == about.name
    (training,) = about_now.provenance["before"]
    assert training.items() <= about.provenance.items()
    assert f"- before: command {training['command']}, pairs" in (second / "README.md").read_text(encoding="utf-8")
    assert (second / "tokenizer.json").read_bytes() == (learned / "tokenizer.json").read_bytes()
    before, after = read_parameters(learned), read_parameters(second)
    assert any((before[name] != after[name]).any() for name in before)
    assert losses(second)[0] < 0.7 * losses(learned)[0]  # the model has already learned the original pairs
    assert "resuming from step 30" in train_on(tmp_path, "--from", str(learned), *options)[1]


def test_it_goes_on_from_an_imported_model_with_its_vocabulary(tmp_path):
    """The imported Marian model has a recurrent decoder without a start token and a SentencePiece vocabulary."""
    import_model(str(Path(__file__).parent / "golden/marian"), imported := tmp_path / "imported")
    options = ("--steps", "40", "--rate", "0.003", "--precision", "float32", "--threads", "1", "--dropout", "0")
    code, said = train_on(tmp_path, "--from", str(imported), *options)
    assert code == 0, said
    second = tmp_path / "second"
    config, _ = read_config(imported)
    assert read_config(second)[0] == config
    assert config.decoder_cell == "ssru"
    assert config.special.start == -1
    assert (second / "tokenizer.json").read_bytes() == (imported / "tokenizer.json").read_bytes()
    card, (_, about) = (second / "README.md").read_text(encoding="utf-8"), read_config(imported)
    assert f"imported {about.provenance['imported']}, licence {about.provenance['licence']}" in card
    first, *_, last = losses(second)
    assert last < 0.7 * first


def test_a_recurrent_decoder_is_trained_from_nothing(tmp_path):
    """Train a Marian-like model and export it to Marian's files. SentencePiece's library must find the same tokens."""
    import sentencepiece

    model = train_small(tmp_path, "--decoder", "ssru", "--steps", "150", "--d-model", "64", "--d-ff", "64")
    config, _ = read_config(model)
    assert (config.decoder_cell, config.norm, config.positions) == ("ssru", "post", "sinusoidal-marian")
    assert "dec.0.ssru.Wf" in read_parameters(model)
    assert losses(model)[-1] < 0.3 * losses(model)[0]
    assert main(["check", "--model", str(model), "the cat sees a house"]) == 0
    lines = [source for source, _ in PAIRS]
    (tmp_path / "lines.txt").write_text("\n".join(lines), encoding="utf-8")
    exported = tmp_path / "exported"
    assert main(["export", str(model), "--to", "marian", "--text", str(tmp_path / "lines.txt"), str(exported)]) == 0
    library = sentencepiece.SentencePieceProcessor(model_file=str(exported / "vocab.enes.spm"))
    assert (library.eos_id(), library.unk_id(), library.bos_id(), library.pad_id()) == (0, 1, -1, -1)
    tokenizer = Tokenizer.load(model / "tokenizer.json")
    for line in [*lines, "Hé  llo, 1984 ☃!", ""]:
        assert tokenizer.encode(line) == library.encode(line)
    import_model(str(exported), tmp_path / "again")
    ours, again = (Translator.load(folder).translate(lines[:40]) for folder in (model, tmp_path / "again"))
    assert sum(one.text == other.text for one, other in zip(ours, again, strict=True)) > 30
    code, said = vidrio_train(
        tmp_path, "pairs.tsv", "--to", "model", "--vocabulary", "400", "--languages", "en,es", "--steps", "152"
    )
    assert code == 0, said
    assert "resuming from step 150" in said


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--d-model", "64"), "sizes of a fine-tuned model"),
        (("--preset", "tiny"), "sizes of a fine-tuned model"),
        (("--task", "generate"), "sizes of a fine-tuned model"),
        (("--vocabulary", "100"), "reuses the tokenizer of that model"),
    ],
)
def test_what_the_model_decides_cannot_be_chosen(learned, tmp_path, options, told):
    code, said = train_on(tmp_path, "--from", str(learned), *options)
    assert code in (1, 2)
    assert told in said
    assert "Traceback" not in said
    assert not (tmp_path / "second").exists()


def test_what_is_no_translator_is_refused(learned, tmp_path):
    code, said = train_on(tmp_path, "--from", "nowhere")
    assert code == 1
    assert "nowhere is not a model" in said
    writer = tmp_path / "writer"
    shutil.copytree(learned, writer)
    data = json.loads((writer / "config.json").read_text(encoding="utf-8"))
    data["model"]["shape"] = "decoder"
    (writer / "config.json").write_text(json.dumps(data), encoding="utf-8")
    (writer / "model.safetensors").unlink()  # otherwise the parameters would be refused first
    with pytest.raises(RunError, match="does not translate"):
        Start.find(str(writer))
