"""Counts of parameters and multiplications, held to an instrumented run and to the parameters that there are."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vidrio.cli import main
from vidrio.errors import ConfigError
from vidrio.glass.paper.arithmetic import mix
from vidrio.glass.paper.attention import Kept
from vidrio.glass.paper.decoding import decode_step
from vidrio.glass.paper.transformer import Machine, build, classify, decode, encode, logits
from vidrio.lessons import counting
from vidrio.lessons.sizes import PRESETS, glossary, resized
from vidrio.look.writing import text_width
from vidrio.model.config import ModelConfig
from vidrio.model.folder import About, write_config
from vidrio.model.parameters import count, parameter_specs, random_parameters

LESSON = PRESETS["lesson"]
SMALL = ModelConfig(
    source_vocabulary=11, target_vocabulary=13, d_model=6, n_heads=3, d_head=5, d_ff=7, n_encoder_layers=2,
    n_decoder_layers=3, max_positions=20, tying="output", positions="learned", norm="pre", attention_bias=True,
)  # fmt: skip
VARIANTS = {
    "the worked example": LESSON,
    "untied, pre-norm, biases": SMALL,
    "one table": replace(SMALL, target_vocabulary=11, tying="all"),
    "decoder": replace(SMALL, shape="decoder", source_vocabulary=0),
}


class Counted(np.ndarray):
    """An array that counts the multiplications of its matrix products."""

    total = 0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = [np.asarray(x) if isinstance(x, Counted) else x for x in inputs]
        if "out" in kwargs:
            kwargs["out"] = tuple(np.asarray(x) for x in kwargs["out"])
        result = getattr(ufunc, method)(*plain, **kwargs)
        if ufunc is np.matmul:
            Counted.total += result.size * plain[0].shape[-1]
        return result.view(Counted) if isinstance(result, np.ndarray) else result


def tap(name: str, value: np.ndarray) -> np.ndarray:
    """What NumPy's functions turn into plain arrays becomes a counting one again."""
    return value if value.dtype.kind == "i" else value.view(Counted)


def counted_machine(config: ModelConfig) -> Machine:
    machine = build(config, random_parameters(config, np.random.default_rng(0)))
    counting_mix = replace(machine.arithmetic, mix=lambda weights, values: mix(weights.view(Counted), values))
    parameters = {name: array.view(Counted) for name, array in machine.parameters.items()}
    return replace(machine, parameters=parameters, arithmetic=counting_mix)


def total(run: Any) -> int:
    Counted.total = 0
    run()
    return Counted.total


@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize(("n_source", "n_target"), [(2, 3), (1, 1), (7, 9)])
def test_counts_are_those_of_a_run(config: ModelConfig, n_source: int, n_target: int) -> None:
    machine = counted_machine(config)
    source, target = [0] * n_source, [1] * n_target
    memory = tap("memory", encode(machine, source, tap)) if config.has_encoder else None

    def step_by_step() -> None:
        kept = Kept()
        for token in target:
            decode_step(machine, [token], memory, kept, tap)

    def anew() -> None:
        for t in range(1, n_target + 1):
            logits(machine, decode(machine, target[:t], memory, tap)[-1:], tap)

    if config.has_encoder:
        assert total(lambda: encode(machine, source, tap)) == sum(counting.encoding(config, n_source).values())
    at_once = total(lambda: logits(machine, decode(machine, target, memory, tap), tap))
    assert at_once == sum(counting.forced(config, n_source, n_target).values())
    assert total(step_by_step) == sum(counting.decoding(config, n_source, n_target, cached=True).values())
    assert total(anew) == sum(counting.decoding(config, n_source, n_target, cached=False).values())


def test_an_encoder_alone() -> None:
    config = replace(SMALL, shape="encoder", n_classes=4)
    machine = counted_machine(config)
    assert total(lambda: classify(machine, [1, 2, 3], tap)) == sum(counting.encoding(config, 3).values())


def test_known_counts() -> None:
    assert sum(counting.encoding(LESSON, 2).values()) + sum(counting.forced(LESSON, 2, 3).values()) == 7728
    small = PRESETS["small"]
    assert sum(counting.encoding(small, 12).values()) + sum(counting.forced(small, 12, 12).values()) == 29_134_848
    assert [sum(part.total for part in counting.parts(c)) for c in PRESETS.values()] == [
        3010,
        2_407_936,
        63_045_632,
        214_171_648,
    ]


@pytest.mark.parametrize(
    "config", [*VARIANTS.values(), *PRESETS.values(), replace(SMALL, shape="encoder", n_classes=4)]
)
def test_parts_are_all_the_parameters(config: ModelConfig) -> None:
    parts = counting.parts(config)
    assert sum(part.total for part in parts) == count(config)
    for part in parts:
        product = sum(int(np.prod([int(n) for n in term.split("·")])) for term in part.numbers.split(" + "))
        assert product == part.one
        assert part.letters.count("+") == part.numbers.count("+")


def test_bytes() -> None:
    config = replace(LESSON, n_encoder_layers=1, n_decoder_layers=1, target_vocabulary=7)
    stored = counting.bytes_of(config)
    assert stored["float32"] == 2 * stored["bfloat16"] == 4 * count(config)
    by_hand = 0
    for name, (axes, shape) in parameter_specs(config).items():
        if name.endswith("embed"):
            by_hand += shape[0] * shape[1] + 4 * shape[0]  # a scale for each token
        elif axes == "HDK":
            by_hand += shape[0] * shape[1] * shape[2] + 4 * shape[0] * shape[2]  # and for each output
        elif len(shape) == 2:
            by_hand += shape[0] * shape[1] + 4 * shape[1]
        else:
            by_hand += 4 * shape[0]
    assert stored["int8"] == by_hand


def test_kept_numbers_are_those_kept() -> None:
    machine = counted_machine(SMALL)
    memory = encode(machine, [1, 2, 3, 4])
    kept = Kept()
    for token in (1, 2, 3):
        decode_step(machine, [token], memory, kept)
    assert counting.kept_numbers(SMALL, 4, 3) == sum(rows.size for rows in kept.rows.values())


# --- the glossary -----------------------------------------------------------------------------------------------------


def times(term: dict[str, Any]) -> list[float]:
    return [term[what][1] / term[what][0] for what in ("parameters", "multiplications", "kept")]


def test_what_doubling_costs() -> None:
    base = PRESETS["base"]
    by_term = {term["term"]: times(term) for term in glossary(base, 20, 20)}
    assert list(by_term) == [
        "vocabulary size",
        "batch size",
        "sequence length",
        "embedding dimension",
        "latent dimension",
        "number of attention heads",
    ]
    assert by_term["vocabulary size"][0] == (count(base) + 37000 * 512) / count(base)
    assert by_term["batch size"] == [1, 2, 2]
    assert by_term["sequence length"][0] == 1
    assert 2 < by_term["sequence length"][1] < 2.1
    assert by_term["embedding dimension"][0] == count(replace(base, d_model=1024, d_head=128)) / count(base)
    assert by_term["latent dimension"][2] == 1
    assert by_term["number of attention heads"] == [1, 1, 1]
    long = {term["term"]: times(term) for term in glossary(base, 2000, 2000)}
    assert long["sequence length"][1] > 2.5  # the scores' square shows


def test_heads_of_odd_width_keep_it_and_cost() -> None:
    heads = glossary(LESSON, 5, 5)[-1]
    assert heads["change"] == "H 2 → 4"
    assert times(heads)[0] > 1.3


def test_learned_positions_cost_parameters() -> None:
    length = glossary(SMALL, 5, 5)[2]
    assert length["parameters"][1] - length["parameters"][0] == 2 * SMALL.max_positions * SMALL.d_model


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--glossary"],
        *(["--preset", name] for name in PRESETS),
        ["--preset", "big", "-s", "500", "-t", "500"],
        ["--preset", "big", "--glossary"],
        ["--model", "lesson"],
        ["--d-model", "256", "--heads", "4", "--vocabulary", "1000", "--encoder-layers", "1"],
    ],
)
def test_the_tables_fit_the_screen(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lesson", "sizes", *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert max(map(text_width, captured.out.splitlines())) <= 80


@pytest.mark.parametrize("config", [replace(SMALL, shape="encoder", n_classes=4), VARIANTS["decoder"]])
def test_models_with_one_side(config: ModelConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_config(tmp_path, config, About(name="one side"))
    for extra in ([], ["--glossary"]):
        assert main(["lesson", "sizes", "--model", str(tmp_path), "-s", "9", "-t", "9", *extra]) == 0
        out = capsys.readouterr().out
        assert "9 source" in out if config.has_encoder else "9 source" not in out
        assert f"{count(config):,}" in out


def test_memory_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """63,045,632 numbers of 4 bytes: parameter, gradient, and Adam's two moments."""
    assert main(["lesson", "sizes"]) == 0
    out = capsys.readouterr().out
    assert "Stored: float32 252 MB, bfloat16 126 MB" in out
    assert "in float32: 1.01 GB" in out


def test_resized_keeps_the_heads_inside_the_model() -> None:
    config = resized(PRESETS["base"], {"d_model": 768, "n_heads": 12, "vocabulary": 100, "d_ff": None})
    assert (config.d_model, config.n_heads, config.d_head, config.source_vocabulary) == (768, 12, 64, 100)
    assert resized(LESSON, {"n_heads": 4, "d_head": 3}).d_head == 3
    with pytest.raises(ConfigError, match="do not share the model's width evenly"):
        resized(PRESETS["base"], {"n_heads": 7})


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--preset", "base", "--model", "lesson"], 2, "exclude each other"),
        (["--preset", "huge"], 2, "'huge' is not one of"),
        (["--heads", "0"], 2, "0 is not in the range"),
        (["--heads", "7"], 1, "do not share"),
        (["--d-model", "3", "--heads", "1"], 1, "must be even"),
        (["--model", "lesson", "-s", "2000"], 1, "holds no text that long"),
        (["--model", "nowhere"], 1, "nowhere is not a model"),
    ],
)
def test_nonsense_is_refused(
    arguments: Sequence[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lesson", "sizes", *arguments]) == code
    assert says in capsys.readouterr().err
