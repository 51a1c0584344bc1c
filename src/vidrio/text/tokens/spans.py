"""The characters of a text that each of its tokens stands for."""

from itertools import accumulate, groupby

from vidrio.text.tokens.vocabulary import BYTES


def exact_spans(text: str, tokens: list[str], spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans where the library's are coarse: a byte at its own character, an accent with what it was composed to.
    All are within the text, also those of a tokenizer file that counts wrongly."""
    exact: list[tuple[int, int]] = []
    spans = [(min(start, len(text)), min(end, len(text))) for start, end in spans]
    for (start, end), group in groupby(zip(spans, tokens, strict=True), key=lambda pair: pair[0]):
        run = [token for _, token in group]
        firsts = [token in BYTES and not 0x80 <= int(token[3:5], 16) < 0xC0 for token in run]  # of a character
        if end - start > 1 and sum(firsts) == end - start:
            exact += [(start + n - 1, start + n) for n in accumulate(firsts)]
        else:
            exact += [(start, end)] * len(run)
    following = len(text)
    for i, (start, end) in reversed(list(enumerate(exact))):
        following = exact[i + 1][0] if i + 1 < len(exact) and exact[i + 1][0] > start else following
        while end < following and not text[end].isspace():
            end += 1
        exact[i] = (start, end)
    return exact
