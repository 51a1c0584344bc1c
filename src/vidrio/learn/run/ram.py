"""How much RAM (or memory of a GPU) a training step takes, and how much is free: so that every batch fits.

A step's largest part is what the forward pass keeps for the way back. It is counted here in numbers a token, sub-layer
by sub-layer, as `model.py` and `attention.py` keep them; the letters are the axes of `config.py`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import torch

from vidrio.learn.net.loss import CHUNK
from vidrio.learn.run.recipe import Recipe
from vidrio.model.config import ModelConfig
from vidrio.model.parameters import count

SHARE = 0.8  # of what is free, to be used
LIBRARIES = 64e6  # bytes that they take for themselves at the first step


@dataclass(frozen=True)
class Need:
    """Bytes that training takes whatever the batch, and for each token of a batch."""

    fixed: float
    token: float

    def most_tokens(self, free: float) -> int:
        """The largest batch that leaves a part of what is free alone; below 1 there is room for none."""
        return int((SHARE * free - self.fixed) / self.token)


def need(config: ModelConfig, recipe: Recipe, longest: int, device_type: str = "cpu") -> Need:
    """What training takes, in batches of the longest sentences: they need most, since attention is L · M numbers."""
    size = 2 if recipe.precision == "bfloat16" else 4
    # Parameters, their mean, the best, Adam's two, a gradient, all in float32; and while a state is saved, a copy of
    # the first five. A backward pass's own gradients take no more than that copy.
    parameters = 40 * count(config)
    W = max(config.source_vocabulary, config.target_vocabulary, config.n_classes) * config.d_model
    loss = 2 * size * CHUNK + 2 * 4 * W
    passes = 1
    if recipe.r_drop:  # each token goes through twice, with six float32 for each logit
        passes, loss = 2, loss + 6 * 4 * CHUNK
    return Need(
        LIBRARIES + parameters + loss,
        passes * size * (kept(config, recipe, longest, device_type) + passing(config, longest)),
    )


def kept(config: ModelConfig, recipe: Recipe, longest: int, device_type: str) -> float:
    """Numbers that a token leaves behind for the way back; of a source and a target token, the mean."""
    c = config
    D, E, F = c.d_model, c.n_heads * c.d_head, c.d_ff
    dropped, thinned = recipe.dropout > 0, recipe.attention_dropout > 0
    around = (3 if dropped else 2) * D  # a sub-layer's input, the same normalised, the dropout mask
    whole = device_type == "cpu" or thinned  # a GPU's own kernel keeps no weights
    weights = c.n_heads * longest * (whole + thinned)
    heads = 5 * E + weights  # Q, K, V, what was gathered, the same with its heads side by side
    feed = around + F * (3 if recipe.activation_dropout else 1)
    source = c.n_encoder_layers * (around + heads + feed) + 3 * D
    target = c.n_decoder_layers * (around + heads + feed) + 5 * D  # the last rows, and their gradient
    if not c.has_decoder:
        return source
    if not c.has_encoder:
        return target
    source += c.n_decoder_layers * 2 * E  # cross-attention's keys and values
    target += c.n_decoder_layers * (around + 3 * E + weights)
    return (source + target) / 2


def passing(config: ModelConfig, longest: int) -> float:
    """Numbers that a token needs while one layer is computed, forward or back, and no longer."""
    return 4 * config.n_heads * longest + 2 * config.d_ff + 6 * config.d_model


# --- what there is ----------------------------------------------------------------------------------------------------


def free_memory(device: torch.device) -> int | None:
    """Bytes that are free on the device; None where nobody can tell."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return free_on_cpu(Path("/")) if device.type == "cpu" else None


def free_on_cpu(root: Path) -> int | None:
    """What Linux could give to a new process, or what is left to this one's group, whichever is less."""
    found = [*_available(root / "proc/meminfo"), *_left_to_groups(root)]
    return min(found) if found else None


def _available(meminfo: Path) -> Iterator[int]:
    for line in _read(meminfo).splitlines():
        if line.startswith("MemAvailable:"):
            yield 1024 * int(line.split()[1])


def _left_to_groups(root: Path) -> Iterator[int]:
    """For this process's control group and all those around it: the limit, less what is in use and cannot be freed."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            names = ("", "memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            names = ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        place, limit_name, used_name, file_name = names
        here = PurePosixPath(path.strip("/"))
        for group in (here, *here.parents):
            folder = root / "sys/fs/cgroup" / place / group
            limit, used = _read(folder / limit_name).strip(), _read(folder / used_name).strip()
            if limit.isdigit() and used.isdigit():
                stat = dict(row.split() for row in _read(folder / "memory.stat").splitlines())
                yield max(0, int(limit) - int(used) + int(stat.get(file_name, 0)))


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
