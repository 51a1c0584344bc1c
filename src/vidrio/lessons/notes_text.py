"""The second document on words in and words out: special tokens, teacher forcing, and the way from end to end."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from vidrio.glass.numbers.trace import Trace
from vidrio.glass.paper.maths import Array
from vidrio.glass.paper.transformer import translate_forced
from vidrio.lessons.pages import pages
from vidrio.lessons.runs import Lesson
from vidrio.lessons.values import trained
from vidrio.look import layout, writing
from vidrio.look.blocks import Note
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.text.tokens.vocabulary import SpecialNames

# --- special tokens ---------------------------------------------------------------------------------------------------

NAMES = SpecialNames("[pad]", "[unk]", "[start]", "[end]")
QUESTION = "¿Qué te parece el próximo domingo?"


def small_tokenizer() -> Tokenizer:
    """The words of the document's question, and four special tokens."""
    return Tokenizer.of_words(["¿", "qué", "te", "parece", "el", "próximo", "domingo", "?"], names=NAMES)


@dataclass(frozen=True)
class Tokens:
    """The document's question between start and end, and the vocabulary."""

    vocabulary: list[str]
    tokens: list[str]
    ids: list[int]

    def named(self) -> dict[str, Any]:
        """What its page names besides."""
        tokenizer = small_tokenizer()
        rows = [["token", *self.tokens], ["id", *map(str, self.ids)]]
        long, short = self.ids[1:-1], tokenizer.encode("el domingo")

        def encoded(text: str) -> dict[str, Any]:
            return {"tokens": " ".join(tokenizer.tokens(text)), "ids": tokenizer.encode(text)}

        return {
            "question": QUESTION,
            "special": tokenizer.special,
            "domingo": tokenizer.id("domingo"),
            "unknown": encoded("el lunes"),
            "written_end": encoded("el [end]"),
            "aligned": layout.table(rows, align="l" + "r" * len(self.ids), gap=" "),
            "known": ", ".join(f"{i}{writing.NO_BREAK}{token}" for i, token in enumerate(self.vocabulary)),
            "text": tokenizer.decode(self.ids),
            "padded": np.array([long, [*short, *[tokenizer.special.pad] * (len(long) - len(short))]]),
        }


def measure_tokens() -> Tokens:
    tokenizer = small_tokenizer()
    ids = [tokenizer.special.start, *tokenizer.encode(QUESTION), tokenizer.special.end]
    return Tokens(tokenizer.vocabulary(), [tokenizer.token(i) for i in ids], ids)


# --- teacher forcing --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Forced:
    """One pass of the lesson's model over a given translation, and over it with the last input word changed."""

    trace: Trace
    expected: list[str]
    prob_T: Array  # of the expected word after each row
    moved_T: Array  # how far each row's probabilities move when the last input word is another one

    def named(self) -> dict[str, Any]:
        """What its page names besides."""
        expected = [self.trace.vocabulary.index(word) for word in self.expected]
        losses_T = -np.log(self.prob_T)
        return {
            "rows": range(len(expected)),
            "losses_T": losses_T,
            "loss": losses_T.sum(),
            "mean_loss": losses_T.mean(),
            "inputs": self.trace.target_tokens,
            "probabilities": self.trace.values["out.prob"][:, expected],
        }


def measure_forcing() -> Forced:
    """Force `hello world` → `hola mundo` through the model."""
    values = trained()  # of `hello world`
    special, words = values.config.special, values.vocabulary
    taken = [words.index("hola"), words.index("mundo"), special.end]
    inputs = [special.start, *taken[:-1]]
    trace = Trace(values.machine(), [words[i] for i in values.source_ids], [words[i] for i in inputs], vocabulary=words)
    prob_TV = translate_forced(trace.machine, values.source_ids, inputs, trace.tap)
    other_TV = translate_forced(trace.machine, values.source_ids, [*inputs[:-1], words.index("hello")])
    return Forced(
        trace,
        [words[i] for i in taken],
        prob_TV[np.arange(len(taken)), taken],
        np.abs(prob_TV - other_TV).max(axis=1),
    )


# --- the way from end to end ------------------------------------------------------------------------------------------


def first_step() -> Trace:
    """The first decoding step of `hello world` on the lesson's model."""
    return Lesson("trained", trained()).run("whole").as_of(0)


def named_of_first_step(trace: Trace) -> dict[str, Any]:
    """What the page tells of that step."""
    prob_V = trace.values["out.prob"][0]
    likeliest = np.argsort(-prob_V)[:5]
    best, parameters = int(likeliest[0]), trace.machine.parameters
    return {
        "steps": list(_document_steps(trace)),
        "words": trace.vocabulary,
        "likeliest": likeliest,
        "prob_V": prob_V,
        "logits_V": trace.values["out.logits"][0],
        # one logit by hand
        "best": best,
        "row_D": trace.values["dec.out"][0],
        "column_D": parameters["out.W"][:, best],
        "bias": parameters["out.b"][best],
    }


def _document_steps(trace: Trace) -> Iterator[dict[str, Any]]:
    """The document's ten steps: its words, what really happens, and the shapes of the numbers."""
    for number, step in enumerate(pages("notes")["structure"]["step"], 1):
        shapes = ", ".join(f"{name} {writing.shape(trace.values[name])}" for name in step["addresses"])
        yield {**step, "number": number, "shapes": [Note(shapes, indent=6)] if shapes else []}
