"""Test that lost and invented facts in a translation are detected, whatever their form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidrio.text.account import Faults, compare, facts
from vidrio.text.lexicon import NONE, Lexicon, lexicons
from vidrio.text.rendering import in_notation, obliging, rendered

ENGLISH, SPANISH = lexicons("en", "es")


def numbers(text: str, lexicon=ENGLISH) -> list[str]:
    """Return the numbers in a text, with those in brackets that may be something else."""
    found = [fact for fact in facts(text, lexicon) if fact.kind == "number"]
    return [fact.key if fact.sure else f"({fact.key})" for fact in found]


def faults(source: str, translation: str) -> Faults:
    return compare(facts(source, ENGLISH), facts(translation, SPANISH))


def told(source: str, translation: str) -> list[str]:
    """Return what was lost (-) and what was invented (+)."""
    lost, invented = faults(source, translation)
    return [f"-{fact.key}" for fact in lost] + [f"+{fact.key}" for fact in invented]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("twenty-three thousand five hundred and six people", ["23506"]),
        ("two million three hundred thousand; two, three", ["2300000", "2", "3"]),
        ("nineteen eighty-four and two thousand one", ["1984", "2001"]),
        ("one hundred and twenty-first", ["121"]),
        ("$2.5 billion, 3bn, 5k and 5 km", ["2500000000", "3000000000", "5000", "5"]),
        ("half a million, a million, millions", ["500000", "1000000"]),
        ("the 12th and twelfth centuries, Henry VIII", ["12", "12", "8"]),
        ("the 1980s and 1980", ["80s", "(1980)", "(80)", "1980", "(80)", "(80s)"]),
        ("in the 80s, the twenties, 80 people", ["80s", "(80)", "(20)", "(20s)", "80", "(80s)"]),
        ("one, a second, the first, twice", ["(1)", "(2)", "(1)", "(2)"]),
        ("CIVIL CD and I, Vitamin C, Charles I", ["(400)", "(100)", "(1)"]),
        ("Charles V, Malcolm X, Haber X", ["5", "(10)", "(10)"]),
        ("hundreds of thousands", []),
        ("H2O, mp3 and B2B", []),
        ("between the nineteenth and the twenty-first century", ["19", "21"]),
        ("the second century", ["2"]),
        ("66-six, a 66-second delay, 66 six", ["66-six", "6", "66", "(2)", "66", "6"]),
        ("Henry EIGHTEENTH and TWO", ["2"]),  # what a model writes instead of XVIII
        ("0 million, 2.50 thousand and 1.0005 million", ["0", "2500", "1000500"]),
        ("1.23456 thousand, 1980 million", ["1234.56", "1980000000"]),
        (f"{'9' * 5000} million", ["9" * 5000, "(1000000)"]),  # longer than int() accepts
    ],
)
def test_english_numbers_in_every_form(text: str, wanted: list[str]) -> None:
    assert numbers(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("veintitrés mil quinientas seis personas", ["23506"]),
        ("dos millones trescientos mil; dos, tres", ["2300000", "2", "3"]),
        ("mil novecientos ochenta y cuatro", ["1984"]),
        ("2.500 millones, 2,5 billones, tres mil millones", ["2500000000", "2500000000000", "3000000000"]),
        ("medio millón, un millón, millones de personas", ["500000", "1000000", "(1000000)"]),
        ("el siglo XII, los siglos V y VI, Felipe II", ["12", "5", "6", "2"]),
        ("el 12.º, el duodécimo, la 3ª", ["12", "12", "3"]),
        ("los años 1980, los años veinte", ["80s", "(1980)", "(80)", "20s"]),
        (
            "la década de 1980, a los 20 años 30 de ellos",
            ["(10)", "80s", "(1980)", "(80)", "20", "(20s)", "30", "(30s)"],
        ),
        ("una, un segundo, la primera", ["(1)", "(1)", "(2)", "(1)"]),
        ("un treinta por ciento", ["(1)", "30", "(30s)"]),
        ("veinte segundos", ["20", "(20s)", "(2)"]),
        ("el siglo 3r, el siglo SEGUNDA, el siglo Segunda, siglo segundo", ["3r", "(2)"]),
        ("98 billones de billones, miles de ellos", ["98000000000000", "1000000000000", "(1000)"]),
        ("10,7 miles de millones y 18 miles de millones", ["10700000000", "18000000000"]),
        ("seis miles de millones, miles de millones, mil millones", ["6000000000", "(1000000000)", "1000000000"]),
        ("tres de cuatro, mil de cinco", ["3", "4", "(1000)", "5"]),
    ],
)
def test_spanish_numbers_in_every_form(text: str, wanted: list[str]) -> None:
    assert numbers(text, SPANISH) == wanted


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("The church was built in the 12th century.", "La iglesia se construyó en el siglo XII."),
        ("Three billion dollars", "3.000 millones de dólares"),
        ("The 1980s were two decades ago.", "Los años ochenta fueron hace dos décadas."),
        ("World War II", "Segunda Guerra Mundial"),
        ("in the 1960s", "en 1960"),
        ("the twenties and the 1930s", "los años veinte y treinta"),
        ("the eighties and the 90s", "los ochenta y los años 1990"),
        ("in twenty years", "en veinte años"),
        ("several hundred students", "varios cientos de estudiantes"),
        ("'I wish so.'", "«Ojalá»."),
        ("It costs €1,234.50, or 20%.", "Cuesta 1.234,50 euros, o un veinte por ciento."),
        ("On Monday, 5 May 2020, both came.", "El lunes 5 de mayo de 2020 vinieron los dos."),
        ("Two thirds and a quarter", "Dos tercios y un cuarto"),
        ("You mustn't go.", "No debes ir."),
        ("You don't have to go.", "No hace falta que vayas."),
        ("Hardly anyone came.", "No vino casi nadie."),
        ("January, May, June and July.", "Enero, mayo, junio y julio."),
        ('He said "no" (twice).', "Dijo «no» (dos veces)."),
        ("Wait a second, may I?", "Espera un segundo, ¿puedo?"),
        ("5 and 5", "5 y cinco"),
        ("two dogs", "2 perros"),
        ("5 km and 250 ml", "5km y 250 ml"),
        ("R & D", "I y D"),
        ("Philip II and Henry James", "Felipe II y Henry James"),
        ("Philip II and John Paul II", "Philip II y Juan Pablo II"),
        ("a second century", "un segundo siglo"),
        ("They had to write off billions.", "Tuvieron que amortizar miles de millones."),
        ("You are crazy, aren't you?", "Estás loco, ¿verdad?"),
        ("It's the best turkey I've ever tried.", "Es el mejor pavo que he probado nunca."),
        (
            "I hope we agree, but, sadly, it is hard.",
            "Espero que lleguemos a un acuerdo, pero por desgracia es difícil.",
        ),
        ('He said, "Yes", twice, "no", and left.', "Dijo «sí» dos veces, «no» y se fue."),
        ("Saturday's paper and October's", "El periódico del sábado y el de octubre"),
        ("The dollar fell; he won in 2010 won.", "El dólar cayó; ganó en 2010."),
        ("He need not paint.", "No necesita pintar."),
        ("My teacher, Ayo\u0323\u0300de", "Mi maestro, Ayọde"),  # a combining mark is not a symbol
        ("the 80s and the 9am train", "los años 80 y el tren de las 9"),
    ],
)
def test_what_is_faithful(source: str, translation: str) -> None:
    assert told(source, translation) == []


@pytest.mark.parametrize(
    ("source", "translation", "wanted"),
    [
        ("The church was built in the 12th century.", "La iglesia se construyó en el siglo XIX.", ["-12", "+19"]),
        ("x > 5 and y < 3", "x € 5 y y € 3", ["->", "-<", "+€", "+€"]),
        ("See § 4.", "Vea 4 €.", ["-§", "+€"]),
        ("I met Ana.", "Conocí a �.", ["+�"]),
        ("January, February, March", "Enero, marzo", ["-month 2"]),
        ("a billion euros", "un billón de euros", ["-1000000000", "+1000000000000"]),
        ("You mustn't come.", "No tienes que venir.", ["-forbidden", "+needless"]),
        ("You need not come.", "No debes venir.", ["-needless", "+forbidden"]),
        ("I agree.", "No estoy de acuerdo.", ["+"]),
        ("I never agreed.", "Estaba de acuerdo.", ["-"]),
        ("You aren't crazy, are you?", "Estás loco, ¿verdad?", ["-"]),
        ("He came.", "Creo que nunca vino.", ["+"]),
        ("He left (today).", "Se fue hoy.", ["-(", "-)"]),
        ("bread, milk, rice, salt and tea", "pan, leche, arroz y té", ["-5 items"]),
        ("nothing", "nada 7", ["+7"]),
        ("two dogs", "perros", ["-2"]),
        ("in the twenty years", "en los años veinte", ["-20", "+20s"]),
        ("€2 and €3", "2 € y 3", ["-€"]),
        ("It exceeds 31 trillion dollars.", "Supera los 31 billones.", ["-$"]),
        ("Philip II built it.", "Filip II lo construyó.", ["-philip"]),
        ("the 3rd century", "el siglo 3r", ["-3", "+3r"]),
    ],
)
def test_what_is_not_faithful(source: str, translation: str, wanted: list[str]) -> None:
    assert told(source, translation) == wanted


@pytest.mark.parametrize(
    ("source", "translation", "lost"),
    [
        ("It costs €1,234.50.", "Cuesta 1.234,50 €.", []),
        ("It costs €18.10.", "Cuesta 18h10.", ["€18.10"]),
        ("It costs €18.10.", 'Cuesta "18.10.', ["€18.10"]),  # a price needs its currency
        ("It costs $5 or $6.", "Cuesta $5 o 6.", ["$6"]),
        ("It costs ₩5.", "Cuesta 5 wones.", []),
        ("It costs €18.10.", "Cuesta 18,01 €.", ["€18.10"]),
        ("5 and 5", "5 y cinco", []),
        ("1.9 million", "19 millones", ["1.9"]),
        ("1.9 million", "1,9 millones", []),
        ("19 million", "1,9 millones", ["19"]),
        ("1,234,567.89 or 1,234 or 0.125", "1.234.567,89 o 1.234 o 0,125", []),
        ("1,234.567", "1.234,567", []),
        ("1,234.5", "1.2345", ["1,234.5"]),
        ("€2,000", "2000 €", []),
        ("$1,250.00", "$1.250,00", []),
        ("$1,250.00", "$1.250.00", ["$1,250.00"]),
        ("$1,250.00", "$1,2.50.00", ["$1,250.00"]),
        ("$1.250.00", "$1.250.00", []),
        ("$18.10", "$18.10.10", ["$18.10"]),
        ("$1,200,000", "1.200 $.000", ["$1,200,000"]),
        ("$18.10.", "$18.10.", []),
        ("5 km and 250 ml", "5km y 250 ml", []),
        ("5 km and 2.5 kg", "5 kms y 2,5 kb", ["5 km", "2.5 kg"]),
        ("20 m² at 100 km/h", "20 m y 100 kmm", ["20 m²", "100 km/h"]),
        ("5 km and 250 ml", "5 y 250 de leche", ["5 km", "250 ml"]),
        ("5 km, 5 km", "5 km, 5", ["5 km"]),
        ("30 °C, 20°", "30 grados, 20 °", []),
        ("at 9:30", "a las 9.30", []),
        ("at 9:30", "a las 9", ["9:30"]),
        ("From 01.02.2023", "Del 01/02/2023", []),
        ("From 01.02.2023", "Del 01,02.2023", ["01.02.2023"]),
        ("version 1.2.3", "versión 1,2,3", ["1.2.3"]),
        ("on 2023-02-01T10:30:00Z", "el 2023-02-01T10:30:00Z", []),
        ("Hello %1$s, %d", "Hola % 1 $ s, %d", ["%1$s"]),
        ("Hi {name}", "Hola {nombre}", ["{name}"]),
        ("Write to a@b.com about 2.0.1", "Escribe a a@b.com sobre 2.0.1", []),
        ("Go 👍👍", "Ve 👍", ["👍"]),
        ("See https://a.org/b", "Vea https: //a.org/b", ["https://a.org/b"]),
        ("nothing", "nada 7", ["7"]),
        ("", "", []),
    ],
)
def test_what_must_come_through_whole(source: str, translation: str, lost: list[str]) -> None:
    assert bool(told(source, translation)) == bool(lost)


@pytest.mark.parametrize(
    ("source", "translation", "wanted"),
    [
        ("It costs €18.10.", "Cuesta 18,10 €.", False),
        ("9, 8 and 7 points", "9, 8 7 y 7 puntos", True),
        ("5 and 5", "5 y 5", False),
        ("5 and 15", "15 y 5", False),
        ("Hi {name}", "Hola {name} {name}", True),
        ("Save 35,000 a year", "Ahorre 35,000 400 al año", True),
        ("World War 2", "2.ª Guerra Mundial, 1945", True),
        ("May 5th, 1821", "5 de mayo de 1821", False),
        ("3rd of 10", "3º de 10", False),
        ("at 9:30", "a las 9.30", False),
        ("$18.10", "$18.10.10", True),
        ("two dogs", "2 perros", False),  # the digit may stand for a word of the source
        ("Go 👍", "Ve 👍👍", True),
        ("See #one", "Vea #one", False),
        ("", "", False),
    ],
)
def test_what_a_translation_has_too_much_of(source: str, translation: str, wanted: bool) -> None:
    assert bool(told(source, translation)) is wanted


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("in the 12th century", "XII"),
        ("in the twelfth century", "XII"),
        ("in the 40th century", "40.º"),  # in Roman numerals, the ten millionth would have a million letters
        ("the 3rd", "3.º"),
        ("the twelfth", "12.º"),
        ("Henry VIII", "VIII"),
        ("2.5 trillion", "2,5 billones"),
        ("three billion", "3000 millones"),
        ("a million", "1 millón"),
        ("twenty-three thousand", "23.000"),
        ("1,234.5", "1.234,5"),
        ("in March", "marzo"),
        ("on Wednesday", "miércoles"),
        ("by Saturday", "sábado"),
    ],
)
def test_a_lost_fact_is_written_as_the_other_language_does(source: str, wanted: str) -> None:
    [fact] = [fact for fact in facts(source, ENGLISH) if fact.sure and fact.kind in ("number", "calendar")]
    assert rendered(fact, source[fact.start : fact.end], ENGLISH, SPANISH) == wanted


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("el siglo XXI", "21st"),
        ("los años veinte", "20s"),
        ("tres billones", "3 trillion"),
        ("2.500 millones", "2.5 billion"),
        ("1.234,5", "1,234.5"),
        ("el 3.º", "3rd"),
        ("marzo", "March"),
        ("Felipe II", "II"),
    ],
)
def test_and_in_english(source: str, wanted: str) -> None:
    [fact] = [fact for fact in facts(source, SPANISH) if fact.sure and fact.kind in ("number", "calendar")]
    assert rendered(fact, source[fact.start : fact.end], SPANISH, ENGLISH) == wanted


@pytest.mark.parametrize(
    ("key", "wrong", "lexicon", "wanted"),
    [
        ("forbidden", "No tienes que", SPANISH, "no debes"),
        ("forbidden", "no hace falta", SPANISH, "no debe"),
        ("needless", "no deben", SPANISH, "no hace falta"),
        ("forbidden", "don't have to", ENGLISH, "must not"),
        ("needless", "mustn't", ENGLISH, "need not"),
    ],
)
def test_an_obligation_is_put_right(key: str, wrong: str, lexicon: Lexicon, wanted: str) -> None:
    assert obliging(key, wrong, lexicon) == wanted


def test_other_languages_are_compared_by_signs_and_digits() -> None:
    assert [one.values for one in lexicons("en", "fr")] == [{}, {}]
    assert [one.point for one in lexicons("en", "fr")] == [".", ","]
    assert lexicons("", "fr") == (NONE, NONE)
    assert in_notation("1,234.5", *lexicons("en", "pt_BR")) == "1.234,5"
    assert in_notation("1,234.5", *lexicons("en", "ja")) == "1,234.5"
    assert lexicons("es_MX", "EN") == (SPANISH, ENGLISH)
    source, translation = "The 12th of twelve months: 5 > 3.", "Le 12e de douze mois : 5 € 3."
    lost, invented = compare(facts(source), facts(translation))
    assert ([fact.key for fact in lost], [fact.key for fact in invented]) == ([">"], ["€"])


@given(st.text(max_size=60), st.sampled_from([ENGLISH, SPANISH, NONE]))
def test_a_copy_has_no_faults_and_facts_lie_in_the_text(text: str, lexicon) -> None:
    found = facts(text, lexicon)
    assert compare(found, found) == Faults()
    assert all(0 <= fact.start <= fact.end <= len(text) for fact in found)
