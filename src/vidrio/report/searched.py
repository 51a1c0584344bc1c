"""The search as text: its tree, and one decoding step with what is reused and what is new."""

from collections.abc import Iterator
from itertools import groupby

from vidrio.errors import InputError
from vidrio.glass.trace import Address
from vidrio.look import Look
from vidrio.report.again import Again
from vidrio.report.measures import likeliest
from vidrio.report.quantity import draw, heading
from vidrio.search import Node, Tree
from vidrio.show import PRECISION, bar, cut, left, matrix, number, table, text_width, visible, wrap

TOP = 10


# --- the tree ---------------------------------------------------------------------------------------------------------


def tree(seen: Look, precision: int = PRECISION) -> str:
    """Every hypothesis that the search considered: its log p, its score, and what became of it."""
    if seen.tree is None or not seen.tree.nodes:
        raise InputError(
            "this run has no search tree", found="no beam search took place", do="look at a text with --beam 4 --tree"
        )
    lines = list(_branch(seen, seen.tree, -1, "", precision))
    start = " ".join(map(visible, seen.trace.target_tokens[: 1 + len(seen.options.prefix)]))
    note = (
        f"Read downwards: a line follows the one above it on the same rail; ├ and └ are tokens that were considered "
        f"instead. log p is the whole hypothesis's, score = log p / length^{seen.options.length_penalty:g}. "
        f"Every step keeps the {seen.options.beam} best of its {2 * seen.options.beam} best candidates."
    )
    return "\n".join([wrap(note), "", f"● {start}", *lines])


def _branch(seen: Look, record: Tree, place: int, rail: str, precision: int) -> Iterator[str]:
    """What follows a node: what was considered besides, a rail further in, then what went on, on the same rail."""
    while True:
        children = [i for i, node in enumerate(record.nodes) if node.parent == place]
        going_on = _trunk(record, children)
        besides = [i for i in children if i != going_on]
        for child in besides:
            last = child == besides[-1] and going_on is None
            below = rail + (" " if last else "│")
            yield from _line(seen, record.nodes[child], rail + ("└ " if last else "├ "), f"{below}   ", precision)
            yield from _branch(seen, record, child, f"{below} ", precision)
        if going_on is None:
            return
        mark = "★" if going_on == record.best else "●"
        below = "│" if any(node.parent == going_on for node in record.nodes) else " "
        yield from _line(seen, record.nodes[going_on], f"{rail}{mark} ", f"{rail}{below}   ", precision)
        place = going_on


def _trunk(record: Tree, children: list[int]) -> int | None:
    """The child to draw on the same rail: the way to the best hypothesis, else the one that lived longest."""
    alive = [i for i in children if record.nodes[i].fate != "dropped"]
    if not alive:
        return None
    on_the_way = set()
    place = record.best
    while place >= 0:
        on_the_way.add(place)
        place = record.nodes[place].parent
    return max(alive, key=lambda i: (i in on_the_way, _age(record, i), -i))


def _age(record: Tree, place: int) -> int:
    """How many more steps a hypothesis or one of its continuations lived."""
    ages = [1 + _age(record, i) for i, n in enumerate(record.nodes) if n.parent == place and n.fate != "dropped"]
    return max(ages, default=0)


def _line(seen: Look, node: Node, lead: str, hang: str, precision: int) -> Iterator[str]:
    token = cut(seen.trace.vocabulary[node.token], 16)
    first = f"{lead}{left(token, max(0, 24 - text_width(lead)))}"
    numbers = f"log p {number(node.total, precision)}  score {number(node.score, precision)}"
    yield f"{first}  {numbers}  {node.fate}"
    if node.why:
        yield wrap(node.why, indent=hang)


# --- one step ---------------------------------------------------------------------------------------------------------


def step(seen: Look, number_of_step: int, again: Again, precision: int = PRECISION) -> str:
    """One decoding step: what it starts from, what is reused, what is new, and the choice."""
    if seen.empty or not seen.model.config.has_decoder:
        raise InputError("this run has no decoding steps", found="no decoder ran")
    return "\n".join(_step(seen, number_of_step, again, precision))


def _step(seen: Look, t: int, again: Again, precision: int) -> Iterator[str]:
    kept = seen.kept_at(t)
    trace = seen.trace
    so_far = " ".join(visible(token) for token in trace.target_tokens[: t + 1])
    yield wrap(f"Step {t}: after {so_far} the decoder takes {visible(trace.chosen_tokens[t])}", hang="  ")
    yield ""
    yield "What is reused, and what is new"
    rows = []
    if seen.model.config.has_encoder:
        n = len(trace.source_tokens)
        rows.append(["memory", "the encoder's output", "" if t == 0 else f"{n} rows", f"{n} rows" if t == 0 else ""])
    names = [(name.rsplit(".", 2)[0], name) for name in kept.rows]
    for part, group in groupby(names, key=lambda pair: pair[0]):
        first = next(group)[1]
        reused, total = kept.reused[first], len(kept.rows[first])
        rows.append([part, "keys and values, every head", *(_rows(n) for n in (reused, total - reused))])
    yield from (f"  {line}" for line in table(rows, ["", "", "reused", "new"], "llrr").splitlines())
    yield wrap(
        "Everything else of this step is one new row. Reusing is exact, because the mask keeps earlier rows from "
        "seeing later tokens.",
        indent="  ",
    )
    key = next(name for name in kept.rows if ".self.K." in name)
    marks = ["kept" if r < kept.reused[key] else "new" for r in range(len(kept.rows[key]))]
    width = max(text_width(cut(token, 16)) for token in trace.target_tokens)
    labels = [f"{left(cut(trace.target_tokens[r], 16), width)} {mark}" for r, mark in enumerate(marks)]
    yield f"\n{key}@{t}   the keys that this step's query meets"
    yield matrix(kept.rows[key], labels, None, precision)
    for name in (f"{key.replace('.self.K.', '.self.weights.')}", f"{key.replace('.self.K.', '.cross.weights.')}"):
        if name in trace:
            yield f"\n{heading(trace, Address(name, (), t))}   the last row is this step's"
            yield draw(trace, Address(name, (), t), precision)
    yield f"\nout.prob@{t}   the next token"
    candidates = likeliest(seen, t, TOP)
    rows = [
        ["→" if c.taken else "", cut(c.token, 24), number(c.p, precision), bar(c.p, 20), "forbidden" * c.forbidden]
        for c in candidates
    ]
    yield from (f"  {line}" for line in table(rows, align="ll.ll").splitlines())
    others = len(trace.vocabulary) - len(candidates)
    if others > 0:
        rest = float(trace.values["out.prob"][t].sum()) - sum(c.p for c in candidates)
        yield f"  all {others:,} others: sum {number(max(0.0, rest), precision)}"
    yield "\nAll of the decoder at this step:"
    yield f"  {again.look('--at', f'dec.0@{t}')}"


def _rows(count: int) -> str:
    return f"{count} row{'s' * (count != 1)}" if count else ""
