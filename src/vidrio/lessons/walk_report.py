"""The walk as text in 80 columns, and as data."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from vidrio.draw import show, terminal
from vidrio.glass.numbers.trace import Trace, parse_address
from vidrio.glass.paper.maths import Array
from vidrio.glass.proof.receipts import Receipt, locate
from vidrio.lessons import printed
from vidrio.lessons.errata import flag_with_numbers
from vidrio.lessons.runs import Lesson
from vidrio.lessons.sidelights import SIDELIGHTS, Aside
from vidrio.lessons.slips import slip
from vidrio.lessons.step import Step
from vidrio.model.find import LESSON

WORD_COLUMNS = 20  # of a matrix at most; those that do not fit side by side come below
LONGEST_WORKING = 4  # lines of it


# --- as text ----------------------------------------------------------------------------------------------------------


def index(steps: Sequence[Step]) -> Iterator[str]:
    """A line for each step, under the part of the post that it is in."""
    part = ""
    for n, step in enumerate(steps, 1):
        here, _, section = step.section.partition(": ")
        if here != part:
            yield f"{'' if not part else chr(10)}{here}"
            part = here
        yield show.wrap(section, indent=show.left(f"{n:3}  {step.title}", 48), hang=" " * 48).rstrip()


def step_text(lesson: Lesson, every: Sequence[Step], n: int, precision: int, again: str) -> Iterator[str]:
    """Step n of all steps: where, what, the numbers, one of them by hand, and where to ask on."""
    step = every[n - 1]
    trace, run = step.trace(lesson), step.run_in(lesson)
    title = f"{n} of {len(every)}  {step.title}"
    yield title
    yield "=" * min(show.WIDTH, show.text_width(title))
    yield show.wrap(f"In the post: {step.section}", hang="  ")
    if any(before.run_in(lesson) != "whole" for before in every[:n]):  # else nobody doubts which run it is
        yield show.wrap(f"Computed: {lesson.says(run)}.", hang="  ")
    yield ""
    yield show.wrap(step.text(lesson))
    for name in step.shows:
        yield ""
        yield from _quantity(trace, name, precision)
    if step.beside:
        yield ""
        yield from _beside(step.beside, lesson, trace, precision).lines
    for address in step.by_hand:
        if _names_a_number(trace, address):
            yield ""
            yield from by_hand(trace, address, precision)
    for note in _notes(lesson, step, precision):
        yield ""
        yield from note
    if step.by_hand and _names_a_number(trace, step.by_hand[0]):
        address = _placed(trace, step.by_hand[0])
        yield "\nAsk on:"
        yield _on_one_line_or_two(f"  {again} --step {n}", f'--why "{address}"')
        if lesson.mode == "trained" and not lesson.own and run == "whole":
            yield f'  vidrio why "{address}" "{lesson.values.sentence}" --model {LESSON}'


def _on_one_line_or_two(command: str, option: str) -> str:
    """A command to copy, broken as a shell joins it again."""
    whole = f"{command} {option}"
    return whole if show.text_width(whole) <= show.WIDTH else f"{command} \\\n    {option}"


def _beside(name: str, lesson: Lesson, trace: Trace, precision: int) -> Aside:
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # NaN are part of the lesson
        return SIDELIGHTS[name](lesson, trace, precision)


def _quantity(trace: Trace, name: str, precision: int) -> Iterator[str]:
    stage, array = printed.stage_of(trace, name), trace.array(name)
    axes = f"  {' × '.join(stage.axes)} = {show.shape(array)}" if stage.axes else ""
    made = "" if stage.kind in ("parameter", "input", "choice") else f" = {stage.formula}"
    yield show.wrap(f"{name}{made}", hang="  ")
    yield show.wrap(f"  {stage.says}. {stage.place}.{axes}", hang="  ")
    if name in trace.computed:
        yield "  given: the post goes on with this, which it drew or assumed"
    yield drawn(trace, name, array, precision)


def drawn(trace: Trace, name: str, array: Array, precision: int) -> str:
    """The numbers, with the tokens that rows and columns stand for."""
    stage = trace.stage(name)
    if name.endswith((".ids", "out.choice")):
        words = [trace.vocabulary[int(i)] for i in array]
        return show.vector(array, words, precision)
    tokens = [trace.axis_tokens(name, axis) or None for axis in stage.axes]
    shaded = stage.operation in ("softmax", "naive_softmax")
    if array.ndim == 1:
        return show.vector(array, tokens[0], precision)
    return show.matrix(array, tokens[0], tokens[1], precision, limit=(show.LIMIT, WORD_COLUMNS), shaded=shaded)


def by_hand(trace: Trace, address: str, precision: int) -> Iterator[str]:
    """One number worked out with the numbers put in."""
    yield from _by_hand(printed.receipt_of(trace, locate(trace, parse_address(_placed(trace, address)))), precision)


def _by_hand(told: Receipt, precision: int) -> Iterator[str]:
    yield show.wrap(f"By hand: {told.at} = {told.formula}", hang="    ")
    slipped = told.stage.operation == "slipped_positions"
    lines = told.working(lambda value: plain(value, max(precision, 6) if slipped else precision))
    if len(lines) > LONGEST_WORKING:
        lines = [*lines[: LONGEST_WORKING - 1], lines[-1]]
    yield from (show.wrap(f"= {line}", indent="  ", hang="    ") for line in lines)
    if slipped and told.value != told.compared.recomputed:
        yield f"  and to two decimals, as the post has it: {plain(told.value, 2)}"
    elif told.edited:
        yield f"  the post goes on with {plain(told.value, precision)} instead, which it drew or assumed"


def receipt_text(trace: Trace, address: str, precision: int) -> Iterator[str]:
    """The receipt of one number of the lesson's own machine."""
    told = printed.receipt_of(trace, locate(trace, parse_address(address)))
    tokens = [f"{axis} {i} {show.visible(head)}".rstrip() for axis, i, head in
              zip(told.stage.axes, told.at.place, told.tokens, strict=True)]  # fmt: skip
    yield f"{told.at} = {show.number(told.value, precision)}"
    yield show.wrap(f"  {told.stage.says}. {told.stage.place}. {', '.join(tokens)}", hang="  ")
    yield ""
    if told.stage.kind in ("parameter", "input"):
        yield "Made from nothing else: it is given."
    else:
        yield from _by_hand(told, precision)
        yield ""
        again = told.compared
        rows = [["the model", repr(again.model)], ["worked out again", repr(again.recomputed)]]
        rows.append(["difference", f"{again.difference:.2g}"])
        rows += [["rounding explains up to", f"{again.tolerance:.2g}"]] if again.difference else []
        yield show.table(rows)
        yield "" if again.agrees else "They do not agree."
        yield show.wrap(f"Made from: {_some([f'{at} = {plain(x, precision)}' for at, x in told.inputs])}", hang="  ")
    yield show.wrap(f"Goes into: {_some(list(told.used_by)) or 'nothing further'}", hang="  ")


def _some(texts: list[str], most: int = 12) -> str:
    joined = ", ".join(text.replace(" ", show.NO_BREAK) for text in texts[:most])
    return joined + (f" and {len(texts) - most} more" if len(texts) > most else "")


def _notes(lesson: Lesson, step: Step, precision: int) -> Iterator[Iterable[str]]:
    if lesson.own or lesson.mode == "trained":
        return
    if step.drawn:
        yield ["Drawn: the post's own random numbers are lost; step 1 says where these are from."]
    for number in step.slips:
        if lesson.mode == "corrected":
            yield [terminal.text(flag_with_numbers(number, precision), precision)]
        else:
            line = show.wrap(
                f"! Slip {number}: {slip(number).printed}. Right: vidrio lesson errata {number}", hang="  "
            )
            yield [line]


def plain(value: float, precision: int) -> str:
    """A number to calculate with: no zeros at the end."""
    text = show.number(float(value), precision)
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def _placed(trace: Trace, address: str) -> str:
    """The address with -1 made the last row."""
    name, _, inside = address.rstrip("]").partition("[")
    shape = trace.array(name).shape
    places = [str(int(i) % length) for i, length in zip(inside.split(","), shape, strict=True)] if inside else []
    return f"{name}[{','.join(places)}]" if places else name


def _names_a_number(trace: Trace, address: str) -> bool:
    """Whether the address is inside: with a single word or a narrow model some are not."""
    name, _, inside = address.rstrip("]").partition("[")
    return name in trace and all(int(i) < n for i, n in zip(inside.split(","), trace.array(name).shape, strict=True))


# --- as data ----------------------------------------------------------------------------------------------------------


def step_data(lesson: Lesson, n: int, step: Step) -> dict[str, Any]:
    trace = step.trace(lesson)
    data: dict[str, Any] = {
        "step": n,
        "title": step.title,
        "section": step.section,
        "run": step.run_in(lesson),
        "decoding_step": step.at,
        "drawn": step.drawn and not lesson.own and lesson.mode != "trained",
        "slips": list(step.slips),
        "quantities": [_quantity_data(trace, name) for name in step.shows],
        "by_hand": [_by_hand_data(trace, a) for a in step.by_hand if _names_a_number(trace, a)],
    }
    if step.beside:
        data["beside"] = _beside(step.beside, lesson, trace, show.PRECISION).data
    return data


def _quantity_data(trace: Trace, name: str) -> dict[str, Any]:
    stage, array = printed.stage_of(trace, name), trace.array(name)
    return {
        "address": name,
        "axes": stage.axes,
        "formula": stage.formula,
        "latex": stage.latex,
        "place": stage.place,
        "given": name in trace.computed,
        "values": array,
    }


def receipt_data(trace: Trace, address: str) -> dict[str, Any]:
    told = printed.receipt_of(trace, locate(trace, parse_address(address)))
    return {
        "address": str(told.at),
        "tokens": told.tokens,
        "says": told.stage.says,
        "place": told.stage.place,
        "value": told.value,
        "made_from": {str(at): value for at, value in told.inputs},
        "goes_into": told.used_by,
        **({"formula": told.formula, "working": told.working(), "check": _check(told)} if told.inputs else {}),
    }


def _check(told: Receipt) -> dict[str, Any]:
    again = told.compared
    return {
        "recomputed": again.recomputed,
        "difference": again.difference,
        "rounding_explains": again.tolerance if again.difference else None,
        "agrees": again.agrees,
    }


def index_data(steps: Sequence[Step]) -> list[dict[str, Any]]:
    return [{"step": n, "title": step.title, "section": step.section} for n, step in enumerate(steps, 1)]


def _by_hand_data(trace: Trace, address: str) -> dict[str, Any]:
    told = printed.receipt_of(trace, locate(trace, parse_address(_placed(trace, address))))
    return {"address": str(told.at), "formula": told.formula, "working": told.working(), "value": told.value}


def walk_data(lesson: Lesson, chosen: Sequence[tuple[int, Step]]) -> dict[str, Any]:
    return {
        "lesson": "random-transformer",
        "as": lesson.mode,
        "about": lesson.values.about,
        "sentence": lesson.values.sentence,
        "steps": [step_data(lesson, n, step) for n, step in chosen],
    }
