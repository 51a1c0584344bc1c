"""Tokenizer files made up of parts that others write, with values that nobody expects: refused with a reason, or they
split, within the text.

VIDRIO_TOKENIZERS=20000 tries another number of them.
"""

import json
import os
import random
from pathlib import Path
from typing import Any

from vidrio.errors import VidrioError
from vidrio.model.config import SpecialIds
from vidrio.text.tokens.tokenizer import Tokenizer

FEW = 400
NUMBERS: list[Any] = [0, 1, -1, 2, 10, 255, 2**31, 2**63 - 1, 2**64 - 1]
SIGNS = ["", "a", " ", "▁", "é", "ab", "<s>", "\ufdd0", "[", "😀"]
EXPRESSIONS = ["", "a*", "(?=a)", "^", "$", ".", "(a|b)*c", r"\b", r"\G", "(?<=a)|x", r"\X"]
TEXTS = ["hello bala core, world.", "", "Ñandú 😀 x² <s> \x00", "a" * 300, "▁ \ufdd01", " ", "é"]
Part = dict[str, Any]


def pattern(draw: random.Random) -> Part:
    return draw.choice([{"String": draw.choice(SIGNS)}, {"Regex": draw.choice(EXPRESSIONS)}])


def normalizer(draw: random.Random) -> Part:
    return draw.choice(
        [
            lambda: {"type": "Replace", "pattern": pattern(draw), "content": draw.choice(SIGNS)},
            lambda: {"type": "Prepend", "prepend": draw.choice(SIGNS)},
            lambda: {"type": "Strip", "strip_left": True, "strip_right": True},
            lambda: {"type": draw.choice(["NFKC", "NFD", "ByteLevel", "Nmt", "StripAccents", "Lowercase"])},
            lambda: {"type": "Sequence", "normalizers": [normalizer(draw), normalizer(draw)]},
            lambda: {"type": "Precompiled", "precompiled_charsmap": draw.choice(["", "AAAA"])},
        ]
    )()


def pre_tokenizer(draw: random.Random) -> Part:
    behaviours = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
    scheme = draw.choice(["always", "never", "first"])
    return draw.choice(
        [
            lambda: {
                "type": "Split",
                "pattern": pattern(draw),
                "behavior": draw.choice(behaviours),
                "invert": draw.random() < 0.5,
            },
            lambda: {"type": "FixedLength", "length": draw.choice(NUMBERS)},
            lambda: {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": False},
            lambda: {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": True},
            lambda: {"type": draw.choice(["UnicodeScripts", "Whitespace", "BertPreTokenizer"])},
            lambda: {"type": "Sequence", "pretokenizers": [pre_tokenizer(draw), pre_tokenizer(draw)]},
        ]
    )()


def decoder(draw: random.Random) -> Part:
    sign, number = (lambda: draw.choice(SIGNS)), (lambda: draw.choice(NUMBERS))
    return draw.choice(
        [
            lambda: {"type": "Strip", "content": draw.choice("a ▁"), "start": number(), "stop": number()},
            lambda: {"type": "Replace", "pattern": pattern(draw), "content": sign()},
            lambda: {"type": "CTC", "pad_token": sign(), "word_delimiter_token": sign(), "cleanup": True},
            lambda: {"type": draw.choice(["ByteFallback", "Fuse"])},
            lambda: {"type": "BPEDecoder", "suffix": sign()},
            lambda: {"type": "WordPiece", "prefix": sign(), "cleanup": True},
            lambda: {"type": "Sequence", "decoders": [decoder(draw), decoder(draw)]},
        ]
    )()


def model(draw: random.Random, before: Part) -> Part:
    other: list[Part] = [
        {"dropout": draw.choice([0.0, 0.5, 1.0])},
        {"continuing_subword_prefix": draw.choice(SIGNS)},
        {"end_of_word_suffix": draw.choice(SIGNS)},
        {"byte_fallback": not before.get("byte_fallback")},
        {"unk_token": draw.choice([None, "zz", "<unk>"])},
        {"ignore_merges": True},
    ]
    return {**before, **draw.choice(other)}


def made_up(plain: Part, draw: random.Random) -> Part:
    """A file of which some parts are others."""
    file = dict(plain)
    for part, make in (("normalizer", normalizer), ("pre_tokenizer", pre_tokenizer), ("decoder", decoder)):
        if draw.random() < 0.4:
            file[part] = make(draw)
    if draw.random() < 0.4:
        file["model"] = model(draw, file["model"])
    return file


def test_tokenizers_of_parts_that_nobody_expects(tmp_path: Path) -> None:
    texts = ["hello world, hola mundo, bala core"] * 9
    kinds = Tokenizer.of_words(texts[0].split()), Tokenizer.learn(texts, 300)
    plain = [json.loads(tokenizer.file_text()) for tokenizer in kinds]
    path, used, panics = tmp_path / "tokenizer.json", 0, 0
    for number in range(int(os.environ.get("VIDRIO_TOKENIZERS", FEW))):
        draw = random.Random(number)
        path.write_text(json.dumps(made_up(draw.choice(plain), draw)))
        try:
            tokenizer = Tokenizer.load(path, SpecialIds(pad=0, unk=1, start=2, end=3))
        except VidrioError:
            continue
        used += 1
        for text in TEXTS:
            try:
                ids = tokenizer.encode(text)
                assert all(0 <= piece.start <= piece.end <= len(text) for piece in tokenizer.pieces(text)), number
                assert isinstance(tokenizer.decode(ids), str)
                assert tokenizer.count(text) >= 0
                assert [tokenizer.encode(text)] == tokenizer.encode_batch([text]) or "dropout" in path.read_text()
            except VidrioError as error:
                panics += "cannot be used" in str(error)
    assert used > 100
    assert panics > 10
