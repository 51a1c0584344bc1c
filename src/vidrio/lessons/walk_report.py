"""The walk as text in 80 columns, and as data. The words are in data/steps.toml."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from vidrio.glass.numbers.trace import Trace, parse_address
from vidrio.glass.proof.receipts import Receipt, locate
from vidrio.lessons import pages, printed
from vidrio.lessons.as_data import Measured
from vidrio.lessons.errata import flag_with_numbers
from vidrio.lessons.runs import Lesson
from vidrio.lessons.sidelights import SIDELIGHTS
from vidrio.lessons.slips import slip
from vidrio.lessons.step import Step
from vidrio.look import writing
from vidrio.look.blocks import LIMIT, Block, Note, Numbers
from vidrio.model.find import LESSON

WORD_COLUMNS = 20  # of a matrix at most; those that do not fit side by side come below
LONGEST_WORKING = 4  # lines of it
MOST_NAMED = 12  # numbers that one is made from, or goes into


# --- as text ----------------------------------------------------------------------------------------------------------


def index(steps: Sequence[Step]) -> Iterator[Block]:
    """A line for each step, under the part of the post that it is in."""
    part = ""
    for n, step in enumerate(steps, 1):
        here, _, section = step.section.partition(": ")
        if here != part:
            yield f"\n{here}" if part else here
            part = here
        yield Note(f"{writing.left(f'{n:3}  {step.title}', 48)}{section}".rstrip(), hang=48)


def step_text(lesson: Lesson, every: Sequence[Step], n: int, precision: int, again: str) -> str:
    """Step n of all steps: where, what, the numbers, one of them by hand, and where to ask on."""
    step, texts = every[n - 1], pages.pages("steps")
    trace, run = step.trace(lesson), step.run_in(lesson)
    title = f"{n} of {len(every)}  {step.title}"
    beside: Iterable[Block] = ()
    if step.beside:
        named = pages.public(_beside(step.beside, lesson, trace))
        beside = pages.blocks(texts["beside"][step.beside], named, precision)
    by_hand, slips = _to_work_out(trace, step), () if lesson.own else step.slips
    values = {
        "title": title,
        "underline": "=" * min(writing.WIDTH, writing.text_width(title)),
        "section": step.section,
        # else nobody doubts which run it is
        "computed": lesson.says(run) if any(b.run_in(lesson) != "whole" for b in every[:n]) else "",
        "says": [Note(step.text(lesson))],
        "quantities": [_quantity(trace, name) for name in step.shows],
        "beside": list(beside),
        "by_hand": [_by_hand(_receipt(trace, address), precision) for address in by_hand],
        "drawn": _is_drawn(lesson, step),
        "slips": [slip(number) for number in slips] if lesson.mode == "printed" else [],
        "flags": [list(flag_with_numbers(number, precision)) for number in slips] if lesson.mode == "corrected" else [],
        "ask": list(_ask_on(lesson, f"{again} --step {n}", by_hand[0], run)) if by_hand[:1] else [],
    }
    return pages.text(texts["page"], values, precision)


def _is_drawn(lesson: Lesson, step: Step) -> bool:
    """Whether it is made of numbers that stand for those that the post drew."""
    return step.drawn and not lesson.own and lesson.mode != "trained"


def _ask_on(lesson: Lesson, command: str, address: str, run: str) -> Iterator[str]:
    """Commands to copy, broken as a shell joins them again."""
    whole = f'  {command} --why "{address}"'
    yield whole if writing.text_width(whole) <= writing.WIDTH else f'  {command} \\\n    --why "{address}"'
    if lesson.mode == "trained" and not lesson.own and run == "whole":
        yield f'  vidrio why "{address}" "{lesson.values.sentence}" --model {LESSON}'


def _beside(name: str, lesson: Lesson, trace: Trace) -> Measured:
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # NaN are part of the lesson
        return SIDELIGHTS[name](lesson, trace)


def _quantity(trace: Trace, name: str) -> dict[str, Any]:
    stage, array = printed.stage_of(trace, name), trace.array(name)
    return {
        "name": name,
        "made": "" if stage.kind in ("parameter", "input", "choice") else f" = {stage.formula}",
        "stage": stage,
        "axes": f"  {' × '.join(stage.axes)} = {writing.shape(array)}" if stage.axes else "",
        "given": name in trace.computed,
        "numbers": numbers(trace, name),
    }


def numbers(trace: Trace, name: str) -> Numbers:
    """The numbers, with the tokens that rows and columns stand for."""
    stage, array = trace.stage(name), trace.array(name)
    if name.endswith((".ids", "out.choice")):
        return Numbers(array, columns=[trace.vocabulary[int(i)] for i in array])
    rows, *columns = [trace.axis_tokens(name, axis) or None for axis in stage.axes]
    if array.ndim == 1:
        return Numbers(array, columns=rows)
    shares = stage.operation in ("softmax", "naive_softmax")
    return Numbers(array, rows=rows, columns=columns[0], limit=(LIMIT, WORD_COLUMNS), shares=shares)


def _receipt(trace: Trace, address: str) -> Receipt:
    return printed.receipt_of(trace, locate(trace, parse_address(address)))


def _by_hand(bill: Receipt, precision: int) -> list[Block]:
    """One number worked out with the numbers put in."""
    slipped = bill.stage.operation == "slipped_positions"
    lines = bill.working(lambda value: plain(value, max(precision, 6) if slipped else precision))
    if len(lines) > LONGEST_WORKING:
        lines = [*lines[: LONGEST_WORKING - 1], lines[-1]]
    values = {
        "bill": bill,
        "lines": lines,
        "rounded": plain(bill.value, 2) if slipped and bill.value != bill.compared.recomputed else "",
        "other": plain(bill.value, precision) if bill.edited and not slipped else "",
    }
    return list(pages.blocks(pages.pages("steps")["by_hand"], values, precision))


def receipt_text(trace: Trace, address: str, precision: int) -> str:
    """The receipt of one number of the lesson's own machine."""
    bill = _receipt(trace, address)
    tokens = [f"{axis} {i} {writing.visible(head)}".rstrip() for axis, i, head in
              zip(bill.stage.axes, bill.at.place, bill.tokens, strict=True)]  # fmt: skip
    made = bill.stage.kind not in ("parameter", "input")
    values = {
        "bill": bill,
        "value": writing.number(bill.value, precision),
        "tokens": ", ".join(tokens),
        "by_hand": _by_hand(bill, precision) if made else [],
        "check": bill.compared,
        "sources": _joined([f"{at} = {plain(value, precision)}" for at, value in bill.inputs]),
        "uses": _joined(bill.used_by),
    }
    return pages.text(pages.pages("steps")["receipt"], values, precision)


def _joined(texts: Sequence[str]) -> dict[str, Any]:
    listed = ", ".join(text.replace(" ", writing.NO_BREAK) for text in texts[:MOST_NAMED])
    return {"listed": listed, "more": max(0, len(texts) - MOST_NAMED)}


def plain(value: float, precision: int) -> str:
    """A number to calculate with: no zeros at the end."""
    text = writing.number(float(value), precision)
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def _to_work_out(trace: Trace, step: Step) -> list[str]:
    """The step's numbers by hand, -1 made the last row; with a single word or a narrow model some are not there."""
    addresses = []
    for address in step.by_hand:
        name, _, inside = address.rstrip("]").partition("[")
        places = list(zip(map(int, inside.split(",")), trace.array(name).shape, strict=True)) if name in trace else []
        if places and all(i < length for i, length in places):
            addresses.append(f"{name}[{','.join(str(i % length) for i, length in places)}]")
    return addresses


# --- as data ----------------------------------------------------------------------------------------------------------
