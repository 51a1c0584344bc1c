"""The second document on words in and words out: special tokens, teacher forcing, and the way from end to end."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from vidrio.draw import show
from vidrio.glass.numbers.trace import Trace, parameter_array
from vidrio.glass.paper.maths import Array
from vidrio.glass.paper.transformer import translate_forced
from vidrio.lessons.pages import pages, size
from vidrio.lessons.runs import Lesson
from vidrio.lessons.values import trained
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.text.tokens.vocabulary import SpecialNames

# --- special tokens ---------------------------------------------------------------------------------------------------

NAMES = SpecialNames("[pad]", "[unk]", "[start]", "[end]")
QUESTION = "¿Qué te parece el próximo domingo?"
PURPOSES = (
    ("padding", "[pad]", "fills up short sentences of a batch; masked"),
    ("unknown", "[unk]", "stands for a word that the vocabulary does not hold"),
    ("start", "[start]", "the decoder's first input: no word stands before the first"),
    ("end", "[end]", "the last word to be predicted: then decoding stops"),
)


def small_tokenizer() -> Tokenizer:
    """The words of the document's question, and four special tokens."""
    return Tokenizer.of_words(["¿", "qué", "te", "parece", "el", "próximo", "domingo", "?"], names=NAMES)


def measure_tokens() -> dict[str, Any]:
    """The document's question between start and end, and the vocabulary."""
    tokenizer = small_tokenizer()
    ids = [tokenizer.special.start, *tokenizer.encode(QUESTION), tokenizer.special.end]
    return {"vocabulary": tokenizer.vocabulary(), "tokens": [tokenizer.token(i) for i in ids], "ids": ids}


def values_of_tokens(seen: dict[str, Any], precision: int) -> dict[str, Any]:
    tokenizer, ids = small_tokenizer(), seen["ids"]
    short, long = tokenizer.encode("el domingo"), ids[1:-1]

    def encoded(text: str) -> str:
        return f"{text!r} → {' '.join(tokenizer.tokens(text))}, ids {tokenizer.encode(text)}"

    return {
        "question": QUESTION,
        "ids": show.table([["token", *seen["tokens"]], ["id", *map(str, ids)]], align="l" + "r" * len(ids), gap=" "),
        "size": tokenizer.size,
        "domingo": tokenizer.id("domingo"),
        "known": ", ".join(f"{i}{show.NO_BREAK}{token}" for i, token in enumerate(seen["vocabulary"])),
        "purposes": show.table([[kind, name, str(tokenizer.id(name)), says] for kind, name, says in PURPOSES]),
        "unknown": encoded("el lunes"),
        "written_end": encoded("el [end]"),
        "text": tokenizer.decode(ids),
        "padded": np.array([long, [*short, *[tokenizer.special.pad] * (len(long) - len(short))]]),
    }


# --- teacher forcing --------------------------------------------------------------------------------------------------

FRENCH = ("Le", "chat", "s'est", "assis")


@dataclass(frozen=True)
class Forced:
    """One pass of the lesson's model over a given translation, and over it with the last input word changed."""

    trace: Trace
    expected: list[str]
    prob_T: Array  # of the expected word after each row
    moved_T: Array  # how far each row's probabilities move when the last input word is another one


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


def values_of_forcing(seen: Forced, precision: int) -> dict[str, Any]:
    trace, losses_T = seen.trace, -np.log(seen.prob_T)
    columns = [seen.expected.index(word) for word in dict.fromkeys(seen.expected)]
    losses = [show.number(float(loss), precision) for loss in losses_T]
    rows = [
        [str(t), trace.target_tokens[t], seen.expected[t], show.number(p, precision), losses[t]]
        for t, p in enumerate(seen.prob_T)
    ]
    return {
        "aligned": show.table([["in", "<sos>", *FRENCH], ["out", *FRENCH, "<eos>"]]),
        "source": " ".join(trace.source_tokens),
        "rows": show.table(rows, ["row", "in", "expected", "p", "−log p"], "rllrr"),
        "losses": " + ".join(losses),
        "loss": losses_T.sum(),
        "mean_loss": losses_T.mean(),
        "first": seen.prob_T[0],
        "first_loss": losses_T[0],
        "prob": trace.values["out.prob"][:, [trace.vocabulary.index(seen.expected[c]) for c in columns]],
        "inputs": trace.target_tokens,
        "expected": [seen.expected[c] for c in columns],
        "moved": ", ".join(f"row {t}: {size(m)}" for t, m in enumerate(seen.moved_T)),
    }


# --- the way from end to end ------------------------------------------------------------------------------------------


def first_step() -> Trace:
    """The first decoding step of `hello world` on the lesson's model."""
    return Lesson("trained", trained()).run("whole").as_of(0)


def values_of_structure(trace: Trace, precision: int) -> dict[str, Any]:
    prob_V, logits_V = trace.values["out.prob"][0], trace.values["out.logits"][0]
    order = np.argsort(-prob_V)[:5]
    rows = [
        [trace.vocabulary[i], show.number(logits_V[i], precision), show.number(prob_V[i], precision)] for i in order
    ]
    return {
        "steps": "\n\n".join("\n".join(_step(trace, n, step)) for n, step in enumerate(document_steps(), 1)),
        "likeliest": show.table(rows, ["word", "logit", "p"], "lrr"),
        "logit_by_hand": _logit_by_hand(trace, int(order[0]), precision),
    }


def document_steps() -> list[dict[str, Any]]:
    """The document's ten steps: its words, what really happens, and the addresses of the numbers."""
    return pages("notes")["structure"]["step"]


def _step(trace: Trace, number: int, step: dict[str, Any]) -> Iterator[str]:
    yield f"{number:2}. {step['says']}"
    yield show.wrap(step["really"], indent="    ", hang="    ")
    shapes = ", ".join(f"{name} {show.shape(trace.values[name])}" for name in step["addresses"])
    if shapes:
        yield show.wrap(shapes, indent="      ", hang="      ")


def _logit_by_hand(trace: Trace, word: int, precision: int) -> str:
    """One logit as its sum of products, with the addresses of both sides."""
    row_D = trace.values["dec.out"][0]
    stage = trace.stages["out.logits"]
    W = parameter_array(trace.machine, stage.inputs[1])
    column_D = W[word] if stage.operation == "project_tied" else W[:, word]
    terms = [
        f"({show.number(a, precision)})({show.number(b, precision)})" for a, b in zip(row_D, column_D, strict=True)
    ]
    shown = terms if len(terms) <= 4 else [*terms[:3], "…"]
    text = " + ".join(shown)
    if len(stage.inputs) == 3:
        text += f" + ({show.number(parameter_array(trace.machine, stage.inputs[2])[word], precision)})"
    return show.wrap(
        f"By hand: logit of {trace.vocabulary[word]} = dec.out[0] · {stage.inputs[1]} of it = {text} = "
        f"{show.number(trace.values['out.logits'][0, word], precision)}",
        hang="  ",
    )
