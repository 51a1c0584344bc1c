"""The second document on words in and words out: special tokens, teacher forcing, and the way from end to end."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from vidrio.glass.numbers.trace import Trace
from vidrio.glass.paper.transformer import translate_forced
from vidrio.lessons.as_data import Measured
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


def measure_tokens() -> Measured:
    """The document's question between start and end, and the vocabulary."""
    tokenizer = small_tokenizer()
    ids = [tokenizer.special.start, *tokenizer.encode(QUESTION), tokenizer.special.end]
    vocabulary, tokens = tokenizer.vocabulary(), [tokenizer.token(i) for i in ids]
    rows = [["token", *tokens], ["id", *map(str, ids)]]
    long, short = ids[1:-1], tokenizer.encode("el domingo")

    def encoded(text: str) -> dict[str, Any]:
        return {"tokens": " ".join(tokenizer.tokens(text)), "ids": tokenizer.encode(text)}

    page = {
        **{"question": QUESTION, "special": tokenizer.special, "domingo": tokenizer.id("domingo")},
        **{"unknown": encoded("el lunes"), "written_end": encoded("el [end]"), "text": tokenizer.decode(ids)},
        "aligned": layout.table(rows, align="l" + "r" * len(ids), gap=" "),
        "known": ", ".join(f"{i}{writing.NO_BREAK}{token}" for i, token in enumerate(vocabulary)),
        "padded": np.array([long, [*short, *[tokenizer.special.pad] * (len(long) - len(short))]]),
    }
    return Measured(page, vocabulary=vocabulary, tokens=tokens, ids=ids)


# --- teacher forcing --------------------------------------------------------------------------------------------------


def measure_forcing() -> Measured:
    """Force `hello world` → `hola mundo` through the lesson's model, and with the last input word changed."""
    values = trained()  # of `hello world`
    special, words = values.config.special, values.vocabulary
    taken = [words.index("hola"), words.index("mundo"), special.end]
    inputs = [special.start, *taken[:-1]]
    trace = Trace(values.machine(), [words[i] for i in values.source_ids], [words[i] for i in inputs], vocabulary=words)
    prob_TV = translate_forced(trace.machine, values.source_ids, inputs, trace.tap)
    other_TV = translate_forced(trace.machine, values.source_ids, [*inputs[:-1], words.index("hello")])
    prob_T = prob_TV[np.arange(len(taken)), taken]
    losses_T = -np.log(prob_T)
    page = {
        **{"rows": range(len(taken)), "inputs": trace.target_tokens, "probabilities": prob_TV[:, taken]},
        **{"losses_T": losses_T, "loss": losses_T.sum(), "mean_loss": losses_T.mean()},
    }
    return Measured(
        page,
        trace=trace,
        expected=[words[i] for i in taken],
        prob_T=prob_T,  # of the expected word after each row
        moved_T=np.abs(prob_TV - other_TV).max(axis=1),  # how far each row's probabilities move
    )


# --- the way from end to end ------------------------------------------------------------------------------------------


def first_step() -> Trace:
    """The first decoding step of `hello world` on the lesson's model."""
    return Lesson("trained", trained()).run("whole").as_of(0)


def measure_structure() -> Measured:
    """All numbers of that step."""
    trace = first_step()
    prob_V = trace.values["out.prob"][0]
    likeliest = np.argsort(-prob_V)[:5]
    best, parameters = int(likeliest[0]), trace.machine.parameters
    page = {
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
    return Measured(page, **trace.values)


def _document_steps(trace: Trace) -> Iterator[dict[str, Any]]:
    """The document's ten steps: its words, what really happens, and the shapes of the numbers."""
    for number, step in enumerate(pages("notes")["structure"]["step"], 1):
        shapes = ", ".join(f"{name} {writing.shape(trace.values[name])}" for name in step["addresses"])
        yield {**step, "number": number, "shapes": [Note(shapes, indent=6)] if shapes else []}
