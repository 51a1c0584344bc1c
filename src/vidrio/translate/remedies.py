"""Plan further searches for a sentence whose translation has lost or invented something.

The first remedy is another hypothesis of the same beam (judging.py). If faults remain, REMEDIES are tried in order.
Faults that remain even then become the sentence's warnings.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from vidrio.hypothesis import Hypothesis
from vidrio.text.account import MINOR, Fact, facts
from vidrio.text.mask import Masked
from vidrio.text.protect import Span, is_free, spans
from vidrio.text.rendering import in_notation, obliging, rendered
from vidrio.text.sentences import around
from vidrio.translate.judging import UNREADABLE, Attempt, Judge, Query, pairs_of, said
from vidrio.translate.translation import Sentence, fitted

NO_REPEAT = 3  # if a translation repeated itself, no sequence of this many tokens may recur
HIDEABLE = ("number", "calendar", "sign", "name")
ALIKE = {("calendar", False), ("number", True)}  # facts to hide together: their kind, and whether they are centuries
WITH_POWER = r"\S*\d\s[^\W\d]+"
LARGE = r"\d{7,}"  # smaller numbers in words are translated together with the noun that they count


class Plan(NamedTuple):
    """The parts of a sentence that need a search, and the parts that need none, each with its position."""

    queries: Sequence[tuple[int, Query]]
    fixed: Sequence[tuple[int, Sentence]] = ()


def search_again(attempt: Attempt, judge: Judge) -> Plan | None:
    """Plan another search for the whole sentence. If a symbol was lost, names are not hidden. If a fact is wrong, the
    search must start with the translation up to that fact, corrected. Otherwise, lost facts are hidden behind symbols,
    and the tokens of invented facts are forbidden."""
    masked, options = attempt.query
    account, written = attempt.best.account, attempt.best.written
    never_forced = (*MINOR, "name") if judge.masker.symbols else MINOR
    wrong = [pair for pair in pairs_of(account) if pair[0].kind not in never_forced]
    if attempt.best.repeats and attempt.best.text is not None:
        options = replace(options, no_repeat_ngram=NO_REPEAT)
    if attempt.best.text is None:
        masked = judge.masker.mask(masked.source, hide_names=False)
    elif wrong:
        corrections = [(fact, _correction(lost, fact, attempt, judge)) for lost, fact in wrong]
        prefix = tuple(judge.target.encode(corrected_prefix(written, corrections)))
        if len(prefix) >= options.max_length:
            return None
        options = replace(options, prefix=prefix)
    else:
        if hidden := hideable(attempt, judge):
            masked = judge.masker.mask(masked.source, also=hidden)
        invented = {said(fact, written) for fact in account.invented if fact.kind != "name"}
        tokens = {i for text in invented for i in judge.target.encode(text) if judge.target.token(i).strip("▁⇧⇪")}
        options = replace(options, suppressed=(*options.suppressed, *sorted(tokens)))
    query = Query(masked, options)
    return Plan([(0, query)]) if query != attempt.query else None


def translate_parts(attempt: Attempt, judge: Judge) -> Plan:
    """Plan a separate search for each part of the sentence between protected spans and facts. The spans and facts are
    copied, or written in the target language."""
    masked, options = attempt.query
    source, wanted, protected = masked.source, hideable(attempt, judge), spans(masked.source)
    is_list = any(fact.kind == "list" for fact in attempt.best.account.lost)
    commas = [Span(*comma.span(), "list") for comma in re.finditer(",", source) if is_list]
    fixed = dict[Span, str]()
    for place in (*wanted, *protected, *judge.masker.unspellable(source), *masked.hidden, *commas):
        if is_free(place.start, place.end, [*fixed]) and not re.match("['’]s\\b", source[place.end :]):
            text = source[place.start : place.end]
            # Python 3.11 stays as it is, but 3,110 is converted, because in Spanish it would be three and a fraction.
            is_grouped = place.kind == "number" and re.search(r"\d[.,]\d{3}(?!\d)", text)
            copied = masked.hidden.get(place, in_notation(text, *judge.lexicons) if is_grouped else text)
            fixed[place] = copied if place in protected else wanted.get(place, copied)
    options = replace(options, no_repeat_ngram=options.no_repeat_ngram or NO_REPEAT, prefix=())
    queries = list[tuple[int, Query]]()
    conjunction, translated = (lexicon.joints[:1] for lexicon in judge.lexicons)
    for start, end in around(source, 0, len(source), sorted(fixed)):
        if translated and [source[start:end]] == conjunction:
            fixed[Span(start, end, "conjunction")] = translated[0]
        else:
            queries.append((start, Query(judge.masker.mask(source[start:end], hide_names=False), options)))
    nothing = Hypothesis((), 0.0, 0.0, (), ended=True)
    sentences = [
        (place.start, Sentence(text, (instead,), (nothing,), Masked(text, ""), options))
        for place, instead in fixed.items()
        if instead != (text := source[place.start : place.end])
    ]
    return Plan(queries, sentences)


REMEDIES = (search_again, translate_parts)


def combine(before: Attempt, plan: Plan, found: Sequence[Attempt], judge: Judge) -> Attempt:
    """Return the result of a plan if it has fewer faults than the previous attempt, otherwise the previous attempt."""
    if len(found) == 1 and found[0].query.masked.source == before.query.masked.source:
        return min(before, found[0], key=lambda one: one.faults)
    pieces = [sentence._replace(source_start=start) for start, sentence in plan.fixed]
    for (start, _), part in zip(plan.queries, found, strict=True):
        for sentence in part.pieces:
            texts = tuple(fitted(sentence.source, text, judge.lexicons[1]) for text in sentence.alternatives)
            pieces.append(sentence._replace(alternatives=texts, source_start=start))
    faults = sum(part.faults % UNREADABLE for part in found)
    pieces.sort(key=lambda one: one.source_start)
    return before._replace(pieces=tuple(pieces), faults=faults) if faults < before.faults else before


def _correction(fact: Fact, wrong: Fact, attempt: Attempt, judge: Judge) -> str:
    """Return the text that should replace a wrong fact."""
    if fact.kind == "obligation":
        return obliging(fact.key, said(wrong, attempt.best.written), judge.lexicons[1])
    return rendered(fact, said(fact, attempt.query.masked.given), *judge.lexicons)


def corrected_prefix(written: str, right: Sequence[tuple[Fact, str]]) -> str:
    """Return a translation up to its last wrong fact, with the facts corrected. After a Roman numeral, the next word is
    also kept; otherwise, the search might extend the numeral."""
    text, at, instead = "", 0, ""
    for wrong, instead in sorted(right, key=lambda pair: pair[0].start):
        capital = wrong.start == 0 and written[:1].isupper()
        text += written[at : wrong.start] + (instead[:1].upper() + instead[1:] if capital else instead)
        at = wrong.end
    following = re.compile(r"\s?(?:\w+|[^\w\s])").match(written, at) if instead.isupper() else None
    return text + (following[0] if following else "")


def hideable(attempt: Attempt, judge: Judge) -> dict[Span, str]:
    """Return the spans of lost facts that can be hidden or copied, each with its form in the target language. If one
    century is wrong, all centuries are included, because a model that confuses one often confuses its neighbours; the
    same applies to months and days. Numbers such as "31 trillion" are never divided."""
    masked, account = attempt.query.masked, attempt.best.account
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
