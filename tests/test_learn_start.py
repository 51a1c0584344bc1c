"""Learning on from a model: what it knows is where training begins."""

import json
import shutil

import pytest

from small_run import PAIRS, train_small, vidrio_train
from vidrio.errors import RunError
from vidrio.learn.task import Start
from vidrio.model.folder import read_config, read_parameters, write_config


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    return train_small(tmp_path_factory.mktemp("first"))


def train_on(folder, *options):
    pairs = [(f"{source} now", f"{target} ahora") for source, target in PAIRS]
    if not (folder / "more.tsv").exists():  # a file that is written again is another one
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
    assert f"beginning with the parameters of {learned.name}" in said
    second = tmp_path / "second"
    config_now, about_now = read_config(second)
    assert config_now == config
    assert about_now.symbols == "①②"
    assert about_now.provenance["from"] == about.name
    (training,) = about_now.provenance["before"]
    assert training.items() <= about.provenance.items()
    assert f"- Before that: `{training['command']}`" in (second / "README.md").read_text(encoding="utf-8")
    assert (second / "tokenizer.json").read_bytes() == (learned / "tokenizer.json").read_bytes()
    before, after = read_parameters(learned), read_parameters(second)
    assert any((before[name] != after[name]).any() for name in before)
    assert losses(second)[0] < 0.7 * losses(learned)[0]  # the first pairs are known
    assert "going on from step 30" in train_on(tmp_path, "--from", str(learned), *options)[1]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--d-model", "64"), "has its sizes already"),
        (("--preset", "tiny"), "has its sizes already"),
        (("--task", "generate"), "has its sizes already"),
        (("--vocabulary", "100"), "takes the tokenizer of that model"),
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
    (writer / "model.safetensors").unlink()  # the config alone; this one's parameters would be refused first
    with pytest.raises(RunError, match="does not translate"):
        Start.find(str(writer))
