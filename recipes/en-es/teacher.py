"""Teach Spanish to a Portuguese model, and let it translate.

    python teacher.py spell FROM.tsv TO.tsv                          # spell the Spanish side of pairs in Portuguese
    python teacher.py write MODEL LANGUAGE SENTENCES TO              # translate from LANGUAGE, en or es

A model's SentencePiece vocabulary is fixed, and the Portuguese one lacks ñ, ü, ¿, ¡ and some capitals. Spanish is
therefore spelled with the tokens that Portuguese has: ñ as nh, and ¿ as a separate question mark.
"""

import re
import sys
from dataclasses import replace
from pathlib import Path

from corpora import read, write
from vidrio.translate.translator import Translator

LETTERS = {"ñ": "nh", "Ñ": "Nh", "ü": "õ", "Í": "ôi", "Ó": "ôo", "Ú": "ôu", "Ü": "ôõ"}  # ô and õ are not Spanish
SIGNS = {"¿": " ? ", "¡": " ! "}
PLAIN = str.maketrans({**dict.fromkeys("“”„«»", '"'), **dict.fromkeys("’‘", "'"), **dict.fromkeys("–—−‐", "-")})


def spelled(text: str) -> str:
    """Spell Spanish with the tokens of Portuguese."""
    text = re.sub("([nN])h", r"\1nh", text.translate(PLAIN))
    for letter, letters in {**LETTERS, **SIGNS}.items():
        text = text.replace(letter, letters)
    return " ".join(text.split())


def unspelled(text: str) -> str:
    """Undo `spelled`."""
    for sign, plain in SIGNS.items():
        text = re.sub(rf"(^| )\{plain.strip()} ", rf"\1{sign}", text)
    text = re.sub(r'(\(|(?:^|(?<= ))["-]) ([¿¡])', r"\1\2", text)  # after an opening sign
    for letter in "üÍÓÚÜ":
        text = text.replace(LETTERS[letter], letter)
    text = re.sub(r"(?<![nN])(n|N)h(?=[aeiouáéíóúAEIOU])", lambda match: "ñ" if match[1] == "n" else "Ñ", text)
    return re.sub("([nN])nh", r"\1h", text)


def written(model: str, language: str, sentences: Path, to: Path) -> None:
    """Translate the sentences greedily. Continue after an interruption."""
    lines = sentences.read_text(encoding="utf-8").split("\n")[:-1]
    before = to.read_bytes() if to.exists() else b""
    done, complete = before.count(b"\n"), before.rfind(b"\n") + 1
    translator = Translator.load(model)
    texts = (spelled(line) if language == "es" else line for line in lines[done:])
    with to.open("a", encoding="utf-8") as out:
        out.truncate(complete)  # drop a line that was interrupted
        for one in translator.stream(texts, replace(translator.options, beam=1)):
            text = unspelled(one.text) if language == "en" else one.text
            print(f"{one.confidence:.4f}\t{text}", file=out)


if __name__ == "__main__":
    if sys.argv[1] == "spell":
        write(Path(sys.argv[3]), ((english, spelled(spanish)) for english, spanish in read(Path(sys.argv[2]))))
    else:
        written(sys.argv[2], sys.argv[3], Path(sys.argv[4]), Path(sys.argv[5]))
