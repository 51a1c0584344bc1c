"""Make small random models of every shape and choice, random requests, and input for tests/engine_driver.c."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from parity_models import make_config, make_parameters
from vidrio.engine.engine import as_struct
from vidrio.engine.interventions import as_words, places_of
from vidrio.engine.weights import Weights, read_weights
from vidrio.hypothesis import HeadOff, Hidden, Hypothesis, Intervention, Options, RowSet, Sampling
from vidrio.model.config import ACTIVATIONS, CELLS, NORMS, POSITIONS, SHAPES, TYINGS, ModelConfig, SpecialIds
from vidrio.model.folder import About, write_config, write_parameters
from vidrio.model.quantised import quantise


@dataclass(frozen=True)
class EngineRequest:
    """A sentence, and how to search for its translation."""

    source: tuple[int, ...]
    options: Options
    shortlist: tuple[int, ...] = ()  # if empty, all tokens are allowed
    interventions: bytes = b""


def bits(hypotheses: list[list[Hypothesis]]) -> list[object]:
    """Return all results of a search. Equal results have equal bits, because none is NaN or −0."""
    return [(h[:5], h.attention and h.attention.tolist()) for some in hypotheses for h in some]


def random_model(folder: Path, seed: int) -> ModelConfig:
    """Write a model with a few thousand parameters. Seeds below 30 cycle through all choices, others draw them."""
    rng = np.random.default_rng(seed)

    def one_of(choices: Sequence[str], every: int) -> str:
        return choices[seed // every % len(choices)] if seed < 30 else choices[rng.integers(len(choices))]

    shape, positions, cell = one_of(SHAPES, 5), one_of(POSITIONS, 1), one_of(CELLS, 3)
    config = make_config(
        shape=shape,
        positions=positions,
        norm=one_of(NORMS, 1),
        activation=one_of(ACTIVATIONS, 1),
        decoder_cell=cell,
        special=SpecialIds(start=-1 if cell == "ssru" and seed % 4 in (0, 3) else 2),
        tying=one_of(TYINGS, 2),
        d_model=int(rng.choice([4, 12, 16, 18, 32, 34])),
        n_heads=int(rng.integers(1, 4)),
        d_head=int(rng.choice([1, 5, 8, 16, 17])),
        d_ff=int(rng.choice([3, 16, 20, 33])),
        n_encoder_layers=int(rng.integers(1, 3)),
        n_decoder_layers=int(rng.integers(1, 3)),
        source_vocabulary=29 if shape != "decoder" else 0,
        target_vocabulary=31 if shape != "encoder" else 0,
        n_classes=4 if shape == "encoder" else 0,
        max_positions=48,
        scale_embeddings=bool(rng.integers(2)),
        attention_bias=bool(rng.integers(2)),
        output_bias=bool(rng.integers(2)),
    )
    parameters = make_parameters(config, seed)
    folder.mkdir(parents=True, exist_ok=True)
    stored = quantise(parameters, config) if seed % 2 else {n: v.astype(np.float32) for n, v in parameters.items()}
    write_parameters(folder, stored)
    write_config(folder, config, About(name=f"random {seed}"))
    return config


def random_asked(config: ModelConfig, seed: int, count: int = 6) -> list[EngineRequest]:
    """Return requests with sentences of different lengths and all kinds of options."""
    rng = np.random.default_rng(seed)
    asked = []
    for _ in range(count):
        source = rng.integers(0, config.source_vocabulary, rng.integers(1, 40)) if config.has_encoder else ()
        prefix = rng.integers(0, config.target_vocabulary, rng.integers(0, 4)) if config.has_decoder else ()
        suppressed = rng.integers(0, config.target_vocabulary, rng.integers(0, 3)) if config.has_decoder else ()
        beam = int(rng.choice([1, 2, 4, 7]))
        draws = beam == 1 and rng.random() < 0.5
        sampling = Sampling(
            temperature=float(rng.choice([0.5, 1.0, 2.0])),
            top_k=int(rng.choice([0, 3])),
            top_p=float(rng.choice([0.7, 1.0])),
            seed=int(rng.integers(2**32)),
        )
        options = Options(
            beam=beam,
            length_penalty=float(rng.choice([0.0, 0.6, 1.0, -1.0])),
            min_length=int(rng.integers(0, 6)),
            max_length=int(rng.integers(8, 40)),
            n_best=int(rng.integers(1, 4 if draws else beam + 1)),
            no_repeat_ngram=int(rng.integers(0, 4)),
            prefix=tuple(map(int, prefix)),
            suppressed=tuple(map(int, suppressed)),
            sampling=sampling if draws else None,
        )
        few = rng.choice(config.target_vocabulary, rng.integers(1, 20)) if config.has_decoder else ()
        shortlist = tuple(sorted({*map(int, few), max(0, config.special.end)})) if rng.random() < 0.3 else ()
        interventions = as_words(config, random_interventions(config, len(source), rng))
        read = tuple(map(int, source))
        asked.append(EngineRequest(read, options, shortlist if config.has_decoder else (), interventions))
    return asked


def random_interventions(config: ModelConfig, n_source: int, rng: np.random.Generator) -> list[Intervention]:
    """Return up to three random interventions."""
    found: list[Intervention] = []
    places = [place for place in places_of(config) if config.has_encoder or "cross" not in place]
    for _ in range(rng.integers(4)):
        place = str(rng.choice(places))
        if place.endswith(("self", "cross")) and rng.random() < 0.5:
            found.append(HeadOff(place, int(rng.integers(config.n_heads))))
        elif n_source > 1 and rng.random() < 0.5:
            found.append(Hidden(int(rng.integers(1, n_source))))
        else:
            row = int(rng.integers(n_source if place.startswith("enc") else 12))
            found.append(RowSet(place, row, rng.normal(size=config.d_model).tolist()))
    return found


def numbers(values: Sequence[int]) -> bytes:
    return struct.pack(f"<i{len(values)}i", len(values), *values)


def case(weights: Weights, asked: Sequence[EngineRequest], *, rows: int = 8, steps: int = 1000) -> bytes:
    """Encode a model and requests as input for the driver."""
    searches = (
        as_struct(a.options)
        + b"".join(map(numbers, (a.source, a.options.prefix, a.options.suppressed, a.shortlist)))
        + struct.pack("<i", len(a.interventions) // 4)
        + a.interventions
        for a in asked
    )
    model = struct.pack("<i", 1) + weights.sizes + struct.pack("<i", len(weights.tensors) // 24)
    model += weights.tensors + struct.pack("<i", len(weights.data)) + weights.data
    return model + struct.pack("<iii", rows, steps, len(asked)) + b"".join(searches)


def random_case(folder: Path, seed: int) -> bytes:
    config = random_model(folder, seed)
    return case(read_weights(folder, config), random_asked(config, seed))


def damaged(whole: bytes, rng: np.random.Generator) -> bytes:
    """Damage a case in its sizes, tensor positions, numbers or requests. The lengths of its parts stay correct, because
    the driver reads them in sequence."""
    broken = bytearray(whole)
    n_tensors = struct.unpack_from("<i", whole, SIZES_END)[0]
    tensors_end = SIZES_END + 4 + 24 * n_tensors
    data_end = tensors_end + 4 + struct.unpack_from("<i", whole, tensors_end)[0]
    for _ in range(rng.integers(1, 4)):
        where = rng.integers(5)
        if where == 0:
            place = 4 + 4 * int(rng.integers((SIZES_END - 4) // 4))
            struct.pack_into("<i", broken, place, _odd(rng, struct.unpack_from("<i", broken, place)[0]))
        elif where == 1:
            place = SIZES_END + 4 + 8 * int(rng.integers(3 * n_tensors))
            struct.pack_into("<q", broken, place, _odd(rng, struct.unpack_from("<q", broken, place)[0]))
        elif where == 2:
            place = int(rng.integers(tensors_end + 4, data_end - 4))
            struct.pack_into("<f", broken, place, rng.choice(ODD_FLOATS))
        elif where == 3:
            broken[int(rng.integers(tensors_end + 4, data_end))] = int(rng.integers(256))
        else:
            at, places = data_end + 12, []
            while at < len(whole):
                places += range(at, at + OPTIONS, 4)
                at += OPTIONS
                for _ in range(LISTS):
                    count = struct.unpack_from("<i", whole, at)[0]
                    places += range(at + 4, at + 4 + 4 * count, 4)
                    at += 4 + 4 * count
            place = int(rng.choice(places)) if places else data_end
            if rng.random() < 0.2:
                struct.pack_into("<f", broken, place, rng.choice(ODD_FLOATS))
            else:
                struct.pack_into("<i", broken, place, _odd(rng, struct.unpack_from("<i", broken, place)[0]))
    return bytes(broken)


def _odd(rng: np.random.Generator, number: int) -> int:
    """Return a number close to this one, or an edge case."""
    near = [number + 1, number - 1, 2 * number, number // 2, -number]
    return max(-(2**31), min(2**31 - 1, int(rng.choice([*near, *ODD_NUMBERS]))))


SIZES_END = 4 + 4 * 23
OPTIONS, LISTS = len(as_struct(Options())), 5
ODD_NUMBERS = [0, 1, 2, 3, 5, 16, 17, 63, 64, 65, 127, 1000, 4096, 65536, 2**20, 2**24, 2**31 - 1, -1, -2, -(2**31)]
ODD_FLOATS = [0.0, -0.0, 1e-45, 1e-38, 1e30, 3.4e38, -3.4e38, float("inf"), float("-inf"), float("nan"), 1e9]
