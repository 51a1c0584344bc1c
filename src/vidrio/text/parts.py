"""A sentence that is too long for a model, in parts that are not: cut where it hurts least."""

from collections.abc import Iterator

from vidrio.text.tokenizer import Tokenizer

Span = tuple[int, int]

CLOSING = ",;:)]}»”—–"  # a clause may end here
WINDOW = 8  # characters for each token that may be in a part; texts have some four, so the limit is met within


def in_parts(text: str, start: int, end: int, tokenizer: Tokenizer, longest: int) -> Iterator[Span]:
    """Spans of at most `longest` tokens that cover text[start:end], but for white space between them."""
    while start < end:
        window = text[start : min(end, start + WINDOW * longest)]
        size = len(window)
        if start + size < end or len(tokenizer.encode(window)) > longest:
            size = cut_place(window, tokenizer, longest)
            while size > 1 and len(tokenizer.encode(window[:size])) > longest:
                size //= 2  # by itself a part may need a token or two more
        yield from stripped(text, start, start + size)
        start += size


def cut_place(window: str, tokenizer: Tokenizer, longest: int) -> int:
    """Where to end the first part: after a comma in its second half, else at a space, else between tokens."""
    starts = [piece.start for piece in tokenizer.pieces(window)]
    places = [place for place in starts[longest // 2 : longest + 1] if place] or starts[1:] or [len(window)]
    spaces = [place for place in places if window[place : place + 1].isspace() or window[place - 1].isspace()]
    clauses = [place for place in spaces if window[:place].rstrip()[-1:] in CLOSING]
    return (clauses or spaces or places)[-1] or len(window)


def in_halves(sentence: str) -> list[Span]:
    """Its two halves, cut at the white space nearest to the middle; nothing if there is none."""
    middle = len(sentence) / 2
    spaces = [i for i, character in enumerate(sentence) if character.isspace()]
    place = min(spaces, key=lambda i: abs(i - middle), default=0)
    halves = [*stripped(sentence, 0, place), *stripped(sentence, place, len(sentence))]
    return halves if len(halves) == 2 else []


def stripped(text: str, start: int, end: int) -> Iterator[Span]:
    """The span without white space at its ends, if anything is left of it."""
    part = text[start:end]
    if kept := part.strip():
        first = start + len(part) - len(part.lstrip())
        yield first, first + len(kept)
