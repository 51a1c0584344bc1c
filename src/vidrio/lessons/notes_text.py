"""The second document on words in and words out: special tokens, teacher forcing, and the way from end to end."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vidrio.draw import show
from vidrio.glass.numbers.trace import Trace
from vidrio.glass.paper.maths import Array
from vidrio.glass.paper.transformer import translate_forced
from vidrio.lessons.pages import pages
from vidrio.lessons.runs import Lesson
from vidrio.lessons.values import trained
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

    @property
    def aligned(self) -> str:
        """Each token above its id."""
        rows = [["token", *self.tokens], ["id", *map(str, self.ids)]]
        return show.table(rows, align="l" + "r" * len(self.ids), gap=" ")

    @property
    def known(self) -> str:
        return ", ".join(f"{i}{show.NO_BREAK}{token}" for i, token in enumerate(self.vocabulary))

    @property
    def text(self) -> str:
        return small_tokenizer().decode(self.ids)

    @property
    def padded(self) -> Array:
        """The question in one batch with a shorter sentence."""
        long, short = self.ids[1:-1], small_tokenizer().encode("el domingo")
        return np.array([long, [*short, *[small_tokenizer().special.pad] * (len(long) - len(short))]])


def measure_tokens() -> Tokens:
    tokenizer = small_tokenizer()
    ids = [tokenizer.special.start, *tokenizer.encode(QUESTION), tokenizer.special.end]
    return Tokens(tokenizer.vocabulary(), [tokenizer.token(i) for i in ids], ids)


def encoded(text: str) -> dict[str, Any]:
    return {"tokens": " ".join(small_tokenizer().tokens(text)), "ids": small_tokenizer().encode(text)}


TOKENS_SETTINGS = {
    "question": QUESTION,
    "special": small_tokenizer().special,
    "domingo": small_tokenizer().id("domingo"),
    "unknown": encoded("el lunes"),
    "written_end": encoded("el [end]"),
}

# --- teacher forcing --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Forced:
    """One pass of the lesson's model over a given translation, and over it with the last input word changed."""

    trace: Trace
    expected: list[str]
    prob_T: Array  # of the expected word after each row
    moved_T: Array  # how far each row's probabilities move when the last input word is another one

    @property
    def rows(self) -> range:
        return range(len(self.expected))

    @property
    def losses_T(self) -> Array:
        return -np.log(self.prob_T)

    @property
    def loss(self) -> float:
        return float(self.losses_T.sum())

    @property
    def mean_loss(self) -> float:
        return float(self.losses_T.mean())

    @property
    def inputs(self) -> Sequence[str]:
        return self.trace.target_tokens

    @property
    def probabilities(self) -> Array:
        """Of the expected words, in every row."""
        return self.trace.values["out.prob"][:, [self.trace.vocabulary.index(word) for word in self.expected]]


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


@dataclass(frozen=True)
class FirstWord:
    """What the page tells of that step."""

    trace: Trace

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The document's ten steps: its words, what really happens, and the shapes of the numbers."""
        return [
            {**step, "number": number, "shapes": list(self._shapes(step["addresses"]))}
            for number, step in enumerate(pages("notes")["structure"]["step"], 1)
        ]

    def _shapes(self, addresses: Sequence[str]) -> Iterator[Note]:
        if addresses:
            yield Note(", ".join(f"{name} {show.shape(self.trace.values[name])}" for name in addresses), indent=6)

    @property
    def words(self) -> Sequence[str]:
        return self.trace.vocabulary

    @property
    def likeliest(self) -> Array:
        return np.argsort(-self.prob_V)[:5]

    @property
    def best(self) -> int:
        return int(self.likeliest[0])

    @property
    def prob_V(self) -> Array:
        return self.trace.values["out.prob"][0]

    @property
    def logits_V(self) -> Array:
        return self.trace.values["out.logits"][0]

    # one logit by hand

    @property
    def row_D(self) -> Array:
        return self.trace.values["dec.out"][0]

    @property
    def column_D(self) -> Array:
        return self.trace.machine.parameters["out.W"][:, self.best]

    @property
    def bias(self) -> float:
        return float(self.trace.machine.parameters["out.b"][self.best])
