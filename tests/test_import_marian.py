"""Test that an imported MarianMT model tokenizes, computes and translates as `transformers` does."""

import json
import random
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import torch

from forked import run_vidrio
from marian_models import (
    ENGLISH,
    SPANISH,
    generated,
    import_damaged,
    load_hf,
    random_unicode,
    searched,
    sentences,
    write_marian,
)
from vidrio.cli import main
from vidrio.errors import ModelError
from vidrio.glass.machine import Machine, build
from vidrio.glass.walk import decode, encode, logits
from vidrio.hypothesis import default_options
from vidrio.interop.convert import import_model
from vidrio.learn import model as learned
from vidrio.learn.parameters import Parameters
from vidrio.model.config import ModelConfig
from vidrio.model.folder import read_config, read_parameters
from vidrio.text.tokens.tokenizer import read_tokenizers
from vidrio.translate.translator import Translator

LARGEST_DIFFERENCE = 1e-5  # between two logits
SHAPES = {
    "as OPUS-MT": {},
    "two vocabularies": {"separate": True, "seed": 1},
    "nothing tied": {"separate": True, "tie_word_embeddings": False, "activation_function": "relu", "seed": 2},
    "gelu, unscaled, 3 + 1": {
        **{"activation_function": "gelu", "scale_embedding": False, "encoder_layers": 3, "decoder_layers": 1, "seed": 3}
    },
    "one table, another output": {"tie_word_embeddings": False, "seed": 4},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Path]]:
    """Return a function that makes a model of a shape and returns its original and its imported folder."""

    @cache
    def make(shape: str) -> tuple[Path, Path]:
        place = tmp_path_factory.mktemp("marian")
        write_marian(place / "hf", **SHAPES[shape])
        import_model(str(place / "hf"), place / "ours")
        return place / "hf", place / "ours"

    return make


@pytest.fixture(params=SHAPES)
def both(request: pytest.FixtureRequest, made: Callable[[str], tuple[Path, Path]]) -> tuple[Path, Path]:
    return made(request.param)


@pytest.fixture
def usual(made: Callable[[str], tuple[Path, Path]]) -> tuple[Path, Path]:
    return made("as OPUS-MT")


def targets(config: ModelConfig, count: int) -> list[int]:
    draw = random.Random(count)
    return [config.special.start, *draw.choices(range(2, config.target_vocabulary - 1), k=count)]


def test_logits_are_those_of_transformers(both: tuple[Path, Path]) -> None:
    hf, tokenizer = load_hf(both[0])
    config, _ = read_config(both[1])
    parameters = read_parameters(both[1])
    machine, net = build(config, parameters), learned.build(Parameters.from_arrays(config, parameters, torch.float64))
    for text in sentences(6):
        source = tokenizer(text)["input_ids"]
        target = targets(config, 9)
        with torch.no_grad():
            [theirs_TV] = hf(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target])).logits.numpy()
        ours_TV = logits(machine, decode(machine, target, encode(machine, source)))
        assert np.abs(ours_TV - theirs_TV).max() < LARGEST_DIFFERENCE
        memory = learned.encode(net, torch.tensor([source]), torch.tensor([len(source)]))
        batched_BTV = learned.logits(net, learned.decode(net, torch.tensor([target]), memory))
        assert np.abs(batched_BTV[0].detach().numpy() - theirs_TV).max() < LARGEST_DIFFERENCE


@pytest.mark.parametrize("kind", ["sinusoidal-halves", "learned"])
def test_tables_of_positions_in_the_file_are_used(usual: tuple[Path, Path], tmp_path: Path, kind: str) -> None:
    """`transformers` no longer writes these tables, but it uses those in a file."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(usual[0], tmp_path / "hf")
    if kind == "learned":
        tables = list(np.random.default_rng(0).normal(size=(2, 128, 16)))
    else:
        position = np.arange(128, dtype=np.float32)[:, None]  # computed in float32, unlike Vidrio's table
        pair = np.arange(8, dtype=np.float32) / np.float32(8)
        angle = position * np.exp(-pair * np.log(np.float32(10000)))
        tables = [np.concatenate([np.sin(angle), np.cos(angle)], axis=1)] * 2
    stored = {
        f"model.{side}.embed_positions.weight": torch.tensor(table, dtype=torch.float32)
        for side, table in zip(("encoder", "decoder"), tables, strict=True)
    }
    place = tmp_path / "hf/model.safetensors"
    save_file({**load_file(place), **stored}, place, metadata={"format": "pt"})
    import_model(str(tmp_path / "hf"), tmp_path / "ours")
    config, _ = read_config(tmp_path / "ours")
    parameters = read_parameters(tmp_path / "ours")
    assert config.positions == kind
    assert ("src.pos" in parameters) == ("tgt.pos" in parameters) == (kind == "learned")
    assert differing(tmp_path / "hf", config, build(config, parameters)) < LARGEST_DIFFERENCE
    if kind != "sinusoidal-halves":
        assert differing(usual[0], config, build(config, parameters)) > 0.01
    save_file({**load_file(place), **{name: table[:9] for name, table in stored.items()}}, place)
    with pytest.raises(ModelError, match="positions of shape"):
        import_model(str(tmp_path / "hf"), tmp_path / "other")


def differing(hf: Path, config: ModelConfig, machine: Machine) -> float:
    """Return the largest difference between the logits of the machine and those of `transformers`."""
    model, tokenizer = load_hf(hf)
    source, target = tokenizer(sentences(1)[0])["input_ids"], targets(config, 9)
    with torch.no_grad():
        [theirs_TV] = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target])).logits.numpy()
    return float(np.abs(logits(machine, decode(machine, target, encode(machine, source))) - theirs_TV).max())


def test_translations_are_those_of_transformers(both: tuple[Path, Path]) -> None:
    """Compare token by token. `transformers` never generates padding: its probability goes to the other tokens."""
    config, _ = read_config(both[1])
    texts, tokenizer = sentences(6), read_tokenizers(both[1], config)[0]
    sources = [[*tokenizer.encode(text), *config.source_close] for text in texts]
    for beam in (1, 4):
        options = replace(default_options(config), beam=beam, max_length=20)
        ours = [[*best.ids, *([config.special.end] * best.ended)] for best, *_ in searched(both[1], sources, options)]
        assert ours == generated(both[0], texts, beam, 20)


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_texts_are_split_as_marian_tokenizer_splits_them(usual: tuple[Path, Path], every: int) -> None:
    """Compare the tokens of 2,500 or 10,000 lines from all of Unicode, and some decoded texts."""
    _, theirs = load_hf(usual[0])
    config, _ = read_config(usual[1])
    source, target = read_tokenizers(usual[1], config)
    lines = random_unicode(10_000)[::every]
    expected = theirs(lines, split_special_tokens=True, add_special_tokens=False)["input_ids"]
    assert source.encode_batch(lines) == expected
    some = lines[:300]
    assert [source.encode(line) for line in some] == expected[:300]
    for line, ids in zip(some, expected, strict=False):
        assert [piece.id for piece in source.pieces(line)] == ids
    with_target = theirs(text_target=[*SPANISH, *some], split_special_tokens=True, add_special_tokens=False)[
        "input_ids"
    ]
    assert target.encode_batch([*SPANISH, *some]) == with_target
    for ids in with_target:
        ids = [i for i in ids if i != config.special.unk]  # unknown tokens are decoded differently
        assert target.decode(ids) == theirs.decode(ids, use_source_tokenizer=False)


def test_everything_works_on_it(usual: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, text, short = str(usual[1]), ENGLISH[7], ["--max-length", "8"]
    pairs, source, target = (tmp_path / name for name in ("pairs.tsv", "source", "target"))
    pairs.write_text("".join(f"{a}\t{b}\n" for a, b in zip(ENGLISH[:200], SPANISH, strict=False)), encoding="utf-8")
    source.write_text("\n".join(ENGLISH[:4]), encoding="utf-8")
    target.write_text("\n".join(SPANISH[:4]), encoding="utf-8")
    tuned = str(tmp_path / "tuned")
    for command in (
        ["translate", "-m", model, *short, text],
        ["look", "-m", model, *short, text],
        ["look", "-m", model, *short, "--without", "positions", text],
        ["why", "-m", model, *short, "dec.0.cross.scores.h1[1,0]", text],
        ["check", "-m", model, *short, text],
        ["evaluate", model, *short, "--src", str(source), "--ref", str(target)],
        ["train", str(pairs), "--from", model, "--to", tuned, "--steps", "2", "--threads", "1", "--languages", "en,es"],
        ["translate", "-m", tuned, *short, text],
    ):
        assert main(command) == 0, (command, capsys.readouterr().err)
        assert capsys.readouterr().out.strip() or command[0] == "train"
    before, after = (read_tokenizers(folder, read_config(folder)[0])[0] for folder in (usual[1], Path(tuned)))
    assert before.fingerprint() == after.fingerprint()


@pytest.mark.parametrize("weights", ["zip", "old", "half"])
def test_every_form_of_weights(usual: tuple[Path, Path], tmp_path: Path, weights: str) -> None:
    from safetensors.torch import load_file, save_file

    state = load_file(usual[0] / "model.safetensors")
    folder = shutil.copytree(usual[0], tmp_path / "hf", ignore=shutil.ignore_patterns("*.safetensors"))
    if weights in ("zip", "old"):
        torch.save(state, folder / "pytorch_model.bin", _use_new_zipfile_serialization=weights == "zip")
        bound = 0.0
    else:
        save_file({name: value.half() for name, value in state.items()}, folder / "model.safetensors")
        bound = 0.01
    import_model(str(folder), tmp_path / "ours")
    expected, found = read_parameters(usual[1]), read_parameters(tmp_path / "ours")
    assert all(np.abs(found[name] - expected[name]).max() <= bound * np.abs(expected[name]).max() for name in expected)


def test_no_code_of_a_pickle_runs(usual: tuple[Path, Path], tmp_path: Path) -> None:
    class Harm:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return Path.touch, (str(tmp_path / "harm"),)

    folder = shutil.copytree(usual[0], tmp_path / "hf", ignore=shutil.ignore_patterns("*.safetensors"))
    for new in (True, False):
        torch.save({"a": Harm()}, folder / "pytorch_model.bin", _use_new_zipfile_serialization=new)
        with pytest.raises(ModelError, match="it contains more than tensors"):
            import_model(str(folder), tmp_path / "ours")
    assert not (tmp_path / "harm").exists()
    assert not (tmp_path / "ours").exists()


def test_several_target_languages(tmp_path: Path) -> None:
    write_marian(tmp_path / "hf", languages=("spa", "fra", "ita"))
    with pytest.raises(ModelError, match="several target languages"):
        import_model(str(tmp_path / "hf"), tmp_path / "ours")
    with pytest.raises(ModelError, match="such as spa"):
        import_model(str(tmp_path / "hf"), tmp_path / "ours", target="sp")
    about = import_model(str(tmp_path / "hf"), tmp_path / "ours", target="fra")
    assert about.target_language == "fra"
    _, theirs = load_hf(tmp_path / "hf")
    config, _ = read_config(tmp_path / "ours")
    source, target = read_tokenizers(tmp_path / "ours", config)
    for text in ENGLISH[:20]:
        expected = theirs(f">>fra<< {text}")["input_ids"]
        assert [*source.encode(text), config.special.end] == expected
        assert [*source.encode(f">>fra<< {text}"), config.special.end] == expected
        assert [*source.encode(f">>ita<<{text}"), config.special.end] == theirs(f">>ita<<{text}")["input_ids"]
        assert source.count(text) == len(expected) - 2
        assert target.encode(text) == theirs(text_target=text, add_special_tokens=False)["input_ids"]
    Translator.load(tmp_path / "ours").translate("The old house.")


UNSUPPORTED = {
    "model_type": ("model_type", "bart", "not a MarianMT"),
    "activation": ("activation_function", "gelu_new", "gelu_new"),
    "pre-norm": ("normalize_before", True, "normalize_before"),
    "heads": ("decoder_attention_heads", 4, "decoder_attention_heads 4"),
    "a size": ("d_model", "large", "d_model"),
    "a huge size": ("encoder_layers", 10**9, "n_encoder_layers"),
    "another size": ("encoder_ffn_dim", 25, "decoder_ffn_dim"),
}


@pytest.mark.parametrize("case", UNSUPPORTED)
def test_what_is_not_supported_is_refused_by_name(usual: tuple[Path, Path], tmp_path: Path, case: str) -> None:
    name, value, says = UNSUPPORTED[case]
    folder = shutil.copytree(usual[0], tmp_path / "hf")
    told = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**told, name: value}))
    with pytest.raises(Exception, match=says) as caught:
        import_model(str(folder), tmp_path / "ours")
    assert type(caught.value).__module__ == "vidrio.errors"
    assert not (tmp_path / "ours").exists()


def test_the_command(usual: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(usual[0]), "--to", str(tmp_path / "ours")]) == 0
    assert "eng → spa" in capsys.readouterr().out
    assert main(["import", str(usual[0]), "--to", str(tmp_path / "ours")]) == 1
    assert "not empty" in capsys.readouterr().err
    assert main(["import", str(tmp_path / "nothing"), "--to", str(tmp_path / "other")]) == 1
    assert not (tmp_path / "other").exists()


class Hub(SimpleHTTPRequestHandler):
    """A stand-in for the Hugging Face Hub."""

    def send_response(self, code: int, message: str | None = None) -> None:
        super().send_response(code, message)
        if code == 404:
            self.send_header("X-Error-Code", "EntryNotFound")

    def end_headers(self) -> None:
        self.send_header("X-Repo-Commit", "0" * 40)
        self.send_header("ETag", f'"{hash(self.path):x}"')
        super().end_headers()

    def log_message(self, *told: object) -> None:
        pass


def test_a_name_is_fetched_from_the_hub(usual: tuple[Path, Path], tmp_path: Path) -> None:
    place = tmp_path / "served/Helsinki-NLP/opus-mt-en-es/resolve/main"
    shutil.copytree(usual[0], place)
    (place / "README.md").write_text("---\nlicense: cc-by-4.0\n---\n\n# English to Spanish\n")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Hub, directory=str(tmp_path / "served"))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        hub = {
            "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
            "HF_HOME": str(tmp_path / "cache"),
            "HF_HUB_OFFLINE": "0",
        }
        done = run_vidrio("import", "Helsinki-NLP/opus-mt-en-es", "--to", str(tmp_path / "ours"), environment=hub)
        assert done.returncode == 0, done.stderr
        assert "licence: cc-by-4.0" in done.stdout
        done = run_vidrio("import", "Helsinki-NLP/opus-mt-xx-yy", "--to", str(tmp_path / "other"), environment=hub)
        assert (done.returncode, "Helsinki-NLP/opus-mt-xx-yy" in done.stderr) == (1, True)
        server.shutdown()
    assert "# English to Spanish" in (tmp_path / "ours/README.md").read_text()
    assert read_config(tmp_path / "ours")[1].provenance["imported"] == "Helsinki-NLP/opus-mt-en-es"
    assert (tmp_path / "ours/model.safetensors").read_bytes() == (usual[1] / "model.safetensors").read_bytes()
    assert not (tmp_path / "other").exists()


def test_damaged_files_are_told(usual: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(usual[0], tmp_path / "hf")
    assert import_damaged(tmp_path / "hf", tmp_path / "ours", 80, lambda: capsys.readouterr().err) > 20
    from safetensors.torch import load_file

    state = load_file(usual[0] / "model.safetensors")
    (tmp_path / "hf/model.safetensors").unlink()
    for new in (True, False):
        torch.save(state, tmp_path / "hf/pytorch_model.bin", _use_new_zipfile_serialization=new)
        assert import_damaged(tmp_path / "hf", tmp_path / "ours", 80, lambda: capsys.readouterr().err) > 20
