"""The exported model computes what the model computes, for every choice of the closed set."""

import itertools
import json
import resource
import shutil

import numpy as np
import pytest

from small_models import WORDS, random_sources, rewrite_config, write_model
from tolerances import FLOAT32
from vidrio.errors import ModelError, VidrioError
from vidrio.fast import export as export_module
from vidrio.fast.engine import Engine
from vidrio.fast.export import export, obstacles
from vidrio.fast.files import MANIFEST, check_whole, is_current, read_manifest
from vidrio.glass.paper.decoding import stepper
from vidrio.glass.paper.transformer import build
from vidrio.hypothesis import Options
from vidrio.model.config import SpecialIds
from vidrio.model.folder import read_parameters, write_parameters
from vidrio.search import search
from vidrio.text.tokens.tokenizer import Tokenizer


def test_a_full_disk_is_told_with_the_folder(tmp_path):
    """CTranslate2 writes, and does not tell where; without a name the message blamed standard output."""
    write_model(tmp_path / "model")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # no file may grow beyond, as on a full disk
    try:
        with pytest.raises(OSError, match=r"File too large.*model.\.fast\..*int8"):
            export(tmp_path / "model")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(tmp_path.glob("model/.fast*"))


CHOICES = {
    "norm": ("post", "pre"),
    "activation": ("relu", "gelu", "swish"),
    "positions": ("sinusoidal", "sinusoidal-halves", "sinusoidal-marian", "learned", "none"),
    "tying": ("all", "output", "none"),
    "scale_embeddings": (True, False),
    "attention_bias": (True, False),
    "output_bias": (True, False),
    "source_end": (True, False),
    "d_head": (8, 5),
}


def covering(choices):
    """Few combinations in which every two values of different choices meet."""
    names = list(choices)
    wanted = {((a, x), (b, y)) for a, b in itertools.combinations(names, 2) for x in choices[a] for y in choices[b]}
    generator = np.random.default_rng(0)
    while wanted:
        tries = [{n: choices[n][generator.integers(len(choices[n]))] for n in names} for _ in range(60)]
        best = max(tries, key=lambda row: len(wanted & set(itertools.combinations(row.items(), 2))))
        met = wanted & set(itertools.combinations(best.items(), 2))
        if met:
            wanted -= met
            yield best


@pytest.mark.parametrize(
    "choices", list(covering(CHOICES)), ids=lambda row: "-".join(str(value) for value in row.values())
)
def test_every_choice_gives_the_log_probabilities_and_translations_of_glass(tmp_path, choices):
    config = write_model(tmp_path / "model", **choices)
    manifest = export(tmp_path / "model", quantisation="float32")
    # Scores of random sentences are near −20, not 1, so that one digit of float32 is lost.
    assert manifest.float32_difference < 10 * FLOAT32
    machine = build(config, read_parameters(tmp_path / "model"))
    engine = Engine(tmp_path / "model" / "fast", config)
    options = Options(beam=3, n_best=2, max_length=12, length_penalty=0.7)
    sources = random_sources(config, 8, longest=10)
    for ids, fast in zip(sources, engine.search(sources, options), strict=True):
        glass = search(stepper(machine, ids), config.special.start, config.special.end, options)
        assert [h.ids for h in fast] == [h.ids for h in glass]
        assert [h.ended for h in fast] == [h.ended for h in glass]
        assert [h.score for h in fast] == pytest.approx([h.score for h in glass], abs=10 * FLOAT32)
        assert [h.log_prob for h in fast] == pytest.approx([h.log_prob for h in glass], abs=100 * FLOAT32)


def test_the_choices_tried_cover_every_pair():
    rows = list(covering(CHOICES))
    for a, b in itertools.combinations(CHOICES, 2):
        assert {(row[a], row[b]) for row in rows} == set(itertools.product(CHOICES[a], CHOICES[b]))
    assert len(rows) < 40


def test_eight_bits_stay_close_and_are_told(tmp_path):
    config = write_model(tmp_path / "model", norm="pre")
    manifest = export(tmp_path / "model")
    assert manifest == read_manifest(tmp_path / "model" / "fast")
    assert manifest.quantisation == "int8"
    assert 0 < manifest.quantised_difference < 0.3
    assert manifest.float32_difference < 10 * FLOAT32
    assert set(manifest.made_from) == {"config.json", "model.safetensors", "tokenizer.json"}
    names = {file.name for file in (tmp_path / "model" / "fast").iterdir()}
    assert names == {"model.bin", "config.json", "shared_vocabulary.json", MANIFEST}
    assert [file.name for file in tmp_path.iterdir()] == ["model"]  # nothing is left lying about
    assert (
        len(Engine(tmp_path / "model" / "fast", config).search([[5, config.special.end]], Options(max_length=9))) == 1
    )


def test_the_parameters_are_read_only_and_the_rows_without_a_token_are_named(tmp_path):
    write_model(tmp_path / "model", source_vocabulary=40, target_vocabulary=40)
    before = (tmp_path / "model" / "model.safetensors").read_bytes()
    export(tmp_path / "model")
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == before
    tokens = json.loads((tmp_path / "model" / "fast" / "shared_vocabulary.json").read_text())
    assert len(tokens) == 40
    assert tokens[-1] == "<unused 39>"


@pytest.mark.parametrize("matrix", ["enc.0.self.WQ", "dec.1.ffn.norm.bias"])
def test_an_export_that_computes_something_else_is_refused(tmp_path, monkeypatch, matrix):
    """The check sees a single wrong array: here one that was turned over on its way."""
    write_model(tmp_path / "model", norm="pre")
    honest = export_module.specify

    def wrong(config, parameters):
        return honest(config, {**parameters, matrix: np.flip(parameters[matrix], axis=-1)})

    monkeypatch.setattr(export_module, "specify", wrong)
    with pytest.raises(ModelError, match=r"log-probabilities differ by|less likely than that of glass"):
        export(tmp_path / "model")
    assert not (tmp_path / "model" / "fast").exists()


def test_weights_that_eight_bits_cannot_hold_are_refused(tmp_path):
    config = write_model(tmp_path / "model", norm="pre")
    parameters = read_parameters(tmp_path / "model")
    # One huge number in each row leaves the others with one bit, and a matching zero column keeps float32 unharmed.
    for name in ("enc.0.ffn.W1", "enc.1.ffn.W1"):
        parameters[name][0, :] = 3e4
        parameters[name.replace("W1", "norm.gain")][0] = 0.0
        parameters[name.replace("W1", "norm.bias")][0] = 0.0
    write_parameters(tmp_path / "model", parameters)
    rewrite_config(tmp_path / "model")
    assert export(tmp_path / "model", quantisation="float32").float32_difference < 10 * FLOAT32
    with pytest.raises(ModelError, match="8-bit weights change a log-probability by"):
        export(tmp_path / "model")
    assert read_manifest(tmp_path / "model" / "fast").quantisation == "float32"  # the last good one stays
    assert config.norm == "pre"


def test_all_obstacles_are_told_at_once(tmp_path):
    config = write_model(tmp_path / "model", shape="decoder", special=SpecialIds(start=-1, end=-1))
    assert len(obstacles(config)) == 3
    with pytest.raises(ModelError) as told:
        export(tmp_path / "model", quantisation="int3")
    for part in ("shape is 'decoder'", "no start token", "no end token", "'int3'"):
        assert part in str(told.value)


def test_an_export_knows_what_it_was_made_from(tmp_path):
    folder, fast = tmp_path / "model", tmp_path / "model" / "fast"
    assert not is_current(folder, fast)
    write_model(folder)
    export(folder)
    assert is_current(folder, fast)
    (folder / "model.safetensors").touch()
    assert is_current(folder, fast)  # newer, but the same
    write_model(folder, seed=1)
    assert not is_current(folder, fast)
    export(folder)
    assert is_current(folder, fast)


def test_a_damaged_export_is_named_with_its_checksum(tmp_path):
    write_model(tmp_path / "model")
    export(tmp_path / "model")
    fast = tmp_path / "model" / "fast"
    check_whole(fast)
    data = bytearray((fast / "model.bin").read_bytes())
    data[len(data) // 2] ^= 1
    (fast / "model.bin").write_bytes(data)
    with pytest.raises(ModelError, match=r"model.bin is damaged\n  found: sha256 [0-9a-f]{64}, it was written with"):
        check_whole(fast)
    (fast / "model.bin").unlink()
    with pytest.raises(ModelError, match=r"model.bin is missing"):
        check_whole(fast)
    (fast / MANIFEST).write_text('{"of": "another version"}')
    assert not is_current(tmp_path / "model", fast)
    shutil.rmtree(fast)
    with pytest.raises(VidrioError):
        check_whole(fast)


def test_separate_vocabularies(tmp_path):
    config = write_model(tmp_path / "model", tying="none", target_vocabulary=12, output_bias=True)
    Tokenizer.of_words([*WORDS[::-1][:8]]).save(tmp_path / "model" / "target-tokenizer.json")
    rewrite_config(tmp_path / "model")
    export(tmp_path / "model", quantisation="float32")
    fast = tmp_path / "model" / "fast"
    assert {"source_vocabulary.json", "target_vocabulary.json"} <= {file.name for file in fast.iterdir()}
    machine, engine = build(config, read_parameters(tmp_path / "model")), Engine(fast, config)
    sources = random_sources(config, 8, longest=10)
    for ids, found in zip(sources, engine.search(sources, Options(beam=3, max_length=9)), strict=True):
        assert max(found[0].ids) < 12
        expected = search(
            stepper(machine, ids), config.special.start, config.special.end, Options(beam=3, max_length=9)
        )
        assert found[0].ids == expected[0].ids


@pytest.mark.parametrize(
    "changes",
    [
        {"files": ["model.bin"]}, {"files": {"../model.bin": "0", "model.bin": "0"}}, {"files": {}}, {"made_from": 3},
        {"float32_difference": "small"}, {"quantisation": None},
    ],
)  # fmt: skip
def test_an_odd_manifest_is_no_export(tmp_path, changes):
    fast = tmp_path / "model" / "fast"
    write_model(tmp_path / "model")
    fast.mkdir()
    told = {"quantisation": "int8", "made_from": {}, "files": {"model.bin": "0"}, "float32_difference": 0.1,
            "quantised_difference": 0, "ctranslate2": "4"}  # fmt: skip
    (fast / MANIFEST).write_text(json.dumps(told))
    assert read_manifest(fast).quantised_difference == 0
    (fast / MANIFEST).write_text(json.dumps(told | changes))
    with pytest.raises(ModelError, match="cannot be read"):
        read_manifest(fast)
    assert not is_current(tmp_path / "model", fast)


def test_a_file_that_was_not_exported_is_refused(tmp_path):
    """CTranslate2 would read it."""
    write_model(tmp_path / "model")
    export(tmp_path / "model")
    (tmp_path / "model" / "fast" / "source_vocabulary.txt").write_text("a\n")
    with pytest.raises(ModelError, match="holds what was not written with it"):
        check_whole(tmp_path / "model" / "fast")


@pytest.mark.parametrize("tokens", ["[1, 2]", '["a"]', "{}", "[" * 99_999])
def test_an_odd_vocabulary_is_refused(tmp_path, tokens):
    config = write_model(tmp_path / "model")
    export(tmp_path / "model")
    (tmp_path / "model" / "fast" / "shared_vocabulary.json").write_text(tokens)
    with pytest.raises(ModelError, match=r"shared_vocabulary\.json cannot be read"):
        Engine(tmp_path / "model" / "fast", config)


def test_the_tokenizer_of_another_model_is_refused(tmp_path):
    write_model(tmp_path / "model")
    Tokenizer.of_words(WORDS[:5]).save(tmp_path / "model" / "tokenizer.json")
    with pytest.raises(ModelError, match=r"tokenizer.json is another file than the one"):
        export(tmp_path / "model")
