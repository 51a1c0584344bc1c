"""What the page asks, and the answers: one sentence looked into, its numbers by address, the receipt of one of them.

Plain functions of plain data. `vidrio serve` answers with them over HTTP (views.py); on a site of static files the
same functions answer in the browser (site/). Every question holds all that its answer depends on.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from safetensors.numpy import save

from vidrio.errors import InputError
from vidrio.hypothesis import Sampling
from vidrio.look import history, run_data
from vidrio.look.receipt import copied, receipt_data
from vidrio.serve.looking import Asked, Looking, Run

LONGEST_TEXT = 4_000  # characters
MOST_TENSORS = 512  # in one question
MOST_CHANGES = 64
SHORT = 300  # characters of an address or a change


@dataclass(frozen=True)
class Question:
    """Which run (the text, the model, what is changed in it), and what of it is asked for."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    text: str = ""
    model: str = ""
    sentence: int = 0
    changes: tuple[tuple[str, str], ...] = ()
    beam: int | None = None
    numbers: str = ""
    # A decoding step, and by which probabilities its token would be drawn
    step: int = 0
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    # A number, and as what it is copied; quantities, and whether to leave out what this run has not
    address: str = ""
    kind: str = ""
    addresses: tuple[str, ...] = ()
    if_there: bool = False
    answer: str = ""  # the right one

    def __post_init__(self) -> None:
        short = [self.model, self.numbers, self.address, self.kind, *self.addresses, *sum(self.changes, ())]
        within = (
            max(len(self.text), len(self.answer)) <= LONGEST_TEXT
            and max(map(len, short)) <= SHORT
            and len(self.changes) <= MOST_CHANGES
            and len(self.addresses) <= MOST_TENSORS
            and min(self.sentence, self.step) >= 0
            and 1 <= (self.beam or 1) <= 16
        )
        if not within:
            raise ValueError(f"a text has at most {LONGEST_TEXT} characters, an address {SHORT}")

    def asked(self, looking: Looking) -> Asked:
        model = self.model or looking.default
        return Asked(self.text, model, self.sentence, self.changes, self.beam, self.numbers)

    def run(self, looking: Looking) -> Run:
        return looking.run(self.asked(looking))


def machine(looking: Looking, q: Question) -> Any:
    """A model's quantities, along the way of the data."""
    loaded = looking.loaded(q.asked(looking).model, q.numbers)
    glass = q.run(looking).look.model if q.changes else loaded.glass
    return run_data.machine_data(glass, loaded.name, loaded.engine)


def translate(looking: Looking, q: Question) -> Any:
    """Only the translation, at once."""
    translation = looking.translated(q.asked(looking))
    return {"translation": translation.text if translation else None}


def run(looking: Looking, q: Question) -> Any:
    """One sentence: tokens, steps with the likeliest next words, what changes did."""
    seen = q.run(looking)
    sentences = [{"source": s.source, "given": s.given, "text": s.text} for s in seen.sentences]
    told = run_data.answer(seen.tried, q.text, sentences, q.sentence, seen.translation)
    return {**told, "milliseconds": seen.milliseconds}


def search(looking: Looking, q: Question) -> Any:
    """Every hypothesis of the beam and what became of it, and greedy search beside it."""
    own, greedy = q.asked(looking), replace(q.asked(looking), beam=1)
    if q.changes:
        return run_data.search_data(looking.run(own).look, looking.run(greedy).look)
    return run_data.search_data(looking.searched(own), looking.searched(greedy))


def choose(looking: Looking, q: Question) -> Any:
    """One choice: logits, probabilities, and what temperature, top-k and top-p leave of them."""
    sampling = Sampling(temperature=q.temperature, top_k=q.top_k, top_p=q.top_p)
    seen = q.run(looking).look
    if q.step >= len(seen.chosen_ids):
        raise InputError(f"there is no decoding step {q.step}", found=f"{len(seen.chosen_ids)} steps")
    return run_data.choosing_data(seen, q.step, sampling)


def tokens(looking: Looking, q: Question) -> Any:
    """Every step from the text to its tokens."""
    return run_data.tokenising_data(q.run(looking).look)


def tensors(looking: Looking, q: Question) -> bytes:
    """Numbers by address, as a safetensors file."""
    trace = q.run(looking).trace
    wanted = [address for address in q.addresses if not q.if_there or run_data.holds(trace, address)]
    return save({address: run_data.array_at(trace, address) for address in wanted})


def positions(looking: Looking, q: Question) -> bytes:
    """The table of positions, and how long its waves are."""
    return save(run_data.positions_at(q.run(looking).look.model.machine, q.address))


def receipt(looking: Looking, q: Question) -> Any:
    """One number: its arithmetic, where it comes from, where it goes."""
    return receipt_data(q.run(looking).look, q.address)


def copy(looking: Looking, q: Question) -> str:
    """The same arithmetic to paste elsewhere."""
    return copied(q.run(looking).trace, q.address, q.kind)


def learning(looking: Looking, q: Question) -> Any:
    """The same sentence at every age of the model, and the curves of its training."""
    unchanged = replace(q.asked(looking), changes=())
    seen, model = looking.run(unchanged).look, looking.learned(unchanged.model)
    ages = history.ages_data(model, seen.text, seen.chosen_ids)
    return {"ages": ages, "curves": history.curves_data(model.path / "run")}


def forced(looking: Looking, q: Question) -> Any:
    """What the right answer costs, token by token."""
    read = q.run(looking).look.text
    return history.forced_data(looking.learned(q.asked(looking).model), read, q.answer)


# By the names under which the page asks.
ANSWERS: dict[str, Callable[[Looking, Question], Any]] = {
    answer.__name__: answer
    for answer in (
        *(machine, translate, run, search, choose, tokens, tensors, positions),
        *(receipt, copy, learning, forced),
    )
}
