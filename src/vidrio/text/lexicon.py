"""What words say that a translation must say too: numbers, months and days, units, obligations, negations.

LEXICONS has an entry per language code. To add a language, add an entry, with words in lower case and without accents.
If either language of a pair has no entry, only signs and digits are compared.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Lexicon:
    """The words of one language."""

    values: dict[str, int] = field(default_factory=dict)  # numbers that are added up, cardinal and ordinal
    hundreds: frozenset[str] = frozenset()  # multiply what stands before them by 100
    powers: dict[str, int] = field(default_factory=dict)  # multiply what stands before them: thousand, million
    short: dict[str, int] = field(default_factory=dict)  # the same, directly after digits: 3bn
    unsure: frozenset[str] = frozenset()  # numbers that are often something else: second, one
    about: dict[str, str] = field(default_factory=dict)  # words that another language may say by a number: dozen, both
    joints: frozenset[str] = frozenset()  # between the parts of a number
    articles: frozenset[str] = frozenset()  # before a power or after a half: a million, half a million
    halves: frozenset[str] = frozenset()
    pronouns: frozenset[str] = frozenset()  # that look like Roman numerals
    decades: frozenset[str] = frozenset()  # before a year that stands for ten: años 1980
    centuries: frozenset[str] = frozenset()
    century_follows: bool = False  # whether such a word follows its number
    calendar: dict[str, str] = field(default_factory=dict)  # months and days, by what they are in every language
    capitals: bool = False  # whether months and days have capital letters
    names: frozenset[str] = frozenset()  # months and days that with a capital letter may be something else
    measures: dict[str, str] = field(default_factory=dict)  # words for what a sign may stand for
    negative: frozenset[str] = frozenset()
    almost_negative: frozenset[str] = frozenset()  # beginnings of words that another language may say by a negation
    between: str = ","  # a pattern of what stands between the items of a list
    forbidden: str = ""  # a pattern of "must not"
    needless: str = ""  # a pattern of "need not"
    instead: tuple[str, str] = ("", "")  # for the one where the other stands: templates of "must not" and "need not"
    point: str = "."  # before a fraction
    ordinals: frozenset[str] = frozenset()  # those of `values` that are
    ordinal: str = "{}"  # a template
    century: str = "{}"
    accented: dict[str, str] = field(default_factory=dict)  # powers as they are written


def _numbered(words: str, first: int = 0, step: int = 1) -> dict[str, int]:
    """Values in order; alternatives share one, with a stroke between them."""
    groups = enumerate(words.split())
    return {word: first + step * n for n, group in groups for word in group.split("|")}


def _of_each(groups: str) -> dict[str, str]:
    """Words and what they stand for, which is the first of each group; _ is a space."""
    return {
        word.replace("_", " "): key for group in groups.split(",") for key, *words in [group.split()] for word in words
    }


def _inflected(values: dict[str, int]) -> dict[str, int]:
    """Spanish numbers that end in o or os, of both genders and numbers."""
    forms = dict(values)
    for word, value in values.items():
        if word.endswith("os"):
            forms[f"{word[:-2]}as"] = value
        elif word.endswith("o"):
            forms |= dict.fromkeys((f"{word[:-1]}{ending}" for ending in ("a", "os", "as")), value)
    return forms


def _calendar(months: str, days: str) -> dict[str, str]:
    kinds = {"month": _numbered(months, 1), "day": _numbered(days, 1)}
    return {name: f"{kind} {n}" for kind, names in kinds.items() for name, n in names.items()}


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_EN_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ES_TENS = "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa"
_EN_ORDINALS = _numbered(_EN_TENS.replace("y", "ieth"), 20, 10) | _numbered(
    "first second third|thirds fourth fifth|fifths sixth|sixths seventh|sevenths eighth|eighths ninth|ninths "
    "tenth|tenths eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth",
    1,
)
_ES_ORDINALS = _inflected(
    _numbered("vigesimo trigesimo cuadragesimo quincuagesimo sexagesimo septuagesimo octogesimo", 20, 10)
    | _numbered(
        "_ _ tercer|tercero _ _ _ septimo|setimo _ noveno _ undecimo|decimoprimero duodecimo|decimosegundo "
        "decimotercer|decimotercero decimocuarto decimoquinto decimosexto decimoseptimo decimoctavo decimonoveno",
        1,
    )
)

ENGLISH = Lexicon(
    values=_numbered(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen"
    )
    | _numbered(_EN_TENS, 20, 10)
    | _EN_ORDINALS,
    hundreds=_set("hundred hundredth"),
    powers={"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12},
    short={"k": 10**3, "m": 10**6, "bn": 10**9, "tn": 10**12},
    unsure=_set("zero one first second may march jan feb mar apr jun jul aug sep sept oct nov dec"),
    about=_of_each(
        "1 once single, 2 half twice both couple pair double twin twins seconds either neither, 3 triple, "
        "4 quarter quarters, 10 decade decades teens, 12 dozen dozens noon, 15 fortnight, 20 twenties, 30 thirties, "
        "40 forties, 50 fifties, 60 sixties, 70 seventies, 80 eighties, 90 nineties"
    ),
    names=_set("jan mar jun dec sep"),
    joints=_set("and"),
    articles=_set("a an"),
    halves=_set("half"),
    pronouns=_set("i"),
    decades=_set("decade"),
    centuries=_set("century centuries"),
    century_follows=True,
    capitals=True,
    calendar=_calendar(
        "january|jan february|feb march|mar april|apr may june|jun july|jul august|aug september|sep|sept october|oct "
        "november|nov december|dec",
        "monday|mondays tuesday|tuesdays wednesday|wednesdays thursday|thursdays friday|fridays saturday|saturdays "
        "sunday|sundays",
    ),
    measures=_of_each(
        "% percent per_cent percentage, ° degree degrees, € euro euros, $ dollar dollars bucks, "
        "£ pound pounds sterling, ¥ yen yuan, ₹ rupees, ₽ rubles, ₩ won, ¢ cent cents, km kilometres kilometers, "
        "kg kilos kilograms, cm centimetres centimeters, mm millimetres millimeters, g grams, ml millilitres"
    ),
    negative=_set("no not never nobody nothing none nor neither nowhere without cannot cant dont"),
    almost_negative=_set(
        "hardly scarcely barely rarely seldom unless un in im dis fail lack refus deny deni avoid until doubt rather "
        "few only too any but prevent help less little either wrong"
    ),
    between=r",\s+(?:(?:and|or)\s+)?|\s(?:and|or)\s",
    forbidden=r"\bmust(?: not|n['’]t)\b|\bare not allowed to\b|\baren['’]t allowed to\b",
    needless=r"\b(?:do|does|did|will|wo|would)(?: not|n['’]t) (?:have|need) to\b|\bneed(?: not|n['’]t)\b",
    instead=("must not", "need not"),
    ordinals=frozenset(_EN_ORDINALS),
    ordinal="{}{suffix}",
    century="{}{suffix}",
)

SPANISH = Lexicon(
    values=_inflected(_numbered("un|uno", 1))
    | _numbered(
        "cero _ dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciseis diecisiete "
        "dieciocho diecinueve _ veintiun|veintiuno|veintiuna veintidos veintitres veinticuatro veinticinco veintiseis "
        "veintisiete veintiocho veintinueve"
    )
    | _numbered(_ES_TENS, 20, 10)
    | _numbered("cien|ciento", 100)
    | _inflected(
        _numbered(
            "doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos novecientos", 200, 100
        )
    )
    | _ES_ORDINALS,
    powers={"mil": 10**3, "millon": 10**6, "millones": 10**6, "billon": 10**12, "billones": 10**12},
    unsure=_set("cero un uno una unos unas mil cien ene feb mar abr jun jul ago sep sept oct nov dic"),
    about=_of_each(
        "1 solo sola unico unica primer primero primera primeros primeras, "
        "2 medio media mitad mitades ambos ambas par pares doble pareja gemelos gemelas segundo segunda segundos "
        "segundas, 3 tercio tercios triple trimestre, 4 cuarto cuarta cuartos cuartas, 5 quinto quinta quintos "
        "quintas, 6 sexto sexta sextos sextas semestre, 8 octavo octava octavos octavas, 10 decimo decima decimos "
        "decimas decena decenas decada decadas, 12 docena docenas mediodia, 15 quincena, 20 veintena, 100 centenar "
        "centenares, 1000 millar"
    ),
    names=_set("domingo julio abril mayo marzo mar ago sep dic feb"),
    joints=_set("y"),
    halves=_set("medio media"),
    decades=_set("años decada decadas"),
    centuries=_set("siglo siglos"),
    calendar=_calendar(
        "enero|ene febrero|feb marzo|mar abril|abr mayo junio|jun julio|jul agosto|ago septiembre|setiembre|sep|sept "
        "octubre|oct noviembre|nov diciembre|dic",
        "lunes martes miercoles jueves viernes sabado|sabados domingo|domingos",
    ),
    measures=_of_each(
        "% por_ciento por_cien porcentaje, ° grado grados, € euro euros, $ dolar dolares peso pesos, £ libra libras, "
        "¥ yen yenes yuanes, ₹ rupias, ₽ rublos, ₩ wones, ¢ centavo centavos centimos, km kilometros, "
        "kg kilos kilogramos, cm centimetros, mm milimetros, g gramos, ml mililitros"
    ),
    negative=_set("no nunca jamas nadie nada ni tampoco ningun ninguno ninguna ningunos ningunas"),
    almost_negative=_set(
        "apenas casi salvo excepto menos im in des poc solo solamente falta rech neg nieg evit hasta dud dej demasiad "
        "carec sin impid raramente alg mal dificil"
    ),
    between=r",\s+(?:[yeou]\s+)?|\s[yeou]\s",
    forbidden=r"\bno (?:se )?deb(?P<end>o|es|e|emos|éis|en)\b",
    needless=r"\bno (?:(?:t(?:en|ien)g?(?P<end>o|es|e|emos|éis|en)|tuv\w+|tenían?) que|"
    r"(?:hac\w+|hizo) falta|es necesario)\b",
    instead=("no deb{end}", "no hace falta"),
    point=",",
    ordinals=frozenset(_ES_ORDINALS),
    ordinal="{}.º",
    century="{roman}",
    accented={"millon": "millón", "billon": "billón"},
)
LEXICONS = {"en": ENGLISH, "es": SPANISH}
NONE = Lexicon()


def lexicons(source: str, target: str) -> tuple[Lexicon, Lexicon]:
    """Those of two languages; empty ones, unless both are known."""
    both = [LEXICONS.get(code.lower().replace("_", "-").partition("-")[0]) for code in (source, target)]
    return (both[0], both[1]) if both[0] and both[1] else (NONE, NONE)
