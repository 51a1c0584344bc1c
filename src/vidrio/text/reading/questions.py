"""Questions that are typed without their mark, as many are. A word at the beginning tells that a text may be one; it is
read as one, too, and the likelier translation is taken (attempts.py)."""

import re

from vidrio.text.pattern import pattern, word_set

ENGLISH = word_set(
    "what what's whats where where's wheres who who's whos whom whose how how's hows why when which "
    "do does did is are was were am can could will would shall should may have had "
    "don't doesn't didn't isn't aren't wasn't weren't can't couldn't won't wouldn't shouldn't hasn't haven't "
    "dont doesnt didnt isnt arent wasnt werent cant couldnt wont wouldnt shouldnt hasnt havent"
)
_ACCENTS = str.maketrans("áéíóú", "aeiou")
# With the accent that many leave out. Of verbs those that ask more often than they tell.
SPANISH = {
    word.translate(_ACCENTS): word
    for word in word_set(
        "qué cómo dónde adónde cuándo quién quiénes cuál cuáles cuánto cuánta cuántos cuántas "
        "quieres querés puedes podrías sabes hablas conoces recuerdas crees"
    )
}
_BEFORE = "a|al|de|del|por|en|con|para|desde|hasta|sobre|y|pero|at|in|on|from|to|for|with|and|but|so"  # in what
_ASKING = pattern(rf"(?i:(?:{_BEFORE})\s)?(?P<word>[^\W\d_]+(?:['’][^\W\d_]+)?)(?=\s)")


def asking(text: str) -> re.Match[str] | None:
    """The beginning of a text that may be a question, though it ends without any mark, with its word that asks."""
    found = _ASKING.match(text) if text[-1:].isalnum() else None
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
