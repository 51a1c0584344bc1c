"""Model folder → the CTranslate2 files in its `fast/`: the only place where weights are transposed or fused.

CTranslate2 has defaults of its own for almost everything, and none of them is the paper's: sinusoids that start at
position 1, a final norm, embeddings times √D, ε by kind of norm. So everything is written out, and the export checks
itself against `glass/` before it calls itself done.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from vidrio.errors import ModelError, about_file
from vidrio.fast.engine import Engine
from vidrio.fast.files import SOURCES, Manifest, checksums, move_into_place, promised, write_manifest
from vidrio.glass.paper.positions import TABLES
from vidrio.glass.paper.transformer import Machine, build, translate_forced
from vidrio.hypothesis import Options, Pair
from vidrio.model.config import ModelConfig
from vidrio.model.folder import read_config, read_parameters
from vidrio.model.parameters import output_is_tied, source_table, target_table
from vidrio.text.tokens.tokenizer import read_tokenizers

QUANTISATIONS = ("int8", "float32")

# float32 against float64 over some twenty layers leaves about 1e-5; a wrong table, norm or transpose 0.1 and more.
LARGEST_FLOAT32_DIFFERENCE = 2e-3  # of a log-probability
# Eight bits change a token's log-probability by some hundredths; a fault changes it by whole nats.
LARGEST_INT8_DIFFERENCE = 0.5  # the mean over tokens
CHECKED_LENGTHS = (1, 2, 3, 5, 8, 13, 21, 34)


def obstacles(config: ModelConfig) -> list[str]:
    """Every reason why a model of this config cannot be exported."""
    reasons = []
    if config.shape != "encoder-decoder":
        reasons.append(f"its shape is {config.shape!r}; only an encoder-decoder translates")
    reasons += [
        f"it has no {name} token"
        for name in ("start", "end")
        if config.shape != "encoder" and getattr(config.special, name) < 0
    ]
    return reasons


def export(folder: Path, to: Path | None = None, *, quantisation: str = "int8", positions: int = 0) -> Manifest:
    """Write the CTranslate2 files of a model into `to` (its `fast/`), checked, and all of them or none.

    A table of positions that is computed gets at least `positions` rows, for programs that do not mind its length.
    Files that come out as the folder's manifest promises (a packaged model's) were checked when that was written.
    """
    to = to or folder / "fast"
    config, _ = read_config(folder)
    reasons = obstacles(config)
    if quantisation not in QUANTISATIONS:
        reasons.append(f"quantisation {quantisation!r} is not one of {', '.join(QUANTISATIONS)}")
    if reasons:
        raise ModelError(
            f"{folder} cannot be exported for the fast engine", found="; ".join(reasons), do="use --engine glass"
        )
    source, target = read_tokenizers(folder, config)
    vocabularies = (
        filled(source.vocabulary(), config.source_vocabulary),
        filled(target.vocabulary(), config.target_vocabulary),
    )
    made_from = checksums(folder, SOURCES)
    parameters = read_parameters(folder)
    machine = build(config, parameters)  # refuses parameters that do not fit the config
    computed = config.positions != "learned"
    longer = replace(config, max_positions=max(positions, config.max_positions)) if computed else config
    to.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=to.parent, prefix=f".{to.name}.", suffix=".part") as temporary:
        result, exact = Path(temporary) / quantisation, Path(temporary) / "float32"
        write(result, longer, parameters, vocabularies, quantisation)
        files = checksums(result, tuple(file.name for file in result.iterdir()))
        manifest = promised(folder, made_from)
        if manifest is None or manifest.files != files:
            if result != exact:
                write(exact, longer, parameters, vocabularies, "float32")
            float32_difference, pairs = check_float32(machine, Engine(exact, config))
            quantised_difference = 0.0 if result == exact else check_quantised(machine, Engine(result, config), pairs)
            manifest = Manifest(
                quantisation, made_from, files, float32_difference, quantised_difference, str(version("ctranslate2"))
            )
        write_manifest(result, manifest)
        move_into_place(result, to)
    return manifest


# --- the weights, as CTranslate2 wants them ---------------------------------------------------------------------------


def write(
    folder: Path,
    config: ModelConfig,
    parameters: Mapping[str, np.ndarray],
    vocabularies: tuple[list[str], list[str]],
    quantisation: str,
) -> None:
    """The CTranslate2 files of a model, in a new folder."""
    spec = specify(config, parameters)
    source_tokens, target_tokens = vocabularies
    spec.register_source_vocabulary(source_tokens)
    spec.register_target_vocabulary(target_tokens)
    special = config.special
    spec.config.decoder_start_token = target_tokens[special.start]
    spec.config.bos_token = target_tokens[special.start]
    spec.config.eos_token = target_tokens[special.end]
    spec.config.unk_token = target_tokens[special.unk if special.unk >= 0 else special.end]  # ids never need it
    spec.config.add_source_bos = False
    spec.config.add_source_eos = False  # the engine puts it there, where the config has it
    spec.config.layer_norm_epsilon = config.norm_epsilon
    spec.validate()
    spec.optimize(quantization=quantisation)  # finds what is tied, then quantises; in place, on copies of ours
    folder.mkdir()
    with about_file(folder):
        spec.save(str(folder))


def specify(config: ModelConfig, parameters: Mapping[str, np.ndarray]) -> Any:
    """A CTranslate2 specification filled with our parameters."""
    from ctranslate2.specs.common_spec import Activation
    from ctranslate2.specs.transformer_spec import TransformerDecoderSpec, TransformerEncoderSpec, TransformerSpec

    p = {name: np.array(value, dtype=np.float32) for name, value in parameters.items()}
    choices: dict[str, Any] = {
        "pre_norm": config.norm == "pre",
        "no_final_norm": config.norm != "pre",
        "activation": {"relu": Activation.RELU, "gelu": Activation.GELU, "swish": Activation.SWISH}[config.activation],
        "head_dim": None if config.d_head * config.n_heads == config.d_model else config.d_head,
    }
    encoder = TransformerEncoderSpec(config.n_encoder_layers, config.n_heads, **choices)
    # The attention that can be asked for is the mean of the last layer's heads.
    decoder = TransformerDecoderSpec(
        config.n_decoder_layers, config.n_heads, alignment_layer=-1, alignment_heads=config.n_heads, **choices
    )
    encoder.embeddings[0].weight = p[source_table(config)]
    decoder.embeddings.weight = p[target_table(config)].copy()
    encoder.scale_embeddings = decoder.scale_embeddings = config.scale_embeddings
    encoder.position_encodings.encodings = position_table(config, p, "src.pos")
    decoder.position_encodings.encodings = position_table(config, p, "tgt.pos")
    for n, layer in enumerate(encoder.layer):
        fill_attention(layer.self_attention, p, f"enc.{n}.self", ["QKV"])
        fill_feed_forward(layer.ffn, p, f"enc.{n}.ffn")
    for n, layer in enumerate(decoder.layer):
        fill_attention(layer.self_attention, p, f"dec.{n}.self", ["QKV"])
        fill_attention(layer.attention, p, f"dec.{n}.cross", ["Q", "KV"])
        fill_feed_forward(layer.ffn, p, f"dec.{n}.ffn")
    if config.norm == "pre":
        fill_norm(encoder.layer_norm, p, "enc.norm")
        fill_norm(decoder.layer_norm, p, "dec.norm")
    decoder.projection.weight = p[target_table(config)].copy() if output_is_tied(config) else transposed(p["out.W"])
    if "out.b" in p:
        decoder.projection.bias = p["out.b"]
    return TransformerSpec(encoder, decoder)


def position_table(config: ModelConfig, p: Mapping[str, np.ndarray], learned: str) -> np.ndarray:
    """Our own table, always: CTranslate2's own sinusoids are not §3.5's."""
    if config.positions == "learned":
        return p[learned].copy()
    table_PD = TABLES[config.positions](config.max_positions, config.d_model)
    return table_PD.astype(np.float32)


def fill_attention(spec: Any, p: Mapping[str, np.ndarray], name: str, matrices: Sequence[str]) -> None:
    """The projections, those of each matrix side by side, then O."""
    for linear, letters in zip(spec.linear, matrices, strict=False):
        fill_fused(linear, p, name, letters)
    output = spec.linear[-1]
    output.weight = transposed(p[f"{name}.WO"])
    if f"{name}.bO" in p:
        output.bias = p[f"{name}.bO"]
    fill_norm(spec.layer_norm, p, f"{name}.norm")


def fill_fused(spec: Any, p: Mapping[str, np.ndarray], name: str, letters: str) -> None:
    """Projections side by side, each with its heads side by side: H × D × K → (H·K) × D, rows are outputs."""
    parts = [p[f"{name}.W{letter}"].transpose(0, 2, 1) for letter in letters]
    spec.weight = np.concatenate([part.reshape(-1, part.shape[-1]) for part in parts])
    if f"{name}.bQ" in p:
        spec.bias = np.concatenate([p[f"{name}.b{letter}"].ravel() for letter in letters])


def fill_feed_forward(spec: Any, p: Mapping[str, np.ndarray], name: str) -> None:
    spec.linear_0.weight, spec.linear_0.bias = transposed(p[f"{name}.W1"]), p[f"{name}.b1"]
    spec.linear_1.weight, spec.linear_1.bias = transposed(p[f"{name}.W2"]), p[f"{name}.b2"]
    fill_norm(spec.layer_norm, p, f"{name}.norm")


def fill_norm(spec: Any, p: Mapping[str, np.ndarray], name: str) -> None:
    spec.gamma, spec.beta = p[f"{name}.gain"], p[f"{name}.bias"]


def transposed(W: np.ndarray) -> np.ndarray:
    """x W is how we multiply; CTranslate2 keeps Wᵀ."""
    return np.ascontiguousarray(W.T)


def filled(tokens: list[str], rows: int) -> list[str]:
    """One token for each row of an embedding that may have a few rows more than the vocabulary has tokens."""
    return tokens + [f"<unused {row}>" for row in range(len(tokens), rows)]


# --- the check --------------------------------------------------------------------------------------------------------


def check_float32(machine: Machine, engine: Engine) -> tuple[float, list[Pair]]:
    """Hold the exported model to `glass/` before it is quantised: every log-probability, and every greedy choice.

    Returns the largest difference, and sentences with their greedy translations.
    """
    config = machine.config
    pairs: list[Pair] = []
    sources = sentences(config)
    options = Options(beam=1, max_length=max(1, min(48, config.max_positions - 1)))  # glass/ sees the start token too
    for ids, hypotheses in zip(sources, engine.search(sources, options), strict=True):
        best = hypotheses[0]
        log_probs_TV = glass_log_probs(machine, ids, best.ids)
        log_probs_TV[0, config.special.end] = -np.inf  # not allowed at the first step
        chosen = [*best.ids, *([config.special.end] if best.ended else [])]
        behind = max(log_probs_TV[t].max() - log_probs_TV[t, token] for t, token in enumerate(chosen))
        if not behind <= LARGEST_FLOAT32_DIFFERENCE:
            raise _failed(f"its greedy choice is {behind:.2g} less likely than that of glass/, for the ids {ids}")
        pairs.append((ids, best.ids))
    room = config.max_positions - 1  # of the target: its start token
    difference = max(differences(machine, engine, [*pairs, *((ids, ids[:-1][:room]) for ids in sources)]), default=0.0)
    if not difference <= LARGEST_FLOAT32_DIFFERENCE:
        raise _failed(
            f"its log-probabilities differ by {difference:.2g}; up to {LARGEST_FLOAT32_DIFFERENCE} is rounding"
        )
    return difference, pairs


def check_quantised(machine: Machine, engine: Engine, pairs: Sequence[Pair]) -> float:
    """The mean difference of a token's log-probability, refused if it is more than rounding to 8 bits explains."""
    changes = differences(machine, engine, pairs)
    difference = float(np.mean(changes)) if changes else 0.0
    if not difference <= LARGEST_INT8_DIFFERENCE:
        raise _failed(f"8-bit weights change a log-probability by {difference:.2g} on average")
    return difference


def differences(machine: Machine, engine: Engine, pairs: Sequence[Pair]) -> list[float]:
    """For every target token of every pair: how far the engine's log-probability is from that of `glass/`."""
    end = machine.config.special.end
    distances = []
    for (source_ids, target_ids), log_probs in zip(pairs, engine.score(pairs), strict=True):
        log_probs_TV = glass_log_probs(machine, source_ids, target_ids)
        distances += [float(abs(log_probs_TV[t, token] - log_probs[t])) for t, token in enumerate([*target_ids, end])]
    return distances


def glass_log_probs(machine: Machine, source_ids: Sequence[int], target_ids: Sequence[int]) -> np.ndarray:
    """Log-probabilities after the start and after each target token, by `glass/`."""
    prob_TV = translate_forced(machine, source_ids, [machine.config.special.start, *target_ids])
    with np.errstate(divide="ignore"):
        log_probs_TV: np.ndarray = np.log(prob_TV)
    return log_probs_TV


def sentences(config: ModelConfig) -> list[list[int]]:
    """Sentences of random tokens, the same for every model of this size, as long as the positions allow."""
    generator = np.random.default_rng(20170612)
    special = {config.special.pad, config.special.unk, config.special.start, config.special.end}
    usual = [i for i in range(min(config.source_vocabulary, config.target_vocabulary)) if i not in special]
    close = config.source_close
    room = config.max_positions - len(close)
    lengths = {min(n, room) for n in CHECKED_LENGTHS if usual and room > 0}
    return [[*map(int, generator.choice(usual, n)), *close] for n in sorted(lengths)]


def _failed(reason: str) -> ModelError:
    return ModelError(
        "the exported model does not compute what the model computes",
        found=reason,
        do="use --engine glass, and report this: it is a fault of vidrio or of CTranslate2",
    )
