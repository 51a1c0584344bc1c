"""Things that must come through whole, each put into a sentence by this file, which knows what it has put there: it
does not ask `protected` what to look for, so that what that overlooks is found. Each is once in the translation.

`VIDRIO_KNOWN` says how many texts (10⁵ in the slow test) and `VIDRIO_KNOWN_SEED` which.
"""

import os
import random
import re
import string
import uuid

import pytest

from vidrio.translate.translator import Translator

QUICK, SLOW, AT_ONCE = 300, 100_000, 1_000
SEED = int(os.environ.get("VIDRIO_KNOWN_SEED", "0"))
SENTENCES = {
    "en-es": """
        Please send it to {} today. | I saw {} and {} yesterday. | The file {} is not here. | {} | {}: open it |
        Click {} to go on. | The old man gave Tom {}, but he did not read {}. | Is {} better than {}? |
        See ({}) for more. | She paid {} for the house on {}. | "{}", he said. | Use {} or {} or {}. |
        My name is {name} and I am here {}.
    """,
    "es-en": """
        Por favor, envíalo a {} hoy. | Ayer vi {} y {}. | El archivo {} no está aquí. | {} | {}: ábrelo |
        Haga clic en {} para seguir. | El viejo le dio {} a Tom, pero él no leyó {}. | ¿Es {} mejor que {}? |
        Véase ({}) para más. | Pagó {} por la casa el {}. | "{}", dijo él. | Use {} o {} o {}. |
        Me llamo {name} y estoy {}.
    """,
}
NUMBERED = ("price", "number", "percent")  # Spanish writes 1.234,50 € for €1,234.50: the digits count


def name(draw: random.Random, most: int = 8) -> str:
    return "".join(draw.choices(string.ascii_letters, k=draw.randint(2, most)))


def known(draw: random.Random) -> tuple[str, str]:
    """A kind, and something of it."""
    low = name(draw).lower()
    year, month, day = draw.randint(1990, 2030), draw.randint(1, 12), draw.randint(1, 28)
    hour, minute, second = draw.randint(0, 23), draw.randint(0, 59), draw.randint(0, 59)
    large = f"{draw.randint(1, 999)},{draw.randint(0, 999):03}"
    things = {
        "price": draw.choice(
            [f"€{draw.randint(1, 9999)}", f"${large}.{draw.randint(10, 99)}", f"£{large}", f"{day} €"]
        ),
        "number": draw.choice([large, f"{draw.randint(2, 99)}.{draw.randint(1, 9)}", str(draw.randint(22, 10**6))]),
        "percent": f"{draw.randint(1, 100)}%",
        "date": draw.choice(
            [f"{year}-{month:02}-{day:02}", f"{day}/{month}/{year}", f"{year}-{month:02}-{day:02}T10:30:00Z"]
        ),
        "time": draw.choice([f"{hour}:{minute:02}", f"{hour:02}:{minute:02}:{second:02}"]),
        "url": draw.choice(
            [
                f"https://{low}.com/{name(draw)}?q={day}&r={name(draw)}#{low}",
                f"http://{low}.org:8080/{low}/",
                f"www.{low}.es",
                f"ftp://{low}.net/{low}.tar.gz",
                f"{low}.io/{low}",
            ]
        ),
        "email": draw.choice([f"{low}.{name(draw)}@{low}.com", f"{low}+{day}@mail.{low}.org"]),
        "version": draw.choice([f"v{month}.{day}.{hour}", f"{month}.{day}.{hour}", f"v{month}.{day}.0-beta.{hour}"]),
        "json": draw.choice(['{{"{0}": {1}}}', '{{"{0}": [{1}, {2}]}}', '{{"{0}": "{3}", "b": null}}']).format(
            low, day, hour, name(draw)
        ),
        "tag": draw.choice([f"<{low}>", f"</{low}>", f'<{low} class="{name(draw)}">', "<br/>", f"&{low};"]),
        "printf": draw.choice(["%s", "%d", "%1$s", "%5.2f", "%-10s", f"%({low})s", "%@", "%ld"]),
        "icu": draw.choice(
            [f"{{{low}}}", "{0}", "{count, plural, one {# file} other {# files}}", f"{{{low}, number}}"]
        ),
        "mustache": draw.choice(
            [f"{{{{{low}}}}}", f"{{{{#{low}}}}}", f"{{{{{{{low}}}}}}}", f"${{{low}}}", f"%{{{low}}}"]
        ),
        "code": draw.choice(
            [f"`{low} {low}`", f"{low}_{name(draw)}", f"{low}.py", f"--{low}-{low}", f"/usr/{low}/{low}"]
        ),
        "path": draw.choice([f"C:\\{low}\\{low}.txt", f"~/{low}/{low}", f"./{low}", f"../{low}/{low}.js"]),
        "hex": draw.choice([f"0x{day:02x}{hour:02X}", f"<0x{day:02X}>", f"#{day:02x}{hour:02x}{minute:02x}"]),
        "mark": draw.choice("①②③④⑤⑥⑦"),
        "copyright": draw.choice([f"(c) {year}", f"© {year}", f"(C) {year}"]),
        "uuid": str(uuid.UUID(int=draw.getrandbits(128), version=4)),
        "handle": draw.choice([f"@{low}_{day}", f"#{low}{day}"]),
        "emoji": draw.choice(["😀", "👍🏽", "❤️", "👨‍👩‍👧", "🇪🇸", "1️⃣", "☎", "™"]),
    }
    return draw.choice(list(things.items()))


def text(number: int, direction: str) -> tuple[str, list[tuple[str, str]]]:
    """A text, and what was put into it; nothing is a part of another, so each can be counted."""
    draw = random.Random(f"{SEED} {number}")
    sentence = draw.choice([line.strip() for line in SENTENCES[direction].replace("\n", " ").split("|")])
    sentence = " ".join(sentence.split())
    put: list[tuple[str, str]] = [("icu", "{name}")] if "{name}" in sentence else []
    while "{}" in sentence:
        kind, what = known(draw)
        if any(what in other or other in what for _, other in put) or what in sentence.replace("{}", ""):
            continue
        sentence = sentence.replace("{}", f"\0{len(put)}\0", 1)
        put.append((kind, what))
    for place, (_, what) in enumerate(put):
        sentence = sentence.replace(f"\0{place}\0", what)
    return sentence, put


def wrong_with(source: str, put: list[tuple[str, str]], translation: str) -> list[str]:
    """What of it is not there exactly as often as in the source."""
    told = [
        f"{kind} {what!r}: {translation.count(what)}"
        for kind, what in put
        if kind not in (*NUMBERED, "date", "time") and translation.count(what) != source.count(what)
    ]
    digits = [sorted(re.findall(r"\d", side)) for side in (source, translation)]
    for kind, what in put:
        if kind in (*NUMBERED, "date", "time"):
            figures = re.findall(r"\d+", what)
            spelled = r"\D{0,2}".join(figures)
            if not re.search(rf"(?<!\d){spelled}(?!\d)", translation):
                told.append(f"{kind} {what!r} is missing")
        if kind == "price" and not re.search(r"[€$£]|euro|d[oó]l+ar|peso|libra|pound", translation):
            told.append(f"the currency of {what!r} is missing")
    if not told and (
        lacking := [digit for digit in set(digits[0]) if digits[1].count(digit) != digits[0].count(digit)]
    ):
        told.append(f"digits {lacking} come otherwise")
    return told


def failures(direction: str, first: int, last: int) -> list[str]:
    translator = Translator.load(direction)
    wrong = []
    for start in range(first, last, AT_ONCE):
        texts = [text(number, direction) for number in range(start, min(last, start + AT_ONCE))]
        for (source, put), found in zip(texts, translator.translate([source for source, _ in texts]), strict=True):
            if problems := wrong_with(source, put, found.text):
                wrong.append(f"{source!r} → {found.text!r}: {'; '.join(problems)}")
    return wrong


@pytest.mark.parametrize("direction", list(SENTENCES))
def test_what_was_put_in_comes_out(direction: str) -> None:
    assert failures(direction, 0, QUICK) == []


@pytest.mark.slow
@pytest.mark.parametrize("direction", list(SENTENCES))
def test_what_was_put_in_comes_out_of_many_texts(direction: str) -> None:
    count = int(os.environ.get("VIDRIO_KNOWN", SLOW)) // 2
    assert failures(direction, 0, count) == []
    print(f"{count} texts")
