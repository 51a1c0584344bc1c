"""How big a model is and what a run of it costs: `vidrio lesson sizes`.

The first document ends with the paper's numbers (512, 6 + 6, 2048, 8 heads, 64); the second explains what each of them
means. Here they are counted, for the paper's sizes and for any other.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from vidrio.errors import ConfigError, InputError
from vidrio.lessons import counting, pages
from vidrio.model import find as models
from vidrio.model.config import ModelConfig
from vidrio.model.folder import read_config
from vidrio.model.parameters import count

TEXTS = pages.pages("sizes")


def _paper(vocabulary: int, d: int, heads: int, f: int, layers: int) -> ModelConfig:
    return ModelConfig(
        source_vocabulary=vocabulary,
        target_vocabulary=vocabulary,
        d_model=d,
        n_heads=heads,
        d_head=d // heads,
        d_ff=f,
        n_encoder_layers=layers,
        n_decoder_layers=layers,
    )


PRESETS = {
    # The worked example: a linear layer with a bias on top, nothing shared.
    "lesson": replace(_paper(10, 4, 2, 8, 6), d_head=3, tying="none", output_bias=True, scale_embeddings=False),
    "small": _paper(8000, 128, 8, 512, 3),
    "base": _paper(37000, 512, 8, 2048, 6),  # §3 and Table 3, first row
    "big": _paper(37000, 1024, 16, 4096, 6),  # Table 3, last row
}


@click.command("sizes")
@click.option("--preset", type=click.Choice(list(PRESETS)), help="Sizes to start from.  [default: base]")
@click.option("--model", "model", metavar="NAME", help="Start from the sizes of this model (folder or name).")
@click.option("--d-model", type=click.IntRange(1, 65536), help="D: numbers in a token's row.")
@click.option("--heads", "n_heads", type=click.IntRange(1, 1024), help="H: attention heads.")
@click.option("--d-head", type=click.IntRange(1, 65536), help="K: width of a head.  [default: D / H]")
@click.option("--d-ff", type=click.IntRange(1, 1 << 20), help="F: feed-forward (latent) width.")
@click.option("--encoder-layers", "n_encoder_layers", type=click.IntRange(1, 1000))
@click.option("--decoder-layers", "n_decoder_layers", type=click.IntRange(1, 1000))
@click.option("--vocabulary", type=click.IntRange(1, 1 << 24), help="V: tokens known.")
@click.option("--source-tokens", "-s", type=click.IntRange(1, 4096), default=20, show_default=True)
@click.option("--target-tokens", "-t", type=click.IntRange(1, 4096), default=20, show_default=True)
@click.option(
    "--glossary", "wants_glossary", is_flag=True, help="The second document's six sizes: what each is and costs."
)
def command(preset: str | None, model: str | None, wants_glossary: bool, **sizes: Any) -> None:
    """Parameters, memory and multiplications of a model, counted for any sizes.

    \b
    vidrio lesson sizes                          the paper's base model
    vidrio lesson sizes --preset lesson          the worked example
    vidrio lesson sizes --d-model 256 --heads 4  your own
    vidrio lesson sizes --glossary               what each size is and costs
    """
    if preset and model:
        raise click.UsageError("--preset and --model exclude each other.")
    tokens = (sizes.pop("source_tokens"), sizes.pop("target_tokens"))
    start = read_config(models.find(model))[0] if model else PRESETS[preset or "base"]
    config = resized(start, sizes)
    if model and max(tokens) > start.max_positions:  # a preset's sines go on for ever
        raise InputError(
            f"{model} holds no text that long",
            found=f"{max(tokens)} tokens; the model holds {start.max_positions}",
            do="ask for fewer tokens",
        )
    name = (preset or model or "base") + (", resized" if any(sizes.values()) else "")
    click.echo((tell_glossary if wants_glossary else tell)(name, config, *tokens))


def resized(config: ModelConfig, sizes: Mapping[str, int | None]) -> ModelConfig:
    """The config with the sizes that were given; K follows D and H unless it was given too."""
    given = {name: value for name, value in sizes.items() if value is not None}
    vocabulary = given.pop("vocabulary", None)
    if vocabulary:
        given |= {"source_vocabulary": vocabulary} if config.has_encoder else {}
        given |= {"target_vocabulary": vocabulary} if config.has_decoder else {}
    if {"d_model", "n_heads"} & given.keys() and "d_head" not in given:
        d, h = given.get("d_model", config.d_model), given.get("n_heads", config.n_heads)
        if d % h:
            raise ConfigError(
                "the heads do not share the model's width evenly",
                found=f"D {d} / H {h} = {d / h:.2f}",
                do="choose a number of heads that divides D, or give --d-head",
            )
        given["d_head"] = d // h
    return replace(config, **given)  # type: ignore[arg-type]  # whole numbers all, by their options


# --- counting ---------------------------------------------------------------------------------------------------------


def report(config: ModelConfig, n_source: int, n_target: int) -> dict[str, Any]:
    """Everything that is counted, as plain data."""
    return {
        "config": config.to_json(),
        "parameters": {
            "total": count(config),
            "parts": [
                {"part": p.key, "letters": p.letters, "numbers": p.numbers, "one": p.one, "times": p.times}
                for p in counting.parts(config)
            ],
        },
        "bytes": counting.bytes_of(config),
        "tokens": {"source": n_source, "target": n_target},
        "multiplications": work(config, n_source, n_target),
        "kept_numbers": counting.kept_numbers(config, n_source, n_target),
    }


def work(config: ModelConfig, n_source: int, n_target: int) -> dict[str, dict[str, int]]:
    """Multiplications by way of running and by part; only what the model's shape has."""
    ways = {}
    if config.has_encoder:
        ways["encode"] = counting.encoding(config, n_source)
    if config.has_decoder:
        ways["decode, kept"] = counting.decoding(config, n_source, n_target, cached=True)
        ways["decode, anew"] = counting.decoding(config, n_source, n_target, cached=False)
        ways["all at once"] = counting.forced(config, n_source, n_target)
    return ways


# --- what the pages name; the words are in data/sizes.toml ------------------------------------------------------------


def _named(name: str, config: ModelConfig, n_source: int, n_target: int) -> dict[str, Any]:
    """What both pages begin with."""
    c = config
    layers = {"encoder": (c.n_encoder_layers,), "decoder": (c.n_decoder_layers,)}
    sizes = {
        **{size: getattr(c, size) for size in ("d_model", "n_heads", "d_head", "d_ff")},
        "layers": " + ".join(map(str, layers.get(c.shape, (c.n_encoder_layers, c.n_decoder_layers)))),
        "vocabulary": max(c.source_vocabulary, c.target_vocabulary),
    }
    texts = TEXTS["tokens"][c.shape].format(source=n_source, target=n_target)
    return {"name": name, "sizes": TEXTS["sizes"].format(**sizes), "texts": texts}


def tell(name: str, config: ModelConfig, n_source: int, n_target: int) -> str:
    """The tables."""
    parts, labels = counting.parts(config), TEXTS["parts"]
    total = count(config)
    by_hand = next((part for part in parts if part.key.endswith(".self")), parts[0])
    ways = work(config, n_source, n_target)
    sums = {way: sum(counts.values()) for way, counts in ways.items()}
    unit = 1 if max(sums.values()) < 10**10 else 10**6
    keys = [key for key in counting.PARTS if any(key in counts for counts in ways.values())]
    rows = {key: [counts.get(key) for counts in ways.values()] for key in keys} | {"all": list(sums.values())}
    values = {
        "parts": [(part, labels[part.key]) for part in parts],
        "total": total,
        "by_hand": by_hand,
        "label": labels[by_hand.key],
        "one_table": config.shape == "encoder-decoder" and config.tying == "all",
        "paper": config == PRESETS["base"],
        "stored": {kind: _bytes(size) for kind, size in counting.bytes_of(config).items()},
        "training": _bytes(16 * total),
        "millions": unit > 1,
        **{shape.replace("-", "_"): config.shape == shape for shape in TEXTS["tokens"]},
        "work": [
            (labels[key], ["" if n is None else f"{n / unit:,.0f}" for n in counts]) for key, counts in rows.items()
        ],
        "kept_numbers": counting.kept_numbers(config, n_source, n_target),
        "saved": sums["decode, anew"] / sums["decode, kept"] if config.has_decoder else 0,
    }
    return pages.text(TEXTS["page"], values | _named(name, config, n_source, n_target))


def _bytes(size: float) -> str:
    units = ["bytes", "kB", "MB", "GB", "TB"]
    while size >= 1000 and len(units) > 1:
        size, units = size / 1000, units[1:]
    return f"{size:.3g} {units[0]}"


# --- the second document's glossary -----------------------------------------------------------------------------------


def tell_glossary(name: str, config: ModelConfig, n_source: int, n_target: int) -> str:
    """The second document's six sizes: what each is, and everything counted again with it doubled."""
    terms = glossary(config, n_source, n_target)
    for term in terms:
        term["times"] = {what: _times(*term[what]) for what in ("parameters", "multiplications", "kept")}
        term["flagged"] = term["term"] == "vocabulary size"
    return pages.text(TEXTS["glossary_page"], {"terms": terms} | _named(name, config, n_source, n_target))


def _times(before: int, after: int) -> str:
    return f"×{after / before:.2f}" if before else ""


def glossary(config: ModelConfig, n_source: int, n_target: int) -> list[dict[str, Any]]:
    """Each of the six sizes, with (before, after) counts of what doubling it does."""
    c = config
    before = _counts(c, n_source, n_target)
    batch_of_2 = {"parameters": before["parameters"], **{k: 2 * before[k] for k in ("multiplications", "kept")}}
    vocabularies = {"source_vocabulary": c.has_encoder, "target_vocabulary": c.has_decoder}
    words = max(c.source_vocabulary, c.target_vocabulary)
    splits = c.d_head % 2 == 0
    d_head = c.d_head // 2 if splits else c.d_head

    def counts(tokens: int = 1, **sizes: int) -> dict[str, int]:
        return _counts(replace(c, **sizes), tokens * n_source, tokens * n_target)  # type: ignore[arg-type]

    doubled = {  # the change in letters, and the counts after it
        "vocabulary size": (
            f"V {words:,} → {2 * words:,}",
            counts(**{field: 2 * getattr(c, field) for field, has in vocabularies.items() if has}),
        ),
        "batch size": ("batch 1 → 2", batch_of_2),
        "sequence length": (
            f"S, T {n_source}, {n_target} → {2 * n_source}, {2 * n_target}",
            counts(2, max_positions=2 * c.max_positions),
        ),
        "embedding dimension": (
            f"D {c.d_model} → {2 * c.d_model}, K {c.d_head} → {2 * c.d_head}",
            counts(d_model=2 * c.d_model, d_head=2 * c.d_head),
        ),
        "latent dimension": (f"F {c.d_ff} → {2 * c.d_ff}", counts(d_ff=2 * c.d_ff)),
        "number of attention heads": (
            f"H {c.n_heads} → {2 * c.n_heads}" + (f", K {c.d_head} → {d_head}" if splits else ""),
            counts(n_heads=2 * c.n_heads, d_head=d_head),
        ),
    }
    filled = {"positions": c.positions, "unsplit": "" if splits else TEXTS["unsplit"].format(d_head=c.d_head)}
    says = {term: " ".join(text.split("\n")).format(**filled) for term, text in TEXTS["glossary"].items()}
    return [
        {"term": term, "says": says[term], "change": change, **{k: (before[k], after[k]) for k in before}}
        for term, (change, after) in doubled.items()
    ]


def _counts(config: ModelConfig, n_source: int, n_target: int) -> dict[str, int]:
    ways = work(config, n_source, n_target)
    return {
        "parameters": count(config),
        "multiplications": sum(sum(ways[way].values()) for way in ("encode", "decode, kept") if way in ways),
        "kept": counting.kept_numbers(config, n_source, n_target),
    }
