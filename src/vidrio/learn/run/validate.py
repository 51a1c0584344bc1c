"""How good the model is on held-out sentences, while it learns: one function for each task, `net → scores`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from vidrio.data.progress import Advance, Progress, silent
from vidrio.learn.batches import Batch, Examples, collate, plan
from vidrio.learn.net import model
from vidrio.learn.net.decode import translate
from vidrio.learn.net.model import Network
from vidrio.learn.net.objective import objective, predict
from vidrio.score.metrics import quick_scores

Validate = Callable[[Network], dict[str, Any]]

ROOM = 8192  # tokens at a time
SHOWN, LEAST_SHOWN = 3, 5  # sample translations, of sentences with so many words


@dataclass(frozen=True)
class Texts:
    """Held-out sentences as text, to judge translations by, and how ids become text."""

    sources: Sequence[str]
    references: Sequence[str]
    to_text: Callable[[list[int]], str]


def validate_translation(held_out: Examples, texts: Texts, most: int) -> Validate:
    """Loss on all, BLEU and chrF of greedy translations of `most` from all over the set, and a few of them to read."""
    some = translated(len(texts.sources), most)
    shown = [n for n, i in enumerate(some) if len(texts.sources[i].split()) >= LEAST_SHOWN][:SHOWN]

    def validate(net: Network) -> dict[str, Any]:
        ids = translate(net, [held_out.source.gather(np.array([i]))[0] for i in some], beam=1)
        translations = [texts.to_text(sentence) for sentence in ids]
        scores = quick_scores(translations, [texts.references[i] for i in some])
        samples = [(texts.sources[some[n]], translations[n]) for n in shown]
        return {"loss": mean_loss(net, held_out)} | scores | {"samples": samples}

    return validate


def translated(count: int, most: int) -> list[int]:
    """The places of those sentences of the set that are translated, from all over it."""
    return sorted({int(i) for i in np.linspace(0, count - 1, min(most, count))})


def validate_classes(held_out: Examples, progress: Progress = silent) -> Validate:
    """Loss, and the share of texts whose class is told rightly."""
    count = len(held_out.target.lengths)

    def validate(net: Network) -> dict[str, Any]:
        with progress("judging", 2 * count) as advance:
            right = sum(
                int((model.logits(net, predict(net, batch)).argmax(-1) == batch.expected_BT[:, 0]).sum())
                for batch in batches(net, held_out, advance)
            )
            return {"loss": mean_loss(net, held_out, advance), "accuracy": 100 * right / count}

    return validate


def validate_loss(held_out: Examples, progress: Progress = silent) -> Validate:
    """Loss alone: there is no one right text to generate."""

    def validate(net: Network) -> dict[str, Any]:
        with progress("judging", len(held_out.target.lengths)) as advance:
            return {"loss": mean_loss(net, held_out, advance)}

    return validate


def mean_loss(net: Network, held_out: Examples, advance: Advance = lambda done: None) -> float:
    """−log p of the right token, on average."""
    total = predictions = 0.0
    with torch.no_grad():
        for batch in batches(net, held_out, advance):
            total += objective(net, batch, 0.0)[1].item()
            predictions += batch.n_predictions
    return total / max(1.0, predictions)


def batches(net: Network, held_out: Examples, advance: Advance) -> Iterator[Batch]:
    """The held-out pairs in batches; those too long for the model are left out."""
    device = net.positions_PD.device
    for which in plan(held_out, ROOM, net.config.max_positions, (0,)):
        yield collate(held_out, which, net.config).to(device)
        advance(len(which))
