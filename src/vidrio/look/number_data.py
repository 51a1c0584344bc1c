"""One number as data: its arithmetic with every term, where it comes from, where it goes."""

import math
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any

from vidrio.errors import InputError
from vidrio.glass.numbers.trace import Trace, parse_address
from vidrio.glass.proof.expressions import Apply, Expression, Long, Number, children, evaluate, leaves, terms
from vidrio.glass.proof.notations import COPIES
from vidrio.glass.proof.receipts import At, Receipt, locate, receipt
from vidrio.look.numpy_lines import numpy_line
from vidrio.look.receipt import described, parameter_bytes
from vidrio.look.run import Look

INPUTS = 1100  # listed of those it was made from; a vocabulary's softmax has thousands
TERMS = 1100  # of a sum that are listed with products and running sums


def receipt_data(seen: Look, address: str, receipt_of: Callable[[Trace, At], Receipt] = receipt) -> dict[str, Any]:
    """Everything about one number: the arithmetic with its terms, where it comes from, where it goes."""
    if seen.empty:
        raise InputError("the text is empty, so nothing was computed", do="give a text to translate")
    bill = receipt_of(seen.trace, locate(seen.trace, parse_address(address)))
    stage = bill.stage
    return {
        **described(bill, INPUTS),
        "quantity": stage.address,
        "index": list(bill.at.place),
        "code": numpy_line(stage, seen.trace.machine) if stage == seen.trace.stage(stage.address) else "",
        "computed": bill.compared.model,
        "terms": _terms(bill),
        "slips": list(_slips(bill)),
        "made_from_count": len(bill.inputs),
        "copies": list(COPIES),
        "stored": parameter_bytes(seen.model.path / "model.safetensors", bill),
    }


def _terms(bill: Receipt) -> dict[str, Any] | None:
    """The sum inside a number's formula, term by term: what is multiplied, the product, the sum so far."""
    long = _first_sum(bill.expression)
    if long is None or not 0 < len(parts := terms(long).parts) <= TERMS:
        return None
    values = [evaluate(part) for part in parts]
    known = {(at.name, at.place): str(at) for at, _ in bill.inputs}
    rows = [
        {
            "factors": [{"address": known[n.cell], "value": n.value} for n in leaves(part) if n.cell in known],
            "value": value,
            "so_far": so_far,
        }
        for part, value, so_far in zip(parts, values, accumulate(values), strict=True)
    ]
    return {"kind": long.kind, "rows": rows, "sum": evaluate(long)}


def _slips(bill: Receipt) -> Iterator[dict[str, Any]]:
    """What comes out if one step of the formula is forgotten: a wrong answer on paper can be told what it forgot."""
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


def _first_sum(node: Expression) -> Long | None:
    if isinstance(node, Long):
        return node
    if isinstance(node, Number):
        return None
    found = (_first_sum(child) for child in children(node))
    return next((long for long in found if long is not None), None)
