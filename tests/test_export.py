"""Test that models exported for `transformers`, CTranslate2 and Argos translate like `glass/`."""

import json
import operator
import random
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
import torch

from marian_models import SPANISH, searched, sentences, write_marian
from small_models import rewrite_config, write_model
from vidrio.cli import main
from vidrio.glass.changes import with_row
from vidrio.glass.machine import build
from vidrio.glass.walk import decode, encode, logits, translate_forced
from vidrio.hypothesis import default_options
from vidrio.interop.convert import import_model
from vidrio.interop.to_ctranslate2 import write_engine
from vidrio.model.config import DecodingDefaults, ModelConfig
from vidrio.model.folder import About, read_config, read_parameters, write_config, write_parameters
from vidrio.model.parameters import random_parameters
from vidrio.model.quantised import quantise
from vidrio.text.tokens.tokenizer import Tokenizer, read_tokenizers

TEXTS = sentences(200)
SHAPES = {
    "pre": {"norm": "pre"},
    "pre, biased, swish, halves": {
        **{"norm": "pre", "attention_bias": True, "output_bias": True, "activation": "swish"},
        **{"positions": "sinusoidal-halves", "scale_embeddings": False},
    },
    "post": {"norm": "post", "tying": "none"},
    "post, one table for the target": {"norm": "post", "tying": "output", "activation": "gelu"},
}


def write_ours(folder: Path, seed: int = 0, *, case_tokens: bool = False, **changes: Any) -> Path:
    """Write a model with random parameters, in the form that training writes."""
    tokenizer = Tokenizer.learn([*TEXTS, *SPANISH], 420, case_tokens=case_tokens)
    values = {
        **{"source_vocabulary": tokenizer.size, "target_vocabulary": tokenizer.size, "special": tokenizer.special},
        **{"d_model": 16, "n_heads": 2, "d_head": 8, "d_ff": 24, "n_encoder_layers": 2, "n_decoder_layers": 2},
        **{"max_positions": 96, "decoding": DecodingDefaults(beam=4, max_length=14)},
        **changes,
    }
    config = ModelConfig(**values)
    generator = np.random.default_rng(seed)
    parameters = {name: value * 2 for name, value in random_parameters(config, generator).items()}
    parameters = {name: value + 0.1 * generator.normal(size=value.shape) for name, value in parameters.items()}
    folder.mkdir(parents=True)
    tokenizer.save(folder / "tokenizer.json")
    write_parameters(folder, {name: value.astype(np.float32) for name, value in parameters.items()})
    (folder / "README.md").write_text("# Nonsense\n\nLicence: CC BY 4.0\n", encoding="utf-8")
    write_config(folder, config, About(name="nonsense", source_language="en", target_language="es"))
    return folder


def load(folder: Path) -> tuple[Any, Any]:
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, logging
    from transformers.utils.logging import disable_progress_bar

    logging.set_verbosity_error()
    disable_progress_bar()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return AutoModelForSeq2SeqLM.from_pretrained(folder).double().eval(), AutoTokenizer.from_pretrained(folder)


def ours(folder: Path, texts: list[str], beam: int) -> tuple[list[list[int]], list[str]]:
    config, _ = read_config(folder)
    source, target = read_tokenizers(folder, config)
    sources = [[*source.encode(text), *config.source_close] for text in texts]
    found = [best for best, *_ in searched(folder, sources, replace(default_options(config), beam=beam))]
    return [[*best.ids, *[config.special.end] * best.ended] for best in found], [target.decode(b.ids) for b in found]


def theirs(folder: Path, texts: list[str], beam: int, end: int) -> tuple[list[list[int]], list[str]]:
    model, tokenizer = load(folder)
    found: list[list[int]] = []
    for start in range(0, len(texts), 50):
        inputs = tokenizer(texts[start : start + 50], return_tensors="pt", padding=True)
        with torch.no_grad():
            outputs = model.generate(inputs["input_ids"], attention_mask=inputs["attention_mask"], num_beams=beam)
        found += [ids[1 : ids.index(end, 1) + 1] if end in ids[1:] else ids[1:] for ids in outputs.tolist()]
    # skip_special_tokens would also remove unknown tokens.
    return found, tokenizer.batch_decode([[i for i in ids if i != end] for ids in found])


@pytest.mark.parametrize("shape", SHAPES)
def test_transformers_computes_and_translates_as_glass(shape: str, tmp_path: Path) -> None:
    folder = write_ours(tmp_path / "ours", **SHAPES[shape])
    assert main(["export", str(folder), "--to", "hf", str(tmp_path / "hf")]) == 0
    assert "CC BY 4.0" in (tmp_path / "hf/README.md").read_text()
    config, _ = read_config(folder)
    model, tokenizer = load(tmp_path / "hf")
    machine, splits = build(config, read_parameters(folder)), read_tokenizers(folder, config)[0]
    kind = f"{config.positions.replace('-', '_')}_positions"
    table = machine.operations[kind]  # `transformers` stores it in float32
    rounded = replace(table, run=lambda *given: table.run(*given).astype(np.float32).astype(np.float64))
    machine = with_row(machine, kind, rounded)
    lines = [*TEXTS[:50], "a <s> b </s>", "ñandú  ½ 你好 é", " x", ""]
    assert tokenizer(lines)["input_ids"] == [[*splits.encode(text), *config.source_close] for text in lines]
    source = tokenizer(TEXTS[0])["input_ids"]
    target = [config.special.start, *range(10, 30)]
    with torch.no_grad():
        [theirs_TV] = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target])).logits.numpy()
    ours_TV = logits(machine, decode(machine, target, encode(machine, source)))
    assert np.abs(ours_TV - theirs_TV).max() < 1e-5
    for beam in (1, 4):
        assert ours(folder, TEXTS[:10], beam) == theirs(tmp_path / "hf", TEXTS[:10], beam, config.special.end)


def test_transformers_reads_and_writes_capitals_that_are_tokens(tmp_path: Path) -> None:
    folder = write_ours(tmp_path / "ours", case_tokens=True)
    assert main(["export", str(folder), "--to", "hf", str(tmp_path / "hf")]) == 0
    config, _ = read_config(folder)
    splits, (_, tokenizer) = read_tokenizers(folder, config)[0], load(tmp_path / "hf")
    lines = [*TEXTS[:20], "The NATO and O'NEILL's McDonald", "IT’S  Ñandú ⇧ up ⇪UP \ufdd0", " ÑA éÉ", "ǅ İ ß", "A", ""]
    assert tokenizer(lines)["input_ids"] == [[*splits.encode(text), *config.source_close] for text in lines]
    assert [tokenizer.decode(splits.encode(text)) for text in lines] == lines
    strange = [[*splits.encode("the⇪"), *splits.encode("HOUSE")], splits.encode("RIVER OLD")[:2], splits.encode("A⇧")]
    assert [tokenizer.decode(ids) for ids in strange] == [splits.decode(ids) for ids in strange]
    assert ours(folder, TEXTS[:5], 4) == theirs(tmp_path / "hf", TEXTS[:5], 4, config.special.end)


@pytest.mark.parametrize("separate", [False, True])
def test_what_was_imported_goes_back_as_it_came(tmp_path: Path, separate: bool) -> None:
    from safetensors.numpy import load_file

    write_marian(tmp_path / "hf", separate=separate)
    import_model(str(tmp_path / "hf"), tmp_path / "ours")
    assert main(["export", str(tmp_path / "ours"), "--to", "hf", str(tmp_path / "back")]) == 0
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("hf", "back"))
    assert {name for name in before if "lm_head" not in name} <= set(after)
    assert all(np.array_equal(before[name], after[name]) for name in after)
    for name in ("source.spm", "target.spm", "vocab.json", *(["target_vocab.json"] if separate else [])):
        first, second = ((tmp_path / folder / name).read_bytes() for folder in ("hf", "back"))
        assert first == second or json.loads(first) == json.loads(second)
    _, tokenizer = load(tmp_path / "back")
    assert type(tokenizer).__name__ == "MarianTokenizer"


def tokens_by_ctranslate2(exported: Path, tokenizer: Tokenizer, texts: list[str], **search: Any) -> list[list[str]]:
    """Translate texts one at a time, because padding in a batch would change rounding."""
    translator = ctranslate2.Translator(str(exported), inter_threads=1, intra_threads=1)
    sources = [tokenizer.tokens(text) for text in texts]
    return [of.hypotheses[0] for of in translator.translate_batch(sources, max_batch_size=1, **search)]


def test_ctranslate2_translates_tokens(tmp_path: Path) -> None:
    """Check that float32 translations are the same, and int8 ones as similar as a model of random numbers allows."""
    folder = write_ours(tmp_path / "ours", norm="pre")
    config, _ = read_config(folder)
    options = default_options(config)
    exported = tmp_path / "float32"
    write_engine(folder, exported, "float32")
    for least in (25, 8):
        if least < 25:
            write_parameters(folder, quantise(read_parameters(folder), config))
            rewrite_config(folder)
            exported = tmp_path / "int8"
            assert main(["export", str(folder), "--to", "ctranslate2", str(exported)]) == 0
            assert "CC BY 4.0" in (exported / "README.md").read_text()
        tokenizer = Tokenizer.load(folder / "tokenizer.json")
        search = {"beam_size": 4, "max_decoding_length": 14, "length_penalty": options.length_penalty}
        search["suppress_sequences"] = [[tokenizer.token(i)] for i in options.suppressed]
        found = tokens_by_ctranslate2(exported, tokenizer, TEXTS[:25], **search)
        ids = [[tokenizer.id(token) for token in tokens] for tokens in found]
        expected = [[i for i in own if i != config.special.end] for own in ours(folder, TEXTS[:25], 4)[0]]
        assert sum(map(operator.eq, ids, expected)) >= least


CHOICES: dict[str, tuple[Any, ...]] = {
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


@pytest.mark.parametrize("row", range(12))
def test_ctranslate2_computes_every_choice(row: int, tmp_path: Path) -> None:
    """Check that each greedy token and its log-probability agree with `glass/`, for random choices and sentences.

    Rounding explains differences of about 1e-5; a wrong table, norm or transpose gives 0.1 or more.
    """
    draw, folder = random.Random(row), tmp_path / "ours"
    write_model(folder, seed=row, **{name: draw.choice(values) for name, values in CHOICES.items()})
    write_engine(folder, tmp_path / "float32", "float32")
    translator = ctranslate2.Translator(str(tmp_path / "float32"), inter_threads=1, intra_threads=1)
    config, _ = read_config(folder)
    machine, special = build(config, read_parameters(folder)), config.special
    source_tokens, target_tokens = (of.vocabulary() for of in read_tokenizers(folder, config))
    usual = [i for i in range(len(source_tokens)) if i not in vars(special).values()]
    room = config.max_positions - 2
    for length in sorted({min(n, room) for n in (1, 2, 3, 5, 8, 13, 21, 34)}):
        ids = draw.choices(usual, k=length)
        source = [source_tokens[i] for i in ids]
        [result] = translator.translate_batch([source], beam_size=1, max_decoding_length=min(48, room))
        [scored] = translator.score_batch([source], [result.hypotheses[0]])
        chosen = [*map(target_tokens.index, result.hypotheses[0]), special.end]
        with np.errstate(divide="ignore"):
            log_prob_TV = np.log(translate_forced(machine, [*ids, *config.source_close], [special.start, *chosen[:-1]]))
        log_probs = [log_prob_TV[t, token] for t, token in enumerate(chosen)]
        assert np.abs(np.subtract(log_probs, scored.log_probs)).max() < 2e-3
        log_prob_TV[0, special.end] = -np.inf  # not allowed at the first step
        assert (log_prob_TV.max(1) - log_probs)[:-1].max(initial=0) < 2e-3


def test_a_package_for_argos(tmp_path: Path) -> None:
    import sentencepiece

    folder = write_ours(tmp_path / "ours", norm="pre")
    package = tmp_path / "en-es.argosmodel"
    assert main(["export", str(folder), "--to", "argos", str(package)]) == 0
    with zipfile.ZipFile(package) as archive:
        names = {name.partition("/")[2] for name in archive.namelist()}
        proto = archive.read("translate-en_es/sentencepiece.model")
        metadata = json.loads(archive.read("translate-en_es/metadata.json"))
        assert b"CC BY 4.0" in archive.read("translate-en_es/README.md")
    assert {"metadata.json", "sentencepiece.model", "model/model.bin", "model/config.json", "README.md"} <= names
    assert (metadata["from_code"], metadata["to_code"]) == ("en", "es")
    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
    lines = [*TEXTS, *SPANISH]
    same = sum(processor.encode(line, out_type=str) == tokenizer.tokens(line) for line in lines)
    assert same == len(lines)
    assert processor.get_piece_size() == tokenizer.size


REFUSED = {
    "an odd head": ("hf", {"d_head": 5}, "2 heads of 5"),
    "learned positions": ("hf", {"positions": "learned"}, "learned"),
    "Marian's waves": ("hf", {"positions": "sinusoidal-marian"}, "sinusoidal-marian"),
    "another epsilon": ("hf", {"norm_epsilon": 1e-3}, "0.001"),
    "pre-norm, untied": ("hf", {"norm": "pre", "tying": "none"}, "tied 'none'"),
    "no translator": ("hf", {"shape": "decoder", "source_vocabulary": 0}, "its shape is 'decoder'"),
    "a recurrent decoder": ("hf", {"decoder_cell": "ssru"}, "its decoder is recurrent"),
    "no translator for CTranslate2": ("ctranslate2", {"shape": "decoder", "source_vocabulary": 0}, "its shape is"),
    "a recurrent decoder for CTranslate2": ("ctranslate2", {"decoder_cell": "ssru"}, "its decoder is recurrent"),
    "a recurrent decoder for Argos": ("argos", {"decoder_cell": "ssru"}, "its decoder is recurrent"),
    "case tokens for Argos": ("argos", {"case_tokens": True}, "case tokens"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_program_has_no_word_for_is_refused(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, changes, says = REFUSED[case]
    folder = write_ours(tmp_path / "ours", **changes)
    assert main(["export", str(folder), "--to", program, str(tmp_path / "out")]) == 1
    assert says in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
