"""Formats receipts, down to the bytes of a parameter, and the result of recomputing a run, as text or JSON."""

import math
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from vidrio.errors import InputError, ModelError
from vidrio.glass.checking import Checked
from vidrio.glass.expressions import Apply, Expression, Number, evaluate, leaves, terms
from vidrio.glass.notations import COPIES
from vidrio.glass.receipts import Compared, Receipt, locate, receipt
from vidrio.glass.trace import Trace, parse_address
from vidrio.glass.words import without_head
from vidrio.look.changed import BeforeAfter
from vidrio.look.run import Look
from vidrio.look.writing import NO_BREAK, PRECISION, note, number, visible
from vidrio.model.header import Stored, read_header
from vidrio.model.quantised import SCALE

EXCEPTIONS = 8  # maximum number of mismatches listed by `vidrio check`
INPUTS = 8  # maximum number of inputs to list
KINDS_OF_TERMS = {"*": "product", "squared": "square", "exp": "exp"}
LISTED = 1100  # maximum number of inputs and terms on the page; a softmax over a vocabulary has thousands

Show = Callable[[float], str]


def digits(precision: int) -> Show:
    """Return a function that formats integers as they are, and other numbers with this many decimal places."""

    def write(value: float) -> str:
        return str(int(value)) if float(value).is_integer() and abs(value) < 1e6 else number(value, precision)

    return write


def why(trace: Trace, address: str, file: Path | None = None, precision: int = PRECISION) -> Iterator[str]:
    """Format the receipt of the number at an address. `file` is the model's parameter file."""
    bill = receipt(trace, locate(trace, parse_address(address)))
    show, stage = digits(precision), bill.stage
    full = "" if float(show(bill.value)) == bill.value or math.isnan(bill.value) else f"   in full {bill.value!r}"
    yield f"{bill.at} = {show(bill.value)}{full}"
    yield from _place(bill)
    yield note(f"{stage.says}. {stage.place}", indent=2)
    if stage.kind == "parameter":
        yield ""
        yield from _in_file(bill, file)
    elif stage.kind != "input":
        yield ""
        yield from _working(bill, show)
    if stage.kind in ("value", "aggregate"):
        yield ""
        yield from _verdict(bill, precision)
    yield ""
    yield from _links(bill, show)


def _place(bill: Receipt) -> Iterator[str]:
    words = ("row", "column") if len(bill.at.place) == 2 else ("place",)
    parts = [
        f"{word} {i}" + (f": {visible(token)}" if token else "")
        for word, i, token in zip(words, bill.at.place, bill.tokens, strict=True)
    ]
    if parts:
        yield note(",   ".join(part.replace(" ", NO_BREAK) for part in parts), indent=2)


def _working(bill: Receipt, show: Show) -> Iterator[str]:
    """Format the formula, the same formula with values filled in, and its evaluation line by line."""
    if bill.stage.kind == "choice":
        yield "  The search decides; it is not computed from other numbers."
    else:
        long = {short: name for name, short in bill.short_names.items() if short != name}
        yield note(f"= {bill.stage.formula}", indent=2, hang=4)
        yield note(f"= {bill.formula}", indent=2, hang=4)
        if long:
            where = ", ".join(f"{short} = {name}".replace(" ", NO_BREAK) for short, name in long.items())
            yield note(f"where {where}", indent=4)
        constant = isinstance(bill.expression, Number) and bill.expression.at is None
        for line in bill.working(show) if not constant else ():
            yield note(f"= {line}", indent=2, hang=4)


def _verdict(bill: Receipt, precision: int) -> Iterator[str]:
    """Format the model's number and the recomputed number, and state whether rounding explains the difference."""
    result, show = bill.compared, digits(precision)
    yield f"  model       {bill.precision.name:8} {result.model!r}"
    yield f"  recomputed  float64  {result.recomputed!r}"
    if result.difference == 0:
        yield "  difference  0"
    else:
        verdict = "they agree" if result.agrees else "THEY DO NOT AGREE"
        explained = "nothing: this is a copy" if result.tolerance == 0 else f"{result.tolerance:.1e}"
        yield f"  difference  {result.difference:.1e}; rounding explains up to {explained}; {verdict}"
    if bill.edited:
        yield note(f"A what-if replaced it with {bill.value!r}, which later steps used.", indent=2)
    printed = bill.from_printed(show)
    if printed is not None:
        yield note(
            f"From the numbers as printed here, with {precision} decimals, the result is {printed} instead of "
            f"{show(result.recomputed)}: the rounding errors add up. For more decimals: --precision {precision + 2}.",
            indent=2,
        )


def _links(bill: Receipt, show: Show) -> Iterator[str]:
    made = [f"{at} = {show(value)}" for at, value in bill.inputs[:INPUTS]]
    if len(bill.inputs) > INPUTS:
        made.append(f"… and {len(bill.inputs) - INPUTS} more")
    made = made or ["nothing: this number is an input"]
    for title, entries in (("made from", made), ("used by", bill.used_by or ["nothing in this run"])):
        for i, entry in enumerate(entries):
            yield f"  {title if i == 0 else '':9}  {entry}"


def _in_file(bill: Receipt, file: Path | None) -> Iterator[str]:
    """Format the stored bytes of a number in a parameter."""
    yield "  A trained number: it is read, not computed."
    found = parameter_bytes(file, bill)
    if found is None:
        return
    yield note(
        f"{found['bytes']} at byte {found['offset']:,} of {found['file']} ({found['dtype']}, lowest byte first) "
        f"is {found['integer'] if found['scale'] else found['value']!r}",
        indent=2,
    )
    if scale := found["scale"]:
        worth = f"times the scale {scale['value']!r} ({scale['bytes']} at byte {scale['offset']:,})"
        yield note(f"{worth}: {found['value']!r}", indent=2)
    if found["value"] != bill.value:
        changed = float(bill.value)
        yield note(f"Here it is {changed!r}: rounded to {bill.precision.name}, or changed by a what-if.", indent=2)


def parameter_bytes(file: Path | None, bill: Receipt) -> dict[str, Any] | None:
    """Return the position and bytes of a parameter's number in the model file, or None if it is not stored there."""
    if file is None or bill.stage.kind != "parameter" or not file.is_file():
        return None
    name, head = without_head(bill.at.name)
    place = (int(head.removeprefix(".h")), *bill.at.place) if head else bill.at.place
    try:
        header = read_header(file)
        offset, raw, value = _stored_number(file, header[name], place)
        found: dict[str, Any] = {"file": file.name, "tensor": name, "dtype": header[name].dtype}
        found |= {"offset": offset, "bytes": raw.hex(" "), "value": value.item(), "integer": None, "scale": None}
        if name + SCALE in header:
            offset, raw, scale = _stored_number(file, header[name + SCALE], place)
            found |= {"value": (value * scale).item(), "integer": value.item()}
            found["scale"] = {"offset": offset, "bytes": raw.hex(" "), "value": scale.item()}
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(f"{file} cannot be read", found=str(error), do="copy the model again") from None
    return found


def _stored_number(file: Path, array: Stored, place: tuple[int, ...]) -> tuple[int, bytes, Any]:
    """Return the offset of a number in the file, its bytes, and its value. Along an axis of length 1, all indices refer
    to the same number."""
    kind = np.dtype({"F64": "<f8", "F32": "<f4", "F16": "<f2", "I8": "<i1"}[array.dtype])
    where = tuple(min(i, n - 1) for i, n in zip(place, array.shape, strict=True))
    with file.open("rb") as data:
        first = 8 + int.from_bytes(data.read(8), "little") + array.data_offsets[0]
        offset = first + int(np.ravel_multi_index(where, array.shape)) * kind.itemsize
        data.seek(offset)
        raw = data.read(kind.itemsize)
    return offset, raw, np.frombuffer(raw, kind)[0]


def copied(trace: Trace, address: str, kind: str) -> str:
    """Return the formula of the number at an address, ready to paste into Python or a spreadsheet."""
    if kind not in COPIES:
        raise InputError(f"there is no copy {kind!r}", found=", ".join(COPIES))
    return receipt(trace, locate(trace, parse_address(address))).copy(kind)


def compared_data(result: Compared) -> dict[str, float]:
    """Return the model's number, the recomputed number, their difference and the tolerance."""
    return {name: getattr(result, name) for name in ("model", "recomputed", "difference", "tolerance")}


# --- recomputing an entire run ----------------------------------------------------------------------------------------


def check_view(tried: BeforeAfter, checked: Checked, sums: tuple[int, float]) -> Iterator[str]:
    """Format the result of a check, ending with the verdict."""
    seen, changes = tried.after, tried.whatif.changes
    yield note(f"{seen.text} → {seen.translation or '(nothing)'}", hang=2)
    if changes:
        yield note(f"what if: {' '.join(change.option for change in changes)}", hang=2)
    yield ""
    if seen.empty:
        why = "Translating copies this text" if seen.copied else "The text is empty"
        yield f"{why}: nothing was computed, so there is nothing to recompute."
        return
    quantities = f"{checked.quantities:,} {'quantity' if checked.quantities == 1 else 'quantities'}"
    yield note(f"Recomputed  {checked.count:,} numbers in {quantities}, each from its inputs", hang=12)
    if checked.share_at is not None:
        share = f"at most {100 * checked.share:.0f} % of what rounding can explain, at {checked.share_at}"
        yield note(f"differences: {share}", indent=12)
    if checked.edited:
        yield note(f"{checked.edited:,} of them had another number put in their place by the what-if", indent=12)
    if checked.wrong:
        does = "number does not follow from its" if checked.wrong == 1 else "numbers do not follow from their"
        yield f"\n{checked.wrong:,} {does} inputs. The worst:"
        for at, result in checked.worst(EXCEPTIONS):
            yield f"  {at}"
            yield f"    model {result.model!r}, recomputed {result.recomputed!r}"
            yield f"    difference {result.difference:.2e}, rounding explains up to {result.tolerance:.1e}"
    words, rounding = sums
    if words:
        what = f"logit differences of {words} words" if words > 1 else "logit difference of one word"
        yield note(f"Added up    the parts of the {what} (`vidrio why`)", hang=12)
        yield note(f"rounding: at most {100 * rounding:.0f} % of what floating point can explain", indent=12)
    if rounding > 1:
        yield "\nThe parts of a word do not add up to its logit difference."
    yield f"\n{'NOT everything agrees.' if checked.wrong or rounding > 1 else 'Everything agrees.'}"


# --- JSON for the page and for `vidrio why --json` --------------------------------------------------------------------


def receipt_data(seen: Look, address: str) -> dict[str, Any]:
    """Return everything about a number: its formula, the terms of its sum, its inputs, and where it is used."""
    if seen.empty:
        raise InputError("the text is empty, so nothing was computed", do="enter a text to translate")
    bill = receipt(seen.trace, locate(seen.trace, parse_address(address)))
    stage = bill.stage
    return {
        "address": str(bill.at),
        "tokens": list(bill.tokens),
        **{name: getattr(stage, name) for name in ("kind", "operation", "says", "place", "formula", "latex")},
        "formula_here": bill.formula,
        "names": {short: name for name, short in bill.short_names.items()},
        "working": bill.working() if len(bill.inputs) <= LISTED else [],
        "value": bill.value,
        "dtype": bill.precision.name,
        **compared_data(bill.compared),
        "agrees": bill.compared.agrees,
        "edited": bill.edited,
        "made_from": [{"address": str(at), "value": value} for at, value in bill.inputs[:LISTED]],
        "used_by": list(bill.used_by),
        "quantity": stage.address,
        "index": list(bill.at.place),
        "code": stage.code,
        "computed": bill.compared.model,
        "terms": _terms(bill),
        "slips": list(_slips(bill)),
        "made_from_count": len(bill.inputs),
        "copies": list(COPIES),
        "stored": parameter_bytes(seen.model.path / "model.safetensors", bill),
    }


def _terms(bill: Receipt) -> dict[str, Any] | None:
    """Return the terms of the first sum in the formula, each with its factors, its value and the running sum."""
    total = _first_sum(bill.expression)
    if total is None or not 0 < len(parts := terms(total)) <= LISTED:
        return None
    values = [evaluate(part) for part in parts]
    known = {at for at, _ in bill.inputs}
    rows = [
        {
            "factors": [{"address": str(n.at), "value": n.value} for n in leaves(part) if n.at in known],
            "value": value,
            "so_far": so_far,
        }
        for part, value, so_far in zip(parts, values, accumulate(values), strict=True)
    ]
    inner = total.parts[0]
    kind = KINDS_OF_TERMS[inner.function] if isinstance(inner, Apply) else "plain"
    return {"kind": kind, "rows": rows, "sum": evaluate(total)}


def _slips(bill: Receipt) -> Iterator[dict[str, Any]]:
    """Yield the results of typical mistakes, such as skipping a step of the formula."""
    match bill.expression:
        case Apply("/", (a, b)):
            yield {"slip": "not divided", "value": evaluate(a)}
            yield {"slip": "only the divisor", "value": evaluate(b)}
            if bill.stage.operation == "variance":
                count = evaluate(b)
                yield {"slip": "N − 1", "value": evaluate(a) / (count - 1) if count > 1 else math.nan}
        case Apply("+" | "-", (a, b)):
            yield {"slip": "second left out", "value": evaluate(a)}
            yield {"slip": "first left out", "value": evaluate(b)}
    if bill.value == -math.inf:
        yield {"slip": "hidden is not 0", "value": 0.0}
    elif bill.value:
        yield {"slip": "sign", "value": -bill.value}


def _first_sum(node: Expression) -> Apply | None:
    if not isinstance(node, Apply):
        return None
    return node if node.function == "Σ" else next(filter(None, map(_first_sum, node.parts)), None)
