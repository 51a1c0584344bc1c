"""What must come through whole does, whatever stands around it: random texts, each with things that no model may lose.

`VIDRIO_WHOLE` says how many texts (10⁵ in the slow test) and `VIDRIO_WHOLE_SEED` which.
"""

import os
import random
import re

import pytest

from vidrio.text.protect import came_through, has_words, protected
from vidrio.translate.translator import Translator

QUICK, SLOW, AT_ONCE = 400, 100_000, 1_000
SEED = int(os.environ.get("VIDRIO_WHOLE_SEED", "0"))
WORDS = {
    "en-es": """the a my old house dog that is was open please send it to you and or with Mary Company file not found
        in hello world I see them today Click here press button he said yes NO Error name if when Don't it's Qwyzx""",
    "es-en": """el la mi casa vieja perro que es estaba abre por favor envía a ti y o con María Empresa archivo no está
        en hola mundo los veo hoy Haga clic aquí pulsa botón dijo sí NO Error nombre si cuando ¿Quién Qwyzx""",
}
LETTERS = "abcdefghijklmnopqrstuvwxyzABCXYZ"
BETWEEN = [" "] * 12 + [
    ", ",
    ". ",
    "; ",
    ": ",
    " - ",
    " / ",
    "\n",
    "\t",
    "? ",
    "! ",
    "… ",
    " (",
    ") ",
    ' "',
    '" ',
    "  ",
]
SYMBOLS = "①②③④⑤⑥⑦❶⓪"
ROWS = ["①②", "⑦⑦⑦", "①②③", "❶⓪"]  # nothing between


def thing(random: random.Random) -> str:
    """Something that must come through."""

    def name(most: int = 8) -> str:
        return "".join(random.choices(LETTERS, k=random.randint(2, most)))

    def digits(most: int = 4) -> str:
        return str(random.randint(1, 10**most - 1))

    return random.choice(
        [
            lambda: f"https://{name()}.{random.choice(['com', 'es'])}/{name()}?q={digits()}",
            lambda: f"www.{name().lower()}.org",
            lambda: f"{name()}.{name()}@{name().lower()}.com",
            lambda: f"{{{name()}}}",
            lambda: f"{{{{{name()}}}}}",
            lambda: f"%{random.choice('sdif')}",
            lambda: f"%({name()})s",
            lambda: f"${{{name()}}}",
            lambda: f"<{name()}>",
            lambda: f"</{name()}>",
            lambda: f"<{name()} {name()}='{name()}'>",
            lambda: f"<0x{random.randint(0, 255):02X}>",
            lambda: f"0x{random.randint(0, 2**32):x}",
            lambda: f"&{random.choice(['amp', 'nbsp', 'lt'])};",
            lambda: f"`{name()} {name()}`",
            lambda: f"{name()}_{name()}",
            lambda: f"--{name()}",
            lambda: f"/{name()}/{name()}.py",
            lambda: f"C:\\{name()}\\{name()}",
            lambda: f"{name()}.json",
            lambda: f"@{name()}",
            lambda: f"#{name()}",
            lambda: f"v{digits(1)}.{digits(2)}.{digits(2)}",
            lambda: f"{random.randint(2000, 2030)}-{random.randint(1, 12):02}-{random.randint(1, 28):02}",
            lambda: f"{random.randint(1, 12)}:{random.randint(0, 59):02}",
            lambda: f"{digits(7)}",
            lambda: f"{random.randint(1, 999)},{random.randint(0, 999):03}",
            lambda: f"{random.randint(1, 99)}%",
            lambda: f"€{digits(3)}",
            lambda: f"({random.choice('cC')}) {random.randint(1990, 2030)}",
            lambda: random.choice("😀👍🏽❤☀🎉🇪🇸✅→"),
            lambda: random.choice(SYMBOLS),
            lambda: random.choice(ROWS),
            lambda: "R&D",
            lambda: random.choice("{}<>=|\\^~*+#@_"),
            lambda: f'{{"{name()}": [{digits()}, {digits()}]}}',
        ]
    )()


def text(number: int, direction: str) -> str:
    """Words and things, with something between them."""
    choose = random.Random(f"{SEED} {number}")
    words = WORDS[direction].split()
    share = choose.choice([0.1, 0.3, 0.6])
    parts = []
    for _ in range(choose.randint(1, 8)):
        parts += [thing(choose) if choose.random() < share else choose.choice(words), choose.choice(BETWEEN)]
    return "".join(parts[:-1])


def lost(source: str, translation: str) -> list[str]:
    """What did not come through, or came twice."""
    read = protected(source)
    exact = {
        source[span.start : span.end] for span in read.spans if span.kind not in ("number", "date", "time", "version")
    }
    wrong = [
        f"{what}: {source.count(what)} → {translation.count(what)}"
        for what in exact
        if translation.count(what) != source.count(what)
    ]
    if has_words(protected(translation)) and not came_through(read, translation):  # a word may become nothing
        wrong.append("something is missing")
    # A digit that the source has nowhere was neither lost nor doubled: the model has invented it ("old" → "2 años").
    known = {*re.findall(r"\d", source)}
    digits = [sorted(sign for sign in side if sign in known) for side in (source, translation)]
    return wrong + ([f"digits {digits[0]} → {digits[1]}"] if digits[0] != digits[1] else [])


def failures(direction: str, first: int, last: int) -> list[str]:
    translator = Translator.load(direction)
    wrong = []
    for start in range(first, last, AT_ONCE):
        texts = [text(number, direction) for number in range(start, min(last, start + AT_ONCE))]
        for source, translation in zip(texts, translator.translate(texts), strict=True):
            if problems := lost(source, translation.text):
                wrong.append(f"{source!r} → {translation.text!r}: {'; '.join(problems)}")
    return wrong


@pytest.mark.parametrize("direction", ["en-es", "es-en"])
def test_what_must_come_through_does(direction: str) -> None:
    assert failures(direction, 0, QUICK) == []


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["en-es", "es-en"])
def test_what_must_come_through_does_in_many_texts(direction: str) -> None:
    count = int(os.environ.get("VIDRIO_WHOLE", SLOW)) // 2
    assert failures(direction, 0, count) == []
    print(f"{count} texts")
