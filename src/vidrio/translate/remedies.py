"""What to search for next if a translation has lost or invented something.

The first remedy is another hypothesis of the same beam (judging.py). REMEDIES are tried in order as long as there are
faults; faults that remain become the sentence's doubts.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from vidrio.hypothesis import Hypothesis, Options
from vidrio.text.account import LIGHT, Fact, facts
from vidrio.text.mask import Masked
from vidrio.text.protect import Span, is_free, spans
from vidrio.text.rendering import in_notation, obliging, rendered
from vidrio.text.sentences import around
from vidrio.translate.judging import UNREADABLE, Asked, Judge, Tried, paired, said
from vidrio.translate.translation import Sentence, fitted

NO_REPEAT = 3  # tokens that may not recur, if a translation repeated itself
HIDEABLE = ("number", "calendar", "sign", "name")
ALIKE = {("calendar", False), ("number", True)}  # kinds, and whether they are of a century
WITH_POWER = r"\S*\d\s[^\W\d]+"
LARGE = r"\d{7,}"  # other numbers in words are translated with what they count


class Plan(NamedTuple):
    """What of a sentence is searched for, and where it stands; and what is written without a search."""

    asked: Sequence[tuple[int, Asked]]
    written: Sequence[tuple[int, Sentence]] = ()


def searched_again(tried: Tried, judge: Judge) -> Plan | None:
    """The whole sentence once more, differently. If a symbol was lost, names are not hidden. If a fact came out wrong,
    the translation up to it is forced, with the right fact in its place. Otherwise lost facts are hidden behind symbols
    and invented ones are forbidden."""
    masked, options = tried.asked
    account, written = tried.best.account, tried.best.written
    if tried.best.text is None:
        masked = judge.masker.mask(masked.source, hide_names=False)
        return Plan([(0, Asked(masked, options))]) if masked != tried.asked.masked else None
    if tried.best.repeats:
        options = replace(options, no_repeat_ngram=NO_REPEAT)
    hides_names = bool(judge.masker.symbols)
    never_forced = (*LIGHT, "name") if hides_names else LIGHT
    if pairs := [pair for pair in paired(account) if pair[0].kind not in never_forced]:
        right = [(wrong, _right(fact, wrong, tried, judge)) for fact, wrong in pairs]
        options = replace(options, prefix=tuple(judge.target.encode(corrected(written, right))))
        return Plan([(0, Asked(masked, options))]) if len(options.prefix) < options.max_length else None
    if hidden := hideable(tried, judge):
        masked = judge.masker.mask(masked.source, also=hidden)
    wrong = {said(fact, written) for fact in account.invented if fact.kind != "name"}
    tokens = {i for text in wrong for i in judge.target.encode(text) if judge.target.token(i).strip("▁⇧⇪")}
    options = replace(options, suppressed=(*options.suppressed, *sorted(tokens)))
    return Plan([(0, Asked(masked, options))]) if (masked, options) != tried.asked else None


def in_parts(tried: Tried, judge: Judge) -> Plan:
    """Translate the parts of the sentence around protected spans and facts, which are copied or written in the target
    language."""
    masked, options = tried.asked
    source, wanted, protected = masked.source, hideable(tried, judge), spans(masked.source)
    is_list = any(fact.kind == "list" for fact in tried.best.account.lost)
    commas = [Span(*comma.span(), "list") for comma in re.finditer(",", source) if is_list]
    taken, written = list[Span](), dict[int, tuple[str, str]]()
    for place in (*wanted, *protected, *judge.masker.unspellable(source), *masked.hidden, *commas):
        if is_free(place.start, place.end, taken) and not re.match("['’]s\\b", source[place.end :]):
            taken.append(place)
            text = source[place.start : place.end]
            # Python 3.11 stays as it is; 3,110 would be three, and a fraction, in Spanish.
            is_grouped = place.kind == "number" and re.search(r"\d[.,]\d{3}(?!\d)", text)
            copied = masked.hidden.get(place, in_notation(text, *judge.lexicons) if is_grouped else text)
            written[place.start] = text, copied if place in protected else wanted.get(place, copied)
    options = replace(options, no_repeat_ngram=options.no_repeat_ngram or NO_REPEAT, prefix=())
    asked = list[tuple[int, Asked]]()
    [*joints], [*others] = (lexicon.joints[:1] for lexicon in judge.lexicons)
    for start, end in around(source, 0, len(source), sorted(taken)):
        if [source[start:end]] == joints:
            written[start] = source[start:end], others[0]
        else:
            asked.append((start, Asked(judge.masker.mask(source[start:end], hide_names=False), options)))
    nothing = Hypothesis((), 0.0, 0.0, (), ended=True)
    fixed = {at: Sentence(text, (new,), (nothing,), Masked(text, ""), options) for at, (text, new) in written.items()}
    return Plan(asked, [(at, sentence) for at, sentence in fixed.items() if sentence.text != sentence.source])


REMEDIES = (searched_again, in_parts)


def together(before: Tried, plan: Plan, found: Sequence[Tried], judge: Judge) -> Tried:
    """The sentence as a plan translates it, if that has fewer faults than before."""
    [*places] = plan.written
    for (start, asked), part in zip(plan.asked, found, strict=True):
        if asked.masked.source == before.asked.masked.source:
            return min(before, part, key=lambda one: one.faults)
        for sentence in part.pieces:
            texts = tuple(fitted(sentence.source, text, judge.lexicons[1]) for text in sentence.alternatives)
            places.append((start, sentence._replace(alternatives=texts)))
    faults = sum(part.faults % UNREADABLE for part in found)
    pieces = tuple(sentence._replace(source_start=start) for start, sentence in sorted(places, key=lambda one: one[0]))
    return before._replace(pieces=pieces, faults=faults) if faults < before.faults else before


def _right(fact: Fact, wrong: Fact, tried: Tried, judge: Judge) -> str:
    """What should replace a wrong fact."""
    if fact.kind == "obligation":
        return obliging(fact.key, said(wrong, tried.best.written), judge.lexicons[1])
    return rendered(fact, said(fact, tried.asked.masked.given), *judge.lexicons)


def corrected(written: str, right: Sequence[tuple[Fact, str]]) -> str:
    """A translation up to the last of its wrong facts, with the right ones in their places. After a Roman numeral the
    next word is kept, too, or the search may continue with the numeral."""
    text, at, instead = "", 0, ""
    for wrong, instead in sorted(right, key=lambda pair: pair[0].start):
        capital = wrong.start == 0 and written[:1].isupper()
        text += written[at : wrong.start] + (instead[:1].upper() + instead[1:] if capital else instead)
        at = wrong.end
    following = re.compile(r"\s?(?:\w+|[^\w\s])").match(written, at) if instead.isupper() else None
    return text + (following[0] if following else "")


def hideable(tried: Tried, judge: Judge) -> dict[Span, str]:
    """The positions of lost facts that can be hidden or copied, each with its form in the target language. Centuries,
    months and days go together: a model that confuses one of them confuses its neighbours, too. "31 trillion" is never
    parted."""
    masked, account = tried.asked.masked, tried.best.account
    kinds = {(fact.kind, fact.of_century) for faults in account for fact in faults} & ALIKE
    every = (fact for fact in facts(masked.given, judge.lexicons[0]) if fact.sure)
    others = (
        fact
        for fact in every
        if (fact.kind, fact.of_century) in kinds or re.fullmatch(WITH_POWER, said(fact, masked.given))
    )
    places = dict[Span, str]()
    for fact in dict.fromkeys((*account.lost, *others)):
        text = said(fact, masked.given)
        is_word = fact.kind == "number" and text.islower() and not fact.of_century
        if fact.kind not in HIDEABLE or (is_word and not re.fullmatch(LARGE, fact.key)):
            continue
        pattern = rf"(?<!\w){re.escape(text)}(?!\w)" if text[:1].isalnum() else re.escape(text)
        found = (Span(*match.span(), fact.kind) for match in re.finditer(pattern, masked.source))
        place = next((place for place in found if is_free(place.start, place.end, [*places])), None)
        if place:
            places[place] = rendered(fact, text, *judge.lexicons)
    return places


def most_found(options: Options) -> int:
    """The most hypotheses that a search can return at no extra cost."""
    return options.n_best if options.sampling or options.length_penalty == 0 else options.beam
