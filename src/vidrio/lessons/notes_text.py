"""The second document on words in and words out: special tokens, teacher forcing, and the way from end to end."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from vidrio.draw import show
from vidrio.glass.numbers.trace import Trace, parameter_array
from vidrio.glass.paper.maths import Array
from vidrio.glass.paper.transformer import translate_forced
from vidrio.lessons.errata import flag
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


def tell_tokens(seen: dict[str, Any], precision: int) -> Iterator[str]:
    tokenizer = small_tokenizer()
    yield "ids = [start] + tokens + [end]"
    yield f"\nThe document's example: '[start] {QUESTION} [end]'\n"
    whole = seen["ids"]
    rows = [["token", *seen["tokens"]], ["id", *map(str, whole)]]
    yield show.table(rows, align="l" + "r" * len(whole), gap=" ")
    yield f"\nBy hand: {tokenizer.size} tokens are known; domingo has the id {tokenizer.id('domingo')}:"
    known = (f"{i}{show.NO_BREAK}{token}" for i, token in enumerate(seen["vocabulary"]))
    yield show.wrap(", ".join(known), indent="  ", hang="  ")
    yield "\nThe four special tokens\n"
    yield show.table([[kind, name, str(tokenizer.id(name)), says] for kind, name, says in PURPOSES])
    for title, text in (
        ("A word that the vocabulary does not hold", "el lunes"),
        ("A text that writes [end] is text, and ends nothing", "el [end]"),
    ):
        encoded = tokenizer.encode(text)
        yield f"\n{title}\n  {text!r} → {' '.join(tokenizer.tokens(text))}, ids {encoded}"
    yield f"\nBack to text, special tokens left out: {tokenizer.decode(whole)!r}"
    yield "\nTwo sentences in one batch, the shorter one padded\n"
    short = tokenizer.encode("el domingo")
    ids = whole[1:-1]
    padded = [*short, *[tokenizer.special.pad] * (len(ids) - len(short))]
    yield show.matrix(np.array([ids, padded]), (), (), precision)
    yield show.wrap(
        "Padding has to be masked like the future, with −∞ on its scores. What this package explains with "
        "takes one sentence at a time and needs no padding; training does."
    )


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


def tell_forcing(seen: Forced, precision: int) -> Iterator[str]:
    yield "loss = − Σ_t log p(y_t | y_0 … y_{t−1}, x)"
    yield "row t sees the true words before t, and predicts word t"
    yield "\n" + flag(33)
    yield "\nAligned: what goes in at each place, and what has to come out\n"
    rows = [["in", "<sos>", *FRENCH], ["out", *FRENCH, "<eos>"]]
    yield show.table(rows)
    yield f"\n{len(FRENCH) + 1} rows in, {len(FRENCH) + 1} rows out: the same sentence, shifted by one place."
    yield "\nLive, on the lessons' trained model"
    yield f"source: {' '.join(seen.trace.source_tokens)}; the translation is given, not searched for\n"
    rows = [
        [str(t), seen.trace.target_tokens[t], seen.expected[t], show.number(p, precision),
         show.number(-float(np.log(p)), precision)]
        for t, p in enumerate(seen.prob_T)
    ]  # fmt: skip
    yield show.table(rows, ["row", "in", "expected", "p", "−log p"], "rllrr")
    losses = -np.log(seen.prob_T)
    yield f"loss: {' + '.join(row[4] for row in rows)} = {show.number(float(losses.sum()), precision)}"
    yield f"mean of a token: {show.number(float(losses.mean()), precision)}"
    p = float(seen.prob_T[0])
    yield f"By hand: row 0, −log {show.number(p, precision)} = {show.number(-float(np.log(p)), precision)}"
    yield "\nprobabilities of all rows (out.prob)"
    columns = [seen.expected.index(word) for word in dict.fromkeys(seen.expected)]
    ids = [seen.trace.vocabulary.index(seen.expected[c]) for c in columns]
    yield show.matrix(
        seen.trace.values["out.prob"][:, ids], seen.trace.target_tokens, [seen.expected[c] for c in columns], precision
    )
    yield "\nThe last input word is changed to hello; the rows' probabilities move by"
    moved = ", ".join(f"row {t}: {'0' if m == 0 else f'{m:.2g}'}" for t, m in enumerate(seen.moved_T))
    yield f"  {moved}"
    yield show.wrap(
        "Earlier rows do not notice: the mask hides what comes later, so all rows can be trained at once without any "
        "of them seeing its own answer."
    )


# --- the way from end to end ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WayStep:
    """One of the document's ten steps: its words, what really happens, and the numbers' addresses."""

    says: str
    really: str
    addresses: tuple[str, ...]


STEPS = (
    WayStep(
        "Embed original english sentence",
        "split into tokens, take each token's row of the table, times √D",
        ("src.ids", "src.embedding"),
    ),
    WayStep("Add positional embedding", "add the row of each position", ("src.positions", "enc.in")),
    WayStep(
        "Pass the vector to encoder layer",
        "not one vector but a matrix, a row for each token, goes through N layers",
        ("enc.0.self.Q.h0", "enc.0.self.weights.h0"),
    ),
    WayStep(
        'Using multihead attention, add "context"',
        "after attention: residual and norm, feed-forward, residual and norm; the last layer's rows are the memory",
        ("enc.0.self.out", "enc.0.ffn.out", "memory"),
    ),
    WayStep(
        "Pass the Key and Value to Decoder",
        "the memory is passed; each decoder layer makes keys and values of it with its own matrices",
        ("dec.0.cross.K.h0", "dec.0.cross.V.h0"),
    ),
    WayStep("Give [start] token to the decoder", "embedded and placed like any word", ("tgt.ids", "dec.in")),
    WayStep(
        "Masked multihead attention produce Query",
        "its output, after residual and norm, times W^Q of cross-attention is the query",
        ("dec.0.self.out", "dec.0.self.norm.out", "dec.0.cross.Q.h0"),
    ),
    WayStep(
        "In cross attention block, count the resulting vector",
        "weights of the memory's rows, values mixed, W^O; then residual, norm, feed-forward, residual, norm; N layers",
        ("dec.0.cross.weights.h0", "dec.0.cross.out", "dec.out"),
    ),
    WayStep(
        "Compare the vector to all vectors in vocabulary",
        "a linear layer: one number (logit) for each word, then softmax: probabilities",
        ("out.logits", "out.prob"),
    ),
    WayStep(
        "Choose the best suitable",
        "greedy takes the likeliest; beam search keeps several sentences (vidrio lesson exercises 8)",
        (),
    ),
)


def first_step() -> Trace:
    """The first decoding step of `hello world` on the lesson's model."""
    return Lesson("trained", trained()).run("whole").as_of(0)


def tell_structure(trace: Trace, precision: int) -> Iterator[str]:
    yield "text → tokens → ids → embeddings + positions → encoder → memory"
    yield "       memory, words so far → decoder → logits → probabilities → next word"
    yield "\n" + flag(32)
    yield "\nLive, the first word of hello world on the lessons' trained model"
    for number, step in enumerate(STEPS, 1):
        yield f"\n{number:2}. {step.says}"
        yield show.wrap(step.really, indent="    ", hang="    ")
        shapes = ", ".join(f"{name} {show.shape(trace.values[name])}" for name in step.addresses)
        if shapes:
            yield show.wrap(shapes, indent="      ", hang="      ")
    prob_V, logits_V = trace.values["out.prob"][0], trace.values["out.logits"][0]
    order = np.argsort(-prob_V)[:5]
    yield "\nThe likeliest first words\n"
    rows = [
        [trace.vocabulary[i], show.number(logits_V[i], precision), show.number(prob_V[i], precision)] for i in order
    ]
    yield show.table(rows, ["word", "logit", "p"], "lrr")
    yield "\n" + _logit_by_hand(trace, int(order[0]), precision)
    yield "\n" + show.wrap(
        "From the second word on the encoder rests: memory, its keys and values, and those of the earlier words are "
        "kept; only the new word's row is computed, and it goes into the decoder after the others, until the end "
        "token comes out or the longest length is reached. In training all rows go through at once: vidrio lesson "
        "notes forcing."
    )


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
