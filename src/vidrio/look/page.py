"""A run as one page: a single file that needs no network and no script, and gives the same bytes every time.

The page computes nothing. Every number on it is the trace's, and its cell says in `data-address` which one.
"""

from collections.abc import Callable, Iterator, Sequence
from html import escape

from vidrio._version import __version__
from vidrio.draw.document import document, scrolling
from vidrio.draw.html import cell, in_notebook, matrix, text
from vidrio.draw.show import LIMIT, PRECISION, number, shape
from vidrio.glass.numbers.trace import Trace, parse_address
from vidrio.glass.proof.receipts import locate, receipt
from vidrio.look.command_line import CommandLine
from vidrio.look.decoding import tree
from vidrio.look.manifest import identity
from vidrio.look.measures import classes, likeliest
from vidrio.look.overview import AXES, STEP_BY_STEP, describe, disagreement, why_stopped
from vidrio.look.quantities import at, under
from vidrio.look.run import Look
from vidrio.model.parameters import count

LARGE = 200_000  # numbers; of a run beyond it the page draws one head of many, and less of each matrix
SMALL = 20_000  # parameters; up to here the page holds them too
TOP = 5
BLANK_LINE = "\n\n"
LONG = ' class="long"'
PARTS = {"self": "Self-attention", "cross": "Cross-attention: reading the source", "ffn": "Feed-forward"}


def page(seen: Look, again: CommandLine, precision: int = PRECISION) -> str:
    """The whole page."""
    title = f"{seen.text} → {seen.translation}"
    return document(title, _header(seen), _sections(seen, again, precision), _footer(seen))


def glance(seen: Look, precision: int = PRECISION) -> str:
    """The words out and what each read, for a notebook."""
    parts = [f"<p><b>{text(seen.text)} → {text(seen.translation)}</b></p>"]
    if seen.result:
        parts += _steps(seen, precision)
    elif not (seen.stopped or seen.empty):
        parts.append(_classes(seen, precision))
    parts += _read(seen.trace, _Drawer(seen.trace, precision))
    return in_notebook("\n".join(parts))


def part(trace: Trace, where: str, precision: int = PRECISION) -> str:
    """A quantity, or every quantity under an address, as it stands on the page; of a number, its quantity."""
    address = parse_address(where)
    draw = _Drawer(trace, precision, links=False)
    if address.step is not None:
        return f"<pre>{escape(at(trace, where, None, precision))}</pre>"
    return draw.every([address.name] if address.name in trace else under(trace, address.name))


def _header(seen: Look) -> Iterator[str]:
    long = LONG * (len(seen.text + seen.translation) > 80)
    before, after = text(seen.text) or "(an empty text)", text(seen.translation) or "(nothing)"
    yield f'<header>\n<h1{long}>{before} <span class="arrow">→</span> {after}</h1>'
    yield f'<p class="status">{text(describe(seen))}</p>'
    if seen.empty:
        yield "<p>The text is empty, and so is its translation. Nothing was computed.</p>"
    for word in seen.unknown:
        yield (
            f'<p class="warning">“{text(word)}” is not in the vocabulary: it became the unknown token, and the model '
            f"cannot tell it from any other unknown word.</p>"
        )
    if seen.result and not seen.result.ended and not seen.forced:
        yield '<p class="warning">This translation was cut at the longest length allowed: it had not ended.</p>'
    for change in seen.changes:
        yield f'<p class="warning">Changed: {text(change)}</p>'
    if seen.stopped:
        yield f'<p class="warning">{text(why_stopped(seen))}</p>'
    if seen.trace.steps:
        yield f'<p class="warning">{text(STEP_BY_STEP)}</p>'
    if seen.disagreement > seen.tolerance:
        yield f'<p class="warning">{text(disagreement(seen))}</p>'
    yield "</header>"


def _sections(seen: Look, again: CommandLine, precision: int) -> Iterator[tuple[str, str, str]]:
    """(anchor, title, body), in the order of the way of the data, after the two that are asked for most."""
    if seen.empty:
        return
    trace = seen.trace
    draw = _Drawer(trace, precision)
    if seen.result:
        yield "words", "The words out, step by step", "\n".join((*_steps(seen, precision), *_receipts(seen, precision)))
    elif not seen.stopped:
        yield "classes", "The classes", _classes(seen, precision)
    yield "read", "What each word read", "\n".join(_read(trace, draw))
    yield "text", "The text in", _text_in(seen)
    yield "sizes", "Letters and sizes", _sizes(trace)
    yield "source", "Source tokens to rows", draw.every(_named(trace, ("src.", "enc.in")))
    yield "encoder", "The encoder", "\n".join(_layers(trace, "enc", "Encoder", draw))
    yield "encoded", "The encoder's output", draw.every(_named(trace, ("enc.norm", "memory")))
    yield "target", "Target tokens to rows", draw.every(_named(trace, ("tgt.", "dec.in")))
    yield "decoder", "The decoder", "\n".join(_layers(trace, "dec", "Decoder", draw))
    yield "out", "Rows to words", draw.every(_named(trace, ("dec.norm", "dec.out", "out.")))
    if draw.with_parameters:
        tables = [
            p for p in trace.addresses() if trace.stages[p].kind == "parameter" and not p.startswith(("enc.", "dec."))
        ]
        yield "tables", "Parameters outside the layers", draw.every(tables)
    if seen.tree is not None and seen.tree.nodes:
        yield "tree", "The search tree", f"<pre>{escape(tree(seen, precision))}</pre>"
    yield "check", "How to check it", "\n".join(_check(seen, again))


# --- at a glance ------------------------------------------------------------------------------------------------------


def _steps(seen: Look, precision: int) -> Iterator[str]:
    yield (
        "<p>At each step the decoder reads the source and its own words so far, and gives every word of the vocabulary "
        "a probability.</p>"
    )
    head = (
        '<th scope="col" class="word">after</th><th scope="col" class="word">comes</th><th scope="col">log p</th>'
        f'<th scope="col" class="word" colspan="{2 * TOP}">the likeliest</th>'
    )
    rows = "".join(_step_rows(seen, precision))
    yield scrolling("steps", head, rows)
    if "✗" in rows:
        yield '<p class="left-out">✗: the search may not take this token.</p>'
    assert seen.result
    score = f", score {number(seen.result.score, precision)} = log p / length^{seen.options.length_penalty:g}"
    yield f"<p>The whole: log p {number(seen.result.log_prob, precision)}{'' if seen.forced else score}.</p>"


def _receipts(seen: Look, precision: int) -> Iterator[str]:
    """How each chosen word came to its number and its probability, with the numbers put in."""
    trace = seen.trace
    about = "how each word came to its probability, with the numbers put in"
    yield f"<details><summary>Receipts <span>{about}</span></summary>"
    for t, token in enumerate(trace.chosen_tokens):
        parts = []
        for address in (
            f"out.logits[{seen.chosen_ids[t]}]@{t}",
            f"out.prob[{seen.chosen_ids[t]}]@{t}",
            f"out.score[{t}]",
        ):
            bill = receipt(trace, locate(trace, parse_address(address)))
            lines = [f"{address} = {bill.formula}", *(f"  = {line}" for line in bill.working(_drawn(precision)))]
            agrees = "agree" if bill.compared.agrees else "DO NOT AGREE"
            lines.append(
                f"  model {bill.compared.model!r}, recomputed {bill.compared.recomputed!r}: they {agrees} "
                f"(difference {bill.compared.difference:.1e}, rounding explains {bill.compared.tolerance:.1e})"
            )
            parts.append(escape("\n".join(lines)))
        yield (
            f"<details><summary>Step {t}: <b>{text(token)}</b></summary><pre>{BLANK_LINE.join(parts)}</pre></details>"
        )
    yield "</details>"


def _drawn(precision: int) -> Callable[[float], str]:
    return lambda value: number(value, precision)


def _step_rows(seen: Look, precision: int) -> Iterator[str]:
    trace = seen.trace
    for t, token in enumerate(trace.chosen_tokens):
        log_prob = float(trace.values["out.score"][t])
        cells = [
            f'<th scope="row" class="word"><i>{t}</i> {text(trace.target_tokens[t])}</th>',
            f'<td class="word"><b>{text(token)}</b></td>',
            cell(number(log_prob, precision), log_prob, f"out.score[{t}]"),
        ]
        for c in likeliest(seen, t, TOP):
            name = f"<b>{text(c.token)}</b>" if c.taken else text(c.token)
            name += " ✗" * c.forbidden
            cells.append(f'<td class="word">{name}</td>')
            cells.append(cell(number(c.p, precision), c.p, f"out.prob[{c.id}]@{t}", shaded=True))
        yield f"<tr>{''.join(cells)}</tr>"


def _classes(seen: Look, precision: int) -> str:
    rows = (
        f'<tr><th scope="row" class="word">{text(name)}</th>'
        f"{cell(number(p, precision), p, f'out.prob[{c}]', shaded=True)}</tr>"
        for name, c, p in classes(seen)
    )
    return scrolling("classes", "", "".join(rows))


def _read(trace: Trace, draw: "_Drawer") -> Iterator[str]:
    """The last cross-attention, all heads; without an encoder or a decoder, the last self-attention."""
    weights = [name for name in trace.values if ".weights.h" in name]
    crossing = [name for name in weights if ".cross." in name]
    if not weights:
        return
    part = (crossing or weights)[-1].rpartition(".weights.")[0]
    rows = "translation so far" if part.startswith("dec") else "text"
    columns = "source token" if crossing else "token"
    yield (
        f"<p>Each row is a token of the {rows}, each column a {columns}; the numbers are the shares that the row takes "
        f"from each column, and sum to 1. This is <code>{part}</code>, in the last layer, head by head; the other "
        f"layers are further down.</p>"
    )
    heads = [name for name in weights if name.startswith(f"{part}.")]
    tables = "".join(draw.table(name, caption=f"head {h}") for h, name in enumerate(heads))
    yield f'<div class="side-by-side">{tables}</div>'


def _text_in(seen: Look) -> str:
    config = seen.model.config
    rows = [
        (p.token, str(p.id), f"“{seen.text[p.start : p.end]}”" + ": not in the vocabulary" * p.unknown)
        for p in seen.pieces
    ]
    if len(seen.source_ids) > len(rows):
        rows.append((seen.trace.source_tokens[-1], str(seen.source_ids[-1]), "the end, added"))
    if not config.has_encoder:
        rows.insert(0, (seen.trace.target_tokens[0], str(seen.target_ids[0]), "the start, added"))
    side = "src" if config.has_encoder else "tgt"
    body = "".join(
        f'<tr><th scope="row" class="word"><i>{i}</i> {text(token)}</th>'
        f'<td data-address="{side}.ids[{i}]">{number_of_token}</td><td class="note">{text(note)}</td></tr>'
        for i, (token, number_of_token, note) in enumerate(rows)
    )
    head = '<th scope="col" class="word">token</th><th scope="col">id</th><th scope="col" class="word">stands for</th>'
    return scrolling("tokens", head, body)


def _sizes(trace: Trace) -> str:
    used = [a for a in AXES if any(a in trace.stages[name].axes for name in trace.values)]
    rows = "".join(
        f'<tr><th scope="row">{a}</th><td class="word">{AXES[a]}</td><td>{trace.sizes[a]:,}</td></tr>' for a in used
    )
    return scrolling("sizes", "", rows)


# --- the way ----------------------------------------------------------------------------------------------------------


class _Drawer:
    """Draws quantities of one trace, as much of each as fits a page for a model of this size."""

    def __init__(self, trace: Trace, precision: int, *, links: bool = True) -> None:
        self.trace, self.precision, self.links = trace, precision, links
        self.large = sum(array.size for array in trace.values.values()) > LARGE
        self.with_parameters = count(trace.machine.config) <= SMALL

    def every(self, names: Sequence[str]) -> str:
        return "\n".join(map(self.quantity, names))

    def quantity(self, name: str) -> str:
        """One quantity: what it is, how it is made, and its numbers."""
        return f'<div class="quantity" id="{name}">{self.title(name)}{self.about(name)}{self.table(name)}</div>'

    def of_heads(self, names: Sequence[str]) -> str:
        """The same quantity of several heads: told once, drawn side by side."""
        heads = "".join(
            f'<div id="{name}">{self.title(name)}<p>{self.made_from(name)}</p>{self.table(name)}</div>'
            for name in names
        )
        return f'<div class="quantity">{self.about(names[0], short=True)}<div class="side-by-side">{heads}</div></div>'

    def title(self, name: str) -> str:
        axes = " × ".join(self.trace.stages[name].axes)
        return f'<h4><a href="#{name}"><code>{name}</code></a> {axes} = {shape(self.trace.array(name))}</h4>'

    def about(self, name: str, *, short: bool = False) -> str:
        stage = self.trace.stages[name]
        formula = f' = <span class="formula">{text(stage.formula)}</span>' if stage.inputs else ""
        made = "" if short else f" {self.made_from(name)}"
        says, place = f'<span class="says">{text(stage.says)}</span>', f'<span class="place">{text(stage.place)}</span>'
        return f"<p>{says}{formula}{made} {place}</p>"

    def made_from(self, name: str) -> str:
        inputs = self.trace.stages[name].inputs
        return f"from {', '.join(map(self.link, inputs))}" if inputs else ""

    def table(self, name: str, caption: str = "") -> str:
        trace, stage = self.trace, self.trace.stages[name]
        names = [trace.axis_tokens(name, axis) or None for axis in stage.axes]
        whole, part = (24, 8) if self.large else (48, LIMIT)
        limits = [whole if all(names) else part if self.large or not tokens else whole for tokens in names]
        return matrix(
            trace.array(name), name, names[0], names[-1], self.precision, (limits[0], limits[-1]),
            shaded=stage.operation.endswith("softmax"), caption=caption,
        )  # fmt: skip

    def link(self, name: str) -> str:
        drawn = self.links and self.draws(name)
        return f'<a href="#{name}"><code>{name}</code></a>' if drawn else f"<code>{name}</code>"

    def draws(self, name: str) -> bool:
        """Whether this page holds a quantity."""
        if name not in self.trace.values:
            return self.with_parameters and name in self.trace
        return not self.large or not _is_head(name) or name.endswith(".h0")


def _named(trace: Trace, starts: tuple[str, ...]) -> list[str]:
    return [name for name in trace.values if name.startswith(starts)]


def _layers(trace: Trace, side: str, title: str, draw: _Drawer) -> Iterator[str]:
    """Each layer folded up, its sub-layers in order, the heads of a quantity side by side."""
    config = trace.machine.config
    for n in range(config.n_encoder_layers if side == "enc" else config.n_decoder_layers):
        names = [name for name in trace.values if name.startswith(f"{side}.{n}.")]
        if not names:
            continue
        parts = list(dict.fromkeys(name.split(".")[2] for name in names))
        summary = f"{title} layer {n} <span>{', '.join(PARTS[p].split(':')[0].lower() for p in parts)}</span>"
        yield f'<details id="{side}.{n}"><summary>{summary}</summary>'
        for part in parts:
            yield f"<h3>{PARTS[part]}</h3>"
            yield from _groups(draw, [name for name in names if name.split(".")[2] == part])
            parameters = [p for p in trace.addresses(f"{side}.{n}.{part}") if trace.stages[p].kind == "parameter"]
            if draw.with_parameters:
                yield f"<details><summary>Parameters of {side}.{n}.{part}</summary>"
                yield from (*_groups(draw, parameters), "</details>")
        yield "</details>"


def _groups(draw: _Drawer, names: Sequence[str]) -> Iterator[str]:
    """The quantities one after the other; those that every head has, side by side."""
    stems = dict.fromkeys(name.rpartition(".h")[0] if _is_head(name) else name for name in names)
    for stem in stems:
        heads = [name for name in names if _is_head(name) and name.rpartition(".h")[0] == stem]
        drawn = [name for name in heads if draw.draws(name)]
        yield draw.of_heads(drawn) if drawn else draw.quantity(stem)
        if len(drawn) < len(heads):
            left_out = f"Heads {len(drawn)} to {len(heads) - 1} are left out here; they are made likewise."
            yield f'<p class="left-out">{left_out}</p>'


def _is_head(name: str) -> bool:
    return name.rpartition(".h")[2].isdigit()


def _check(seen: Look, again: CommandLine) -> Iterator[str]:
    yield (
        "<p>Every number above stands in a cell that says its address (in the attribute <code>data-address</code>). "
        "This prints where one of them comes from, and recomputes it from its inputs:</p>"
    )
    yield f"<pre>{escape(again.why('out.prob[0]@0' if seen.model.config.has_decoder else 'out.prob[0]'))}</pre>"
    yield "<p>And this recomputes two hundred of them, drawn at random, by a second implementation:</p>"
    yield f"<pre>{escape(again.check())}</pre>"


def _footer(seen: Look) -> str:
    files = identity(seen.model)["sha256"]
    rows = "".join(f"<br><code>{name} {checksum}</code>" for name, checksum in files.items())
    return (
        f'<footer class="status"><p>Made by vidrio {__version__} from the model {text(seen.model.name)}; '
        f"its files have these sha256 checksums:{rows}</p>"
        f"<p>This page needs no network and runs no script.</p></footer>"
    )
