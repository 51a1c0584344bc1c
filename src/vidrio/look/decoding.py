"""The search tree, and one decoding step with what is reused and what is new."""

import re
from collections.abc import Iterator, Sequence

from vidrio.errors import InputError
from vidrio.glass.numbers.trace import Address
from vidrio.look.blocks import Bar, Block, Note, Numbers, Rows, Table, Value, Words
from vidrio.look.command_line import CommandLine
from vidrio.look.layout import wrap
from vidrio.look.measures import likeliest
from vidrio.look.overview import otherwise, warning, why_stopped
from vidrio.look.quantities import heading, most_of
from vidrio.look.run import Look
from vidrio.look.run_data import kept_data
from vidrio.look.writing import PRECISION, cut, left, number, text_width, visible
from vidrio.search import Tree

TOP = 10


# --- the tree ---------------------------------------------------------------------------------------------------------


def tree(seen: Look, precision: int = PRECISION) -> Iterator[Block]:
    """Every hypothesis that the search considered: its log p, its score, and what became of it."""
    if seen.tree is None or not seen.tree.nodes:
        raise InputError(
            "this run has no search tree", found="no beam search took place", do="look at a text with --beam 4 --tree"
        )
    yield Note(
        f"Read downwards: a line follows the one above it on the same rail; ├ and └ are tokens that were considered "
        f"instead. log p is the whole hypothesis's, score = log p / length^{seen.options.length_penalty:g}. "
        f"Every step keeps the {seen.options.beam} best of its {2 * seen.options.beam} best candidates."
    )
    if seen.otherwise is not None:
        yield warning(otherwise(seen, precision))
    yield ""
    start = " ".join(seen.trace.target_tokens[: 1 + len(seen.options.prefix)])
    yield f"● {visible(start)}"
    yield from _Rails(seen.trace.vocabulary, seen.tree, precision).branch(-1, "")


class _Rails:
    """The tree, with what drawing it asks again and again: who follows whom, how long each lived, which is best."""

    def __init__(self, words: Sequence[str], record: Tree, precision: int) -> None:
        self.words, self.record, self.precision = words, record, precision
        self.children: dict[int, list[int]] = {}
        self.age = [0] * len(record.nodes)  # steps that a hypothesis or one of its continuations lived on
        for place, node in enumerate(record.nodes):
            self.children.setdefault(node.parent, []).append(place)
        for place, node in reversed(list(enumerate(record.nodes))):  # a parent stands before its children
            if node.parent >= 0 and node.fate != "dropped":
                self.age[node.parent] = max(self.age[node.parent], self.age[place] + 1)
        self.best_way = set()
        place = record.best
        while place >= 0:
            self.best_way.add(place)
            place = record.nodes[place].parent

    def branch(self, place: int, rail: str) -> Iterator[str]:
        """What follows a node: what was considered besides, a rail further in, then what went on, on the same rail."""
        while True:
            children = self.children.get(place, [])
            going_on = self.trunk(children)
            besides = [child for child in children if child != going_on]
            for child in besides:
                last = child == besides[-1] and going_on is None
                below = rail + (" " if last else "│")
                yield from self.line(child, rail + ("└ " if last else "├ "), f"{below}   ")
                yield from self.branch(child, f"{below} ")
            if going_on is None:
                return
            mark = "★" if going_on == self.record.best else "●"
            below = "│" if going_on in self.children else " "
            yield from self.line(going_on, f"{rail}{mark} ", f"{rail}{below}   ")
            place = going_on

    def trunk(self, children: list[int]) -> int | None:
        """The child to draw on the same rail: the way to the best hypothesis, else the one that lived longest."""
        alive = [child for child in children if self.record.nodes[child].fate != "dropped"]
        return max(alive, key=lambda child: (child in self.best_way, self.age[child], -child), default=None)

    def line(self, place: int, lead: str, hang: str) -> Iterator[str]:
        """The rails, the token, and what became of it."""
        node = self.record.nodes[place]
        log_p, score = (number(value, self.precision) for value in (node.total, node.score))
        token = left(cut(self.words[node.token], 16), max(0, 24 - text_width(lead)))
        yield f"{lead}{token}  log p {log_p}  score {score}  {node.fate}"
        if node.why:
            yield wrap(node.why, indent=hang)


# --- one step ---------------------------------------------------------------------------------------------------------


def step(seen: Look, t: int, again: CommandLine, precision: int = PRECISION) -> Iterator[Block]:
    """One decoding step: what it starts from, what is reused, what is new, and the choice."""
    if seen.empty or seen.stopped or not seen.model.config.has_decoder:
        found = why_stopped(seen) if seen.stopped else "no decoder ran"
        raise InputError("this run has no decoding steps", found=found)
    trace = seen.trace
    key = next(name for name in trace.values if re.fullmatch(r"dec\.\d+\.self\.K\.h0", name))
    keys_LK = trace.rows_at_step(key, t)
    so_far = " ".join(trace.target_tokens[: t + 1])
    yield Note(f"Step {t}: after {so_far} the decoder takes {trace.chosen_tokens[t]}", hang=2)
    yield ""
    yield "What is reused, and what is new"
    kept = kept_data(seen)
    if kept:
        reuse: Rows = []
        for part in kept[t]:
            what = "the encoder's output" if part["part"] == "memory" else "keys and values, every head"
            reuse.append([part["part"], what, _rows(part["reused"]), _rows(part["rows"] - part["reused"])])
        yield Table(reuse, ["", "", "reused", "new"], "llrr")
        yield Note(
            "Everything else of this step is one new row. Reusing is exact, because the mask keeps earlier rows from "
            "seeing later tokens.",
            indent=2,
        )
    else:
        yield Note("Nothing can be reused: rows see later tokens, so every step computes all of them afresh.", indent=2)
    tokens = [cut(token, 16) for token in trace.target_tokens[: t + 1]]
    width = max(text_width(cut(token, 16)) for token in trace.target_tokens)
    marks = ["kept" if kept and r < t else "new" for r in range(len(tokens))]
    yield f"\n{key}@{t}   the keys that this step's query meets"
    yield Numbers(keys_LK, "", [f"{left(token, width)} {mark}" for token, mark in zip(tokens, marks, strict=True)])
    for name in (key.replace(".self.K.", ".self.weights."), key.replace(".self.K.", ".cross.weights.")):
        if name in trace:
            yield f"\n{heading(trace, Address(name, (), t))}   the last row is this step's"
            yield most_of(trace, Address(name, (), t))
    yield f"\nout.prob@{t}   the next token"
    candidates = likeliest(seen, t, TOP)
    yield Table(
        [
            ["→" * c.taken, Words(cut(c.token, 24)), Value(c.p), Bar(c.p, 20), "forbidden" * c.forbidden]
            for c in candidates
        ],
        align="ll.ll",
    )
    others = len(trace.vocabulary) - len(candidates)
    if others > 0:
        rest = float(trace.values["out.prob"][t].sum()) - sum(c.p for c in candidates)
        yield f"  all {others:,} others: sum {number(max(0.0, rest), precision)}"
    yield "\nAll of the decoder at this step:"
    yield f"  {again.look('--at', f'dec.0@{t}')}"


def _rows(count: int) -> str:
    return f"{count} row{'s' * (count != 1)}" if count else ""
