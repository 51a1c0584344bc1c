"""Test that the engine and the NumPy reference compute the same bits: every quantity by address, and every search."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from small_models import random_sources, write_model
from source import PACKAGE, REPOSITORY
from vidrio.engine.engine import Engine
from vidrio.errors import ConfigError
from vidrio.glass.engine import IN_ORDER, INT8
from vidrio.glass.machine import Machine, build
from vidrio.glass.walk import classify, stepper, translate_forced
from vidrio.hypothesis import Hypothesis, Options, Sampling, default_options
from vidrio.model import find
from vidrio.model.config import ModelConfig, SpecialIds
from vidrio.model.folder import read_arrays, read_config, read_parameters, write_config, write_parameters
from vidrio.model.quantised import quantise, uses_int8
from vidrio.search import search
from vidrio.text.tokens.tokenizer import read_tokenizers

SENTENCES = {
    "en-es": [
        "Hello world.",
        "The committee postponed its decision, and nobody knew why it had taken three days in a row.",
    ],
    "es-en": [
        "¿Dónde está la estación?",
        "El comité aplazó su decisión, y nadie supo por qué había tardado tres días seguidos.",
    ],
}
Step = Callable[[Sequence[tuple[int, ...]]], np.ndarray]

# Every choice of a config occurs at least once. Some sizes are not multiples of 16, of 4 or of each other.
MODELS: dict[str, dict[str, object]] = {
    "pre-norm": {"norm": "pre", "d_model": 20, "d_ff": 37},
    "post-norm": {"norm": "post", "n_heads": 3, "d_head": 5, "norm_epsilon": 1e-3},
    "gelu": {"norm": "pre", "activation": "gelu", "positions": "sinusoidal-halves", "tying": "output"},
    "swish": {"activation": "swish", "positions": "sinusoidal-marian", "attention_bias": True, "output_bias": True},
    "learned": {"positions": "learned", "tying": "none", "scale_embeddings": False, "d_head": 17},
    "none": {"positions": "none", "source_end": False, "n_encoder_layers": 1, "n_decoder_layers": 3},
    "wide": {"d_model": 64, "n_heads": 4, "d_head": 16, "d_ff": 96, "norm": "pre"},
    "recurrent": {
        **{"decoder_cell": "ssru", "positions": "sinusoidal-marian", "tying": "all", "norm_epsilon": 1e-6},
        **{"attention_bias": True, "output_bias": True, "d_head": 3, "special": SpecialIds(pad=1, start=-1, end=0)},
    },
    "recurrent-pre": {"decoder_cell": "ssru", "norm": "pre", "d_model": 20, "n_decoder_layers": 3, "tying": "output"},
    "recurrent-decoder": {"shape": "decoder", "source_vocabulary": 0, "decoder_cell": "ssru"},
    "decoder": {"shape": "decoder", "source_vocabulary": 0},
    "encoder": {"shape": "encoder", "target_vocabulary": 0, "n_classes": 3},
}


class Both:
    """A model that is loaded in both the engine and the reference."""

    def __init__(self, folder: Path) -> None:
        self.config, _ = read_config(folder)
        self.engine = Engine.load(folder, self.config, workers=2)
        stored = read_arrays(folder)
        arithmetic = INT8 if uses_int8(stored, self.config) else IN_ORDER
        self.machine: Machine = build(self.config, stored, np.float32, arithmetic)
        self.steps: dict[tuple[int, ...] | None, Step] = {}

    def in_glass(self, source: list[int], target: list[int]) -> dict[str, np.ndarray]:
        seen: dict[str, np.ndarray] = {}

        def tap(name: str, value: np.ndarray) -> np.ndarray:
            seen[name] = np.asarray(value, np.float32)
            return value

        if self.config.has_decoder:
            translate_forced(self.machine.tapped(tap), source, [self.config.special.start, *target])
        else:
            classify(self.machine.tapped(tap), source)
        return seen

    def search(self, sources: Iterable[list[int]], options: Options) -> list[list[Hypothesis]]:
        special = self.config.special
        of_glass = (tuple(ids) if self.config.has_encoder else None for ids in sources)
        return [search(self.step(ids), special.start, special.end, options) for ids in of_glass]

    def search_among(self, tokens: list[int], source: list[int], options: Options) -> list[Hypothesis]:
        """Search as if the model had only these tokens. The search uses their indices as ids."""
        start, end = self.config.special.start, self.config.special.end
        step = self.step(tuple(source) if self.config.has_encoder else None)

        def step_of_places(prefixes: Sequence[tuple[int, ...]]) -> np.ndarray:
            return step([(start, *(tokens[place] for place in places)) for _, *places in prefixes])[:, tokens]

        suppressed = tuple(tokens.index(token) for token in options.suppressed if token in tokens)
        prefix = tuple(map(tokens.index, options.prefix))
        found = search(step_of_places, 0, tokens.index(end), replace(options, prefix=prefix, suppressed=suppressed))
        return [h._replace(ids=tuple(tokens[place] for place in h.ids)) for h in found]

    def step(self, source: tuple[int, ...] | None) -> Step:
        """Return the reference's `stepper` with a cache of results, because searches share prefixes."""
        if source not in self.steps:
            self.steps[source] = asked_once(stepper(self.machine, source))
        return self.steps[source]


def asked_once(step: Step) -> Step:
    known: dict[tuple[int, ...], np.ndarray] = {}

    def ask(prefixes: Sequence[tuple[int, ...]]) -> np.ndarray:
        if new := [prefix for prefix in prefixes if prefix not in known]:
            known.update(zip(new, step(new), strict=True))
        return np.stack([known[prefix] for prefix in prefixes])

    return ask


KINDS = [(name, kind) for name in MODELS for kind in ("float32", "seven bits")]


@pytest.fixture(scope="module", params=KINDS, ids="-".join)
def small(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Both:
    name, kind = request.param
    folder = tmp_path_factory.mktemp("model")
    config = write_model(folder, seed=len(name), **MODELS[name])
    if kind == "seven bits":
        write_parameters(folder, quantise(read_parameters(folder), config))
        write_config(folder, *read_config(folder))
    return Both(folder)


@pytest.fixture(scope="module", params=SENTENCES)
def packaged(request: pytest.FixtureRequest) -> tuple[Both, list[list[int]]]:
    folder = find.find(request.param)
    both = Both(folder)
    source, _ = read_tokenizers(folder, both.config)
    return both, [[*source.encode(text), *both.config.source_close] for text in SENTENCES[request.param]]


def bits(values: object) -> bytes:
    return np.ascontiguousarray(np.asarray(values, np.float32)).tobytes()


def assert_same_quantities(both: Both, source: list[int], target: list[int]) -> None:
    engine, glass = both.engine.quantities(source, target), both.in_glass(source, target)
    assert set(engine) == set(glass)
    differing = [name for name in glass if bits(engine[name]) != bits(glass[name])]
    assert not differing
    assert all(np.squeeze(engine[name]).shape == np.squeeze(glass[name]).shape for name in glass)


def assert_same_hypotheses(engine: list[list[Hypothesis]], glass: list[list[Hypothesis]]) -> None:
    for ours, reference in zip(engine, glass, strict=True):
        assert [replace_attention(h) for h in ours] == [replace_attention(h) for h in reference]


def replace_attention(h: Hypothesis) -> Hypothesis:
    return h._replace(attention=None)


def some_sources(config: ModelConfig, count: int, longest: int = 17) -> list[list[int]]:
    return random_sources(config, count, longest=longest) if config.has_encoder else [[]]


def test_every_quantity_of_small_models(small: Both) -> None:
    for source in some_sources(small.config, 3):
        target = [4 + n % 7 for n in range(len(source) + 1)] if small.config.has_decoder else []
        assert_same_quantities(small, source, target)


SEARCHES: list[dict[str, object]] = [
    {"beam": 1},
    {"beam": 4, "n_best": 4},
    {"beam": 3, "length_penalty": 0.6, "min_length": 5},
    {"beam": 5, "length_penalty": 0.0, "n_best": 2, "no_repeat_ngram": 2},
    {"beam": 2, "prefix": (5, 9, 6), "suppressed": (0, 2, 4)},
    {"beam": 1, "n_best": 3, "sampling": Sampling(temperature=0.7, seed=11)},
    {"beam": 1, "n_best": 2, "sampling": Sampling(top_k=5, seed=2**31 + 7)},
    {"beam": 1, "n_best": 2, "sampling": Sampling(top_p=0.6, temperature=1.5, seed=3)},
    # Few tokens are allowed, and each only once, so hypotheses run out of tokens.
    {"beam": 1, "no_repeat_ngram": 1, "suppressed": tuple(n for n in range(27) if n not in (5, 6, 7))},
    {"beam": 3, "n_best": 3, "no_repeat_ngram": 1, "suppressed": tuple(n for n in range(27) if n not in (3, 5, 6))},
    {"beam": 1, "n_best": 2, "no_repeat_ngram": 1, "suppressed": tuple(range(24)), "sampling": Sampling(seed=5)},
    {"suppressed": tuple(range(27))},
]


# A search sees only logits. So only three models run every search: one with cached keys and values, one with a
# recurrent cell and one without a source. The others run one search.
THOROUGH = [("pre-norm", "seven bits"), ("recurrent", "float32"), ("decoder", "float32")]
MODELS_AND_SEARCHES = pytest.mark.parametrize(
    ("small", "changes"),
    [
        (kind, search)
        for kind in KINDS
        if kind[0] != "encoder"
        for search in SEARCHES
        if kind in THOROUGH or search == SEARCHES[3]
    ],
    ids=lambda one: "-".join(one) if isinstance(one, tuple) else ",".join(one),
    indirect=["small"],
)


@MODELS_AND_SEARCHES
def test_every_search_of_small_models(small: Both, changes: dict[str, object]) -> None:
    options = replace(default_options(small.config), **{"max_length": 13, **changes})  # type: ignore[arg-type]
    sources = some_sources(small.config, 4)
    assert_same_hypotheses(small.engine.search(sources, options), small.search(sources, options))


@MODELS_AND_SEARCHES
def test_every_search_among_the_tokens_of_shortlists(small: Both, changes: dict[str, object]) -> None:
    options = replace(default_options(small.config), **{"max_length": 13, **changes})  # type: ignore[arg-type]
    sources, always = some_sources(small.config, 4), {small.config.special.end, *options.prefix}
    shortlists = [sorted({*always, *range(n, 27, n + 2)}) for n in range(len(sources))]
    of_glass = [small.search_among(*pair, options) for pair in zip(shortlists, sources, strict=True)]
    assert_same_hypotheses(small.engine.search(sources, options, shortlists=shortlists), of_glass)


@pytest.mark.parametrize("wrong", [np.float32(3e38), np.float32(-3e38)])
@pytest.mark.parametrize("beam", [1, 3])
def test_both_searches_refuse_a_model_that_computes_nan(tmp_path: Path, beam: int, wrong: np.float32) -> None:
    """Products of these numbers are infinite, and differences of the products are NaN."""
    config = write_model(tmp_path, norm="pre")
    parameters = read_parameters(tmp_path)
    parameters["dec.norm.gain"] = np.full_like(parameters["dec.norm.gain"], wrong)
    write_parameters(tmp_path, parameters)
    write_config(tmp_path, *read_config(tmp_path))
    both, options = Both(tmp_path), Options(beam=beam, max_length=9)
    for searches in (both.engine.search, both.search):
        with pytest.raises(ConfigError, match="at step 0 the model computes NaN"), np.errstate(all="ignore"):
            searches([[5, 6, config.special.end]], options)


def test_every_quantity_of_the_packaged_models(packaged: tuple[Both, list[list[int]]]) -> None:
    both, sources = packaged
    for source in sources:
        [[best]] = both.engine.search([source], replace(default_options(both.config), beam=1))
        assert_same_quantities(both, source, list(best.ids))


@pytest.mark.parametrize("beam", [1, 4])
def test_the_search_of_the_packaged_models(packaged: tuple[Both, list[list[int]]], beam: int) -> None:
    both, sources = packaged
    options = replace(default_options(both.config), beam=beam, n_best=beam)
    assert_same_hypotheses(both.engine.search(sources, options), both.search(sources, options))


def test_scores_and_attention_are_those_of_the_search(packaged: tuple[Both, list[list[int]]]) -> None:
    """Check that a forced pass over all rows at once computes what the decoder computes step by step."""
    both, sources = packaged
    found = both.engine.search(sources, default_options(both.config))
    pairs = [(source, best.ids) for source, (best, *_) in zip(sources, found, strict=True)]
    suppressed = default_options(both.config).suppressed
    assert suppressed  # these tokens have no probability in a search
    for (source, ids), (best, *_), scores in zip(pairs, found, both.engine.forced(pairs), strict=True):
        seen = both.engine.quantities(source, ids)
        last = f"dec.{both.config.n_decoder_layers - 1}.cross.weights"
        first, *others = (np.asarray(seen[f"{last}.h{h}"])[: len(ids)] for h in range(both.config.n_heads))
        assert bits(sum(others, first) / np.float32(both.config.n_heads)) == bits(best.attention)
        assert np.allclose(scores, best.token_log_probs, atol=1e-3)


def test_the_page_about_the_engine_quotes_it() -> None:
    """Check that docs/engine.md shows the code that runs."""
    sources = [*(PACKAGE / "engine/c").glob("*.[ch]"), *(PACKAGE / "glass").glob("*.py")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    page = (REPOSITORY / "docs/engine.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(?:c|py)\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 5
    assert [block for block in blocks if block not in code] == []
