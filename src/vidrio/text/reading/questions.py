"""Questions that are typed without their mark, as many are. How a text begins tells that it is one; or that it may be
one: then it is read as a question, too, and the likelier translation is taken (attempts.py)."""

from vidrio.text.pattern import pattern, word_set

_BEFORE = "a|al|de|del|por|en|con|para|desde|hasta|sobre|y|pero|at|in|on|from|to|for|with|and|but|so"  # in what
_WHAT = "what|where|who|whose|how|why|when|which"
_HAVE = "do|have|don['’]?t|haven['’]?t"
_IS = (
    "is|isn['’]?t|are|aren['’]?t|am|was|wasn['’]?t|were|weren['’]?t|does|doesn['’]?t|did|didn['’]?t|"
    "can|can['’]?t|could|couldn['’]?t|will|won['’]?t|would|wouldn['’]?t|shall"
)
_SHOULD = "should|shouldn['’]?t"
_SUBJECT = "i|you|he|she|we|they|there|my|your|his|her|our|their|the|it|this|that|these|those"
# Words stand otherwise in an English question: where is the, do you, how much is this. "Should you need it" is none.
SURELY = pattern(
    rf"(?i:(?:(?:{_BEFORE})\s)?(?:(?:{_WHAT})['’]?s\s|(?:(?:{_WHAT})(?:\s(?!(?:{_SUBJECT})\b)[\w'’]+){{0,2}}?\s)?"
    rf"(?:(?:{_HAVE})\s(?:i|you|we|they)|(?!were\si\b)(?:{_IS})\s(?:{_SUBJECT})|(?:{_SHOULD})\s(?:i|he|she|we|they)|"
    rf"may\s(?:i|we))\b))"
)
_ACCENTS = str.maketrans("áéíóú", "aeiou")
# With the accent that many leave out. Of verbs those that ask more often than they tell.
_SPANISH = word_set(
    "qué cómo dónde adónde cuándo quién quiénes cuál cuáles cuánto cuánta cuántos cuántas "
    "quieres querés puedes podrías sabes hablas conoces recuerdas crees"
)
WRITTEN = {word.translate(_ACCENTS): word for word in _SPANISH}
# Not: what I mean, when you come, what a day; Will Smith.
_ENGLISH = rf"(?:{_WHAT})(?!\s(?:i|you|he|she|we|they|an?)\b)|(?!will\s(?-i:[A-Z]))(?:{_IS})|{_HAVE}|{_SHOULD}|may"
MAYBE = pattern(
    rf"(?i:(?:(?:{_BEFORE})\s)?(?:(?P<spanish>{'|'.join(sorted(_SPANISH | WRITTEN.keys()))})|{_ENGLISH})(?=\s))"
)
OPENING_MARK = "¿"
UNOPENED = pattern(rf"[^{OPENING_MARK}]*\?")  # a question that has only the mark at its end


def as_question(text: str) -> str:
    """A text that may be one, with the accent of its Spanish word that asks. Places stay what they are."""
    found = MAYBE.match(text)
    word = WRITTEN.get((found["spanish"] or "").lower(), "") if found else ""
    return text[: found.start("spanish") + 1] + word[1:] + text[found.end("spanish") :] if found and word else text


def opening(text: str) -> str:
    """What stands before a question in its language."""
    found = MAYBE.match(text)
    return OPENING_MARK if found and found["spanish"] else ""
