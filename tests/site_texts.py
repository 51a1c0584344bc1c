"""Texts of all kinds for comparing the browser with Python, including difficult ones for a tokenizer."""

import random
from functools import cache
from pathlib import Path

from behaviour.cases import read_cases

SIGNS = (
    "aAbBcCÉéñÑçßœ'’-. ,;:!?0123456789½²⇧⇪▁<>/sx4pad\u0301\u0327\u0323\u0308\u200d\ufdd0①②२ॐाक़"
    "가각ÅAÅﬁﬀ中文日本😀👩‍👧🇪🇸\u0000\t\n\r\u00a0\u2028\ufeffΣςσİıIÐþŁʼn\U00013460\U0001e030٣हि"
)
PHRASES = ("HELLO World", "McDonald’s", "NATO's", "O'BRIEN", "</s>", "<0x41>", "iPhone", "A", "e\u0301cole", "ÉCOLE")


@cache
def texts(count: int, direction: str = "en-es") -> list[str]:
    """Return this many different texts, always the same ones."""
    book = (Path(__file__).parent / "texts" / "alice.txt").read_text("utf-8").split("\n")
    found = dict.fromkeys([*(case.source for case in read_cases(direction)), *filter(None, book), *PHRASES, ""])
    draw = random.Random(count)
    while len(found) < count:
        words = [
            draw.choice(PHRASES) if draw.random() < 0.1 else draw.choice(SIGNS) for _ in range(draw.randrange(1, 15))
        ]
        found["".join(words)] = None
    return list(found)[:count]
