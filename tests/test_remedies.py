"""Test that sentences that the packaged models once mistranslated are now correct, by any remedy."""

import re

import pytest

from vidrio.hypothesis import Hypothesis
from vidrio.text.account import compare, facts
from vidrio.text.lexicon import lexicons
from vidrio.translate.judging import Query, warnings_about
from vidrio.translate.translator import Translator

MONTHS = "enero, febrero, marzo, abril, mayo, junio, julio, agosto, septiembre, octubre, noviembre y diciembre"
CASES = {
    "en-es": [
        ("The church was built in the 12th century.", "siglo XII"),
        ("The tower dates from the 3rd century.", "siglo III"),
        ("The tower dates from the second century.", "siglo (II|segundo)|segundo siglo"),
        ("It was painted between the nineteenth and the twenty-first century.", "XIX.*XXI"),
        ("After Philip VII came Edward XIII.", "(Felipe|Philip) VII.*XIII"),
        ("Gregory XIV built the palace.", "Gregor(y|io) XIV"),
        ("Ifunanyachi Nwokedinma and Mihăiţă Ungureanca live near the river.", "Ifunanyachi Nwokedinma"),
        ("We are open in January, October, July, March, August, June and May.", "julio.*junio.*mayo"),
        ("x > 5 and y < 3", "x > 5.*y < 3"),
        ("I met Łódź yesterday.", "Łódź"),
        ("The national debt exceeds 31 trillion dollars.", "31 billones"),
        ("Yesterday Olúwaṣẹ\u0301gun called my sister.", "Olúwaṣẹ\u0301gun"),
    ],
    "es-en": [
        ("La carta la escribió Federico XII.", "Frederick XII|Federico XII"),
        ("Después de Guillermo XV vino Carlos IV.", "(Guillermo|William) XV.*(Carlos|Charles) IV"),
        ("Se pintó entre el siglo II y el siglo XII.", "(2nd|second|II).*(12th|twelfth|XII)"),
        ("El banco perdió un billón de euros.", "trillion"),
        ("Rafael Núñez ganó el partido.", "Rafael Núñez"),
        ("Tampoco Núñez de Balboa regresó.", "Núñez"),
        ("El vuelo IB3166 sale a las 7:05 de la puerta 12.", "IB3166"),
        ("Los años veinte fueron felices.", "twenties|20s"),
        (MONTHS, "November and December"),
        ("András Székelyházi y Õnnela Tõnurist viven cerca del río.", "András Székelyházi and"),
        ("Ayer Mairéadín Ó Súilleabhain llamó a mi hermana.", "Mairéadín Ó Súilleabhain"),
    ],
}


@pytest.mark.parametrize("name", CASES)
def test_facts_come_through(name: str) -> None:
    translator = Translator.load(name)
    source_words, target_words = lexicons(*name.split("-"))
    for source, wanted in CASES[name]:
        found = translator.translate(source)
        assert re.search(wanted, found.text), (source, found.text)
        assert not compare(facts(source, source_words), facts(found.text, target_words)).serious, found.text
        assert not found.warnings, (source, found.warnings)


def test_two_names_never_have_the_same_misspelling() -> None:
    translator = Translator.load("en-es")
    query = Query(translator._masker.mask("I saw Jürgen and Jürgen.", hide_names=False), translator.options)
    written = "Vi a Jüirgen."
    ids = tuple(translator.target.encode(written))
    unsure = Hypothesis(ids, -3.0 * len(ids), -3.0, (-3.0,) * len(ids), ended=True)
    [candidate] = translator._judge.candidates(query, (), [(unsure, written)])
    assert [fact.key for fact in candidate.account.invented] == ["Jüirgen"]
    warning = next(warnings_about(query.masked, candidate))
    assert str(warning) == "the source says Jürgen, the translation Jüirgen"


@pytest.mark.parametrize("written", ["Rafael§ñez won.", "RafaelŁñez won."])
def test_merged_words_mean_that_a_name_is_lost(written: str) -> None:
    translator = Translator.load("es-en")
    query = Query(translator._masker.mask("Rafael Núñez ganó.", hide_names=False), translator.options)
    ids = tuple(translator.target.encode(written))
    sure = Hypothesis(ids, -0.1 * len(ids), -0.1, (-0.1,) * len(ids), ended=True)
    [candidate] = translator._judge.candidates(query, (), [(sure, written)])
    assert "Núñez" in [fact.key for fact in candidate.account.lost]
