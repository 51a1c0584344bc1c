"""How good translations are, by sacreBLEU, each score with the signature that says how it was counted.

Confidence is a bootstrap over the lines; two systems are compared by a paired one, on the same draws of lines.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

Metrics = dict[str, "Metric"]
DRAWS = 1000  # of the bootstrap
CERTAIN = 0.05  # below this p, a difference is not put down to chance


@dataclass(frozen=True)
class Score:
    """One metric of one system. The interval holds the middle 95 % of the bootstrap's scores: mean ± half width."""

    metric: str
    value: float
    mean: float
    half_width: float
    signature: str
    p: float | None = None  # that a difference from the other system at least this large comes by chance


def quick_scores(translations: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """BLEU and chrF of a corpus, without any bootstrap."""
    metrics, right = usual_metrics(), [list(references)]
    return {
        name.lower(): float(metrics[name].corpus_score(list(translations), right).score) for name in ("BLEU", "chrF")
    }


def chrf_of_each(translations: Sequence[str], references: Sequence[str]) -> list[float]:
    """Each sentence's own chrF."""
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
    """(the scores of the translations, those of the system that they are compared with, if any).

    `references` has one list for each reference translation of the whole test set.
    """
    from sacrebleu.significance import PairedTest

    # sacreBLEU wants another system; where there is none, the translations stand in for it, and its p means nothing.
    rival = translations if against is None else against
    systems: list[tuple[str, Sequence[str]]] = [("other", list(rival)), ("this", list(translations))]
    signatures, results = PairedTest(systems, metrics, list(map(list, references)), "bs", DRAWS)()

    def scores(system: int) -> Iterator[Score]:
        for name, signature in signatures.items():
            found: Any = results[name][system]
            other: Any = results[name][0]
            p = None
            if system and against is not None:
                # It counts the draws that differ by more than the systems do; where these are equal, it finds none.
                p = float(found.p_value) if found.score != other.score else 1.0
            yield Score(name, float(found.score), float(found.mean), float(found.ci), str(signature), p)

    return list(scores(1)), [] if against is None else list(scores(0))
