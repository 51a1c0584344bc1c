"""Test that the behaviour cases are well formed and that their rules can fail, and run the cases with the packaged
models (tests/behaviour/README.md)."""

import json
from pathlib import Path

import pytest

from behaviour import __main__ as command
from behaviour.cases import HERE, Case, read_cases, read_file, unescaped
from behaviour.judge import AMONG, ENOUGH, MECHANISM, as_json, as_text, good_enough, judge, share
from behaviour.rules import RULES, WITH_ARGUMENT
from vidrio.model import find as models
from vidrio.translate.translator import Translator

DIRECTIONS = {"en-es": 700, "es-en": 500}  # with the minimum number of cases


def copied(texts):
    return list(texts)


# --- the rules --------------------------------------------------------------------------------------------------------

# rule, argument, source, translations that pass, translations that fail
EXAMPLES = [
    ("no-loop", "", "never", ["nunca", "nunca jamás", "nunca, nunca"], ["nunca nunca nunca", "nunca jamás " * 3]),
    ("no-loop", "", "no no no", ["no no no"], ["no no no no"]),
    ("no-loop", "", "in advance", ["de antemano", "jajaja"], ["pre-pre-pre-pre-pre-pre-", "aaaaaaaa", "lalalalalala"]),
    ("no-loop", "", "ha ha! It is 1000000 ------", ["¡ja, ja! Es 1000000 ------"], ["x ---------- y"]),
    ("no-longer", "", "Hello", ["Hola", "Hola a todo el mu"], ["Hola a todo el mundo"]),
    ("no-longer", "", "", ["", "0123456789"], ["I don't know."]),
    ("same", "", " \n", [" \n"], ["", " ", "No sé."]),
    ("keeps", "%s | {x}", "%s or {x}", ["%s o {x}", "{x} o %s"], ["% s o {x}", "%s", "%s o {x} {x}", "%so {x}"]),
    ("keeps", "</b>", "<b>a.</b>", ["<b>b.</b>", "<b>b</b>"], ["<b>b< /b>", "b"]),
    ("keeps", "www.a.org", "at www.a.org.", ["en www.a.org."], ["enwww.a.org.", "en www.a.orges", "en www.A.org"]),
    ("keeps", "Ana", "Ana, Ana", ["Ana, Ana"], ["Ana", "Una, Ana", "Ana, Ana, Ana"]),
    ("numbers", "", "1,234.5 and €18.10", ["1.234,5 y 18,10 €", "18.10 y 1 234,5"], ["1.234,5", "1.234,5 y 18,01 €"]),
    ("numbers", "", "9, 8 and 7", ["9, 8 y 7"], ["9, 8, 7 y 7", "98 y 7", "9 y 8"]),
    ("numbers", "", "In 2024, 365 of 1 234 567", ["En 2024 365 de 1 234 567"], ["En 2024.365 de 1 234 567"]),
    ("numbers", "", "8:30-14:00", ["8:30 a 14:00"], ["8:30", "8:3014:00"]),
    ("numbers", "", "1.9 of 1,000.25", ["1,9 de 1.000,25", "1.9 de 1000.25"], ["19 de 1.000,25", "1,9 de 100.025"]),
    ("numbers", "", "at 9:30", ["a las 9:30", "a las 9.30"], ["a las 9", "a las nueve y media"]),
    ("in-order", "7 | Ana", "7, Ana", ["7 y Ana"], ["Ana y 7", "Ana", "7"]),
    (
        "layout",
        "",
        "a\n\n b\tc ",
        ["x\n\n y\tz ", "x y\n\n y\tz "],
        ["x\n\n y z ", "x\n\n y\tz", "x\n y\tz ", " x\n\n y\tz "],
    ),
    ("layout", "", "a.\r\nb", ["x.\r\ny"], ["x.\ny", "x.\r\n\r\ny"]),
    ("markers", "", "- a\n 2. b\nc", ["- x\n 2. y\nz"], ["x\n 2. y\nz", "- x\n y\nz", "- x\n 2. y", "* x\n 2. y\nz"]),
    ("alike", "", "a\nb\na", ["x\ny\nx"], ["x\ny\nz", "x\ny"]),
    ("mostly-kept", "0.5", "qwer asdf", ["qwer asdf", "qwer y"], ["no", "por y"]),
    ("has", "perro | can", "dog", ["perro", "El Perro.", "¡Can!"], ["perros", "cantar", ""]),
    ("has", "com* | buenos días", "eating", ["está comiendo", "come", "Buenos  días"], ["acome"]),
    ("lacks", "the | is", "the", ["el", "there"], ["The perro", "el perro is"]),
    ("at-most", "2", "never", ["nunca", "nunca jamás"], ["nunca jamás nunca"]),
    (
        "language",
        "es",
        "The dog is big.",
        ["El perro es grande."],
        ["El perro is grande.", "Grande.", "The dog is big."],
    ),
    ("language", "en", "El perro es grande.", ["The dog is big."], ["The perro es big.", "Big."]),
    ("negated", "es", "I don't know.", ["No lo sé.", "Nadie lo sabe."], ["Lo sé.", "Noche."]),
    (
        "negated",
        "en",
        "No lo sé.",
        ["I don't know.", "I do not know.", "I don’t know.", "DON'T!"],
        ["I know.", "I note it."],
    ),
    ("sentences", "", "One. Two? Three!", ["Uno. ¿Dos? ¡Tres!", "Uno… ¿Dos? Tres."], ["Uno. Dos", "Uno."]),
    ("sentences", "", 'It is 3.5. "Yes."', ["Es 3.5. «Sí.»"], ["Es 3.5."]),
    ("question", "es", "Why?", ["¿Por qué?"], ["Por qué?", "¿Por qué", "Por qué.", "¿¿Por qué?"]),
    ("question", "en", "¿Por qué?", ["Why?"], ["¿Why?", "Why."]),
    ("exclamation", "es", "Stop! Go!", ["¡Alto! ¡Ve!"], ["¡Alto! Ve!", "¡Alto!"]),
    ("ends-alike", "", "the car", ["el coche"], ["el coche.", "el coche,"]),
    ("ends-alike", "", 'He said "no."', ["Dijo «no».", 'Dijo "no."'], ["Dijo «no»", "Dijo «no»?"]),
    ("ends-alike", "", "Wait…", ["Espera…", "Espera..."], ["Espera.", "Espera"]),
    ("upper", "", "STOP", ["ALTO", "¡ALTO 5!"], ["Alto", "ALTo", "5"]),
    ("not-upper", "", "The Sea", ["El mar", "El Mar"], ["EL MAR"]),
    ("first-letter", "capital", "A dog", ["Un perro", "¡Un perro!"], ["un perro", "¿un?", ""]),
    ("first-letter", "small", "a dog", ["un perro", "¿un?"], ["Un perro", "¡Un!"]),
    ("balanced", "", "a (b [c])", ["x (y [z])"], ["x (y [z)]", "x (y", "x y)", "x", "x (y) (z)"]),
    ("quoted", "", 'a "b" “c”', ["x «y» «z»", 'x "y" "z"'], ["x «y»", "x", 'x "y" "z']),
]


@pytest.mark.parametrize(("name", "argument", "source", "passing", "failing"), EXAMPLES)
def test_a_rule_passes_what_is_good_and_fails_what_is_not(name, argument, source, passing, failing):
    for translation in passing:
        assert RULES[name](source, translation, argument) is None, translation
    for translation in failing:
        assert RULES[name](source, translation, argument), translation


def test_every_rule_has_examples():
    assert {name for name, *_ in EXAMPLES} == set(RULES)


# --- the cases --------------------------------------------------------------------------------------------------------


@pytest.fixture(params=DIRECTIONS)
def cases(request):
    return read_cases(request.param)


def test_there_are_enough_cases_each_with_its_own_name():
    for direction, least in DIRECTIONS.items():
        some = read_cases(direction)
        assert len(some) >= least
        assert len({case.id for case in some}) == len({(case.topic, case.source) for case in some}) == len(some)


def test_every_case_says_why_and_names_rules_that_there_are(cases):
    wanting = {rule.__name__.replace("_", "-") for rule in WITH_ARGUMENT} | {AMONG}
    for case in cases:
        assert case.why, case.id
        for name, argument in case.must:
            assert name in RULES or name == AMONG, (case.id, name)
            assert bool(argument) == (name in wanting), (case.id, name, argument)


def test_what_must_be_kept_stands_in_the_source(cases):
    for case in cases:
        for name, argument in case.must:
            if name in ("keeps", "in-order", "numbers", "layout", "markers", "sentences"):
                assert RULES[name](case.source, case.source, argument) is None, (case.id, name)


def test_copying_passes_what_a_mechanism_answers_for_and_not_enough_of_the_rest(cases):
    results = judge(copied, cases)
    assert {case.topic for case in cases} >= MECHANISM
    assert all(one.passed for one in results if one.case.topic in MECHANISM)
    assert share([one for one in results if one.case.topic not in MECHANISM]) < 0.35
    assert not good_enough(results)


def test_every_case_can_fail(cases):
    bad = [
        *("", " no no no no", " de la casa the"),
        *(lambda text: text.swapcase(), lambda text: text[::-1]),
    ]

    def spoilt(how):
        return lambda texts: [how(text) if callable(how) else how and text + how for text in texts]

    failed = {one.case.id for how in bad for one in judge(spoilt(how), cases) if not one.passed}
    neighbours = {case.id for case in cases if any(name == AMONG for name, _ in case.must)}
    assert {case.id for case in cases} - failed - neighbours == set()


# --- the judge --------------------------------------------------------------------------------------------------------


def a_case(source: str, *must: tuple[str, str], topic: str = "words", id: str = "x-1") -> Case:  # noqa: A002
    return Case(id, topic, source, must, "why")


def test_a_translation_that_depends_on_its_neighbours_fails():
    def in_tens(texts):  # pads each text to the longest in its batch
        return [text.ljust(max(map(len, texts)), ".") for text in texts]

    one = a_case("Hello", (AMONG, "Hi | Good morning"))
    assert [one.passed for one in judge(copied, [one])] == [True]
    (result,) = judge(in_tens, [one])
    assert result.reasons == ("among other texts it is “Hello.......”",)


def test_the_report_tells_topics_and_failures():
    cases = [a_case("dog", ("has", "perro")), a_case("a\nb", ("has", "x"), topic="layout", id="layout-1")]
    results = judge(lambda texts: ["perro" if text == "dog" else text for text in texts], cases)
    assert "layout-1: it has none of: x\n  a\\nb\n→ a\\nb" in as_text(results)
    told = json.loads(as_json(results))
    assert (told["passed"], told["share"], told["enough"]) == (1, 0.5, False)
    assert told["topics"]["layout"] == {"cases": 1, "passed": 0, "mechanism": True}
    assert told["cases"][1]["reasons"] == ["it has none of: x"]


def test_enough_is_most_of_all_and_all_of_the_mechanism():
    right, wrong = a_case("a", ("same", "")), a_case("a", ("has", "x"))
    assert good_enough(judge(copied, [right] * 19 + [wrong]))
    assert not good_enough(judge(copied, [right] * 18 + [wrong]))
    assert not good_enough(judge(copied, [right] * 99 + [a_case("a", ("has", "x"), topic="layout")]))


def test_a_file_that_is_not_well_formed_is_told(tmp_path: Path):
    path = tmp_path / "en-es-x.tsv"
    path.write_text("id\tsource\n", encoding="utf-8")
    with pytest.raises(ValueError, match="does not begin with the columns"):
        read_file(path, "en-es")
    path.write_text("id\tsource\tmust\twhy\nx-1\ta\tsame\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"en-es-x\.tsv:2 has 3 columns"):
        read_file(path, "en-es")
    path.write_text("id\tsource\tmust\twhy\nx-1\ta\\tb\\\\n\thas a | b & same\tbecause\n", encoding="utf-8")
    assert read_cases("en-es", tmp_path) == [Case("x-1", "x", "a\tb\\n", (("has", "a | b"), ("same", "")), "because")]
    assert unescaped(r"\u0020\r\n") == " \r\n"


def test_the_command_judges_a_model(monkeypatch, capsys):
    monkeypatch.setattr(
        "sys.argv", ["behaviour", "--model", models.LESSON, "--topic", "blank", "--topic", "punctuation"]
    )
    assert command.main() == 0
    assert capsys.readouterr().out.splitlines()[-1] == "all             35 of  35  100.0%"
    monkeypatch.setattr("sys.argv", ["behaviour", "--model", models.LESSON, "--topic", "words", "--json"])
    assert command.main() == 1
    assert json.loads(capsys.readouterr().out)["topics"]["words"]["passed"] < 10


# --- the packaged models ----------------------------------------------------------------------------------------------


# The share of cases that a packaged model passes, with a margin for the rounding of other processors. Models that reach
# the goal, ENOUGH, are not listed.
REACHED = {"es-en": 0.92}


@pytest.mark.parametrize("name", [name for name in models.packaged() if name not in models.WORKED_EXAMPLES])
def test_a_packaged_model_behaves(name):
    translator = Translator.load(name)
    about = translator.about
    cases = read_cases(f"{about.source_language}-{about.target_language}")
    assert cases, "write cases for the directions that are packaged"

    def translate(texts):
        return [one.text for one in translator.translate(list(texts))]

    if name == models.LESSON:
        # This model knows a dozen words and turns everything else into nonsense, but what rules guarantee must hold.
        results = judge(translate, [case for case in cases if case.topic in MECHANISM], always=())
        assert all(result.passed for result in results), as_text(results)
    else:
        results = judge(translate, cases)
        assert all(one.passed for one in results if one.case.topic in MECHANISM), as_text(results)
        assert share(results) >= REACHED.get(name, ENOUGH), as_text(results)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_cases_of_everyday_prose_are_well_formed_and_can_fail(direction):
    prose = read_cases(direction, HERE / "prose")
    assert len({case.source for case in prose}) == len(prose) == 150
    assert all(name in RULES for case in prose for name, _ in case.must)
    assert share(judge(copied, prose)) < 0.05
