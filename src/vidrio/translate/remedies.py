"""Which hypothesis of a search is chosen, and what is searched for next where it has lost or invented something.

The remedies, in this order: another hypothesis of the same beam; a second search, in which lost facts are forced or
hidden and invented ones are forbidden; the parts of the sentence around what must come through (translator.py). Faults
that remain become the sentence's doubts.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import NamedTuple

from vidrio.hypothesis import Hypothesis, Ids, Options
from vidrio.text.account import ALWAYS, Fact, Faults, compare, facts
from vidrio.text.lexicon import Lexicon
from vidrio.text.mask import Masked, Masker
from vidrio.text.protect import MONEY, Protected, Span, is_free, protected
from vidrio.text.rendering import obliging, rendered
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.text.words import token_places
from vidrio.translate.translation import Doubt, Pieces, Sentence

NO_REPEAT = 3  # tokens that may not come a second time, where a translation repeated itself
AGAIN = r"(?s)(.{1,8}?)\1{3}"  # a few tokens four times, one after the other; a character is a token
UNREADABLE = 1_000  # a translation without a symbol, which stands for something, is worse than any other
MARGIN = 0.25  # by how much a score may be worse where a hypothesis keeps a bracket or a negation
HIDEABLE = ("number", "calendar", "sign", "name")
# A word is a misspelled name below this log p of a token, and above this similarity, with and without a capital letter.
UNSURE, ALIKE, ALMOST = -1.5, 0.4, 0.85
_RULER = r"\b\w+ (?:[IVX]{2,}\b|[A-ZÀ-Ý][^\W\d_])"  # what begins with a name
NEVER_INVENTED = f"{MONEY}\ufffd"

Lexicons = tuple[Lexicon, Lexicon]


class Asked(NamedTuple):
    """A sentence, and how its translation is searched for."""

    masked: Masked
    options: Options


class Judged(NamedTuple):
    """A hypothesis, what it says, and what is wrong with it."""

    hypothesis: Hypothesis
    written: str  # with symbols
    text: str | None  # without; None, if one was lost
    account: Faults
    repeats: bool

    @property
    def faults(self) -> int:
        """How many are worth another search."""
        return self.account.grave + self.repeats + (UNREADABLE if self.text is None else 0)


class Tried(NamedTuple):
    """The best that a search has found for a sentence."""

    asked: Asked
    best: Judged
    sentence: Sentence | None  # None, if what symbols stand for was lost

    @property
    def faults(self) -> int:
        return self.best.faults


class Judge(NamedTuple):
    """What is known of a model, to say what is wrong with its translations."""

    masker: Masker
    target: Tokenizer
    lexicons: Lexicons

    def judged(self, asked: Asked, source_ids: Ids, found: Sequence[tuple[Hypothesis, str]]) -> Iterator[Judged]:
        """What is wrong with each hypothesis."""
        masked = asked.masked
        given = masked.source if masked.given == masked.source.text else protected(masked.given)
        said = facts(given, self.lexicons[0])
        names = [name for name in names_in(given) if self.masker.is_long(name.key)]
        for hypothesis, written in found:
            account = compare(said, facts(protected(written), self.lexicons[1]))
            if wrong := [name for name in names if name.key not in written]:
                misspelled = dict(self._misspelled(wrong, masked.given, written, hypothesis))
                lost = [name for name in wrong if name in misspelled or self.masker.is_rare(name.key)]
                account = Faults((*account.lost, *lost), (*account.invented, *misspelled.values()))
            text = masked.restore(written) if masked.symbols or masked.capitals else written
            again = not asked.options.no_repeat_ngram and repeats(source_ids, hypothesis.ids)
            yield Judged(hypothesis, written, text, account, again)

    def _misspelled(
        self, names: Sequence[Fact], given: str, written: str, hypothesis: Hypothesis
    ) -> Iterator[tuple[Fact, Fact]]:
        """Names, each with the similar word that an unsure model wrote in its place: Núñez and Areñez. A sure
        model's Londres for London is no misspelling."""
        new = [word for word in re.finditer(r"[^\W\d_]{3,}", written) if word[0] not in given]
        places = token_places(hypothesis.ids, self.target.decode) if new else []
        for name in names:
            for other in new:
                log_probs = [
                    log_prob
                    for (start, end), log_prob in zip(places, hypothesis.token_log_probs, strict=False)
                    if start < other.end() and end > other.start() and start < end
                ]
                alike = SequenceMatcher(None, name.key.lower(), other[0].lower()).ratio()
                if min(log_probs, default=0) < UNSURE and alike > (ALIKE if other[0][0].isupper() else ALMOST):
                    yield name, Fact("name", other[0], *other.span())
                    break


def names_in(text: Protected) -> list[Fact]:
    """Words with a capital letter; the first one of a sentence, if it is a ruler's."""
    found = re.finditer(rf"(?:(?<=[\w,;] )|(?={_RULER}))[^\W\d_a-zß-öø-ÿ][^\W\d_]{{3,}}", text.text)
    return [Fact("name", name[0], *name.span()) for name in found]


def chosen(asked: Asked, found: Sequence[Judged]) -> Tried:
    """The hypothesis with the fewest faults. The others that are asked for follow it in their order."""
    enough = found[0].hypothesis.score - MARGIN

    def rank(one: Judged) -> tuple[int, int]:
        light = len(one.account.lost) + len(one.account.invented)
        return one.faults, light if one.hypothesis.score >= enough else UNREADABLE

    best = min(found, key=rank)
    distinct: dict[str, Hypothesis] = {}
    for one in (best, *found):
        if one.text is not None and len(distinct) < asked.options.n_best:
            distinct.setdefault(without_inventions(one.text, asked.masked.source.text, one.account), one.hypothesis)
    if not distinct or best.text is None:
        return Tried(asked, best, None)
    doubts = tuple(doubts_of(asked.masked, best)) if any(best.account) else ()
    source = asked.masked.source.text
    return Tried(asked, best, Sentence(source, (*distinct,), (*distinct.values(),), *asked, doubts))


def without_inventions(text: str, source: str, account: Faults) -> str:
    """A translation never has a currency sign, nor the mark of a broken character, that its source does not have."""
    signs = account.invented and {fact.key for fact in account.invented} & set(NEVER_INVENTED) - set(source)
    return " ".join(text.translate(dict.fromkeys(map(ord, signs))).split()) if signs else text


def doubts_of(masked: Masked, best: Judged) -> Iterator[Doubt]:
    """What is to be looked at: what was lost with what stands in its place, then every other fault."""
    things = str.maketrans(masked.things)
    pairs = paired(best.account)
    lost = {fact: said(fact, masked.given).strip().translate(things) for fact in best.account.lost}
    invented = {fact: said(fact, best.written).strip().translate(things) for fact in best.account.invented}
    yield from (Doubt(fact.kind, lost.pop(fact), invented.pop(wrong)) for fact, wrong in pairs)
    yield from (Doubt(fact.kind, text, "") for fact, text in lost.items() if fact.kind != "words")
    yield from (Doubt(fact.kind, "", text) for fact, text in invented.items())


def paired(account: Faults) -> list[tuple[Fact, Fact]]:
    """What was lost, with what was invented in its place: the first of a kind with the first of the same kind."""
    groups = (([fact for fact in facts if fact.kind == kind] for facts in account) for kind in ALWAYS)
    return [pair for lost, invented in groups for pair in zip(lost, invented, strict=False)]


def next_search(tried: Tried, judge: Judge) -> Asked | None:
    """A second search. If a fact came out wrong, the translation up to it is forced, with the right fact in its place.
    Otherwise lost facts are hidden behind symbols and invented ones are forbidden."""
    masked, options = tried.asked
    best, account = tried.best, tried.best.account
    masker, tokenizer, lexicons = judge
    if best.text is None:
        masked = masker.mask(masked.source, hide_names=False)
        return Asked(masked, options) if masked != tried.asked.masked else None
    if best.repeats:
        options = replace(options, no_repeat_ngram=NO_REPEAT)
    if pairs := paired(account):
        right = [
            (wrong, obliging(fact.key, said(wrong, best.written), lexicons[1]))
            if fact.kind == "obligation"
            else (wrong, rendered(fact, said(fact, masked.given), *lexicons))
            for fact, wrong in pairs
        ]
        prefix = tuple(tokenizer.encode(corrected(best.written, right)))
        return Asked(masked, replace(options, prefix=prefix)) if len(prefix) < options.max_length else None
    if hidden := lost(tried, lexicons):
        masked = masker.mask(masked.source, also=hidden)
    wrong = {said(fact, best.written) for fact in account.invented}
    forbidden = {i for text in wrong for i in tokenizer.encode(text) if tokenizer.token(i).strip("▁⇧⇪")}
    options = replace(options, suppressed=(*options.suppressed, *sorted(forbidden)))
    return Asked(masked, options) if (masked, options) != tried.asked else None


def corrected(written: str, right: Sequence[tuple[Fact, str]]) -> str:
    """A translation up to the last of its wrong facts, the right ones in their places. After a Roman numeral the next
    word stays, too, or the search may go on with the numeral."""
    text, at, instead = "", 0, ""
    for wrong, instead in sorted(right, key=lambda pair: pair[0].start):
        capital = wrong.start == 0 and written[:1].isupper()
        text += written[at : wrong.start] + (instead[:1].upper() + instead[1:] if capital else instead)
        at = wrong.end
    following = re.compile(r"\s?(?:\w+|[^\w\s])").match(written, at) if instead.isupper() else None
    return text + (following[0] if following else "")


def lost(tried: Tried, lexicons: Lexicons) -> dict[Span, str]:
    """The places of lost facts that can be hidden or copied, each with how the target language writes it. A number in
    words can't: it is translated with what it counts."""
    masked, source = tried.asked.masked, tried.asked.masked.source
    places = dict[Span, str]()
    for fact in tried.best.account.lost:
        text = said(fact, masked.given)
        can_be = fact.kind in HIDEABLE and (fact.kind != "number" or fact.of_century or not text.islower())
        at = source.text.find(text) if can_be else -1
        if at >= 0 and is_free(at, at + len(text), [*places]):
            places[Span(at, at + len(text), fact.kind)] = rendered(fact, text, *lexicons)
    return places


def said(fact: Fact, text: str) -> str:
    return text[fact.start : fact.end]


def cut_at(tried: Tried, judge: Judge) -> tuple[list[Span], list[tuple[int, Pieces]]]:
    """The places that a sentence is cut around: all that must come through whole, what was lost, and the commas of a
    list that lost items; and those of them that the target language writes in another way, as pieces."""
    masked, options = tried.asked
    source, taken, written = masked.source, list(masked.source.spans), list[tuple[int, Pieces]]()
    wanted = lost(tried, judge.lexicons)
    is_list = any(fact.kind == "list" for fact in tried.best.account.lost)
    commas = [Span(*comma.span(), "list") for comma in re.finditer(",", source.text) if is_list]
    for place in (*judge.masker.unspellable(source), *masked.places, *wanted, *commas):
        if is_free(place.start, place.end, taken) and not re.match("['’]s\\b", source.text[place.end :]):
            taken.append(place)
            part = source.part(place.start, place.end)
            text = wanted.get(place) or masked.written.get(part.text, part.text)
            nothing = Hypothesis((), 0.0, 0.0, (), ended=True)
            if text != part.text:
                written.append((place.start, (Sentence(part.text, (text,), (nothing,), Masked(part, ""), options),)))
    return sorted(taken), written


def most_found(options: Options) -> int:
    """The most hypotheses that a search can return at no extra cost."""
    return options.n_best if options.sampling or options.length_penalty == 0 else options.beam


def repeats(source: Ids, target: Ids) -> bool:
    """Whether the target repeats a few tokens four times in a row and the source does not. Models do so with input that
    they hardly saw in training: a single word, a line of capitals, another language."""
    found, there = (re.search(AGAIN, "".join(map(chr, ids))) for ids in (target, source))
    return bool(found and not there)
