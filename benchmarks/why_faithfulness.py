"""Compare how faithfully different methods identify the source words that matter, by removing each word.

    python benchmarks/why_faithfulness.py --model en-es --texts FILE [--count 200] [--inseq METHOD …]

For every token of a translation, each method scores the source words. The ground truth is the token's drop in
log-probability when a word is masked in all attention, or deleted. The script prints Spearman's correlation over the
words of a sentence, averaged over its tokens and then over sentences.

- sum: the sum of the word's parts, compared with the runner-up;
- sum, 5 rivals: the same, compared with the five most likely other tokens, weighted by their probability;
- tokens: the difference carried down to the source's tokens, compared with the runner-up;
- tokens, all rivals: the same, compared with all other tokens, weighted by their probability;
- sizes: the sum of the absolute values of the word's parts;
- mean attention: the mean cross-attention over all heads; last attention: the mean over the heads of the last layer.

`--inseq saliency integrated_gradients value_zeroing` adds these methods from inseq, on the same model exported for
Transformers (float32). This requires `pip install inseq "transformers<5"`: value zeroing in inseq 0.7.1 fails with
version 5.
"""

import argparse
import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # must be set before NumPy is imported

import numpy as np

from vidrio.interop.to_huggingface import export_huggingface
from vidrio.look.interventions import each_word_deleted, each_word_hidden, source_words
from vidrio.look.measures import mean_of_heads
from vidrio.look.parts import SOURCE, columns, decisions, runner_up
from vidrio.look.run import Look, open_model
from vidrio.look.token_sums import token_sums
from vidrio.look.translated import look_at, translator_of
from vidrio.search import largest

RIVALS = 5
Scores: TypeAlias = np.ndarray  # T × S: one row per target token, one column per source token


def ranks(values: np.ndarray) -> np.ndarray:
    """Return the ranks of the values, starting at 1. Equal values share their mean rank."""
    _, same, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts - 1) / 2)[same]


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """Return the rank correlation, or NaN if either array is constant."""
    with np.errstate(invalid="ignore"):
        return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def by_sum(seen: Look, rivals: int, of: Callable[[float], float] = float) -> Scores:
    """Return the source's parts, or their absolute values, as a weighted mean over the most likely rival tokens."""
    this, prob_TV = seen.chosen_ids, seen.trace.values["out.prob"].astype(float)
    for row, token in enumerate(this):
        prob_TV[row, token] = 0
    likely_TN = np.array([largest(prob_V, rivals) for prob_V in prob_TV])
    weights_TN = np.take_along_axis(prob_TV, likely_TN, axis=1)
    weights_TN /= weights_TN.sum(axis=1, keepdims=True)
    found = np.zeros((len(this), len(seen.source_ids)))
    for n in range(rivals):
        for one in decisions(seen.trace, this, likely_TN[:, n].tolist()):
            for (_, reads, row), value in zip(one.labels, one.values.tolist(), strict=True):
                if reads == SOURCE:
                    found[one.row, row] += weights_TN[one.row, n] * of(value)
    return found


def by_tokens(seen: Look, *, all_rivals: bool) -> Scores:
    this, trace = list(seen.chosen_ids), seen.trace
    if all_rivals:
        rivals_TD = trace.values["out.prob"].astype(float) @ columns(trace)
    else:
        rivals_TD = columns(trace, [runner_up(trace, row, token) for row, token in enumerate(this)])
    return token_sums(trace, range(len(this)), columns(trace, this) - rivals_TD).source_NS


def by_attention(seen: Look, layers: Sequence[int]) -> Scores:
    return np.mean([mean_of_heads(seen.trace, f"dec.{layer}.cross.weights") for layer in layers], axis=0)


def own_methods(layers: int) -> dict[str, Callable[[Look], Scores]]:
    return {
        "sum": lambda seen: by_sum(seen, 1),
        f"sum, {RIVALS} rivals": lambda seen: by_sum(seen, RIVALS),
        "tokens": lambda seen: by_tokens(seen, all_rivals=False),
        "tokens, all rivals": lambda seen: by_tokens(seen, all_rivals=True),
        "sizes": lambda seen: by_sum(seen, 1, abs),
        "mean attention": lambda seen: by_attention(seen, range(layers)),
        "last attention": lambda seen: by_attention(seen, [layers - 1]),
    }


def inseq_methods(names: Sequence[str], model: str, folder: Path) -> Iterator[tuple[str, Callable[[Look], Scores]]]:
    """Yield inseq's methods, applied to the exported model."""
    import inseq

    folder.mkdir()
    for file, content in export_huggingface(open_model(model).path).items():
        (folder / file).write_bytes(content)
    for name in names:
        loaded = inseq.load_model(str(folder), name)
        yield name.replace("_", " "), lambda seen, loaded=loaded: attributed(loaded, seen)


def attributed(loaded: Any, seen: Look) -> Scores:
    """Return inseq's scores for the source tokens, with its default aggregation."""
    made = loaded.attribute(seen.text, seen.translation, show_progress=False).aggregate()[0]
    scores: Scores = made.source_attributions.numpy().T
    if scores.shape != (len(seen.chosen_ids), len(seen.source_ids)):
        raise SystemExit(f"inseq split {seen.text!r} into other tokens: {scores.shape}")
    return scores


def correlations(seen: Look, truth: np.ndarray, scores: Scores) -> list[float]:
    """Return the correlations, for each target token, of the true losses (T × words) with the words' scores."""
    of_words = np.array([scores[:, list(word.rows)].sum(axis=1) for word in source_words(seen)]).T
    found = [spearman(*pair) for pair in zip(truth, of_words, strict=True)]
    return [one for one in found if not np.isnan(one)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="en-es")
    parser.add_argument("--texts", type=Path, required=True, help="file with one sentence per line")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--inseq", nargs="+", default=[], metavar="METHOD", help="also evaluate these inseq methods")
    given = parser.parse_args()
    model = open_model(given.model)
    translator = translator_of(model)
    methods = own_methods(model.config.n_decoder_layers)
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    count = 0
    with tempfile.TemporaryDirectory() as temporary:
        methods |= dict(inseq_methods(given.inseq, given.model, Path(temporary) / "model")) if given.inseq else {}
        for line in filter(str.strip, given.texts.read_text("utf-8").splitlines()):
            translation = translator.translate(line.strip())
            if count == given.count:
                break
            if len(translation.sentences) != 1 or translation.sentences[0].given != line.strip():
                continue
            seen = look_at(model, translation)
            if len(source_words(seen)) < 4:
                continue
            count += 1
            truths = {"hidden": each_word_hidden(seen), "deleted": each_word_deleted(seen, translator)}
            scored = {name: method(seen) for name, method in methods.items()}
            for how, without in truths.items():
                losses = np.array([one.losses for one in without]).T
                for name, scores in scored.items():
                    found[name][how].append(float(np.mean(correlations(seen, losses, scores) or [0.0])))
    print(f"{given.model}, {count} sentences; Spearman's correlation with the loss when each word is")
    print(f"{'':22}  hidden  deleted")
    for name, of in found.items():
        print(f"{name:22}  {np.mean(of['hidden']):6.3f}  {np.mean(of['deleted']):7.3f}")


if __name__ == "__main__":
    main()
