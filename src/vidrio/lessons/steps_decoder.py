"""The walk through the decoder to the words, in the post's order."""

from collections.abc import Iterator

from vidrio.lessons import sidelights
from vidrio.lessons.step import Step, counted
from vidrio.model.config import ModelConfig


def decoder_steps(config: ModelConfig) -> Iterator[Step]:
    yield from _decoder(config)
    yield from _words_out()


def _decoder(config: ModelConfig) -> Iterator[Step]:
    last = f"dec.{config.n_decoder_layers - 1}"
    yield Step(
        title="The decoder begins with the start token",
        section="Decoder: embedding the text",
        says="The decoder gets the words written so far. At first there is only the token that says: begin.",
        shows=["tgt.ids", "tgt.embedding"],
        by_hand=["tgt.embedding[0,0]"],
        at=0,
        slips=[11, 12],
    )
    yield Step(
        title="Its position",
        section="Decoder: positional encoding, and the sum",
        says="It stands at position 0, as the source's first word does, and gets the same row.",
        shows=["tgt.positions", "dec.in"],
        by_hand=["dec.in[0,1]"],
        at=0,
    )
    yield Step(
        title="Self-attention with one word",
        section="Decoder: self-attention",
        says="There is one row to look at, and softmax of a single score is 1: each head hands its value through.",
        shows=[*(f"dec.0.self.{q}.h0" for q in ("scores", "weights", "V", "head")), "dec.0.self.out"],
        by_hand=["dec.0.self.weights.h0[0,0]"],
        printed_run="decoder",
        at=0,
        drawn=True,
        slips=[13],
    )  # fmt: skip
    yield Step(
        title="No word sees a later one",
        section="Decoder: self-attention, the mask",
        says="With more words, the scores of later ones become -inf before the softmax, whose share is exactly 0. So "
        "row t is the same whether or not later words are there: a word once computed stays as it is.",
        shows=["dec.0.self.scaled.h0", "dec.0.self.masked.h0", "dec.0.self.weights.h0"],
        by_hand=["dec.0.self.weights.h0[-1,0]"],
        drawn=True,
        slips=[14],
    )
    yield Step(
        title="Residual connection and norm",
        section="Decoder: first residual connection and layer normalization",
        says="As in the encoder.",
        shows=["dec.0.self.sum", "dec.0.self.norm.out"],
        by_hand=["dec.0.self.norm.normed[0,0]"],
        printed_run="decoder",
        at=0,
        drawn=True,
    )
    yield Step(
        title="The decoder asks the encoder",
        section="Decoder: encoder-decoder attention",
        says="Cross-attention: the queries are made from the decoder's rows, the keys and values from the memory. Here "
        "the translation meets its source.",
        shows=["memory", *(f"dec.0.cross.{q}.h0" for q in ("Q", "K", "V", "weights", "head")), "dec.0.cross.out"],
        by_hand=["dec.0.cross.weights.h0[0,0]"],
        printed_run="decoder",
        at=0,
        drawn=True,
    )
    yield Step(
        title="Residual connection and norm again",
        section="Decoder: second residual connection and layer normalization",
        says="The sum of what the decoder had and what it heard from the encoder, normalised.",
        shows=["dec.0.cross.sum", "dec.0.cross.norm.out"],
        by_hand=["dec.0.cross.sum[0,0]"],
        printed_run="decoder",
        at=0,
        drawn=True,
        slips=[15],
    )
    yield Step(
        title="The decoder's feed-forward network",
        section="Decoder: feed-forward layer",
        says="The same kind of network as in the encoder, with its own numbers; then residual connection and norm for "
        "the third time.",
        shows=[f"dec.0.ffn.{q}" for q in ("hidden", "active", "out", "sum", "norm.out")],
        by_hand=["dec.0.ffn.hidden[0,0]"],
        printed_run="decoder",
        at=0,
        drawn=True,
        slips=[16],
    )
    yield Step(
        title=counted(config.n_decoder_layers, "decoder layer"),
        section="Decoder: the random decoder",
        says="Every layer reads the same memory.",
        shows=["dec.0.ffn.norm.out", f"{last}.ffn.norm.out", "dec.out"],
        by_hand=[f"{last}.ffn.norm.normed[0,0]"],
        at=0,
        drawn=True,
        slips=[17],
    )


def _words_out() -> Iterator[Step]:
    section = "Generating the output sequence: "
    yield Step(
        title="One number for each word: logits",
        section=section + "linear layer",
        says="The decoder's last row times a matrix with a column for each word of the vocabulary.",
        shows=["dec.out", "out.logits"],
        by_hand=["out.logits[0,0]"],
        printed_run="linear",
        at=0,
        drawn=True,
        slips=[18],
    )
    yield Step(
        title="Logits become probabilities",
        section=section + "softmax",
        says="The same softmax as in attention, over the whole vocabulary.",
        shows=["out.logits", "out.prob"],
        by_hand=["out.prob[0,0]"],
        printed_run="softmax",
        at=0,
        drawn=True,
        slips=[19, 20],
    )
    yield Step(
        title="The likeliest word is taken",
        section=section + "greedy decoding",
        says="Greedy decoding: always the most probable word. It can miss the most probable sentence; a beam search "
        "keeps several beginnings alive.",
        shows=["out.choice"],
        printed_run="softmax",
        at=0,
        drawn=True,
        sidelight=sidelights.likeliest,
    )
    yield Step(
        title="A table for the whole vocabulary",
        section=section + "the vocabulary's embeddings",
        says="For the generation every word needs a row.",
        of_the_post="In a trained model, words of like meaning tend to have rows of like direction; these were drawn.",
        learned="This is the table of the source: hola and mundo never stand there, so their rows have learned nothing "
        "and their cosines mean nothing. The target has a table of its own.",
        sidelight=sidelights.table_for_generation,
        run="generation",
    )
    yield Step(
        title="Word after word",
        section=section + "the random encoder-decoder",
        says="The chosen word is put behind the others and everything is asked again, until the end token comes or the "
        "program has had enough.",
        of_the_post="Numbers that were not trained make words, not translations.",
        learned="These numbers were trained: the words are the translation, and it ends by itself.",
        shows=["memory", "out.choice"],
        run="generation",
        drawn=True,
        sidelight=sidelights.generated,
        slips=[21, 22, 23],
    )
    yield Step(
        title="The same at the paper's size",
        section="Conclusions",
        says="Nothing is added when a model grows but rows and columns.",
        sidelight=sidelights.sizes,
    )
