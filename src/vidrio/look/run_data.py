"""Converts runs to JSON for the page and other programs. Each number is returned with its address, or can be requested
by address."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from vidrio.errors import AddressError
from vidrio.glass.declaration import stages_of
from vidrio.glass.machine import Machine
from vidrio.glass.maths import Array
from vidrio.glass.positions import TABLES, WAVELENGTHS
from vidrio.glass.trace import Trace, parse_address
from vidrio.glass.walk import positions
from vidrio.hypothesis import Sampling, default_options
from vidrio.look import changed
from vidrio.look.changed import BeforeAfter
from vidrio.look.measures import alike, classes, likeliest, listed, mean_of_heads
from vidrio.look.run import LoadedModel, Look, token_of
from vidrio.model.files import sha256
from vidrio.model.parameters import count
from vidrio.search import Tree, drawable
from vidrio.text.tokens.steps import steps

FILES = ("config.json", "model.safetensors", "tokenizer.json", "target-tokenizer.json")
POSITIONS = 64  # maximum number of rows to return from a position table
LISTED = 12  # number of candidates to list per step; the probabilities of the rest are summed
LIKELY = 5  # number of most probable tokens per step, in addition to the chosen one


def machine_data(glass: LoadedModel, name: str, engine: str) -> dict[str, Any]:
    """Return everything about a model that does not depend on the input text, such as its sizes and the declarations of
    its quantities."""
    config, about = glass.config, glass.about
    return {
        "name": name,
        "shape": config.shape,
        "source_language": about.source_language,
        "target_language": about.target_language,
        "parameters": count(config),
        "engine": engine,
        "dtype": str(glass.dtype),
        "int8": glass.machine.whole,
        "norm": config.norm,
        "layers": {"enc": config.n_encoder_layers, "dec": config.n_decoder_layers},
        "sizes": {"D": config.d_model, "H": config.n_heads, "K": config.d_head, "F": config.d_ff}
        | {"V": config.target_vocabulary, "E": config.n_heads * config.d_head},
        "beam": default_options(config).beam,
        "special": _special(glass),
        "stages": [vars(stage) for stage in stages_of(glass.machine).values()],
    }


def _special(glass: LoadedModel) -> dict[str, str]:
    """Return the start and end tokens, with an empty string for a token that the model lacks."""
    vocabulary = glass.target_vocabulary
    ids = {"start": glass.config.special.start, "end": glass.config.special.end}
    return {name: vocabulary[i] if 0 <= i < len(vocabulary) else "" for name, i in ids.items()}


def checksums(model: LoadedModel) -> dict[str, str]:
    """Return the SHA-256 checksum of each model file."""
    return {name: sha256(model.path / name) for name in FILES if (model.path / name).exists()}


def answer(
    tried: BeforeAfter, text: str, sentences: Sequence[dict[str, str]] = (), sentence: int = 0, translation: str = ""
) -> dict[str, Any]:
    """Return a run, and the effects of its what-if (if any), for the page and for `vidrio look --json`."""
    return {
        "text": text,
        "translation": translation or tried.after.translation,
        "sentences": list(sentences),
        "sentence": sentence,
        **run_data(tried.after),
        "changed": changed.as_data(tried) if tried.whatif else None,
    }


def quantity_data(trace: Trace, name: str) -> dict[str, Any]:
    """Return the declaration, shape and values of a quantity."""
    array = trace.array(name)
    return {**vars(trace.stage(name)), "shape": list(array.shape), "values": array.tolist()}


def run_data(seen: Look) -> dict[str, Any]:
    """Return the tokens of a run, and the candidates at each step. All other numbers are requested by address."""
    trace = seen.trace
    return {
        "read": seen.text,
        "written": seen.translation,
        "empty": seen.empty,
        "stopped": seen.stopped,
        "unknown": list(seen.unknown),
        "sizes": {axis: trace.sizes[axis] for axis in "ST" if axis in trace.sizes},
        "source": _source_tokens(seen),
        "target": [{"token": token_of(trace, i), "id": i} for i in seen.target_ids] if trace.vocabulary else [],
        "steps": list(_steps(seen)),
        "classes": _classes(seen),
    }


def _source_tokens(seen: Look) -> list[dict[str, Any]]:
    """Return the input tokens of the encoder, or of a decoder-only model, each with its span in the text."""
    tokens = [asdict(piece) for piece in seen.pieces]
    ends = [{"token": t, "id": int(i)} for t, i in zip(seen.trace.source_tokens, seen.source_ids, strict=False)]
    return [*tokens, *ends[len(tokens) :]]


def _steps(seen: Look) -> Iterator[dict[str, Any]]:
    if seen.stopped or not seen.trace.chosen_tokens:
        return
    for t, id_ in enumerate(seen.chosen_ids):
        yield {
            "token": seen.trace.chosen_tokens[t],
            "id": id_,
            "log_p": {"address": f"out.score[{t}]", "value": float(seen.trace.values["out.score"][t])},
            "best": [
                {"token": c.token, "id": c.id, "p": c.p, "address": f"out.prob[{t},{c.id}]", "taken": c.taken}
                for c in likeliest(seen, t, LIKELY)
            ],
        }


def _classes(seen: Look) -> list[dict[str, Any]]:
    if seen.model.config.shape != "encoder" or seen.empty or seen.stopped:
        return []
    return [{"name": name, "p": p, "address": f"out.prob[{c}]"} for name, c, p in classes(seen)]


def search_data(seen: Look) -> dict[str, Any]:
    """Return every hypothesis that beam search considered and its outcome, excluding the greedy result."""
    tree = seen.tree or Tree()
    return {
        "beam": seen.options.beam,
        "length_penalty": seen.options.length_penalty,
        "best": tree.best,
        "prefix": [seen.trace.vocabulary[i] for i in tree.prefix],
        "nodes": [{"word": seen.trace.vocabulary[node.token], **asdict(node)} for node in tree.nodes],
        "found": _found(seen),
        "greedy": None,
    }


def choosing_data(seen: Look, step: int, sampling: Sampling) -> dict[str, Any]:
    """Return the candidates at a decoding step, with their logits and their probabilities before and after temperature,
    top-k and top-p."""
    trace = seen.trace
    logits_V, prob_V = (trace.values[f"out.{name}"][step].astype(np.float64) for name in ("logits", "prob"))
    allowed_V = seen.allowed(step, replace(seen.options, beam=1, n_best=1, sampling=sampling))
    rows = {"p": prob_V}
    for name, cuts in (("tempered", Sampling(temperature=sampling.temperature)), ("drawn", sampling)):
        tokens, probs = drawable(allowed_V, cuts)
        rows[name] = np.zeros(len(prob_V))
        rows[name][tokens] = probs
    ids, taken = listed(seen, step, LISTED), seen.chosen_ids[step]
    return {
        "step": step,
        "largest": float(logits_V.max()),
        "log_sum_exp": float(np.log(np.exp(logits_V - logits_V.max()).sum()) + logits_V.max()),
        "tokens": [
            {
                "token": trace.vocabulary[i],
                "id": i,
                "logit_address": f"out.logits[{step},{i}]",
                "logit": float(logits_V[i]),
                "address": f"out.prob[{step},{i}]",
                **{name: float(row_V[i]) for name, row_V in rows.items()},
                "taken": i == taken,
                "forbidden": bool(np.isneginf(allowed_V[i])),
            }
            for i in ids
        ],
        "left": int((rows["drawn"] > 0).sum()),
        "others": {
            "count": len(prob_V) - len(ids),
            **{name: float(np.delete(row_V, ids).sum()) for name, row_V in rows.items()},
        },
    }


def _found(seen: Look) -> dict[str, Any] | None:
    best = seen.result
    return {"text": seen.translation, "log_p": best.log_prob, "score": best.score} if best else None


def tokenising_data(seen: Look) -> dict[str, Any]:
    """Return every step from the text to its tokens, and the similarities between the token embeddings."""
    glass, encoder = seen.model, seen.model.config.has_encoder
    tokens = asdict(steps(glass.source_tokenizer if encoder else glass.target_tokenizer, seen.text))
    side = "src" if encoder else "tgt"
    return {**tokens, "alike": alike(seen.trace, side) if f"{side}.ids" in seen.trace else None}


def positions_at(machine: Machine, address: str) -> dict[str, Array]:
    """Return the first rows of a position table and, if it is sinusoidal, each column's wavelength in positions."""
    config = machine.config
    side = "src" if address.startswith("src.") else "tgt"
    arrays = {"positions": np.ascontiguousarray(positions(machine, side, min(POSITIONS, config.max_positions)))}
    waves = WAVELENGTHS.get(config.positions)
    if waves and np.allclose(arrays["positions"], TABLES[config.positions](len(arrays["positions"]), config.d_model)):
        arrays["wavelengths"] = waves(config.d_model)
    return arrays


def holds(trace: Trace, address: str) -> bool:
    """Return whether this run contains the quantity at an address."""
    name = parse_address(address).name
    return name in trace or of_heads(trace, name)


def of_heads(trace: Trace, name: str) -> bool:
    """Return whether a name refers to the mean over heads: attention weights without a head number, such as
    `dec.1.cross.weights`."""
    return name.endswith(".weights") and f"{name}.h0" in trace.values


def array_at(trace: Trace, address: str) -> Array:
    """Return an entire quantity, in a numeric type that JavaScript supports. Attention weights without a head number
    are averaged over heads."""
    where = parse_address(address)
    if where.index:
        raise AddressError(f"{address} is one number", do="request its receipt, or omit the brackets")
    array = mean_of_heads(trace, where.name) if of_heads(trace, where.name) else trace.array(where.name)
    return np.ascontiguousarray(array, {"int64": np.int32, "float16": np.float32}.get(array.dtype.name))
