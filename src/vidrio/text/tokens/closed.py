"""Check whether a tokenizer file contains exactly the steps that Vidrio writes.

A `tokenizers` file can chain arbitrary replacements and regular expressions, and nine of them can expand a word to
gigabytes. The normalizer, pre-tokenizer and decoder are therefore rebuilt from the file's few choices (the names of
special tokens, lower-casing, the letters whose capitals are marked) and compared with the ones in the file.
"""

import json
from typing import Any

import tokenizers
from tokenizers import models

from vidrio.text.tokens import case, normalise

MAX_SPECIAL = 4  # pad, unk, start, end


def has_our_steps(engine: tokenizers.Tokenizer) -> bool:
    """Return whether the normalizer, pre-tokenizer and decoder are the ones that Vidrio would write."""
    added = list(engine.get_added_tokens_decoder().values())
    names = [token.content for token in added if token.special]
    if len(names) != len(added) or len(names) > MAX_SPECIAL or not all(names):
        return False
    steps = _state(engine.normalizer).get("normalizers", [])
    if isinstance(engine.model, models.BPE):
        ours = normalise.for_bpe(names, cased="".join(dict.fromkeys(filter(None, map(_small_letter, steps)))))
    else:
        ours = normalise.for_words(names, lowercase={"type": "Lowercase"} in steps)
    found = (engine.normalizer, engine.pre_tokenizer, engine.decoder)
    return None not in found and [*map(_state, found)] == [*map(_state, ours)]


def _small_letter(step: dict[str, Any]) -> str:
    """Return the letter whose capital a step replaces, or an empty string for other steps."""
    letter = step.get("content", "")
    capital = case.capital_of(letter) if len(letter) == 1 else ""
    return letter if capital and step.get("pattern") == {"String": capital} else ""


def _state(part: Any) -> Any:
    """Return a step as the library serialises it."""
    return json.loads(part.__getstate__())
