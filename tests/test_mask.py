"""Test text/mask.py: placeholders replace text to copy, which is restored in the translation or reported as missing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiding import mask
from vidrio.text.mask import Masker, plain
from vidrio.text.tokens.tokenizer import Tokenizer

SYMBOLS = "①②③"


@pytest.mark.parametrize(
    ("sentence", "read"),
    [
        ("Click {next} to go on.", "Click ① to go on."),
        ("Write to a@b.org or see https://b.org/x?y=1.", "Write to ① or see ②."),
        ("Run `make test` in ~/x/y, %s.", "Run ① in ②, ③."),
        ("{a} {b} {c} {d}", "① ② ③ {d}"),  # more than there are symbols; the check and its fallback handle the rest
        ("<b>Bold</b> and 18.10 €", "<b>Bold</b> and 18.10 €"),  # the tags touch a word; numbers are translated
        ("② is hidden, too: {x}", "① is hidden, too: ③"),  # the text already contains ②
        ("The x① stays, and {x} is hidden.", "The x① stays, and ② is hidden."),
        ("Good night 🌙✨ and v1.9.8-beta", "Good night ① and ②"),
        ("Nothing to hide", "Nothing to hide"),
        ("", ""),
    ],
)
def test_what_is_hidden(sentence: str, read: str) -> None:
    masked = mask(sentence, SYMBOLS)
    assert masked.given == read
    assert masked.restore(masked.given) == sentence


@pytest.mark.parametrize(
    ("sentence", "given"),
    [
        ("A well\u2011known, wrapped\n  line", "A well-known, wrapped line"),
        ("The \ufb01rst of\ufb01ce", "The first office"),
        ("\ufeffThe hy\u00adphen\u200b and\x00 {x}", "The hyphen and ①"),
        ("\uff26\uff55\uff4c\uff4c width", "Full width"),
        ("Hello\xa0world,\u3000good\x85people\x0bof\u2009\u2003Spain", "Hello world, good people of Spain"),
        ("I have\xa05\xa0000\xa0dollars", "I have 5 000 dollars"),
        ("Tabs\tare blanks; é, ½ and ñ stay", "Tabs are blanks; é, ½ and ñ stay"),
        ("Two  blanks , as some  write , or no,none ?", "Two blanks, as some write, or no, none?"),
        ("It costs 1,000 ... in a.b,c or .NET ;) ¡No!", "It costs 1,000 ... in a.b, c or .NET ;) ¡No!"),
    ],
)
def test_a_model_reads_plain_signs(sentence: str, given: str) -> None:
    """Typography is normalised. test_alignment.py checks that positions in the sentence remain known."""
    assert mask(sentence, SYMBOLS).given == given


@pytest.mark.parametrize(
    ("sentence", "read"),
    [
        ("We met Przybylski in Oz.", "We met ① in ②."),
        ("I know Maria Przybylski well.", "I know ① well."),  # one name, though only half of it is rare
        ("Mary met Tom.", "Mary met Tom."),
        ("Ask Przybylski, {x}!", "Ask ①, ②!"),
        ("It is Przybylski's bridge", "It is ①'s bridge"),
        ("Przybylski is here.", "① is here."),
        ("Home Sweet Oz", "Home ①"),  # "Home" is the first word
        ("We met Bill O'Przybylski's friends", "We met ①'s friends"),
        ("Mr. Hill met Mrs Hill and Hill", "Mr. ① met Mrs ② and Hill"),  # a word after a title is a name
        ("La Sra. López y él", "La Sra. ① y él"),
        ("USA Przybylski", "USA ①"),
        ("Fue en época de Oz", "Fue en época de ①"),  # é is not a capital letter
        ("Oz is here.", "Oz is here."),  # the first word of a sentence may be any word
        ("Maria Oz is here.", "Maria ① is here."),
        ("Helen is here.", "Helen is here."),
        ("Ifunanyachi Przybylski is here.", "① is here."),  # a rare name follows
        ("Unfortunately, Przybylski is here.", "Unfortunately, ① is here."),
        ("I met Mary J. Przybylski.", "I met ①."),
        ("Hyvää päivää, Oz said in Málaga.", "① ②, ③ said in Málaga."),  # letters that the model does not know
        ("It is the President.", "It is the President."),
        ("They met Oz-based people.", "They met ①-based people."),
        ("They met Mary-Oz.", "They met ①."),
    ],
)
def test_rare_names_are_hidden(sentence: str, read: str) -> None:
    def tokens(word: str) -> int:
        rare = {
            "helen": 2,
            "ifunanyachi": 4,
            "unfortunately": 4,
            "przybylski": 8,
            "o'przybylski": 9,
            "oz": 5,
            "época": 5,
        }
        return 100 if "ä" in word else (rare | {"mary-oz": 6}).get(word.lower(), 1)

    masked = mask(sentence, SYMBOLS, tokens)
    assert masked.given == read
    assert masked.restore(masked.given) == sentence


@pytest.mark.parametrize(
    ("sentence", "read"),
    [
        ("Aaaaaaargh, he said.", "①, he said."),  # in no vocabulary
        ("Aaargh, he said.", "Aaargh, he said."),
        ("We met Bjørn Ødegård in Oz.", "We met ① ② in Oz."),
        ("We met Bjo\u0323\u0301rnø in Oz.", "We met ① in Oz."),
    ],
)
def test_what_cannot_be_spelled_is_hidden_even_if_names_are_not(sentence: str, read: str) -> None:
    masked = mask(sentence, SYMBOLS, lambda word: 100 if "ø" in word.lower() else 1, hide_names=False)
    assert masked.given == read
    assert masked.restore(masked.given) == sentence


def test_a_model_that_knows_no_symbols_reads_the_text_itself() -> None:
    assert mask("Click {next}.", "").given == "Click {next}."


def test_an_address_that_no_symbol_hides_keeps_its_punctuation() -> None:
    sentence = "See https://example.com/a?b=1&c=2 and www.a.org/x,y now,please."
    assert mask(sentence, "").given == sentence.replace("now,please", "now, please")


def test_quotation_marks_that_the_vocabulary_lacks_are_read_as_simpler_ones() -> None:
    words = "It's John's house - he said \"yes\" and left."
    sentence = "It’s John’s house — he said “yes” and left."
    few, more = (Tokenizer.learn([text] * 9, 500) for text in (words, f"{words} “yes” — It’s"))
    assert Masker(few).mask(sentence).given == words
    assert Masker(more).mask(sentence).given == sentence


CAPITALS = {
    "THE HOUSE IS OLD.": ("The house is old.", "La casa es vieja.", "LA CASA ES VIEJA."),
    "LONDON": ("London", "Londres", "LONDRES"),
    "VISIT https://a.org/b?c=1 NOW": ("Visit ① now", "Visite ① ya", "VISITE https://a.org/b?c=1 YA"),
    "IBM AND NASA": ("IBM AND NASA", "IBM y NASA", "IBM y NASA"),
    "The HOUSE is old.": ("The HOUSE is old.", "La CASA es vieja.", "La CASA es vieja."),
    "我们 12345": ("我们 12345", "12345", "12345"),
}


@pytest.mark.parametrize("sentence", CAPITALS)
def test_a_sentence_in_capitals_is_read_in_small_letters(sentence: str) -> None:
    given, written, restored = CAPITALS[sentence]
    masked = mask(sentence, "①②")
    assert masked.given == given
    assert masked.restore(written) == restored
    if not masked.symbols:
        assert mask(sentence, "").given == given


def test_an_address_among_capitals_stays() -> None:
    masked = mask("VISIT https://a.org/bC NOW", "")
    assert masked.given == "Visit https://a.org/bC now"
    assert masked.restore("Visite https://a.org/bC ya") == "VISITE https://a.org/bC YA"


@pytest.mark.parametrize("translation", ["Pulsa.", "Pulsa ① o ①.", "Pulsa ②.", "Pulsa①."])
def test_a_symbol_that_is_lost_or_repeated_is_told(translation: str) -> None:
    assert mask("Click {next}.", SYMBOLS).restore(translation) is None


def test_what_is_hidden_is_never_read_as_a_symbol() -> None:
    sentence = "Click {a} or {b}."
    masked = mask(sentence, SYMBOLS)
    assert masked.restore("Pulsa ② o ①.") == "Pulsa {b} o {a}."


PIECES = [" ", "word", "{x}", "%s", "a@b.org", "http://x.y/z", "①", "3.5", "<i>", "`c`", "😀", ".", "é"]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_what_is_hidden_comes_back(sentence: str) -> None:
    masked = mask(sentence, SYMBOLS)
    assert masked.restore(masked.given) == plain(sentence)
    assert len(masked.symbols) == len(masked.hidden) <= len(SYMBOLS)
    assert all(masked.given.count(symbol) == 1 for symbol in masked.symbols)
