"""How good translations are, by sacreBLEU, each score with the signature that says how it was counted.

Confidence is a bootstrap over the lines; two systems are compared by a paired one, on the same draws of lines.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vidrio.data.progress import Progress, Work

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
    progress: Progress | None = None,
) -> tuple[list[Score], list[Score]]:
    """(the scores of the translations, those of the system that they are compared with, if any).

    `references` has one list for each reference translation of the whole test set.
    """
    from sacrebleu.significance import PairedTest

    # sacreBLEU wants another system; where there is none, the translations stand in for it, and its p means nothing.
    rival = translations if against is None else against
    systems: list[tuple[str, Sequence[str]]] = [("other", list(rival)), ("this", list(translations))]
    right = [list(lines) for lines in references]
    signatures, columns = dict[str, Any](), dict[str, Any]()
    scoring = Work("scoring", len(metrics))
    if progress:
        progress.work = scoring
    for name, metric in metrics.items():  # each by itself draws the same lines
        signature, results = PairedTest(systems, {name: metric}, right, "bs", DRAWS)()
        signatures |= signature
        columns |= {named: results[named] for named in signature}
        scoring.done += 1

    def score(name: str, system: int, p: float | None = None) -> Score:
        found = columns[name][system]
        return Score(name, float(found.score), float(found.mean), float(found.ci), str(signatures[name]), p)

    if against is None:
        return [score(name, 1) for name in columns], []
    # It counts the draws that differ by more than the systems do; where these do not differ at all, it finds none.
    chances = {
        name: float(this.p_value) if this.score != other.score else 1.0 for name, (other, this) in columns.items()
    }
    return [score(name, 1, chances[name]) for name in columns], [score(name, 0) for name in columns]
