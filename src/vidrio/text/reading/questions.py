"""Questions that are typed without their mark, as many are. How a text begins tells that it is one; or that it may be
one: then it is read as a question, too, and the likelier translation is taken (attempts.py)."""

import re

from vidrio.text.pattern import pattern, word_set

_BEFORE = "a|al|de|del|por|en|con|para|desde|hasta|sobre|y|pero|at|in|on|from|to|for|with|and|but|so"  # in what
_WHAT = "what|where|who|whose|how|why|when|which"
_HAVE = "do|have|don't|haven't|dont|havent"
_IS = (
    "is|isn't|isnt|are|aren't|arent|am|was|wasn't|wasnt|were|weren't|werent|does|doesn't|doesnt|did|didn't|didnt|"
    "can|can't|cant|could|couldn't|couldnt|will|won't|wont|would|wouldn't|wouldnt|shall"
)
_SHOULD = "should|shouldn't|shouldnt"
_SUBJECT = "i|you|he|she|we|they|there|my|your|his|her|our|their|the|it|this|that|these|those"
# Words stand otherwise in an English question: where is the, do you, how much is this. "Should you need it" is none.
_SURELY = pattern(
    rf"(?i:(?:(?:{_BEFORE})\s)?(?:(?:{_WHAT})'?s\s|(?:(?:{_WHAT})(?:\s(?!(?:{_SUBJECT})\b)[\w'’]+){{0,2}}?\s)?"
    rf"(?:(?:{_HAVE})\s(?:i|you|we|they)|(?!were\si\b)(?:{_IS})\s(?:{_SUBJECT})|(?:{_SHOULD})\s(?:i|he|she|we|they)|"
    rf"may\s(?:i|we))\b))"
)
_MAYBE = pattern(rf"(?i:(?:{_BEFORE})\s)?(?P<word>[^\W\d_]+(?:['’][^\W\d_]+)?)(?=\s)")
ENGLISH = word_set(" ".join((_WHAT, _HAVE, _IS)).replace("|", " ") + " should may")
_ACCENTS = str.maketrans("áéíóú", "aeiou")
# With the accent that many leave out. Of verbs those that ask more often than they tell.
SPANISH = {
    word.translate(_ACCENTS): word
    for word in word_set(
        "qué cómo dónde adónde cuándo quién quiénes cuál cuáles cuánto cuánta cuántos cuántas "
        "quieres querés puedes podrías sabes hablas conoces recuerdas crees"
    )
}


def surely_asks(text: str) -> bool:
    """Whether it is a question, though it ends without any mark."""
    return text[-1:].isalnum() and _SURELY.match(text.replace("’", "'")) is not None


def asking(text: str) -> re.Match[str] | None:
    """The beginning of a text that may be a question, though it ends without any mark, with its word that asks."""
    found = _MAYBE.match(text) if text[-1:].isalnum() else None
    if found is None:
        return None
    word = found["word"].lower().replace("’", "'")
    return found if word in ENGLISH or word.translate(_ACCENTS) in SPANISH else None


def as_question(text: str) -> str:
    """With the accent of its word that asks. Places stay what they are."""
    found = asking(text)
    word = SPANISH.get(found["word"].lower(), "") if found else ""
    return text[: found.start("word") + 1] + word[1:] + text[found.end("word") :] if found and word else text


def opening(text: str) -> str:
    """What stands before a question in its language."""
    found = asking(text)
    return "¿" if found and found["word"].lower().translate(_ACCENTS) in SPANISH else ""
