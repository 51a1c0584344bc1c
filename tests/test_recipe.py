"""Test recipes/en-es: how it changes and generates training pairs, and the whole of make.sh."""

import importlib.util
import lzma
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from vidrio.model.folder import read_config
from vidrio.text.account import compare, facts
from vidrio.text.lexicon import lexicons
from vidrio.text.mask import HIDDEN
from vidrio.text.protect import spans
from vidrio.translate.translator import Translator

REPOSITORY = Path(__file__).resolve().parent.parent
RECIPE = REPOSITORY / "recipes" / "en-es"


@pytest.fixture(scope="module")
def corpora():
    return imported("corpora")


@pytest.fixture(scope="module")
def lexicon(corpora):
    sys.modules["corpora"] = corpora  # the script imports it by this name
    yield imported("lexicon")
    del sys.modules["corpora"], sys.modules["lexicon"]


def imported(name):
    spec = importlib.util.spec_from_file_location(name, RECIPE / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Always(random.Random):
    """A random generator that always draws 0 and samples in order."""

    def random(self):
        return 0.0

    def sample(self, population, k, **more):
        return list(population)[:k]


@pytest.mark.parametrize(
    ("pair", "masked"),
    [
        (("Tom sees Mary.", "Tom ve a Mary."), ("⑥ sees ⑤.", "⑥ ve a ⑤.")),
        (("Use `ls -l` in {dir}.", "Usa `ls -l` en {dir}."), ("Use ⑥ in ⑤.", "Usa ⑥ en ⑤.")),
        (("Tom likes Tom.", "A Tom le gusta Tom."), ("Tom likes Tom.", "A Tom le gusta Tom.")),  # it occurs twice
        (("Ana is here.", "Anabel está aquí."), ("Ana is here.", "Anabel está aquí.")),  # only part of a word
        (("① is one.", "① es uno."), ("① is one.", "① es uno.")),
    ],
)
def test_what_stands_once_on_both_sides_becomes_a_symbol(corpora, pair, masked):
    assert corpora.masked(Always(), pair) == masked


def test_all_that_is_hidden_when_translating_was_hidden_when_learning(corpora):
    """Emoji and versions are exempt: few are in the data, and the model copies any symbol the same way."""
    assert HIDDEN - {"emoji", "version"} == corpora.COPIED
    kinds = {kind for symbol in corpora.SYMBOLS for *_, kind in spans(symbol)}
    assert not kinds & corpora.COPIED  # a symbol never replaces another symbol


def test_some_pairs_are_written_otherwise(corpora):
    chance = random.Random(1)
    found = {corpora.varied_pair(chance, ("He is here now.", "Está aquí ahora.")) for _ in range(2000)}
    assert found == {
        ("He is here now.", "Está aquí ahora."),
        ("HE IS HERE NOW.", "ESTÁ AQUÍ AHORA."),
        ("He Is Here Now.", "Está Aquí Ahora."),
        ("He is here now", "Está aquí ahora"),
        ("he is here now", "está aquí ahora"),
    }


def test_a_sentence_of_the_test_set_is_found_among_the_pairs(corpora, tmp_path):
    test = tmp_path / "test.tsv"
    test.write_text("I see.\tYa veo.\n", encoding="utf-8")
    folder = tmp_path / "train"
    folder.mkdir()
    (folder / "a.tsv").write_text("I am.\tSoy.\n", encoding="utf-8")
    corpora.apart(folder, test)
    for leak in ("i see\tComprendo.", "Understood.\t¡Ya veo!"):
        (folder / "a.tsv").write_text(f"I am.\tSoy.\n{leak}\n", encoding="utf-8")
        with pytest.raises(SystemExit, match=r"a\.tsv:2"):
            corpora.apart(folder, test)


# --- lexicon, and pairs made from it ----------------------------------------------------------------------------------

PAIRS = [
    *[("I see a dog.", "Veo un perro."), ("The dog is here.", "El perro está aquí.")] * 3,
    *[("I see an apple.", "Veo una manzana."), ("The apple is red.", "La manzana es roja.")] * 3,
    *[("We left Spain.", "Salimos de España."), ("We met Ana.", "Encontramos a Ana.")] * 3,
    *[(f"Number {n} is other.", f"El {n} es otro.") for n in "abcdefghijklmnopqrstuvwxyz" * 30],
]


def test_an_interrupted_split_is_repeated_and_loses_no_pair(corpora, tmp_path, monkeypatch):
    spoken = {"en": "Hi there.", "es": "Hola a todos."}
    monkeypatch.setattr(corpora, "monolingual", lambda data, language: [(corpora.LOOSE[language][0], spoken[language])])
    for language in ("en", "es"):
        pairs = [("One.", "Uno."), ("Hi there.", "Hola a todos."), ("Two.", "Dos.")]
        corpora.write(tmp_path / f"forward-{language}.tsv", pairs)

    def files():
        return {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}

    whole = files()
    corpora.split(tmp_path, tmp_path)
    split = files()
    assert split["forward-en.tsv"] == split["forward-es.tsv"] == "One.\tUno.\nTwo.\tDos.\n"
    assert split["forward-en-loose.tsv"] == split["forward-es-loose.tsv"] == "Hi there.\tHola a todos.\n"
    order = ["forward-en-loose.tsv", "forward-en.tsv", "forward-es-loose.tsv", "forward-es.tsv"]
    for written in range(len(order) + 1):  # the state after an interruption, before the repetition
        for path in tmp_path.iterdir():
            path.unlink()
        for name, text in (whole | {name: split[name] for name in order[:written]}).items():
            (tmp_path / name).write_text(text, "utf-8")
        corpora.split(tmp_path, tmp_path)
        assert files() == split, written


def test_words_that_mean_the_same_are_found_with_their_gender(lexicon):
    found = {link.source: (link.target, link.count, link.gender) for link in lexicon.links(PAIRS)}
    assert found["dog"] == ("perro", 6, "m")
    assert found["apple"] == ("manzana", 6, "f")
    assert "The" not in found  # translated as both el and la


def test_a_noun_takes_the_place_of_another_with_its_article(lexicon):
    pair = "I have a dog.", "Tengo un perro."
    assert lexicon.exchanged(pair, ("dog", "perro"), ("apple", "manzana")) == ("I have an apple.", "Tengo un manzana.")
    link = SimpleNamespace(source="dog", target="perro")
    assert lexicon.stands_once(link, pair)
    assert not lexicon.stands_once(link, ("dog eats dog", "perro come perro"))
    assert not lexicon.stands_once(link, ("He had a dog.", "Tuvo perro."))  # no article in the Spanish


def test_each_saying_has_the_same_places_on_both_sides(lexicon):
    fillers = lexicon.read_fillers()
    frames = lexicon.read(RECIPE / "sayings.tsv")
    made = list(lexicon.said(random.Random(1), frames, fillers, 3))
    assert len(made) == 3 * len(frames) > 150
    assert not any(mark in text for pair in made for text in pair for mark in "{}")
    assert any("two" in source and "dos" in target for source, target in made)
    kinds = {name for kind in ("man", "woman", "family", "place") for name, _ in fillers[kind]}
    for source, target in made:
        assert {word for word in lexicon.WORD.findall(source) if word in kinds} == {
            word for word in lexicon.WORD.findall(target) if word in kinds
        }


def test_tom_becomes_somebody_else_on_both_sides(lexicon):
    fillers = {
        "man": [("Leo", "Leo")],
        "woman": [("Eva", "Eva")],
        "place": [("Lima", "Lima")],
        "family": [("Díaz", "Díaz")],
    }
    pairs = [("Tom loves Mary.", "Tom ama a María."), ("Tom left.", "Se fue."), ("It rains.", "Llueve.")]
    assert list(lexicon.renamed(random.Random(1), pairs, fillers)) == [("Leo loves Eva.", "Leo ama a Eva.")]


def test_nothing_of_a_test_set_is_made(lexicon, tmp_path):
    clean = tmp_path / "clean"
    clean.mkdir()
    for corpus in lexicon.CORPORA:
        (clean / f"{corpus}.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS), encoding="utf-8")
    test = tmp_path / "test.tsv"
    test.write_text("Dog!\tUn animal.\nRed.\tel perro\n", encoding="utf-8")
    made = {}
    for apart in ((), (test,)):
        to = tmp_path / f"made{len(apart)}"
        to.mkdir()
        lexicon.main(clean, to, *apart)
        made[len(apart)] = {pair for path in to.glob("*.tsv") for pair in lexicon.read(path)}
    assert ("dog", "perro") in made[0]
    assert not any(source.lower().rstrip(".!") == "dog" or target == "el perro" for source, target in made[1])
    assert made[1] < made[0]


# --- numbers and frames -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def frames(lexicon):
    pytest.importorskip("num2words")
    for name in ("spelled", "typed", "prices", "facts"):
        imported(name)
    yield imported("frames")
    for name in ("spelled", "typed", "prices", "facts", "frames"):
        del sys.modules[name]


@pytest.mark.parametrize(
    ("number", "gender", "spanish"),
    [
        (21, "", "veintiuno"),
        (21, "m", "veintiún"),
        (31, "f", "treinta y una"),
        (101, "m", "ciento un"),
        (500, "f", "quinientas"),
        (1_201, "f", "mil doscientas una"),
        (21_000, "", "veintiún mil"),
        (431_001, "m", "cuatrocientos treinta y un mil un"),
    ],
)
def test_a_number_agrees_with_what_it_counts(frames, number, gender, spanish):
    assert frames.spelled.spanish(number, gender) == spanish


@pytest.mark.parametrize(
    ("place", "pair"),
    [
        ("{a animal}", ("an eagle", "un águila")),
        ("{the animal}", ("the eagle", "el águila")),
        ("{the animals}", ("the eagles", "las águilas")),
        ("{n animals}", ("two hundred and one eagles", "doscientas una águilas")),
        ("{a look animal}", ("a brown eagle", "un águila marrón")),
        ("{the look animals}", ("the brown eagles", "las águilas marrones")),
        ("{the ordinal animal}", ("the first eagle", "la primera águila")),
        ("{how animal}", ("brown", "marrón")),
    ],
)
def test_each_side_says_it_by_its_own_grammar(frames, monkeypatch, place, pair):
    words = {
        "animal": [frames.Thing("animal", "eagle", "eagles", "águila", "águilas", "fa")],
        "look": [frames.Thing("look", "brown", "-", "marrón", "marrón", "-")],
    }
    monkeypatch.setattr(frames.spelled, "some_number", lambda chance: 201)
    chance = random.Random(1)
    monkeypatch.setattr(chance, "randint", lambda least, most: least)
    assert frames.filled(chance, (place, place), words) == pair


def test_the_frames_fit_the_words(frames):
    words = frames.read_words()
    for file in ("counting.tsv", "frames.tsv"):
        found = frames.read(RECIPE / file)
        assert len(dict(found)) == len(found)
        for source, target in found:
            assert {(p[2], p[4]) for p in frames.PLACE.finditer(source)} == {
                (p[2], p[4]) for p in frames.PLACE.finditer(target)
            }, source
        made = list(frames.framed(random.Random(1), found, words, 5))
        assert not any(mark in text for pair in made for text in pair for mark in "{}")
        assert not any(f" {bad} " in f" {target.lower()} " for _, target in made for bad in ("a el", "de el", "-"))


def test_frames_that_are_measured_are_not_learned_from(frames):
    benchmark = (REPOSITORY / "benchmarks" / "numbers_in_words.py").read_text(encoding="utf-8")
    learned = {source for file in ("counting.tsv", "frames.tsv") for source, _ in frames.read(RECIPE / file)}
    assert "There are {n} horses." in benchmark
    assert not any(re.sub(r"{\w+}", "{n horses}", source) == "There are {n horses}." for source in learned)


def test_facts_are_the_same_on_both_sides_and_apart_from_those_that_are_measured(frames):
    pairs = list(frames.facts.made(random.Random(1), frames.read(RECIPE / "facts.tsv"), 3))
    assert len(pairs) > 250
    assert not any(mark in text for pair in pairs for text in pair for mark in "{}")
    for source, target in pairs:
        said = [facts(text, lexicon) for text, lexicon in zip((source, target), lexicons("en", "es"), strict=True)]
        assert not any(compare(*said)), (source, target)
    benchmark = (REPOSITORY / "benchmarks" / "faithful.py").read_text(encoding="utf-8")
    frames_of_words = [re.sub(r"{[^}]+}", "{}", side) for pair in frames.read(RECIPE / "facts.tsv") for side in pair]
    measured = set(re.findall(r'"([^"\n]{12,})"', re.sub(r"{[^}]+}", "{}", benchmark)))
    assert not measured & {frame for frame in frames_of_words if len(frame) >= 12}


def test_what_is_typed_in_haste_keeps_its_translation(frames):
    chance = Always()
    pairs = [("I don't know.", "No lo sé."), ("Tom's dog isn't here.", "El perro no está.")]
    assert list(frames.typed.english(chance, pairs)) == [("I dont know.", "No lo sé.")]
    number = ("one hundred and twenty-one days", "ciento veintiún días")
    assert list(frames.typed.numbers(chance, [number])) == [("a hundred twenty one days", "ciento veintiún días")]
    assert list(frames.typed.days(chance, [("on Monday in May", "el lunes en mayo")])) == [
        ("on monday in May", "el lunes en mayo")
    ]
    assert list(frames.typed.spanish(chance, [("Where is the child?", "¿Dónde está el niño?")])) == [
        ("Where is the child?", "Donde esta el nino?")
    ]


# --- translations by a teacher ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def teacher(lexicon):
    yield imported("teacher"), imported("taught")
    del sys.modules["teacher"], sys.modules["taught"]


def test_spanish_in_the_tokens_of_portuguese_can_be_restored(teacher):
    module, _ = teacher
    for name in ("everyday", "news", "encyclopedic"):
        for line in (RECIPE / "written" / f"{name}.tsv").read_text(encoding="utf-8").splitlines()[::7]:
            text = " ".join(line.split("\t")[2].translate(module.PLAIN).split())
            assert module.unspelled(module.spelled(text)) == text
    assert module.spelled("¿Dónde está el niño?") == "? Dónde está el ninho?"
    assert module.unspelled(module.spelled('Ho Chi Minh (¿Ñandú?) dijo: "¡Íntimo pingüino!"')) == (
        'Ho Chi Minh (¿Ñandú?) dijo: "¡Íntimo pingüino!"'
    )


def test_bad_translations_of_a_teacher_are_rejected(teacher, tmp_path, capsys):
    _, module = teacher
    for language, text in (("en", "A dog"), ("es", "Veo un perro y 12 gatos")):
        for name in (f"mono.{language}.tsv.xz", f"mono-2.{language}.xz"):
            with lzma.open(tmp_path / name, "wt", encoding="utf-8") as file:
                file.write(f"wikipedia\t{text}\n" if "tsv" in name else f"{text}\n")
        (tmp_path / f"mono-2.{language}.sources.tsv").write_text("source\tfirst\tlast\nwikipedia\t1\t1\n")
    lines = [
        ("I see a dog.", "0.9\tVeo un perro."),
        ("I see Łódź.", "0.9\tVeo Łódź."),
        ("I see a dog and a cat.", "0.9\tVeo un perro y un gatro."),
        ("I see 12 dogs.", "0.9\tVeo 13 perro."),
        ("A dog.", "0.1\tUn perro."),
    ]
    for name, side in (("en.txt", 0), ("en.scored", 1)):
        (tmp_path / name).write_text("".join(f"{line[side]}\n" for line in lines), encoding="utf-8")
    (tmp_path / "clean").mkdir()
    files = (tmp_path / name for name in ("clean", "en.txt", "en.scored"))
    module.taught(tmp_path, *files, "en", tmp_path / "en.tsv")
    assert (tmp_path / "en.tsv").read_text(encoding="utf-8") == "I see a dog.\tVeo un perro.\nI see Łódź.\tVeo Łódź.\n"
    assert "'unknown word': 1, 'facts': 1, 'improbable': 1" in capsys.readouterr().err


# --- the whole recipe, with a tiny vocabulary -------------------------------------------------------------------------

NOUNS = {"dog": "perro", "cat": "gato", "boy": "niño", "book": "libro", "tree": "árbol", "cook": "cocinero"}
VERBS = {"sees": "ve a", "hears": "oye a", "wants": "quiere a", "paints": "pinta a", "finds": "encuentra a"}
PLACES = {"here": "aquí", "there": "allí", "today": "hoy", "now": "ahora", "again": "otra vez"}
SELDOM = {
    "zebra": "cebra",
    "whale": "ballena",
    "chair": "silla",
    "spoon": "cuchara",
    "lamp": "lámpara",
    "mouse": "ratón",
}
SOURCES = ("tatoeba", "europarl", "mdn-tmx", "docs-python", "xquad")
LATER = ("openstax-physics", "game-wesnoth", "cocoa-mt", "docs-debian")


def clause(chance):
    (a, b), (c, d), (e, f), (g, h) = (chance.choice([*words.items()]) for words in (NOUNS, VERBS, NOUNS, PLACES))
    return f"the {a} {c} the {e} {g}", f"el {b} {d} el {f} {h}"


def sentences(count):
    """Yield pairs of two random clauses each, so that few sentences differ in only one word."""
    chance = random.Random(1)
    for _ in range(count):
        (a, b), (c, d) = clause(chance), clause(chance)
        yield f"{a} and {c}.".capitalize(), f"{b} y {d}.".capitalize()


@pytest.fixture
def data(tmp_path):
    pairs = list(dict.fromkeys(sentences(2_000)))
    chance = random.Random(2)
    for noun, nombre in 16 * [*SELDOM.items()]:
        (see, ve), (source, target) = chance.choice([*VERBS.items()]), clause(chance)
        pairs.append((f"Tom {see} the {noun} and {source}.", f"Tom {ve} la {nombre} y {target}."))
    folder = tmp_path / "data"
    files = {
        "train.tsv.xz": [
            ("tatoeba" if "Tom" in pair[0] else SOURCES[n % 4], *pair) for n, pair in enumerate(pairs[200:])
        ],
        "train-3.tsv.xz": [(LATER[n % 4], *pair) for n, pair in enumerate(pairs[90:200])],
        "train-more.tsv.xz": [("xquad", *pair) for pair in pairs[:60]],
        "dictionary.tsv.xz": [("wiktionary", *pair) for pair in NOUNS.items()],
        "dictionary-2.tsv.xz": [(source, *pair) for source in ("cldr", "omw-mcr30") for pair in SELDOM.items()],
        "mono.en.tsv.xz": [("commonvoice", f"{clause(random.Random(n))[0]}.") for n in range(300)],
        "mono.es.tsv.xz": [("commonvoice", f"{clause(random.Random(-n))[1]}.") for n in range(300)],
    }
    folder.mkdir()
    files["train-4.tsv.xz"] = [(*pair, "globalvoices-pivot") for pair in pairs[40:60]]
    for n, language in enumerate(("en", "es")):
        files[f"mono-2.{language}.xz"] = [(f"{clause(random.Random(1_000 + k))[n]}.",) for k in range(300)]
        (folder / f"mono-2.{language}.sources.tsv").write_text("source\tfirst\tlast\nwikipedia\t1\t300\n")
    for name, rows in files.items():
        with lzma.open(folder / name, "wt", encoding="utf-8") as file:
            file.writelines("\t".join(row) + "\n" for row in rows)
    tests = {"dev/newstest2012": (60, 70), "dev/flores200-dev": (70, 80), "test/tatoeba-test-v2020-07-28": (80, 90)}
    for name, (first, last) in tests.items():
        for n, language in enumerate(("en", "es")):
            path = folder / f"{name}.{language}"
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join(pair[n] + "\n" for pair in pairs[first:last]), encoding="utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["en-es", "es-en"])
def test_the_recipe_from_data_to_a_packaged_model(data, tmp_path, direction):
    copy = tmp_path / "recipes" / "en-es"
    (copy / "written").mkdir(parents=True)
    for file in RECIPE.iterdir():
        if file.is_file():
            (copy / file.name).write_bytes(file.read_bytes())
    for name in ("first.tsv", "daily.tsv"):
        written = (RECIPE / "written" / name).read_text(encoding="utf-8").splitlines(keepends=True)
        (copy / "written" / name).write_text("".join(written[:200]), encoding="utf-8")
    command = ["sh", str(copy / "make.sh"), str(data), str(tmp_path / "work"), direction, "12s", sys.executable]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    for _ in range(2):  # the second run only packages the model
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stdout + done.stderr
    folder = tmp_path / "src" / "vidrio" / "models" / direction
    _, about = read_config(folder)
    assert (about.symbols, f"{about.source_language}-{about.target_language}") == ("①②③④⑤⑥", direction)
    assert len(about.scores) == 9
    made = {path.name for path in (tmp_path / "work" / "train").glob("*-??.tsv")}
    assert made >= {"back-en.tsv", "back-es.tsv", "forward-en.tsv", "forward-es.tsv"}
    assert "daily.tsv@20 written.tsv@3" in about.provenance["command"]
    assert f"| {len(about.provenance['before']) + 1} | " in (folder / "README.md").read_text(encoding="utf-8")
    assert str(tmp_path) not in (folder / "config.json").read_text(encoding="utf-8")
    translator = Translator.load(folder)
    assert translator.source.has_case_tokens
    assert translator.translate("{x}").text == "{x}"
