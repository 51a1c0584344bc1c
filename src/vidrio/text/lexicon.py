"""What words say that a translation must say too: numbers, months and days, units, obligations, negations.

Each entry of LEXICONS is for the language of its code. To add a language, add an entry; its words are in small letters
and without accents. A pair of languages of which one has no entry is compared by signs and digits alone.
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
    about: dict[str, int] = field(
        default_factory=dict
    )  # words that another language may say by a number: dozen, twice, both
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
    almost_negative: tuple[str, ...] = ("_",)  # beginnings of words that another language may say by a negation
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


def _inflected(values: dict[str, int]) -> dict[str, int]:
    """Spanish numbers that end in o or os, of both genders and numbers."""
    forms = {word: [word] for word in values}
    for word in values:
        if word.endswith("os"):
            forms[word].append(f"{word[:-2]}as")
        elif word.endswith("o"):
            forms[word] += [f"{word[:-1]}{ending}" for ending in ("a", "os", "as")]
    return {form: values[word] for word, all_ in forms.items() for form in all_}


def _calendar(months: str, days: str) -> dict[str, str]:
    found = {name: f"month {n}" for n, group in enumerate(months.split(), 1) for name in group.split("|")}
    return found | {name: f"day {n}" for n, group in enumerate(days.split(), 1) for name in group.split("|")}


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _beginnings(words: str) -> tuple[str, ...]:
    return tuple(words.split())


_EN_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ES_TENS = "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa"
_EN_ORDINALS = {
    **_numbered(
        "first second third|thirds fourth fifth|fifths sixth|sixths seventh|sevenths eighth|eighths ninth|ninths "
        "tenth|tenths eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth",
        1,
    ),
    **_numbered(_EN_TENS.replace("y", "ieth"), 20, 10),
}
_ES_ORDINALS = _inflected(
    {
        **_numbered(
            "_ _ tercero _ _ _ septimo|setimo _ noveno _ undecimo|decimoprimero duodecimo|decimosegundo decimotercero "
            "decimocuarto decimoquinto decimosexto decimoseptimo decimoctavo decimonoveno",
            1,
        ),
        **_numbered("vigesimo trigesimo cuadragesimo quincuagesimo sexagesimo septuagesimo octogesimo", 20, 10),
        **{"tercer": 3, "decimotercer": 13},
    }
)

ENGLISH = Lexicon(
    values={
        **_numbered(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen"
        ),
        **_numbered(_EN_TENS, 20, 10),
        **_EN_ORDINALS,
    },
    hundreds=_set("hundred hundredth"),
    powers={"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12},
    short={"k": 10**3, "m": 10**6, "bn": 10**9, "tn": 10**12},
    unsure=_set("zero one first second may march jan feb mar apr jun jul aug sep sept oct nov dec"),
    about={
        **{
            "half": 2,
            "quarter": 4,
            "quarters": 4,
            "once": 1,
            "twice": 2,
            "both": 2,
            "couple": 2,
            "pair": 2,
            "double": 2,
        },
        **{"twin": 2, "twins": 2, "triple": 3, "dozen": 12, "dozens": 12, "fortnight": 15, "decade": 10, "decades": 10},
        **{"noon": 12, "single": 1, "seconds": 2, "either": 2, "neither": 2, "teens": 10},
        **_numbered(_EN_TENS.replace("y", "ies"), 20, 10),
    },
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
    measures={
        **{
            "percent": "%",
            "per cent": "%",
            "percentage": "%",
            "degree": "°",
            "degrees": "°",
            "euro": "€",
            "euros": "€",
            "dollar": "$",
        },
        **{"dollars": "$", "bucks": "$", "pound": "£", "pounds": "£", "sterling": "£", "yen": "¥", "yuan": "¥"},
        **{"rupees": "₹", "rubles": "₽", "won": "₩", "cents": "¢", "cent": "¢"},
        **{"kilometres": "km", "kilometers": "km", "kilos": "kg", "kilograms": "kg", "centimetres": "cm"},
        **{"centimeters": "cm", "millimetres": "mm", "millimeters": "mm", "grams": "g", "millilitres": "ml"},
    },
    negative=_set("no not never nobody nothing none nor neither nowhere without cannot cant dont"),
    almost_negative=_beginnings(
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
    values={
        **_inflected(_numbered("un|uno", 1)),
        **_numbered(
            "cero _ dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciseis "
            "diecisiete dieciocho diecinueve _ veintiun|veintiuno|veintiuna veintidos veintitres veinticuatro "
            "veinticinco veintiseis veintisiete veintiocho veintinueve"
        ),
        **_numbered(_ES_TENS, 20, 10),
        **_inflected(
            _numbered(
                "doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos novecientos",
                200,
                100,
            )
        ),
        **_ES_ORDINALS,
        **{"cien": 100, "ciento": 100},
    },
    powers={"mil": 10**3, "millon": 10**6, "millones": 10**6, "billon": 10**12, "billones": 10**12},
    unsure=_set("cero un uno una unos unas mil cien ene feb mar abr jun jul ago sep sept oct nov dic"),
    about={
        **_inflected(_numbered("primero segundo _ cuarto quinto sexto _ octavo _ decimo", 1)),
        **{
            "primer": 1,
            "tercio": 3,
            "tercios": 3,
            "medio": 2,
            "media": 2,
            "ambos": 2,
            "ambas": 2,
            "par": 2,
            "pares": 2,
            "doble": 2,
            "pareja": 2,
            "triple": 3,
        },
        **{"docena": 12, "docenas": 12, "decena": 10, "decenas": 10, "quincena": 15, "decada": 10, "decadas": 10},
        **{
            "mediodia": 12,
            "mitad": 2,
            "mitades": 2,
            "millar": 1000,
            "veintena": 20,
            "centenar": 100,
            "centenares": 100,
        },
        **{"gemelos": 2, "gemelas": 2, "trimestre": 3, "semestre": 6, "solo": 1, "sola": 1, "unico": 1, "unica": 1},
    },
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
    measures={
        **{
            "por ciento": "%",
            "por cien": "%",
            "porcentaje": "%",
            "grado": "°",
            "grados": "°",
            "euro": "€",
            "euros": "€",
            "dolar": "$",
            "dolares": "$",
            "libra": "£",
        },
        **{"libras": "£", "yen": "¥", "yenes": "¥", "yuanes": "¥", "rupias": "₹", "rublos": "₽", "wones": "₩"},
        **{"centavos": "¢", "centimos": "¢", "centavo": "¢", "pesos": "$", "peso": "$"},
        **{"kilometros": "km", "kilos": "kg", "kilogramos": "kg", "centimetros": "cm", "milimetros": "mm"},
        **{"gramos": "g", "mililitros": "ml"},
    },
    negative=_set("no nunca jamas nadie nada ni tampoco ningun ninguno ninguna ningunos ningunas"),
    almost_negative=_beginnings(
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
