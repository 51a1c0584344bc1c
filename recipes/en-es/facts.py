"""Generate pairs with facts that a translation must preserve: centuries, rulers, ordinals, dates, magnitudes, lists,
names, symbols and negations. The templates are in facts.tsv. These facts are rare in the corpora, and a model tends to
replace a rare form with a common one, such as the 12th century with the 19th.

A placeholder's name is in the language of its sentence: {century} or {siglo}. {nth.f} is a feminine ordinal.
"""

import random
import re
from collections.abc import Iterable, Iterator

from num2words import num2words

import spelled
from corpora import Pair

PLACE = re.compile(r"{([^{}]+)}")
RULERS = """
    Henry|Enrique Charles|Carlos Philip|Felipe Louis|Luis Frederick|Federico Edward|Eduardo Alexander|Alejandro
    William|Guillermo James|Jacobo John|Juan Ferdinand|Fernando Alfonso|Alfonso Peter|Pedro Nicholas|Nicolás
    Albert|Alberto Richard|Ricardo George|Jorge Francis|Francisco Catherine|Catalina Elizabeth|Isabel
    Christian|Cristián Gustav|Gustavo
"""
POPES = "John|Juan Pius|Pío Gregory|Gregorio Benedict|Benedicto Leo|León Clement|Clemente Innocent|Inocencio Paul|Pablo"
LISTS = {
    "months|meses": "January|enero February|febrero March|marzo April|abril May|mayo June|junio July|julio "
    "August|agosto September|septiembre October|octubre November|noviembre December|diciembre",
    "days|días": "Mondays|lunes Tuesdays|martes Wednesdays|miércoles Thursdays|jueves Fridays|viernes "
    "Saturdays|sábados Sundays|domingos",
    "foods|comidas": "bread|pan milk|leche rice|arroz salt|sal sugar|azúcar cheese|queso wine|vino water|agua "
    "coffee|café tea|té fish|pescado meat|carne fruit|fruta oil|aceite butter|mantequilla honey|miel flour|harina "
    "eggs|huevos tomatoes|tomates onions|cebollas garlic|ajo potatoes|patatas soup|sopa",
    "colours|colores": "red|rojo blue|azul green|verde yellow|amarillo black|negro white|blanco brown|marrón grey|gris "
    "orange|naranja purple|morado pink|rosa",
    "animals|animales": "dogs|perros cats|gatos horses|caballos cows|vacas sheep|ovejas goats|cabras pigs|cerdos "
    "hens|gallinas ducks|patos wolves|lobos foxes|zorros bears|osos deer|ciervos eagles|águilas "
    "rabbits|conejos",
    "numbers|números": " ".join(f"{spelled.english(n)}|{spelled.spanish(n)}" for n in range(1, 21)),
}
VERBS = """
    swim|nadar sing|cantar wait|esperar cook|cocinar drive|conducir sleep|dormir pay|pagar dance|bailar smile|sonreír
    read|leer write|escribir leave|salir eat|comer drink|beber run|correr talk|hablar play|jugar come|venir
    smoke|fumar speak|hablar work|trabajar shout|gritar cry|llorar answer|contestar pay|pagar help|ayudar stop|parar
    vote|votar return|volver travel|viajar
"""
FIRST = """
    Łukasz Żaneta Małgorzata Bartłomiej Jiří Ondřej Zdeněk Šárka Matúš Ľubica Željko Đorđe Ivaniš Žarko László Zsófia
    György Ágnes Ștefan Ioana Mihăiță Șerban Bjørn Øyvind Åse Jørgen Ærlig Håkon Björk Þóra Guðrún Sigurður Jürgen
    Käthe Günther Zoë Anaïs François Gaëlle Hélène Benoît Inês João Conceição Gonçalo Núria Jordi Mercè Xoán Iñaki
    Begoña Ainhoa Nuño Rasa Šarūnas Žydrūnas Kęstutis Jānis Līga Kārlis Ķirsts Õie Jüri Tõnis Päivi Jyrki Väinö
    İbrahim Gülşen Çağla Ömer Işıl Nguyễn Thị Đức Hồng Siobhán Pádraig Caoimhe Llŷr Gwên Tāne Hēmi Anahí Xochitl
    Chinelo Ngũgĩ Adébáyọ̀ Siân Seán Rhys
"""
LAST = """
    Wałęsa Kowalczyk Wójcik Dąbrowski Świątek Čapek Dvořák Novotný Kučera Hlaváček Šťastný Kovačević Đoković Žižek
    Ćosić Nagy Szabó Kovács Tóth Erdős Bălan Țepeș Ionescu Østergaard Sørensen Kjær Ødegaard Ångström Sjöberg
    Lindström Müller Jönsson Strauß Größe Schröder Lefèvre Benoît Crozetière Lemaître Guimarães Conceição Magalhães
    Simões Ferreirós Núñez Muñoz Ibáñez Peñarroya Etxeberria Goñi Puigcercós Companys Žukauskas Kazlauskienė Bērziņš
    Kalniņš Põder Mägi Hämäläinen Järvinen Yılmaz Öztürk Çelik Şahin Trần Gearailt Llywelyn Ngata Quispe Mamani Huanca
    Okonkwo Achebe
"""
SIGNS = (">", "<", "≥", "≤", "=", "≠", "±", "×", "÷", "≈", "→", "+", "∞", "~")
EACH = 200  # pairs per frame


def numeral(number: int) -> str:
    text = "X" * (number // 10)
    return text + ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")[number % 10]


def pairs_of(words: str) -> list[Pair]:
    return [(english, spanish) for english, _, spanish in (pair.partition("|") for pair in words.split())]


def listed(items: list[Pair], chance: random.Random) -> Pair:
    """Return a list of random items in English and Spanish, sometimes in their natural order, as months often are."""
    some = chance.sample(items, min(chance.randint(3, 12), len(items)))
    if chance.random() < 0.4:
        some.sort(key=items.index)
    last = chance.choice(("", "", " and "))
    spanish_and = " e " if re.match(r"h?i", some[-1][1]) else " y "
    ends = (last or ", ", spanish_and if last else ", ")
    english, spanish = (", ".join(item[side] for item in some[:-1]) + ends[side] + some[-1][side] for side in (0, 1))
    return english, spanish


def magnitude(chance: random.Random) -> Pair:
    """Return a large number in English and Spanish. "40 trillion" is "40 billones"; "3 billion" is "3000 millones"."""
    zeros, count = chance.choice((6, 9, 12, 12)), chance.randint(1, 99)
    tenth = chance.randint(1, 9) if chance.random() < 0.4 else 0
    name = {6: "million", 9: "billion", 12: "trillion"}[zeros]
    plural = "millones" if zeros < 12 else "billones"
    if not tenth and chance.random() < 0.5:
        spanish = spelled.spanish(count, "m")
        spanish = f"{spanish} mil" if zeros == 9 and count > 1 else "mil" if zeros == 9 else spanish
        return (
            f"{spelled.english(count)} {name}",
            f"{spanish} {plural if zeros == 9 or count > 1 else plural[:-4] + 'ón'}",
        )
    if zeros == 9:
        thousands = f"{count}{tenth}00" if tenth else f"{count}000"
        amount = thousands if len(thousands) < 5 else f"{thousands[:-3]}.{thousands[-3:]}"
    else:
        amount = f"{count},{tenth}" if tenth else str(count)
    singular = count == 1 and not tenth and zeros != 9
    return (
        f"{count}.{tenth} {name}" if tenth else f"{count} {name}",
        f"{amount} {plural[:-4] + 'ón' if singular else plural}",
    )


def drawn(chance: random.Random) -> dict[str, str]:
    """Draw a value for every placeholder."""
    century, century2 = sorted(chance.sample(range(1, 22), 2), reverse=True)
    form = chance.choice(("ordinal", "ordinal_num"))
    year, year2 = sorted(chance.sample(range(1150, 2030), 2))
    (ruler, soberano), (ruler2, soberano2) = chance.sample(pairs_of(RULERS), 2)
    (pope, papa), number, number2 = chance.choice(pairs_of(POPES)), chance.randint(1, 23), chance.randint(1, 18)
    (verb, verbo), (verb2, verbo2) = chance.sample(list(dict.fromkeys(pairs_of(VERBS))), 2)
    ww, early, rank, day = (
        chance.randint(1, 2),
        chance.choice(("early", "late")),
        chance.randint(1, 10),
        chance.randint(1, 31),
    )
    month, mes = chance.choice(pairs_of(LISTS["months|meses"]))
    found = {
        "century": f"{num2words(century, to=form)} century",
        "century-": f"{num2words(century, to=form)}-century ",
        "th": num2words(century2, to=form),
        "centuries": f"{num2words(century, to=form)} centuries",
        **{"siglo": f"el siglo {numeral(century)}", "siglo2": f"el siglo {numeral(century2)}"},
        **{"roman": numeral(century), "roman2": numeral(century2), "year": str(year), "year2": str(year2)},
        **{"ruler": f"{ruler} {numeral(number)}", "soberano": f"{soberano} {numeral(number)}"},
        **{"ruler2": f"{ruler2} {numeral(number2)}", "soberano2": f"{soberano2} {numeral(number2)}"},
        **{"pope": f"{pope} {numeral(number)}", "papa": f"{papa} {numeral(number)}"},
        **{"ww": numeral(ww), "guerra": ("Primera", "Segunda")[ww - 1]},
        **{"early": early, "principios": {"early": "principios", "late": "finales"}[early]},
        **{
            "nth": num2words(rank, to=form),
            "nth.m": spelled.ordinal(rank, "m")[1],
            "nth.f": spelled.ordinal(rank, "f")[1],
        },
        **{"month": month, "mes": mes, "day": str(day), "day_th": num2words(day, to="ordinal_num")},
        **{"verb": verb, "verbo": verbo, "verb2": verb2, "verbo2": verbo2},
        **{"sign": chance.choice(SIGNS), "sign2": chance.choice(SIGNS)},
        **{"a": str(chance.randint(1, 99)), "b": str(chance.randint(1, 999))},
        **dict(zip(("magnitude", "magnitud"), magnitude(chance), strict=True)),
    }
    for place in ("name", "name2"):
        first, last = chance.choice(FIRST.split()), chance.choice(LAST.split())
        found[place] = first if chance.random() < 0.2 else last if chance.random() < 0.2 else f"{first} {last}"
    for names, words in LISTS.items():
        english, spanish = listed(pairs_of(words), chance)
        for name, text in zip(names.split("|"), (english, spanish), strict=True):
            found[f"list_{name}" if text is english else f"lista_{name}"] = text
    kind = chance.choice([*LISTS]).split("|")
    return {**found, "list": found[f"list_{kind[0]}"], "lista": found[f"lista_{kind[1]}"]}


def made(chance: random.Random, frames: Iterable[Pair], each: int = EACH) -> Iterator[Pair]:
    """Fill each frame with many random values."""
    for frame in frames:
        for _ in range(each):
            words = drawn(chance)
            source, target = (PLACE.sub(lambda place, words=words: words[place[1]], side) for side in frame)
            target = re.sub(r"\b([Dd])e el\b", r"\1el", target)
            target = re.sub(r" y (?=(?:I[a-zñ]|Í|İ|Hi))", " e ", target)
            yield capital(source), capital(target)


def capital(text: str) -> str:
    """Capitalise the first letter of a sentence."""
    return text[0].upper() + text[1:] if text[-1] in ".?!" else text
