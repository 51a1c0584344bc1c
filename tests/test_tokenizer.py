"""Test text → tokens → ids → text: nothing is lost, no text imitates a special token, and every split is explained."""

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vidrio.errors import TokenizerError
from vidrio.model.config import SpecialIds
from vidrio.text.tokens.normalise import ESCAPE, normalise
from vidrio.text.tokens.sentence_pieces import SentencePieces
from vidrio.text.tokens.steps import steps as explain
from vidrio.text.tokens.tokenizer import SpecialNames, Tokenizer
from vidrio.text.tokens.vocabulary import thin

TEXTS = [
    "Hello world!",
    "Don't you know that the world is round? – I don't.",
    "The dog's bone is in the garden, and the dog sleeps.",
    "¡Hola mundo! ¿Qué tal?",
    "El perro duerme en el jardín con su hueso.",
    "In 2024 it cost €18.10, in 2025 it costs 1,234.50.",
] * 3

# Arbitrary text, and text that could be mistaken for a token, a space or a byte.
wild = st.one_of(
    st.text(),
    st.text(alphabet=f" \n\t\r\0▁{ESCAPE}012<s>/x4áe\u0301'’.,¿1😀\u200d\U0001f44d\U0001f3fd", max_size=30),
    st.lists(st.sampled_from(["<s>", "</s>", "<pad>", "<unk>", "<0x41>", "<0x", " ", "  ", "a", *TEXTS[:5]])).map(
        "".join
    ),
)


@pytest.fixture(scope="module")
def learned() -> dict[str, Tokenizer]:
    words = ["Hello", "world", "!", "mundo"]
    return {"word": Tokenizer.of_words(words, lowercase=False), "bpe": Tokenizer.learn(TEXTS, 400)}


@given(text=wild)
@example(text="")
@example(text=" ")
@example(text=" leading, double  and trailing ")
@example(text="e\u0301\u0301 \u0344 \u1100\u1161 İ ﬁ Å")
@example(text=f"{ESCAPE}{ESCAPE}2▁{ESCAPE}1<{ESCAPE}2s>")
@example(text="".join(map(chr, range(0x250))))
@settings(max_examples=150)
def test_nothing_is_lost(learned: dict[str, Tokenizer], text: str) -> None:
    tokenizer = learned["bpe"]
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == normalise(text)
    assert not set(ids) & {0, 1, 2, 3}, "a text never holds a special token"
    assert tokenizer.encode_batch([text, text]) == [ids, ids]


@given(text=wild)
@settings(max_examples=100)
def test_pieces_cover_the_text_in_order(learned: dict[str, Tokenizer], text: str) -> None:
    pieces = learned["bpe"].pieces(text)
    assert [p.id for p in pieces] == learned["bpe"].encode(text)
    assert [p.token for p in pieces] == learned["bpe"].tokens(text)
    assert all(0 <= p.start <= p.end <= len(text) for p in pieces)
    assert [p.start for p in pieces] == sorted(p.start for p in pieces)
    covered = {at for p in pieces for at in range(p.start, p.end)}
    assert covered == set(range(len(text)))


@pytest.mark.parametrize("kind", ["word", "bpe"])
@given(text=wild)
@settings(max_examples=100)
def test_the_explanation_ends_where_encode_does(learned: dict[str, Tokenizer], kind: str, text: str) -> None:
    steps = explain(learned[kind], text)  # raises AssertionError if they differ
    assert [piece for word in steps.words for piece in word.pieces] == learned[kind].pieces(text)
    assert kind == "word" or "".join(word.text for word in steps.words) == steps.prepared


def test_merges_are_told_in_order() -> None:
    tokenizer = Tokenizer.learn(["low low low lower lowest"], 400)
    [word] = explain(tokenizer, "low").words
    assert word.symbols == ("▁", "l", "o", "w")
    assert word.merges[-1].symbols == ("▁low",)
    assert [m.rank for m in word.merges] == sorted(m.rank for m in word.merges)
    for merge in word.merges:
        assert tokenizer.ranks[merge.left, merge.right] == merge.rank


def test_an_explanation_that_drifts_is_refused() -> None:
    tokenizer = Tokenizer.learn(TEXTS, 400)
    tokenizer.ranks.clear()  # as if the explanation used other merges
    with pytest.raises(AssertionError, match="explained as"):
        explain(tokenizer, "world")


def test_words_as_in_the_lesson() -> None:
    """Use the vocabulary of the worked example: ten words in its order, without padding or unknown tokens."""
    words = ["hello", "mundo", "world", "how", "?", "EOS", "SOS", "a", "hola", "c"]
    tokenizer = Tokenizer.of_words(words, names=SpecialNames(None, None, "SOS", "EOS"))
    assert tokenizer.vocabulary() == words
    assert tokenizer.special == SpecialIds(pad=-1, unk=-1, start=6, end=5)
    assert tokenizer.encode("Hello World") == [0, 2]
    assert tokenizer.decode([6, 8, 1, 5]) == "hola mundo"
    with pytest.raises(TokenizerError, match=r"does not contain 'wurld'(.|\n)*nearest: world"):
        tokenizer.encode("Hello wurld")
    for imitation in ("SOS", "EOS"):
        with pytest.raises(TokenizerError, match="does not contain"):
            Tokenizer.of_words(words, names=SpecialNames(None, None, "SOS", "EOS"), lowercase=False).encode(imitation)


def test_unknown_words_are_told(learned: dict[str, Tokenizer]) -> None:
    pieces = learned["word"].pieces("Hello elephant!")
    assert [(p.token, p.unknown) for p in pieces] == [("Hello", False), ("<unk>", True), ("!", False)]
    assert [(p.start, p.end) for p in pieces] == [(0, 5), (6, 14), (14, 15)]
    assert learned["word"].decode(p.id for p in pieces) == "Hello <unk>!"


def test_special_tokens_come_first_and_are_left_out(learned: dict[str, Tokenizer]) -> None:
    for tokenizer in learned.values():
        assert tokenizer.special == SpecialIds()
        assert tokenizer.vocabulary()[:4] == ["<pad>", "<unk>", "<s>", "</s>"]
        assert tokenizer.decode([2, 0, 3]) == ""
        assert tokenizer.decode([2, *tokenizer.encode("Hello world!"), 3, 0]) == "Hello world!"


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_saved_and_read_back(learned: dict[str, Tokenizer], kind: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    learned[kind].save(path)
    again = Tokenizer.load(path)
    assert (again.kind, again.size, again.special) == (kind, learned[kind].size, learned[kind].special)
    assert again.fingerprint() == learned[kind].fingerprint()
    for text in [*TEXTS, "</s> 日本 <0x41>"]:
        assert again.encode(text) == learned[kind].encode(text)
    assert list(tmp_path.iterdir()) == [path]


def test_learning_is_reproducible() -> None:
    for learn in (Tokenizer.learn, Tokenizer.learn_unigram):
        assert learn(TEXTS, 350).fingerprint() == learn(iter(TEXTS), 350).fingerprint()


def test_rare_characters_become_bytes_and_are_never_joined_across() -> None:
    texts = ["abab" * 500, "a\u4e2db" * 2]
    tokenizer = Tokenizer.learn(texts, 400, coverage=0.99)
    assert tokenizer.id("\u4e2d") is None
    assert tokenizer.decode(tokenizer.encode("a\u4e2db")) == "a\u4e2db"


def test_half_a_surrogate_pair_is_an_error(learned: dict[str, Tokenizer]) -> None:
    for tokenizer in learned.values():
        with pytest.raises(TokenizerError, match=r"lone surrogate U\+D83D at character 1"):
            tokenizer.encode("a\ud83d")
        with pytest.raises(TokenizerError, match="lone surrogate"):
            tokenizer.encode_batch(["fine", "a\ud83d"])
    with pytest.raises(TokenizerError, match="lone surrogate"):
        Tokenizer.learn(["\udc00"], 400)


def test_the_special_tokens_of_a_sentence_piece_model_are_its_own_or_those_given(tmp_path: Path) -> None:
    learned = Tokenizer.learn_unigram(TEXTS, 400)
    learned.save(tmp_path / "usual.json")
    assert Tokenizer.load(tmp_path / "usual.json").special == SpecialIds(pad=1, unk=1, start=-1, end=0)
    proto = learned.sentence_pieces.proto if learned.sentence_pieces else b""
    own = SpecialIds(pad=0, unk=0, start=-1, end=1)
    Tokenizer(SentencePieces(proto, ["<unk>", "<end>"], 0), own).save(tmp_path / "other.json")
    assert Tokenizer.load(tmp_path / "other.json", own).special == own
    with pytest.raises(TokenizerError, match="damaged"):
        Tokenizer.load(tmp_path / "other.json")


def test_impossible_wishes_are_refused() -> None:
    for size, told in ((262, "too small for these texts"), (2_000_000, "too large")):
        with pytest.raises(TokenizerError, match=told):
            Tokenizer.learn(TEXTS, size)
        with pytest.raises(TokenizerError, match=told):
            Tokenizer.learn_unigram(TEXTS, size)
    for texts in ([], ["", " "]):
        with pytest.raises(TokenizerError, match="no text to learn"):
            Tokenizer.learn(texts, 400)
    with pytest.raises(TokenizerError, match="not all different"):
        Tokenizer.of_words(["a"], names=SpecialNames("<s>"))


def test_ids_that_do_not_exist(learned: dict[str, Tokenizer]) -> None:
    with pytest.raises(TokenizerError, match="no token 4000"):
        learned["bpe"].decode([4000])
    with pytest.raises(TokenizerError, match="no token -1"):
        learned["bpe"].token(-1)
    assert learned["bpe"].id("elephant") is None


def test_files_that_are_no_tokenizers(learned: dict[str, Tokenizer], tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    with pytest.raises(TokenizerError, match="there is no tokenizer"):
        Tokenizer.load(path)
    for damaged in (b"", b"{}", b"[" * 2_000_000, b"\xff\xfe", b'{"a":' * 100_000, b"null"):
        path.write_bytes(damaged)
        with pytest.raises(TokenizerError):
            Tokenizer.load(path)
    learned["bpe"].save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TokenizerError, match="damaged"):
        Tokenizer.load(path)


def test_a_vocabulary_with_holes_is_refused(learned: dict[str, Tokenizer], tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    learned["word"].save(path)
    data = json.loads(path.read_text())
    data["model"]["vocab"]["Hello"] = 10_000
    path.write_text(json.dumps(data))
    with pytest.raises(TokenizerError, match="ids of its"):
        Tokenizer.load(path)


def test_thin_takes_texts_from_everywhere() -> None:
    assert thin(map(str, range(5)), 10) == ["0", "1", "2", "3", "4"]
    kept = [int(text) for text in thin(map(str, range(1000)), 10)]
    assert len(kept) <= 10
    assert len({b - a for a, b in itertools.pairwise(kept)}) == 1
    assert kept[-1] > 800


def test_what_vidrio_does_not_make_is_refused(tmp_path):
    data = json.loads(Tokenizer.of_words(["a"]).file_text())
    pieces = {"type": "Unigram", "vocab": [["a", 0.0]], "unk_id": 0}
    for change in ({"model": pieces}, {"normalizer": None}, {"pre_tokenizer": None}):
        (tmp_path / "tokenizer.json").write_text(json.dumps(data | change))
        with pytest.raises(TokenizerError, match="damaged, or no tokenizer"):
            Tokenizer.load(tmp_path / "tokenizer.json")


def test_a_panic_of_the_library_is_an_error_of_ours(tmp_path):
    data = json.loads(Tokenizer.of_words(["a"]).file_text())
    data["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": "AAAA"}
    (tmp_path / "tokenizer.json").write_text(json.dumps(data))
    with pytest.raises(TokenizerError, match="cannot be used"):
        Tokenizer.load(tmp_path / "tokenizer.json")


@pytest.fixture(scope="module")
def cased() -> Tokenizer:
    texts = ["Hello world, hello Madrid", "HELLO WORLD of the NATO", "¡Ñandú! the preheated McDonald"] * 50
    return Tokenizer.learn(texts, size=600, case_tokens=True)


def test_capitals_are_tokens_of_their_own(cased: Tokenizer) -> None:
    small = cased.tokens("hello world")
    assert cased.tokens("Hello world") == ["⇧", *small]
    assert cased.tokens("HELLO WORLD") == ["⇪", small[0], "⇪", *small[1:]]
    assert [piece.token for piece in cased.pieces("McDonald") if piece.start == piece.end] == ["⇧", "⇧"]
    assert cased.has_case_tokens
    assert not Tokenizer.learn(["Hello"], size=300).has_case_tokens


ODD = st.text(alphabet=st.sampled_from("aAbBñÑéÉßẞİıΣσς'’ ⇧⇪▁<>s03ǅЖж" + ESCAPE + "\u0301"), max_size=30)


@settings(max_examples=150)
@given(st.one_of(ODD, st.text(max_size=30)))
@example("DON'T JOHN's EE. UU. iPhone  Hi")
def test_no_capital_is_lost(cased: Tokenizer, text: str) -> None:
    assert cased.decode(cased.encode(text)) == cased.decode_batch([cased.encode(text)])[0] == normalise(text)
    assert [piece.token for word in explain(cased, text).words for piece in word.pieces] == cased.tokens(text)


def test_marks_that_stand_alone_are_left_out(cased: Tokenizer) -> None:
    cap, caps, space, hello = (cased.id(token) for token in ("⇧", "⇪", "▁", cased.tokens("hello")[0]))
    assert cased.decode([hello, cap, space, caps]) == "hello "
