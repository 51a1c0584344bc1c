"""Generate the model folders of the worked example from the numbers in the blog post.

    python recipes/lesson/worked_example.py [FOLDER]

The post gives no seed, so its random numbers cannot be reproduced. This script samples them from N(0, 1), parameter by
parameter in the order of `parameter_specs`; layer norms have γ = 1 and β = 0. `worked-example` uses the paper's
position encoding. `worked-example-printed` contains the post's own table, which no formula produces.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from vidrio.glass.positions import slipped_sinusoidal
from vidrio.model.config import DecodingDefaults, ModelConfig, SpecialIds
from vidrio.model.folder import About, write_config, write_parameters
from vidrio.model.parameters import parameter_specs
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.text.tokens.vocabulary import NONE, SpecialNames

FOLDER = Path(__file__).parents[2] / "src/vidrio/lessons"
SEED = 2017
LONGEST = 3  # words; the post's program stops after three
ABOUT = (
    "The embeddings, the matrices WQ, WK, WV, WO of enc.0.self and the vocabulary are the post's. Every other number "
    f"was drawn once, from N(0, 1), with numpy.random.Generator(numpy.random.PCG64({SEED})).standard_normal."
)
# The post gives the embeddings of hello, world and SOS at the beginning, and the others in a table at the end.
EMBEDDINGS = {
    "hello": [1, 2, 3, 4],
    "mundo": [-0.59563791, -0.63389256, 1.70663692, -0.99495115],
    "world": [2, 3, 4, 5],
    "how": [-0.52975474, 0.94439644, 0.80073818, -1.50135518],
    "?": [-0.88116833, 0.13995055, 2.01827674, -0.52554391],
    "EOS": [1.12207024, 1.40905796, 1.22231714, 0.02267638],
    "SOS": [1, 0, 0, 0],
    "a": [1.67622229, -0.20319309, -0.18324905, -0.24258774],
    "hola": [1.07809402, -0.83846408, -0.33448976, 0.28995976],
    "c": [0.65643157, 0.24935726, -0.80839751, -1.87156293],
}
# These matrices are from the post's code. Its text prints two of them differently.
WQ = [[[0, 0, 0], [1, 1, 0], [0, 0, 1], [1, 0, 0]], [[1, 0, 1], [0, 1, 0], [1, 0, 0], [0, 1, 1]]]
WK = [[[1, 0, 1], [0, 1, 0], [1, 0, 1], [0, 1, 0]], [[0, 1, 1], [1, 0, 1], [1, 1, 0], [0, 1, 0]]]
WV = [[[0, 1, 1], [1, 0, 0], [1, 0, 1], [0, 1, 0]], [[1, 0, 0], [0, 1, 1], [0, 0, 1], [1, 0, 0]]]
WO = [
    [0.79445237, 0.1081456, 0.27411536, 0.78394531],
    [0.29081936, -0.36187258, -0.32312791, -0.48530339],
    [-0.36702934, -0.76471963, -0.88058366, -1.73713022],
    [-0.02305587, -0.64315981, -0.68306653, -1.25393866],
    [0.29077448, -0.04121674, 0.01509932, 0.13149906],
    [0.57451867, -0.08895355, 0.02190485, 0.24535932],
]


def config() -> ModelConfig:
    words = list(EMBEDDINGS)
    return ModelConfig(
        source_vocabulary=len(words),
        target_vocabulary=len(words),
        d_model=4,
        n_heads=2,
        d_head=3,
        d_ff=8,
        n_encoder_layers=6,
        n_decoder_layers=6,
        max_positions=64,
        tying="none",
        scale_embeddings=False,
        output_bias=True,
        source_end=False,
        special=SpecialIds(pad=NONE, unk=NONE, start=words.index("SOS"), end=words.index("EOS")),
        decoding=DecodingDefaults(beam=1, max_length=LONGEST),
    )


def parameters(config: ModelConfig) -> dict[str, np.ndarray]:
    fixed, generator = {"gain": np.ones, "bias": np.zeros}, np.random.Generator(np.random.PCG64(SEED))
    drawn = {
        name: fixed[last](spec.shape)
        if (last := name.rsplit(".", 1)[-1]) in fixed
        else generator.standard_normal(spec.shape)
        for name, spec in parameter_specs(config).items()
    }
    table = np.array(list(EMBEDDINGS.values()), dtype=float)
    attention = {"WQ": WQ, "WK": WK, "WV": WV, "WO": WO}
    given = {f"enc.0.self.{name}": np.array(matrix, dtype=float) for name, matrix in attention.items()}
    return drawn | given | {"src.embed": table, "tgt.embed": table}


def printed_positions(config: ModelConfig) -> np.ndarray:
    """Return the post's table, which uses the column index instead of the pair index, to two decimal places. The post
    truncates cos 0.01 = 0.99995 instead of rounding it."""
    table = slipped_sinusoidal(config.max_positions, config.d_model).round(2)
    table[1, 1] = 0.99
    return table


def write(folder: Path, config: ModelConfig, parameters: dict[str, np.ndarray]) -> None:
    write_parameters(folder, parameters)
    names = SpecialNames(None, None, "SOS", "EOS")
    Tokenizer.of_words(list(EMBEDDINGS), names=names, lowercase=True).save(folder / "tokenizer.json")
    about = About(name=folder.name, source_language="en", target_language="es", provenance={"about": ABOUT})
    write_config(folder, config, about)


def main(folder: Path) -> None:
    right = config()
    numbers, table = parameters(right), printed_positions(right)
    write(folder / "worked-example", right, numbers)
    learned = replace(right, positions="learned")
    write(folder / "worked-example-printed", learned, {**numbers, "src.pos": table, "tgt.pos": table})


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
