"""The configuration of a model: sizes and a closed set of options, validated on construction.

A `ModelConfig` and a set of parameters define a model completely. The options are deliberately limited
(docs/design.md): each option selects a named function or table once, when the model is loaded.

Axes, denoted by the same letters throughout the project:
  S source length   T target length   D model width   H heads   K head width   F feed-forward width
  V vocabulary      C classes         P positions     E = H·K, the width of the concatenated heads
  L queries, M keys (inside attention; each is either S or T)
  B sentences in a batch (in `learn/` only)
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from vidrio.errors import ConfigError
from vidrio.model.json_record import record, shown

FORMAT = 1  # version of the model folder format; other versions are rejected

SHAPES = ("encoder-decoder", "encoder", "decoder")
NORMS = ("post", "pre")
ACTIVATIONS = ("relu", "gelu", "swish")
POSITIONS = ("sinusoidal", "sinusoidal-halves", "sinusoidal-marian", "learned", "none")
TYINGS = ("all", "output", "none")
CELLS = ("attention", "ssru")

LARGEST_SIZE = 1 << 24  # limit for all sizes, far beyond any real model
LARGEST_LAYERS = 1000
LARGEST_BEAM = 64
LARGEST_LENGTH_PENALTY = 10.0  # 512^10 is still finite
LARGEST_POSITIONS = 1 << 23  # limit for computed position tables (P × D): 64 MB, e.g. P = 16,384 for D = 512


@dataclass(frozen=True, kw_only=True)
class SpecialIds:
    """Ids of the special tokens for padding, unknown tokens, start and end, or -1 for a token that the model lacks.

    Padding and start tokens are never generated. Without a start token, the decoder starts from a zero vector, as in
    Marian.
    """

    pad: int = 0
    unk: int = 1
    start: int = 2
    end: int = 3


@dataclass(frozen=True, kw_only=True)
class DecodingDefaults:
    """A model's default search options. The score of a hypothesis is log p / length^length_penalty."""

    beam: int = 4
    length_penalty: float = 1.0
    max_length: int = 256


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The sizes and options of a model. The defaults are those of the paper's base model."""

    shape: str = "encoder-decoder"  # or "encoder" (classifier), "decoder" (language model)
    source_vocabulary: int  # rows in the source embedding (V); 0 without an encoder
    target_vocabulary: int  # rows in the target embedding (V); 0 without a decoder
    d_model: int = 512  # D
    n_heads: int = 8  # H
    d_head: int = 64  # K; equals D / H in the paper, but not in the worked example
    d_ff: int = 2048  # F
    n_encoder_layers: int = 6
    n_decoder_layers: int = 6
    n_classes: int = 0  # C, for classifiers
    max_positions: int = 512  # P: the maximum number of tokens
    norm: str = "post"  # layer norm after the residual connection ("post", as in the paper) or before the sub-layer
    norm_epsilon: float = 1e-5
    activation: str = "relu"
    decoder_cell: str = "attention"  # the decoder's first sub-layer: masked self-attention or Marian's SSRU
    positions: str = "sinusoidal"
    tying: str = "all"  # which matrices are shared: "all" (source, target, output), "output" (target, output), "none"
    scale_embeddings: bool = True  # whether to multiply embeddings by √d_model, §3.4
    attention_bias: bool = False  # whether Q, K, V and O have biases, unlike in the paper
    output_bias: bool = False
    int8: bool = True  # whether large models are computed in int8 rather than float32
    source_end: bool = True  # whether the end token is also appended to the source
    special: SpecialIds = field(default_factory=SpecialIds)
    decoding: DecodingDefaults = field(default_factory=DecodingDefaults)

    def __post_init__(self) -> None:
        _refuse(self._problems())

    def _problems(self) -> Iterator[str]:
        values, penalty = vars(self) | vars(self.decoding), LARGEST_LENGTH_PENALTY
        choices = {"shape": SHAPES, "norm": NORMS, "activation": ACTIVATIONS, "positions": POSITIONS, "tying": TYINGS}
        choices["decoder_cell"] = CELLS
        for name, valid in choices.items():
            if values[name] not in valid:
                yield f"{name} is {shown(values[name])}, not one of {', '.join(valid)}"
        for name, least, most in (
            *((name, 1, LARGEST_SIZE) for name in ("d_model", "n_heads", "d_head", "d_ff", "max_positions")),
            ("source_vocabulary", int(self.has_encoder), LARGEST_SIZE),
            ("target_vocabulary", int(self.has_decoder), LARGEST_SIZE),
            ("n_classes", 0 if self.has_decoder else 2, LARGEST_SIZE),
            ("n_encoder_layers", int(self.has_encoder), LARGEST_LAYERS),
            ("n_decoder_layers", int(self.has_decoder), LARGEST_LAYERS),
            ("beam", 1, LARGEST_BEAM),
            ("max_length", 1, LARGEST_SIZE),
            ("length_penalty", -penalty, penalty),
        ):
            if not least <= values[name] <= most:
                yield f"{name} is {shown(values[name])}, not from {least} to {most:,}"
        if self.one_table and self.source_vocabulary != self.target_vocabulary:
            yield f"tying is 'all' with vocabularies of {self.source_vocabulary} and {self.target_vocabulary} tokens"
        if self.positions.startswith("sinusoidal") and self.d_model % 2:
            yield f"d_model is {self.d_model}: sine and cosine come in pairs, so it must be even"
        if self.positions == "sinusoidal-marian" and self.d_model < 4:
            yield f"d_model is {self.d_model}: Marian's waves need 4 or more"
        if not 0 < self.norm_epsilon <= 1:
            yield f"norm_epsilon is {self.norm_epsilon}, not above 0 and at most 1"

    def problems_of_file(self) -> Iterator[str]:
        """Yield problems that are allowed in lessons but not in model files: invalid special tokens, excessive
        sizes."""
        rows = min(size for size in (self.source_vocabulary, self.target_vocabulary, LARGEST_SIZE) if size > 0)
        for name, token in asdict(self.special).items():
            if not -1 <= token < rows:
                yield f"the {name} token is {shown(token)}, not one of 0 to {rows - 1} (or -1: none)"
        if self.positions != "learned" and self.max_positions * self.d_model > LARGEST_POSITIONS:
            size = f"max_positions {self.max_positions:,} × d_model {self.d_model:,}"
            yield f"{size} exceeds the limit for computed positions, {LARGEST_POSITIONS:,} numbers"

    @property
    def has_encoder(self) -> bool:
        return self.shape != "decoder"

    @property
    def has_decoder(self) -> bool:
        return self.shape != "encoder"

    @property
    def one_table(self) -> bool:
        """Whether source and target share an embedding table."""
        return self.shape == "encoder-decoder" and self.tying == "all"

    @property
    def layers_in_words(self) -> str:
        """The number of layers as text, e.g. `6 + 2` for an encoder and a decoder, or `6` for one of them alone."""
        sides = ((self.n_encoder_layers, self.has_encoder), (self.n_decoder_layers, self.has_decoder))
        return " + ".join(str(n) for n, there in sides if there)

    @property
    def source_close(self) -> tuple[int, ...]:
        """The ids appended to every source: the end token, if the model uses one."""
        return (self.special.end,) if self.source_end else ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: Any) -> "ModelConfig":
        """Parse and validate the config from a model file."""
        try:
            config = record(ModelConfig, data)
        except TypeError as error:
            raise ConfigError("the model's config cannot be read", found=str(error)) from None
        _refuse(config.problems_of_file())
        return config


def _refuse(problems: Iterator[str]) -> None:
    if found := "; ".join(problems):
        raise ConfigError("this model cannot be built", found=found, do="change these values")
