"""Scores by sacreBLEU, with the signatures that make them comparable.

Confidence intervals come from a bootstrap over lines. Two systems are compared by a paired bootstrap, with the same
samples.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

Metrics = dict[str, "Metric"]
DRAWS = 1000  # of the bootstrap
CERTAIN = 0.05  # below this p, a difference is significant


@dataclass(frozen=True)
class Score:
    """One metric of one system. The interval contains the middle 95 % of the bootstrap scores: mean ± half width."""

    metric: str
    value: float
    mean: float
    half_width: float
    signature: str
    p: float | None = None  # the probability of a difference at least this large by chance


def quick_scores(translations: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """BLEU and chrF of a corpus, without a bootstrap."""
    metrics, right = usual_metrics(), [list(references)]
    return {
        name.lower(): float(metrics[name].corpus_score(list(translations), right).score) for name in ("BLEU", "chrF")
    }


def chrf_of_each(translations: Sequence[str], references: Sequence[str]) -> list[float]:
    """chrF of each sentence."""
    metric = usual_metrics()["chrF"]
    pairs = zip(translations, references, strict=True)
    return [float(metric.sentence_score(translation, [reference]).score) for translation, reference in pairs]


def usual_metrics(*, tokenize: str = "13a", lowercase: bool = False) -> Metrics:
    """BLEU, chrF and TER, as sacreBLEU computes them."""
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
    """(scores of the translations, scores of the other system if there is one).

    `references` has one list per reference translation of the test set.
    """
    from sacrebleu.significance import PairedTest

    # sacreBLEU needs a second system. Without one, the translations take its place, and p means nothing.
    rival = translations if against is None else against
    systems: list[tuple[str, Sequence[str]]] = [("other", list(rival)), ("this", list(translations))]
    signatures, results = PairedTest(systems, metrics, list(map(list, references)), "bs", DRAWS)()

    def scores(system: int) -> Iterator[Score]:
        for name, signature in signatures.items():
            found: Any = results[name][system]
            other: Any = results[name][0]
            p = None
            if system and against is not None:
                # It counts the samples that differ by more than the systems do; for equal systems there are none.
                p = float(found.p_value) if found.score != other.score else 1.0
            yield Score(name, float(found.score), float(found.mean), float(found.ci), str(signature), p)

    return list(scores(1)), [] if against is None else list(scores(0))
