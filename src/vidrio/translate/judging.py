"""Find the faults in the hypotheses of a search, and choose the best hypothesis."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import NamedTuple

from vidrio.hypothesis import Hypothesis, Ids, Options
from vidrio.text.account import ROMAN, Fact, Faults, compare, facts
from vidrio.text.lexicon import Lexicon, folded
from vidrio.text.mask import Masked, Masker
from vidrio.text.protect import MONEY
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.text.words import token_places
from vidrio.translate.translation import FactWarning, Pieces, Sentence

AGAIN = r"(?s)(.{1,8}?)\1{3}"  # one to eight tokens, four times in a row; each token is represented by a character
UNREADABLE = 1_000  # the number of faults that a lost symbol counts as, so that any other translation is better
MARGIN = 0.25  # how much lower the score of a hypothesis may be if it keeps a bracket or a negation
# A word may be a misspelled name if the log p of one of its tokens is below UNSURE and its similarity to the name is
# above ALIKE, or above ALMOST if the word is not capitalised.
UNSURE, ALIKE, ALMOST = -1.5, 0.4, 0.85
UNSURE_OF_ALL = -0.5  # a model is unsure of a hypothesis with a lower score
# Capitalised words. The first word of a sentence counts only if a numeral or another capitalised word follows.
_NAME = rf"(?:(?<=[\w,;] )|(?=\b\w+ (?:{ROMAN}\b|[A-ZÀ-Ý][^\W\d_])))[^\W\d_a-zß-öø-ÿ][^\W\d_]{{3,}}"
NEVER_INVENTED = f"{MONEY}\ufffd"


class Query(NamedTuple):
    """A sentence to translate, and the options of the search."""

    masked: Masked
    options: Options


class Candidate(NamedTuple):
    """A hypothesis with its text and its faults."""

    hypothesis: Hypothesis
    written: str  # the text with symbols
    text: str | None  # the text without symbols; None if a symbol was lost
    account: Faults
    repeats: bool

    @property
    def faults(self) -> int:
        """The number of faults that are serious enough to search again."""
        return self.account.serious + self.repeats + (UNREADABLE if self.text is None else 0)


class Attempt(NamedTuple):
    """The best translation of a sentence so far, whole or in pieces. If a symbol was lost, there are no pieces."""

    query: Query
    best: Candidate
    pieces: Pieces
    faults: int


class Judge(NamedTuple):
    """Finds the faults in the translations of a model."""

    masker: Masker
    target: Tokenizer
    lexicons: tuple[Lexicon, Lexicon]

    def candidates(self, query: Query, source_ids: Ids, found: Sequence[tuple[Hypothesis, str]]) -> Iterator[Candidate]:
        """Yield each hypothesis with its faults."""
        masked = query.masked
        said = facts(masked.given, self.lexicons[0])
        names = [Fact("name", name[0], *name.span()) for name in re.finditer(_NAME, masked.given)]
        names = [name for name in names if self.masker.is_long(name.key)]
        strange = [Fact("name", masked.given[a:b], a, b) for a, b, _ in self.masker.unspellable(masked.given)]
        for hypothesis, written in found:
            account = compare(said, facts(written, self.lexicons[1]))
            if wrong := [name for name in dict.fromkeys((*names, *strange)) if name.key not in written]:
                misspelled = self._misspelled(wrong, masked.given, written, hypothesis)
                unsure = hypothesis.score < UNSURE_OF_ALL
                broken = any(inside_a_word(fact, written) for fact in account.invented if fact.kind == "sign")
                missing = [*wrong] if broken else missing_names(wrong, masked.given, written, unsure=unsure)
                never = (*misspelled, *strange, *missing)
                lost = [name for name in wrong if name in never or self.masker.is_rare(name.key)]
                account = Faults((*account.lost, *lost), (*account.invented, *misspelled.values()))
            text = masked.restore(written)
            again = not query.options.no_repeat_ngram and repeats(source_ids, hypothesis.ids)
            yield Candidate(hypothesis, written, text, account, again)

    def _misspelled(self, names: Sequence[Fact], given: str, written: str, hypothesis: Hypothesis) -> dict[Fact, Fact]:
        """Return the names that the model misspelled, each with the similar word written instead, such as Areñez for
        Núñez. Londres for London does not count if the model was sure of it. Nor does Lisboa for Lisbon, because the
        last two letters must match."""
        tokens = list(zip(token_places(hypothesis.ids, self.target), hypothesis.token_log_probs, strict=False))
        found = dict[Fact, Fact]()
        for other in re.finditer(r"[^\W\d_]{3,}", written):
            inside = (log_p for (start, end), log_p in tokens if start < min(end, other.end()) and end > other.start())
            if other[0] in given or min(inside, default=0) >= UNSURE:
                continue
            least = ALIKE if other[0][0].isupper() else ALMOST
            free = [name for name in names if name not in found and folded(name.key)[-2:] == folded(other[0])[-2:]]
            alike = max(free, key=lambda name: similarity(name.key, other[0]), default=None)
            if alike and similarity(alike.key, other[0]) > least:
                found[alike] = Fact("name", other[0], *other.span())
        return found


def missing_names(names: Sequence[Fact], given: str, written: str, *, unsure: bool) -> list[Fact]:
    """Return the names that a translation lacks: all of them if words were merged (RafaelÍñez), otherwise those with
    accents for which an unsure model wrote no similar word. (Corsica is similar to Córcega.)"""
    words = re.findall(r"[^\W\d_]+", written)
    if any(has_inner_capital(word) and word not in given for word in words):
        return [*names]
    accented = [name for name in names if unsure and not name.key.isascii()]
    return [name for name in accented if all(similarity(name.key, word) <= ALIKE for word in words)]


def has_inner_capital(word: str) -> bool:
    """Return whether a capital follows a small letter, as in two merged words."""
    return any(a.islower() and b.isupper() for a, b in pairwise(word))


def inside_a_word(fact: Fact, text: str) -> bool:
    """Return whether letters surround a fact, such as § in Rafael§ñez."""
    return text[: fact.start][-1:].isalpha() and text[fact.end :][:1].isalpha()


def similarity(a: str, b: str) -> float:
    """Return the similarity of two words from 0 to 1, ignoring case and accents."""
    return SequenceMatcher(None, folded(a), folded(b)).ratio()


def chosen(query: Query, found: Sequence[Candidate]) -> Attempt:
    """Choose the hypothesis with the fewest faults. The other requested hypotheses follow in their original order."""
    enough = found[0].hypothesis.score - MARGIN

    def rank(one: Candidate) -> tuple[int, int]:
        light = len(one.account.lost) + len(one.account.invented)
        return one.faults, light if one.hypothesis.score >= enough else UNREADABLE

    best, source = min(found, key=rank), query.masked.source
    distinct: dict[str, Hypothesis] = {}
    for one in (best, *found):
        if one.text is not None and len(distinct) < query.options.n_best:
            distinct.setdefault(without_inventions(one.text, source, one.account), one.hypothesis)
    if best.text is None:
        return Attempt(query, best, (), best.faults)
    warnings = tuple(warnings_about(query.masked, best)) if any(best.account) else ()
    return Attempt(query, best, (Sentence(source, (*distinct,), (*distinct.values(),), *query, warnings),), best.faults)


def without_inventions(text: str, source: str, account: Faults) -> str:
    """Remove currency signs and replacement characters (U+FFFD) that the source does not contain."""
    signs = account.invented and {fact.key for fact in account.invented} & set(NEVER_INVENTED) - set(source)
    return " ".join(text.translate(dict.fromkeys(map(ord, signs))).split()) if signs else text


def warnings_about(masked: Masked, best: Candidate) -> Iterator[FactWarning]:
    """Yield the warnings about a translation: each lost fact with the fact that replaces it, then all other faults."""
    things = str.maketrans(masked.things)
    lost = {fact: said(fact, masked.given).strip().translate(things) for fact in best.account.lost}
    invented = {fact: said(fact, best.written).strip().translate(things) for fact in best.account.invented}
    yield from (FactWarning(fact.kind, lost.pop(fact), invented.pop(wrong)) for fact, wrong in pairs_of(best.account))
    yield from (FactWarning(fact.kind, text, "") for fact, text in lost.items() if fact.kind != "words")
    yield from (FactWarning(fact.kind, "", text) for fact, text in invented.items())


def pairs_of(account: Faults) -> list[tuple[Fact, Fact]]:
    """Pair the lost facts of each kind with the invented facts of the same kind, in order."""
    kinds = dict.fromkeys(fact.kind for fact in account.lost)
    groups = (([fact for fact in facts if fact.kind == kind] for facts in account) for kind in kinds)
    return [pair for lost, invented in groups for pair in zip(lost, invented, strict=False)]


def said(fact: Fact, text: str) -> str:
    """Return the text of a fact."""
    return text[fact.start : fact.end]


def repeats(source: Ids, target: Ids) -> bool:
    """Return whether the target repeats a few tokens four times in a row although the source does not. Models do this
    with input that was rare in training: a single word, a line in capitals, text in another language."""
    found, there = (re.search(AGAIN, "".join(map(chr, ids))) for ids in (target, source))
    return bool(found and not there)
