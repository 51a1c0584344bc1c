"""Helpers for comparisons with JoeyNMT 2.3.0: its environment, equivalent settings, and a parser for its log."""

import json
import re
import subprocess
import sys
import venv
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import torch

from vidrio.learn.machine import SPINS
from vidrio.learn.plan import Recipe
from vidrio.model.config import ModelConfig
from vidrio.text.tokens.tokenizer import Tokenizer

PACKAGES = ["joeynmt==2.3.0", "importlib_metadata", "sentencepiece==0.2.0"]
STAMP = r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3}) - INFO - [\w.]+ - "  # the prefix of each log line


def python(work: Path) -> Path:
    """Return the Python of JoeyNMT's environment. The environment is created on first use."""
    there = work / "joeynmt" / "bin" / "python"
    if not (work / "joeynmt" / ".ready").exists():
        print("installing JoeyNMT …", file=sys.stderr)
        venv.create(work / "joeynmt", with_pip=True, clear=True)
        for packages in ([f"torch=={torch.__version__.split('+')[0]}"], PACKAGES):
            subprocess.run([there, "-m", "pip", "install", "--quiet", *packages], check=True)
        (work / "joeynmt" / ".ready").touch()
    return there


def environment(threads: int) -> dict[str, str]:
    """Return environment variables that give JoeyNMT the same thread settings as Vidrio."""
    count = str(threads)
    return {"GOMP_SPINCOUNT": SPINS, "OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count, "PATH": "/usr/bin:/bin"}


def write_tokens(path: Path, tokenizer: Tokenizer, texts: Sequence[str]) -> None:
    """Write texts as our tokens, which JoeyNMT treats as words."""
    lines = (" ".join(tokenizer.token(i) for i in ids) + "\n" for ids in tokenizer.encode_batch(list(texts)))
    path.write_text("".join(lines), encoding="utf-8")


def read_tokens(path: Path, tokenizer: Tokenizer) -> list[str]:
    """Read JoeyNMT's output, and convert it from our tokens to text."""
    unknown = tokenizer.special.unk
    found = ([tokenizer.id(token) for token in line.split(" ")] for line in path.read_text("utf-8").splitlines())
    return [tokenizer.decode(unknown if i is None else i for i in ids) for ids in found]


def write_configuration(
    path: Path, folder: Path, config: ModelConfig, recipe: Recipe, data: dict[str, str], **training: Any
) -> None:
    """Write our sizes and recipe as JoeyNMT settings, without the features that JoeyNMT lacks (a learning rate that
    decays to 0, averaged parameters). `folder` contains the data (train.en, train.de and so on) and vocabulary.txt."""
    side = {"level": "word", "lowercase": False, "max_length": 200, "voc_file": str(folder / "vocabulary.txt")}
    layers = {
        "type": "transformer",
        "num_heads": config.n_heads,
        "embeddings": {"embedding_dim": config.d_model, "scale": config.scale_embeddings},
        "hidden_size": config.d_model,
        "ff_size": config.d_ff,
        "dropout": recipe.dropout,
        "layer_norm": config.norm,
        "activation": config.activation,
    }
    told = {
        "name": "peer",
        "model_dir": str(folder / "model"),
        "use_cuda": False,
        "data": {
            **{part: str(folder / name) for part, name in data.items()},
            "dataset_type": "plain",
            "src": {"lang": "en", **side},
            "trg": {"lang": "de", **side},
        },
        "testing": {
            "beam_size": config.decoding.beam,
            "beam_alpha": config.decoding.length_penalty,
            "eval_metrics": ["bleu"],
        },
        "training": {
            "optimizer": "adam",
            "adam_betas": [0.9, 0.98],
            "learning_rate": recipe.rate,
            "scheduling": "warmupinversesquareroot",
            "learning_rate_warmup": recipe.warmup,
            "learning_rate_min": 0.0,
            "label_smoothing": recipe.smoothing,
            "clip_grad_norm": recipe.clip,
            "normalization": "tokens",
            "batch_size": recipe.batch_tokens // 2,  # JoeyNMT counts only the longer side
            "batch_type": "token",
            "epochs": 10_000,
            "early_stopping_metric": "bleu",
            "shuffle": True,
            **training,
        },
        "model": {
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": {**layers, "num_layers": config.n_encoder_layers},
            "decoder": {**layers, "num_layers": config.n_decoder_layers},
        },
    }
    path.write_text(json.dumps(told, indent=1), encoding="utf-8")  # JSON is valid YAML


def moments(log: str, says: str) -> list[tuple[float, str]]:
    """Return (seconds, first group of `says`) for each matching log line."""
    found = re.findall(STAMP + says, log, re.MULTILINE)
    return [(datetime.fromisoformat(when).timestamp() + int(ms) / 1000, value) for when, ms, value in found]
