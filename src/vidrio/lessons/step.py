"""What a step of the walk is: quantities by address, looked at in a run, and what is said about them.

The words are in data/steps.toml; the formulas and their place in the paper come from `stages`, the numbers from the
trace of a run.

Read next: sidelights.py, walk_report.py.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from vidrio.glass.numbers.trace import Trace
from vidrio.lessons.pages import counted, pages
from vidrio.lessons.runs import WITHOUT_THE_POST, Lesson
from vidrio.model.config import ModelConfig


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of the walk."""

    title: str
    section: str  # where the post is
    says: str  # true of any numbers
    with_one_head: str = ""  # instead, where there is one head
    of_the_post: str = ""  # true of the post's numbers besides
    learned: str = ""  # true of the trained ones besides
    shows: Sequence[str] = ()  # addresses, the result last
    by_hand: Sequence[str] = ()  # places in them to work out: `enc.0.self.K.h0[0,0]`
    run: str = "whole"
    printed_run: str = ""  # the run where the post computes with something else; empty: the same
    at: int | None = None  # the decoding step
    slips: Sequence[int] = ()
    drawn: bool = False  # made of parameters that the post drew without a seed
    beside: str = ""  # what is no quantity of the machine: a name of sidelights.SIDELIGHTS

    def run_in(self, lesson: Lesson) -> str:
        name = self.printed_run or self.run if lesson.mode == "printed" else self.run
        return WITHOUT_THE_POST.get(name, name) if lesson.own else name

    def text(self, lesson: Lesson) -> str:
        """What is said of this lesson's numbers."""
        besides = "" if lesson.own else self.learned if lesson.mode == "trained" else self.of_the_post
        return f"{self.says} {besides}".rstrip()

    def trace(self, lesson: Lesson) -> Trace:
        return lesson.run(self.run_in(lesson)).as_of(self.at)


def steps(config: ModelConfig) -> list[Step]:
    """All steps, in the post's order, for a model of these sizes."""
    return [_sized(Step(**entry), config) for entry in pages("steps")["step"]]


def _sized(step: Step, config: ModelConfig) -> Step:
    """The step with the names of the last layers and the number of layers and heads put in."""
    sizes = {
        "enc_last": config.n_encoder_layers - 1,
        "dec_last": config.n_decoder_layers - 1,
        "blocks": counted(config.n_encoder_layers, "block"),
        "layers": counted(config.n_encoder_layers, "layer"),
        "decoder_layers": counted(config.n_decoder_layers, "decoder layer"),
    }
    return replace(
        step,
        title=step.title.format(**sizes),
        says=step.with_one_head if step.with_one_head and config.n_heads == 1 else step.says,
        shows=[address for name in step.shows for address in _each_head(name.format(**sizes), config.n_heads)],
        by_hand=[address.format(**sizes) for address in step.by_hand],
    )


def _each_head(name: str, n_heads: int) -> list[str]:
    """`enc.0.self.K|V.h1+` is K and V of head 1 and of every head after it."""
    match = re.fullmatch(r"(.*\.)([\w|]+)\.h(\d+)\+", name)
    if match is None:
        return [name]
    start, quantities, first = match.groups()
    return [f"{start}{q}.h{h}" for h in range(int(first), n_heads) for q in quantities.split("|")]
