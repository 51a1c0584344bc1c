"""How good translations are, by sacreBLEU, each score with the signature that says how it was counted."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Score:
    """One figure and how it was counted."""

    metric: str
    value: float
    signature: str


def scores(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, Score]:
    """Corpus BLEU and chrF."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    found = {}
    for name, metric in (("bleu", BLEU()), ("chrf", CHRF())):
        value = metric.corpus_score(list(hypotheses), [list(references)]).score
        found[name] = Score(name, float(value), str(metric.get_signature()))
    return found
