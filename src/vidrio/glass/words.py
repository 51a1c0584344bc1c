"""What each quantity is, in a few words, and where the paper has it; of each parameter too."""

SSRU = "departs: §3.2.3 has self-attention"
NO_BIAS = "departs: the paper writes no bias"
PARAMETERS = {
    "embed": ("§3.4", "a learned row for each token of the vocabulary"),
    "pos": ("§3.5", "a learned row for each position"),
    "WQ": ("§3.2.2", "what this head asks with"),
    "WK": ("§3.2.2", "what this head is found by"),
    "WV": ("§3.2.2", "what this head passes on"),
    "WO": ("§3.2.2", "mixes the heads' outputs back into one row"),
    "bQ": (NO_BIAS, "bias of the queries"),
    "bK": (NO_BIAS, "bias of the keys"),
    "bV": (NO_BIAS, "bias of the values"),
    "bO": (NO_BIAS, "bias of the heads' mix"),
    "W1": ("Eq. 2", "first matrix of the feed-forward network"),
    "b1": ("Eq. 2", "first bias of the feed-forward network"),
    "W2": ("Eq. 2", "second matrix of the feed-forward network"),
    "b2": ("Eq. 2", "second bias of the feed-forward network"),
    "gain": ("§3.1, layer norm's γ", "stretches each column after normalising"),
    "bias": ("§3.1, layer norm's β", "shifts each column after normalising"),
    "ssru.W": (SSRU, "makes each row's candidate for the new state"),
    "Wf": (SSRU, "weights of the forget gate"),
    "bf": (SSRU, "bias of the forget gate"),
    "W": ("§3.4", "output matrix: one column for each word"),
    "b": ("§3.4", "output bias: one number for each word"),
}
MIXED = "the heads, mixed back to width D"
EMBEDDED = ("§3.5", "embedding + position: layers' input")
# By the last part of the address, or by the last two. No place: the operation's (operations.py) is the one.
QUANTITIES = {
    "src.ids": ("", "the source tokens' ids"),
    "tgt.ids": ("", "the target tokens' ids"),
    "src.embedding": ("§3.4", "each source token's learned row"),
    "tgt.embedding": ("§3.4", "each target token's learned row"),
    "src.scaled": ("", "embeddings at the layers' scale"),
    "tgt.scaled": ("", "embeddings at the layers' scale"),
    "positions": ("", "where each token stands"),
    "enc.in": EMBEDDED,
    "dec.in": EMBEDDED,
    "Q": ("§3.2.2", "queries: what each row asks for"),
    "K": ("§3.2.2", "keys: what each row is found by"),
    "V": ("§3.2.2", "values: what each row passes on"),
    "scores": ("", "how well each query meets each key"),
    "scaled": ("", "scores, small enough for softmax"),
    "masked": ("", "no row may see a later one"),
    "weights": ("Eq. 1", "shares taken from each row; sum 1"),
    "head": ("", "the values, mixed by the weights"),
    "concat": ("", "all heads' outputs in one row"),
    "self.out": ("§3.2.2", MIXED),
    "cross.out": ("§3.2.2", MIXED),
    "gate": (SSRU, "the forget gate, before the sigmoid"),
    "forget": ("", "share of the state that is kept, 0 to 1"),
    "candidate": (SSRU, "each row's candidate for the new state"),
    "cell": ("", "the cell's state after each row"),
    "ssru.out": ("", "the positive part of the state"),
    "sum": ("§3.1, residual", "what came in + what was made of it"),
    "mean": ("", "each row's mean"),
    "var": ("", "each row's variance"),
    "normed": ("", "mean 0, variance 1"),
    "norm.out": ("", "stretched and shifted, as learned"),
    "hidden": ("Eq. 2", "each row, widened"),
    "active": ("", "what the activation lets through"),
    "ffn.out": ("Eq. 2", "each row, narrowed again"),
    "memory": ("§3.1", "the source, as the decoder reads it"),
    "dec.out": ("§3.1", "the decoder's output, a row a step"),
    "out.pooled": ("", "the whole sentence as one row"),
    "out.logits": ("§3.4", "a number for each word there is"),
    "out.prob": ("§3.4", "each word's probability to be next"),
    "out.choice": ("", "the next token, as chosen"),
    "out.score": ("", "log-probability of the chosen token"),
}
OF_CLASSES = {
    "out.logits": ("§3.4", "one number for each class"),
    "out.prob": ("§3.4", "the probability of each class"),
}


def words(address: str, axes: str) -> tuple[str, str]:
    """Where the paper has a quantity, and what it is."""
    if axes == "C" and address in OF_CLASSES:
        return OF_CLASSES[address]
    parts = without_head(address)[0].split(".")
    return QUANTITIES.get(".".join(parts[-2:])) or QUANTITIES.get(parts[-1], ("", ""))


def without_head(address: str) -> tuple[str, str]:
    """enc.0.self.WQ.h1 → enc.0.self.WQ and .h1; without a head the second is empty."""
    name, dot, head = address.rpartition(".h")
    return (name, dot + head) if head.isdigit() else (address, "")


def part(address: str, of_it: str) -> str:
    """A part of a quantity: enc.0.self.WQ.h1 → enc.0.self.WQ.scale.h1."""
    name, head = without_head(address)
    return f"{name}.{of_it}{head}"
