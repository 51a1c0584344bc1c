"""Test the scores of a test set, and the log-probabilities of given translations."""

import json
import math

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from small_models import WORDS, write_model
from vidrio.commands._lines import read_aligned, read_lines
from vidrio.errors import DataError
from vidrio.glass.machine import build
from vidrio.glass.walk import translate_forced
from vidrio.model.folder import read_parameters
from vidrio.score.evaluate import bits_per_character, evaluate, translate_all
from vidrio.score.metrics import corpus_scores, usual_metrics
from vidrio.translate.translator import Translator

GENERATOR = np.random.default_rng(4)
RIGHT = [" ".join(GENERATOR.choice(WORDS, GENERATOR.integers(4, 9))) for _ in range(120)]


def damaged(lines, share, seed):
    """Replace a share of the words."""
    generator = np.random.default_rng(seed)
    return [" ".join("x" if generator.random() < share else word for word in line.split()) for line in lines]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "nonsense"
    write_model(folder, seed=3, norm="pre", ends=True)
    return folder


@pytest.fixture(scope="module")
def translator(folder):
    return Translator.load(folder)


def test_scores_are_sacrebleus_with_signatures_to_quote():
    translations = damaged(RIGHT, 0.2, 1)
    scores, other = corpus_scores(translations, [RIGHT], usual_metrics())
    assert other == []
    for score, metric in zip(scores, (BLEU(), CHRF(), TER(case_sensitive=True)), strict=True):
        assert score.value == pytest.approx(metric.corpus_score(translations, [RIGHT]).score)
        assert score.p is None
        assert abs(score.mean - score.value) < score.half_width
        assert "|bs:1000|seed:12345|case:mixed|" in score.signature
    assert [score.metric for score in scores] == ["BLEU", "chrF2", "TER"]
    assert "tok:none" in corpus_scores(translations, [RIGHT], usual_metrics(tokenize="none"))[0][0].signature
    upper = [line.upper() for line in RIGHT]
    assert [s.value for s in corpus_scores(upper, [RIGHT], usual_metrics(lowercase=True))[0]] == pytest.approx(
        [100, 100, 0]
    )
    assert corpus_scores(translations, [upper, RIGHT], usual_metrics())[0][0].value == pytest.approx(scores[0].value)


def test_a_better_system_is_told_from_chance():
    good, bad = damaged(RIGHT, 0.2, 1), damaged(RIGHT, 0.4, 2)
    scores, other = corpus_scores(good, [RIGHT], usual_metrics(), against=bad)
    assert all(score.p < 0.01 for score in scores)
    assert scores[0].value > other[0].value
    assert scores[2].value < other[2].value
    assert all(score.p is None for score in other)
    alike, _ = corpus_scores(good, [RIGHT], usual_metrics(), against=damaged(RIGHT, 0.2, 3))
    assert all(score.p > 0.05 for score in alike)
    same, _ = corpus_scores(good, [RIGHT], usual_metrics(), against=good)
    assert all(score.p == 1 for score in same)


def test_bits_per_character_are_counted_from_the_definition(folder, translator):
    sources, references = ["Bala core dila.", "Gare."], ["cola, hola.", "nure hola hola"]
    config = translator.config
    machine = build(config, read_parameters(folder))
    bits = 0.0
    for source, reference in zip(sources, references, strict=True):
        source_ids, target_ids = translator._pair_ids(source, reference)
        prob_TV = translate_forced(machine, source_ids, [config.special.start, *target_ids])
        bits -= sum(math.log2(prob_TV[t, token]) for t, token in enumerate([*target_ids, config.special.end]))
    found, left_out = bits_per_character(translator, [*sources, "bala " * 99], [*references, "bala"])
    assert found == pytest.approx(bits / sum(map(len, references)), rel=1e-4)
    assert left_out == 1


def test_a_test_set_is_translated_and_the_work_is_counted(translator):
    sources = ["Bala core.", "Dila gare. Hoso mila!", "", "Bala core."]
    run = translate_all(translator, sources)
    assert run.translations == [translator.translate(source).text for source in sources]
    best = {s.source: s.best for source in sources for s in translator.translate(source).sentences}.values()
    assert run.tokens == sum(len(h.ids) + h.ended for h in best)
    assert run.tokens_per_second > 0
    found = evaluate(translator, sources, [run.translations], usual_metrics(), translator.options)
    assert [score.value for score in found.scores] == pytest.approx([100, 100, 0])


def test_files_that_do_not_belong_together_are_refused(tmp_path):
    (tmp_path / "a").write_bytes("\ufeffuno\r\ndos\n\n".encode())
    (tmp_path / "b").write_bytes(b"one")
    (tmp_path / "c").write_bytes(b"x\ny\n\xff\n")
    (tmp_path / "empty").write_bytes(b"")
    assert read_lines(tmp_path / "a") == ["uno", "dos", ""]
    with pytest.raises(DataError, match=r"a has 3, .*b has 1"):
        read_aligned([tmp_path / "a", tmp_path / "b"])
    with pytest.raises(DataError, match=r"line 3 of .*c is not UTF-8\n  found: byte 0xFF at position 1"):
        read_lines(tmp_path / "c")
    with pytest.raises(DataError, match="there is nothing to score"):
        read_aligned([tmp_path / "empty", tmp_path / "empty"])


# --- the commands -----------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path, translator):
    sources = [f"{line.capitalize()}." for line in RIGHT[:40]]
    right = damaged([translation.text for translation in translator.translate(sources)], 0.2, 5)
    for name, lines in (("src", sources), ("ref", right), ("other", damaged(right, 0.9, 6))):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


def test_evaluate_prints_scores_signatures_and_speed(run_vidrio, folder, files):
    arguments = ("evaluate", str(folder), "--src", str(files / "src"), "--ref", str(files / "ref"))
    done = run_vidrio(*arguments, "-o", str(files / "out"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "40 lines, beam 2, length penalty 1" in done.stdout
    for part in (
        "BLEU nrefs:1|bs:1000",
        "chrF2 ",
        "TER ",
        "bits per character",
        "tokens/s",
        "reached the length limit",
    ):
        assert part in done.stdout
    assert len((files / "out").read_text().splitlines()) == 40
    told = json.loads(run_vidrio(*arguments, "--json", "--against", str(files / "other")).stdout)
    assert told["lines"] == 40
    assert told["scores"][0]["p"] < 0.05
    assert told["scores"][0]["value"] > told["other_scores"][0]["value"]
    again = run_vidrio(*arguments, "--against", str(folder)).stdout
    assert "p = 1.000  may be chance" in again
