"""The walk through the encoder, in the post's order."""

from collections.abc import Iterator

from vidrio.lessons import sidelights
from vidrio.lessons.step import Step, counted
from vidrio.model.config import ModelConfig


def encoder_steps(config: ModelConfig) -> Iterator[Step]:
    yield from _into_the_encoder()
    yield from _attention(config)
    yield from _feed_forward(config)


def _heads(config: ModelConfig, quantities: str, name: str = "enc.0.self", first: int = 0) -> list[str]:
    return [f"{name}.{q}.h{h}" for h in range(first, config.n_heads) for q in quantities.split()]


def _into_the_encoder() -> Iterator[Step]:
    yield Step(
        title="Words become numbers",
        section="Encoder: tokenization",
        says="A model computes with numbers, so each word is replaced by its place in the vocabulary. Whole words keep "
        "the example small; real models split words into pieces.",
        shows=["src.ids"],
        sidelight=sidelights.vocabulary,
    )
    yield Step(
        title="Numbers become rows",
        section="Encoder: embedding the text",
        says="Each id picks its row of a learned table. The ids themselves mean nothing; the rows do, and they are "
        "learned like everything else.",
        shows=["src.embedding"],
        by_hand=["src.embedding[-1,0]"],
    )
    yield Step(
        title="How alike two words are",
        section="Encoder: embedding the text, cosine similarity",
        says="The cosine of the angle between two rows: 1 for the same direction, 0 for a right angle, -1 for opposite "
        "directions.",
        of_the_post="Rows of unlike words should not be so alike; the post says so itself: it chose its numbers for "
        "easy sums.",
        learned="These two point nearly the same way; the model tells them apart by the little that is left.",
        sidelight=sidelights.cosines,
    )
    yield Step(
        title="Where a word stands",
        section="Encoder: positional encoding",
        says="The rows do not say which word came first, so every position gets a row of its own, the same for every "
        "sentence. The paper takes sines and cosines of different wavelengths.",
        shows=["src.positions"],
        by_hand=["src.positions[-1,0]", "src.positions[-1,1]"],
        slips=[1, 2],
    )
    yield Step(
        title="What the encoder gets",
        section="Encoder: add positional encoding and embedding",
        says="Embedding plus position, number by number. The post calls this matrix E.",
        shows=["src.scaled", "src.positions", "enc.in"],
        by_hand=["enc.in[-1,0]"],
    )


def _attention(config: ModelConfig) -> Iterator[Step]:
    section = "Encoder: self-attention, "
    yield Step(
        title="Three matrices for each head",
        section=section + "matrices",
        says="Attention looks at every row in three ways: as a question (query), as what answers to one (key), and as "
        "what is passed on (value). Each head has its own three matrices, which are learned.",
        shows=_heads(config, "WK WV WQ"),
        slips=[3],
    )
    yield Step(
        title="Keys", section=section + "keys", says="Every row of E times the first head's WK.",
        shows=["enc.0.self.WK.h0", "enc.0.self.K.h0"], by_hand=["enc.0.self.K.h0[0,0]"], slips=[4],
    )  # fmt: skip
    yield Step(
        title="Values", section=section + "values", says="The same rows times WV.",
        shows=["enc.0.self.WV.h0", "enc.0.self.V.h0"], by_hand=["enc.0.self.V.h0[0,0]"],
    )  # fmt: skip
    yield Step(
        title="Queries", section=section + "queries", says="And times WQ.",
        shows=["enc.0.self.WQ.h0", "enc.0.self.Q.h0"], by_hand=["enc.0.self.Q.h0[0,0]"],
    )  # fmt: skip
    yield Step(
        title="Every query meets every key",
        section=section + "dot product",
        says="Row i, column j: the dot product of word i's query and word j's key. The larger, the more word i will "
        "take from word j.",
        shows=["enc.0.self.scores.h0"],
        by_hand=["enc.0.self.scores.h0[0,0]"],
    )
    yield Step(
        title="The scores are made smaller",
        section=section + "division by √d",
        says="Dot products of long rows are large; divided by the square root of the keys' width they keep their size.",
        shows=["enc.0.self.scaled.h0"],
        by_hand=["enc.0.self.scaled.h0[0,0]"],
    )
    yield Step(
        title="Softmax on three numbers",
        section=section + "softmax",
        says="Softmax turns any numbers into shares: all positive, together 1, the largest number with the largest "
        "share. The exponential makes differences count, not sizes: adding 10 to all three changes nothing.",
        sidelight=sidelights.softmax_of_three,
        slips=[5],
    )
    yield Step(
        title="Scores become weights",
        section=section + "softmax",
        says="Row by row: how much each word takes from each other word. With scores that lie far apart almost "
        "everything goes to one word.",
        shows=["enc.0.self.weights.h0"],
        by_hand=["enc.0.self.weights.h0[0,0]"],
    )
    yield Step(
        title="Values are mixed by the weights",
        section=section + "values times weights",
        says="The head's output: each row is a mix of all rows of V, by that row's weights.",
        of_the_post="Here both words take nearly everything from world, so their rows come out (nearly) equal.",
        shows=["enc.0.self.head.h0"],
        by_hand=["enc.0.self.head.h0[0,0]"],
        slips=[24],
    )
    yield Step(
        title="The other heads",
        section=section + "second head",
        says="The same five steps with other matrices: softmax(Q Kᵀ / √K) V."
        if config.n_heads > 1
        else "There is one head only.",
        shows=_heads(config, "Q K V scores weights head", first=1),
        by_hand=["enc.0.self.head.h1[0,0]"],
    )
    yield Step(
        title="What if scores are divided by 30",
        section=section + "a larger divisor",
        says="The post's way out of weights that are 0 and 1: divide by 30 instead of √K. Smaller scores give more "
        "even weights. It is a trick for its large numbers; layer norm will be the remedy.",
        shows=_heads(config, "scaled weights head"),
        by_hand=["enc.0.self.weights.h0[0,0]"],
        run="by-30",
    )
    yield Step(
        title="The heads side by side",
        section=section + "concatenation",
        says="All heads' rows are put next to each other.",
        shows=["enc.0.self.concat"],
        by_hand=["enc.0.self.concat[0,-1]"],
        printed_run="by-30",
    )
    yield Step(
        title="The heads are mixed",
        section=section + "output matrix",
        says="One more learned matrix brings the row back to the model's width and lets the heads' findings meet. The "
        "post calls the result Z.",
        shows=["enc.0.self.WO", "enc.0.self.out"],
        by_hand=["enc.0.self.out[0,0]"],
        printed_run="by-30",
        slips=[6],
    )


def _feed_forward(config: ModelConfig) -> Iterator[Step]:
    ffn, last = "enc.0.ffn", f"enc.{config.n_encoder_layers - 1}"
    blocks, layers = (counted(config.n_encoder_layers, what) for what in ("block", "layer"))
    yield Step(
        title="The feed-forward network",
        section="Encoder: feed-forward layer",
        says="Each row by itself: widened, negative numbers replaced by 0, narrowed again. The post feeds Z to it as "
        "it is, before residual connection and norm have been told of.",
        shows=[f"{ffn}.{q}" for q in ("W1", "b1", "hidden", "active", "W2", "b2", "out")],
        by_hand=[f"{ffn}.hidden[0,0]", f"{ffn}.active[0,0]", f"{ffn}.out[0,0]"],
        run="bare",
        printed_run="bare-by-30",
        drawn=True,
    )
    yield Step(
        title="One block",
        section="Encoder: the random encoder",
        says="Attention and feed-forward network, one after the other, and nothing else yet. Scores are divided by √K "
        "again.",
        shows=["enc.in", f"{ffn}.out"],
        by_hand=[f"{ffn}.out[0,0]"],
        run="bare",
        drawn=True,
    )
    yield Step(
        title=f"{blocks}, one after the other",
        section="Encoder: the random encoder, six of them",
        says="Nothing holds the numbers between the blocks: large matrices make them grow, small ones shrink. Where "
        "scores are so far from 0 that their exponentials are ∞ or 0 as floats, the softmax by the plain formula is "
        "∞ / ∞ or 0 / 0, and that is NaN.",
        shows=["memory"],
        by_hand=["enc.1.self.weights.h1[0,0]"],  # the first NaN, with the post's softmax
        run="bare",
        drawn=True,
        sidelight=sidelights.growth,
        slips=[10],
    )
    yield Step(
        title="Residual connection",
        section="Encoder: residual and layer normalization",
        says="What came in is added to what attention made of it, so nothing is lost on the way, and in training the "
        "gradient has a straight road back.",
        shows=["enc.in", "enc.0.self.out", "enc.0.self.sum"],
        by_hand=["enc.0.self.sum[0,0]"],
        printed_run="reminder",
    )
    yield Step(
        title="Mean and variance of each row",
        section="Encoder: layer normalization, mean and variance",
        says="Each row by itself. The variance divides by the row's length, not by one less.",
        shows=["enc.0.self.norm.mean", "enc.0.self.norm.var"],
        by_hand=["enc.0.self.norm.mean[0]", "enc.0.self.norm.var[0]"],
        printed_run="reminder",
        sidelight=sidelights.deviation,
    )
    yield Step(
        title="Each row brought to mean 0 and variance 1",
        section="Encoder: layer normalization, normalize",
        says="The mean is taken off and the rest divided by the standard deviation; ε keeps the divisor away from 0.",
        shows=["enc.0.self.norm.normed"],
        by_hand=["enc.0.self.norm.normed[0,0]"],
        printed_run="reminder",
        slips=[7, 8],
    )
    yield Step(
        title="Gain and bias: the layer norm's result",
        section="Encoder: layer normalization, in code",
        says="Two learned rows, γ (gain) and β (bias), let the model stretch and shift what was normalised. Untrained "
        "they are 1 and 0.",
        shows=["enc.0.self.norm.gain", "enc.0.self.norm.bias", "enc.0.self.norm.out"],
        by_hand=["enc.0.self.norm.out[0,0]"],
        printed_run="by-30",
    )
    yield Step(
        title="A whole encoder layer",
        section="Encoder: the encoder block again",
        says="The feed-forward network after the norm, with its own residual connection and its own norm. The division "
        "is by √K again.",
        shows=[f"{ffn}.out", f"{ffn}.sum", f"{ffn}.norm.out"],
        by_hand=[f"{ffn}.sum[0,0]"],
        drawn=True,
        slips=[9],
    )
    yield Step(
        title=f"{layers}: the memory",
        section="Encoder: six encoders with residual and norm",
        says="What the encoder hands to the decoder. Whether it still tells the words apart, their rows show.",
        shows=[f"{last}.ffn.norm.out", "memory"],
        by_hand=[f"{last}.ffn.norm.normed[0,0]"],
        drawn=True,
        sidelight=sidelights.rows_apart,
    )
