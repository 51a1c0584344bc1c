"""Compute scores with sacreBLEU, including the signatures that make scores comparable.

Confidence intervals are computed by bootstrap resampling of lines. Two systems are compared with a paired bootstrap,
which uses the same samples for both.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

Metrics = dict[str, "Metric"]
DRAWS = 1000  # number of bootstrap samples
CERTAIN = 0.05  # a difference with a lower p is significant


@dataclass(frozen=True)
class Score:
    """A system's score in one metric. mean ± half_width is the interval with the middle 95 % of the bootstrap
    scores."""

    metric: str
    value: float
    mean: float
    half_width: float
    signature: str
    p: float | None = None  # probability of a difference at least this large arising by chance


def quick_scores(translations: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Compute BLEU and chrF of a corpus without bootstrapping."""
    metrics, right = usual_metrics(), [list(references)]
    return {
        name.lower(): float(metrics[name].corpus_score(list(translations), right).score) for name in ("BLEU", "chrF")
    }


def chrf_of_each(translations: Sequence[str], references: Sequence[str]) -> list[float]:
    """Compute chrF for each sentence."""
    metric = usual_metrics()["chrF"]
    pairs = zip(translations, references, strict=True)
    return [float(metric.sentence_score(translation, [reference]).score) for translation, reference in pairs]


def usual_metrics(*, tokenize: str = "13a", lowercase: bool = False) -> Metrics:
    """Return sacreBLEU's BLEU, chrF and TER."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    return {
        "BLEU": BLEU(tokenize=tokenize, lowercase=lowercase),
        "chrF": CHRF(lowercase=lowercase),
        "TER": TER(case_sensitive=not lowercase),
    }


def corpus_scores(
    translations: Sequence[str],
    references: Sequence[Sequence[str]],
    metrics: Metrics,
    *,
    against: Sequence[str] | None = None,
) -> tuple[list[Score], list[Score]]:
    """Return the scores of the translations, and the scores of the other system if there is one.

    `references` contains one list for each reference translation of the test set.
    """
    from sacrebleu.significance import PairedTest

    # sacreBLEU needs a second system. Without one, pass the translations again and ignore p.
    rival = translations if against is None else against
    systems: list[tuple[str, Sequence[str]]] = [("other", list(rival)), ("this", list(translations))]
    signatures, results = PairedTest(systems, metrics, list(map(list, references)), "bs", DRAWS)()

    def scores(system: int) -> Iterator[Score]:
        for name, signature in signatures.items():
            found: Any = results[name][system]
            other: Any = results[name][0]
            p = None
            if system and against is not None:
                # sacreBLEU counts the samples that differ more than the systems do, which fails for equal systems.
                p = float(found.p_value) if found.score != other.score else 1.0
            yield Score(name, float(found.score), float(found.mean), float(found.ci), str(signature), p)

    return list(scores(1)), [] if against is None else list(scores(0))
