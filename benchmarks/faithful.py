"""Measure how many translations are faithful, using generated sentences whose facts must be preserved exactly.

    python benchmarks/faithful.py [--direction en-es] [--model FOLDER] [--cases 200] [--without-account] [--apertium]
    python benchmarks/faithful.py --direction en-pt --model IMPORTED    (digits, signs and names only)

There are ten kinds of facts, with 200 cases each per direction: digits, signs, names, centuries, reigns, dates and
ordinals, numbers in words, magnitudes, lists, and negations. A case passes if the translation contains everything that
the case requires, and no other number, numeral, currency sign, month or U+FFFD. The training data contains neither the
sentence templates nor the names in faithful_names.txt. `--failures N` prints N failures of each kind, `--apertium`
evaluates Apertium, and `--without-account` evaluates the first hypothesis of the search.
"""

import argparse
import json
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from num2words import num2words

NAMES = Path(__file__).with_name("faithful_names.txt").read_text(encoding="utf-8").splitlines()


def listed(words: str) -> list[str]:
    return words.split()


POWERS = ("million", "billion", "trillion")
MONTHS = {
    "en": listed("January February March April May June July August September October November December"),
    "es": listed("enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"),
}
DAYS = {
    "en": listed("Monday Tuesday Wednesday Thursday Friday Saturday Sunday"),
    "es": listed("lunes martes miércoles jueves viernes sábado domingo"),
}
THINGS = {
    "en": listed("bread milk rice salt sugar cheese wine water coffee tea fish meat fruit oil butter honey"),
    "es": listed("pan leche arroz sal azúcar queso vino agua café té pescado carne fruta aceite mantequilla miel"),
}
ALSO = {"septiembre": "setiembre", "meat": "flesh", "pescado": "peces|pez", "agua": "aguas", "fruit": "fruits"}
ALSO |= {day: f"{day}s" for day in DAYS["en"][:5]}  # martes is both Tuesday and Tuesdays
KINGS = {
    "en": listed("Henry Charles Philip Louis Frederick Edward Alexander William Pius Gregory"),
    "es": listed("Enrique Carlos Felipe Luis Federico Eduardo Alejandro Guillermo Pío Gregorio"),
}
SIGNS = listed("< > ≥ ≤ ± × § ¥ £ € ≠ ≈ ∞ † ¶ µ Δ Ω √ © ¬ ^ | ~ ÷ → ‰ ¢ ₿ № ♯")
FRAMES: dict[str, dict[str, list[str]]] = {
    "digits": {
        "en": [
            "The old bridge weighs {0} tonnes and is {1} metres long.",
            "Our neighbour sold {0} tickets for {1} francs.",
            "Page {0} says that {1} people voted.",
            "The train leaves at {t} from platform {1}.",
            "Only {p} of the {1} samples were clean.",
            "We paid ${0} and got {1} bottles.",
        ],
        "es": [
            "El puente viejo pesa {0} toneladas y mide {1} metros.",
            "Nuestro vecino vendió {0} entradas por {1} francos.",
            "La página {0} dice que votaron {1} personas.",
            "El tren sale a las {t} del andén {1}.",
            "Solo el {p} de las {1} muestras estaba limpio.",
            "Pagamos {0} € y recibimos {1} botellas.",
        ],
    },
    "signs": {
        "en": ["The label shows a {s} here.", "Write a {s} b on the board.", "If x {s} 7, stop.", "Look for {s} 7."],
        "es": ["La etiqueta muestra un {s} aquí.", "Escribe a {s} b.", "Si x {s} 7, para.", "Busca el {s} 7."],
    },
    "names": {
        "en": [
            "Yesterday {n} called my sister.",
            "The mayor thanked {n} for the flowers.",
            "{n} and {m} live near the river.",
            "My teacher, {n}, has moved to the coast.",
            "We saw {n} with {m} in the garden.",
        ],
        "es": [
            "Ayer {n} llamó a mi hermana.",
            "El alcalde le agradeció las flores a {n}.",
            "{n} y {m} viven cerca del río.",
            "Mi profesora, {n}, se ha mudado a la costa.",
            "Vimos a {n} con {m} en el jardín.",
        ],
    },
    "centuries": {
        "en": [
            "The tower dates from the {c} century.",
            "In the {c} century the harbour was rich.",
            "Few people could read in the {c} century.",
            "This {c}-century chapel is closed.",
            "It was painted between the {c} and the {d} century.",
        ],
        "es": [
            "La torre es del siglo {c}.",
            "En el siglo {c} el puerto era rico.",
            "Poca gente sabía leer en el siglo {c}.",
            "Esta capilla del siglo {c} está cerrada.",
            "Se pintó entre el siglo {c} y el siglo {d}.",
        ],
    },
    "reigns": {
        "en": ["{k} {c} built the palace.", "The letter was written by {k} {c}.", "After {k} {c} came {l} {d}."],
        "es": ["{k} {c} construyó el palacio.", "La carta la escribió {k} {c}.", "Después de {k} {c} vino {l} {d}."],
    },
    "dates": {
        "en": [
            "The school opens on {month} {day}, {year}.",
            "She was born on {day} {month} {year}.",
            "It is her {o} victory in this race.",
            "They live on the {o} floor.",
            "The {o} chapter was written on {month} {th}.",
        ],
        "es": [
            "La escuela abre el {day} de {month} de {year}.",
            "Nació el {day} de {month} de {year}.",
            "Es su {o} victoria en esta carrera.",
            "Viven en el {o} piso.",
            "El {o} capítulo se escribió el {day} de {month}.",
        ],
    },
    "words": {
        "en": ["The farmer has {w} sheep.", "There were {w} chairs in the hall.", "She counted {w} boats."],
        "es": ["El granjero tiene {w} árboles.", "Había {w} barcos en el puerto.", "Contó {w} libros."],
    },
    "magnitudes": {
        "en": ["The debt grew to {g} euros.", "The company sold {g} shares.", "Scientists counted {g} stars."],
        "es": ["La deuda subió a {g} de euros.", "La empresa vendió {g} de acciones.", "Contaron {g} de estrellas."],
    },
    "lists": {
        "en": ["We are open in {list}.", "I wrote down: {list}.", "Remember: {list}."],
        "es": ["Abrimos en {list}.", "Apunté: {list}.", "Recuerda: {list}."],
    },
}
NEGATIONS = {
    "en": [
        (
            "You mustn't {v} in the church.",
            r"\bno (?:deb\w+|pued\w+|tien\w+ permi\w+)|prohibid",
            r"tien\w+ que|necesit|hac\w+ falta",
        ),
        ("You must not {v} in the church.", r"\bno (?:deb\w+|pued\w+)|prohibid", r"tien\w+ que|necesit|hac\w+ falta"),
        (
            "They don't have to {v} in the church.",
            r"\bno (?:tien|neces|hac|hizo falta|est[aá]n obligad)",
            r"\bno deb(?:en|es|e)\b",
        ),
        ("She needn't {v} in the church.", r"\bno (?:tien|neces|hac|hizo falta)", r"\bno deb(?:en|es|e)\b"),
        ("Hardly anyone wants to {v} in the church.", r"\b(?:casi nadie|apenas)\b", r"\btodos\b"),
        ("Neither of us can {v} in the church.", r"\b(?:ningun[oa]|ni|tampoco)\b", r"\b(?:ambos|los dos)\b"),
        ("He never learned to {v} in the church.", r"\b(?:nunca|jamás|no)\b", r"\bsiempre\b"),
        ("We left without wanting to {v} in the church.", r"\bsin\b", r"\bcon\b"),
        ("Nobody told me to {v} in the church.", r"\bnadie\b", r"\balguien\b"),
        ("I cannot {v} in the church today.", r"\bno\b", r"$^"),
    ],
    "es": [
        (
            "No debes {v} en la iglesia.",
            r"must ?n[o']t|should ?n[o']t|(?:can|may|are|ought) ?no?t",
            r"n't have to|need ?n|not have to",
        ),
        ("Está prohibido {v} en la iglesia.", r"forbid|prohibit|banned|not allowed|illegal", r"have to"),
        ("No tienen que {v} en la iglesia.", r"n[o']t (?:have|need)|need ?n[o']t", r"must ?n|can ?n|should ?n"),
        (
            "No hace falta {v} en la iglesia.",
            r"n[o']t (?:have|need|necess)|no need|need ?n[o']t|unnecess",
            r"must ?n|can ?n",
        ),
        (
            "Casi nadie quiere {v} en la iglesia.",
            r"\b(?:hardly|almost no|barely|scarcely|nearly no|few)",
            r"\beveryone\b",
        ),
        (
            "Ninguno de nosotros puede {v} en la iglesia.",
            r"\bnone\b|\bneither\b|no one|n't any|not any|nobody",
            r"\ball of\b",
        ),
        ("Nunca aprendió a {v} en la iglesia.", r"\bnever\b|n['o]t\b", r"\balways\b"),
        ("Se fue sin {v} en la iglesia.", r"\bwithout\b|n['o]t\b", r"\bwith\b"),
        ("Nadie me pidió {v} en la iglesia.", r"\b(?:nobody|no one|no-one)\b|n't any", r"\bsomeone\b"),
        ("Tampoco podemos {v} en la iglesia.", r"n['o]t\b|\bneither\b|\bnor\b|cannot|unable", r"$^"),
    ],
}
VERBS = {
    "en": listed("swim sing wait cook drive sleep pay dance smile read write leave stay eat drink run talk play"),
    "es": listed("nadar cantar esperar cocinar conducir dormir pagar bailar sonreír leer escribir salir comer beber"),
}
NUMBER_WORDS = {
    "en": "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion trillion",
    "es": "dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince treinta cuarenta cincuenta "
    "sesenta setenta ochenta noventa cien ciento mil millón millones billón billones veinte",
}
ORDINALS = {  # acceptable translations of an ordinal
    "en": lambda n: rf"{num2words(n, to='ordinal')}|{n}(?:st|nd|rd|th)",
    "es": lambda n: (
        rf"{num2words(n, lang='es', to='ordinal')[:-1]}[oa]?s?|{n}\s?\.?(?:º|ª|er\b|[oa]\b)|{n}(?!\d)|{roman(n)}\b"
    ),
}


class Case(NamedTuple):
    """A sentence, the patterns required in its translation, and a pattern banned from the rest of the translation."""

    kind: str
    text: str
    wanted: tuple[str, ...]
    banned: str = r"$^"


def roman(number: int) -> str:
    found = ""
    for value, letters in ((100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV")):
        found, number = found + number // value * letters, number % value
    return found + "I" * number


def in_digits(number: str) -> str:
    """Return a pattern for a number such as 1,234.5 in the notation of either language."""
    whole, _, fraction = number.partition(".")
    return r"(?<!\d)" + whole.replace(",", r"[.,\s]?") + (rf"[.,]{fraction}" if fraction else "") + r"(?![.,]?\d)"


def said(number: int, language: str) -> str:
    """Return a pattern for a number before a noun, in digits or in words of either gender."""
    words = re.sub(r"[ -]|,|\band\b", " ", num2words(number, lang=language))
    if language == "es":
        words = (
            words.replace("veintiún", "veintiuno")
            .replace("cientos", "cient[oa]s")
            .replace("quinientos", "quinient[oa]s")
        )
        words = re.sub(r"uno\b", "(?:uno?a?|ún)", words)
    words = re.sub(r" +", r"(?:,|-|\\s|\\band\\b)+", words).replace("one", "(?:one|an?)", language == "en")
    return rf"\b(?:{words}|{in_digits(f'{number:,}')})\b"


def thousand(number: str, language: str) -> str:
    return number if language == "en" else number.translate(str.maketrans(".,", ",."))


def digits(chance: random.Random, frame: str, source: str) -> tuple[str, tuple[str, ...]]:
    numbers = [f"{chance.randrange(10 ** chance.randint(2, 7)) + 2:,}", f"{chance.randrange(200, 99_999) / 10:,}"]
    time, percent = f"{chance.randint(10, 23)}:{chance.randrange(10, 60)}", f"{chance.randrange(20, 990) / 10}"
    text = frame.format(
        *(thousand(number, source) for number in numbers),
        t=time,
        p=thousand(percent, source) + ("%" if source == "en" else " %"),
    )
    wanted = [in_digits(number) for n, number in enumerate(numbers) if f"{{{n}}}" in frame]
    wanted += [time.replace(":", "[:.]")] * ("{t}" in frame)
    wanted += [in_digits(percent) + r"\s?(?:%|per ?cent|por ci?ento)"] * ("{p}" in frame)
    money = r"\$|dólares" if "$" in frame else "€|euros" if "€" in frame else ""
    return text, (*wanted, *([money] if money else []))


def centuries(chance: random.Random, frame: str, source: str) -> tuple[str, tuple[str, ...]]:
    first, second = sorted(chance.sample(range(2, 22), 2))
    forms = chance.choice([lambda n: num2words(n, to="ordinal"), lambda n: num2words(n, to="ordinal_num")])
    form: Callable[[int], str] = forms if source == "en" else roman
    pattern: Callable[[int], str] = (
        (lambda n: rf"\b(?:{ORDINALS['en'](n)}|{roman(n)})\b")
        if source == "es"
        else (lambda n: rf"\b(?:{roman(n)}|{num2words(n, lang='es')}|{ORDINALS['es'](n)})\b")
    )
    shown = [n for n, place in ((first, "{c}"), (second, "{d}")) if place in frame]
    return frame.format(c=form(first), d=form(second)), tuple(map(pattern, shown))


def reigns(chance: random.Random, frame: str, source: str) -> tuple[str, tuple[str, ...]]:
    at = chance.sample(range(len(KINGS["en"])), 2)
    numbers = chance.sample([2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 18, 19, 21, 23], 2)
    names = [KINGS[source][n] for n in at]
    pairs = [rf"(?:{KINGS['en'][n]}|{KINGS['es'][n]}) {roman(number)}\b" for n, number in zip(at, numbers, strict=True)]
    text = frame.format(k=names[0], c=roman(numbers[0]), l=names[1], d=roman(numbers[1]))
    return text, tuple(pairs[: 1 + ("{l}" in frame)])


def dates(chance: random.Random, frame: str, source: str) -> tuple[str, tuple[str, ...]]:
    target = "es" if source == "en" else "en"
    month, day, year, rank = (
        chance.randrange(12),
        chance.randint(2, 28),
        chance.randint(1480, 2079),
        chance.randint(2, 10),
    )
    ordinals = {
        "en": chance.choice(("ordinal", "ordinal_num")),
        "es": num2words(rank, lang="es", to="ordinal")[:-1] + ("a" if "victoria" in frame else "o"),
    }
    ordinal = num2words(rank, to=ordinals["en"]) if source == "en" else ordinals["es"].replace("tercero", "tercer")
    name, other = MONTHS[source][month], MONTHS[target][month]
    text = frame.format(month=name, day=day, year=year, o=ordinal, th=num2words(day, to="ordinal_num"))
    wanted = [rf"(?i:\b(?:{other}|{ALSO.get(other, other)}))\b"] * ("{month}" in frame)
    wanted += [rf"\b{day}(?:st|nd|rd|th|\.?º)?(?!\d)"] * ("{day}" in frame or "{th}" in frame)
    wanted += [rf"\b{year}\b"] * ("{year}" in frame)
    wanted += [rf"(?i:\b(?:{ORDINALS[target](rank)}))"] * ("{o}" in frame)
    return text, tuple(wanted)


def words(chance: random.Random, frame: str, source: str) -> tuple[str, tuple[str, ...]]:
    number = chance.choice((chance.randint(13, 99), chance.randint(101, 999), chance.randint(1_100, 99_999)))
    written = num2words(number, lang=source).replace(",", "")
    if source == "es":
        written = re.sub(r"uno$", "un", re.sub(r"veintiuno$", "veintiún", written))
        written = re.sub(r"veintiun(?= mil)", "veintiún", re.sub(r"uno(?= mil)", "un", written))
    return frame.format(w=written), (rf"(?i:{said(number, 'es' if source == 'en' else 'en')})",)


def magnitudes(chance: random.Random, frame: str, source: str) -> tuple[str, tuple[str, ...]]:
    count, zeros = chance.randint(2, 98), chance.choice((6, 9, 12))
    tenth = chance.choice((0, chance.randint(1, 9)))
    spelled = chance.random() < 0.5 and not tenth
    amount = f"{count}.{tenth}" if tenth else str(count)
    english = rf"(?:{in_digits(amount)}|{said(count, 'en')}) {POWERS[zeros // 3 - 2]}"
    thousands = f"{count},{tenth}00" if tenth else f"{count},000"
    by_zeros = {
        6: rf"(?:{in_digits(amount)}|{said(count, 'es')}) millones",
        9: rf"(?:{in_digits(thousands)}|{in_digits(amount)} mil|{said(count, 'es')} mil) millones",
        12: rf"(?:{in_digits(amount)}|{said(count, 'es')}) billones",
    }
    if zeros == 9:
        english += f"|{in_digits(thousands)} million"
    in_full = in_digits(f"{round((count * 10 + tenth) * 10 ** (zeros - 1)):,}")
    if source == "en":
        number = num2words(count) if spelled else amount
        text = f"{number} {POWERS[zeros // 3 - 2]}"
        return frame.format(g=text), (rf"(?i:{by_zeros[zeros]}|{in_full})",)
    number = re.sub(r"uno$", "ún", num2words(count, lang="es")) if spelled else amount.replace(".", ",")
    number = number.replace("y ún", "y un")
    if zeros == 9:
        number = f"{number} mil" if not tenth else thousands.replace(",", ".")
    return frame.format(g=f"{number} {'billones' if zeros == 12 else 'millones'}"), (rf"(?i:{english}|{in_full})",)


def lists(chance: random.Random, frame: str, source: str) -> tuple[str, tuple[str, ...]]:
    target = "es" if source == "en" else "en"
    of = MONTHS if " in " in frame or " en " in frame else chance.choice((MONTHS, DAYS, THINGS))
    least = 4 if of is THINGS else 3
    places = chance.sample(range(len(of[source])), chance.randint(least, min(12, len(of[source]))))
    if chance.random() < 0.4:
        places.sort()
    items = [of[source][place] for place in places]
    last = {"en": " and ", "es": " y "}[source].replace(" y ", " e " if items[-1][0] == "i" else " y ")
    text = frame.format(list=", ".join(items[:-1]) + chance.choice((", ", last)) + items[-1])
    names = [of[target][place] for place in places]
    return text, tuple(rf"(?i:\b(?:{name}|{ALSO.get(name, name)})\b)" for name in names)


def simple(chance: random.Random, frame: str, source: str) -> tuple[str, tuple[str, ...]]:
    """Fill a template with signs or names, which must be copied."""
    first, second = chance.sample(NAMES, 2)
    sign = chance.choice(SIGNS)
    names = [name for name, place in ((first, "{n}"), (second, "{m}")) if place in frame]
    wanted = [rf"(?<!\w){re.escape(name)}(?!\w)" for name in names] or [re.escape(sign)]
    return frame.format(n=first, m=second, s=sign), (*wanted, *["7"] * ("7" in frame))


MAKE = {
    **{"digits": digits, "signs": simple, "names": simple, "centuries": centuries, "reigns": reigns},
    **{"dates": dates, "words": words, "magnitudes": magnitudes, "lists": lists},
}


def cases(source: str, target: str, each: int) -> Iterator[Case]:
    known = target in MONTHS
    for kind, make in MAKE.items() if known else [(kind, MAKE[kind]) for kind in ("digits", "signs", "names")]:
        chance = random.Random(f"{kind} {source}")
        for n in range(each):
            frames = FRAMES[kind][source]
            yield Case(kind, *make(chance, frames[n % len(frames)], source))
    chance = random.Random(f"negations {source}")
    for n in range(each if known else 0):
        frame, wanted, banned = NEGATIONS[source][n % len(NEGATIONS[source])]
        yield Case("negations", frame.format(v=chance.choice(VERBS[source])), (f"(?i:{wanted})",), f"(?i:{banned})")


def missing(case: Case, translation: str, target: str) -> str:
    """Describe what is wrong with a translation, or return an empty string if it is faithful."""
    rest = translation.replace("’", "'")
    for pattern in case.wanted:
        found = re.search(pattern, rest)
        if not found:
            return f"lacks {pattern}"
        rest = rest[: found.start()] + " _ " + rest[found.end() :]
    if case.kind == "negations":
        rest = translation.replace("’", "'")
    others = "|".join((*MONTHS.get(target, ["$^"]), *DAYS.get(target, ()), *NUMBER_WORDS.get(target, "").split()))
    others = others.replace("March|", "").replace("May|", "")
    if case.kind == "magnitudes" and "euros" in case.text:
        rest = rest.replace("€", "")  # an acceptable translation of euros
    invented = re.search(rf"\ufffd|[€$£¥¢]|\d|\b[XVI]{{2,}}\b|\b(?i:{others})\b|{case.banned}", rest)
    return f"invents {invented[0]}" if invented else ""


def by_apertium(texts: list[str], source: str) -> list[str]:
    mode = {"en": "eng-spa", "es": "spa-eng"}[source]
    done = subprocess.run(
        ["apertium", "-u", mode], input="\n\n".join(texts), capture_output=True, text=True, check=True
    )
    return done.stdout.strip("\n").split("\n\n")


def by_model(name: str, texts: list[str], *, account: bool) -> list[str]:
    from vidrio.translate.translator import Translator

    translator = Translator.load(name)
    if account:
        return [one.text for one in translator.translate(texts)]
    ids = [[*translator.source.encode(text), *translator.config.source_close] for text in texts]
    found = translator.engine.search(ids, translator.options)
    return [translator.target.decode(best.ids) for best, *_ in found]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--direction", action="append", help="default: en-es and es-en")
    parser.add_argument("--model", help="a folder or a packaged model's name [the direction's]")
    parser.add_argument("--cases", type=int, default=200, help="number of cases of each kind")
    parser.add_argument("--without-account", action="store_true")
    parser.add_argument("--apertium", action="store_true")
    parser.add_argument("--failures", type=int, default=0, help="number of failures of each kind to print")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    for direction in given.direction or ["en-es", "es-en"]:
        source, target = direction.split("-")
        asked = list(cases(source, target, given.cases))
        texts = [case.text for case in asked]
        if given.apertium:
            found = by_apertium(texts, source)
        else:
            found = by_model(given.model or direction, texts, account=not given.without_account)
        faults = [missing(case, text, target) for case, text in zip(asked, found, strict=True)]
        kinds = dict.fromkeys(case.kind for case in asked)
        right = {kind: sum(not f for c, f in zip(asked, faults, strict=True) if c.kind == kind) for kind in kinds}
        if given.json:
            print(json.dumps({"direction": direction, "of each": given.cases, "right": right}))
            continue
        for kind, count in right.items():
            print(f"{direction} {kind:12} {count:5} of {given.cases}  {count / given.cases:6.1%}")
            bad = [(c, t, f) for c, t, f in zip(asked, found, faults, strict=True) if f and c.kind == kind]
            for case, text, fault in bad[: given.failures]:
                print(f"    {case.text} → {text}   [{fault}]")
        print(
            f"{direction} {'all':12} {sum(right.values()):5} of {len(asked)}  {sum(right.values()) / len(asked):6.1%}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
