"""What a step of the walk is: quantities by address, looked at in a run, and what is said about them.

Their formula and their place in the paper come from `stages`, their numbers from the trace of a run: a step
holds words only.

Read next: steps_encoder.py, steps_decoder.py, sidelights.py, walk_report.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from vidrio.glass.numbers.trace import Trace
from vidrio.lessons.runs import WITHOUT_THE_POST, Lesson
from vidrio.lessons.sidelights import Sidelight


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of the walk."""

    title: str
    section: str  # where the post is
    says: str  # true of any numbers
    of_the_post: str = ""  # true of the post's besides
    learned: str = ""  # true of the trained ones besides
    shows: Sequence[str] = ()  # addresses, the result last
    by_hand: Sequence[str] = ()  # places in them to work out: `enc.0.self.K.h0[0,0]`
    run: str = "whole"
    printed_run: str = ""  # the run where the post computes with something else; empty: the same
    at: int | None = None  # the decoding step
    slips: Sequence[int] = ()
    drawn: bool = False  # made of parameters that the post drew without a seed
    sidelight: Sidelight | None = None  # what is no quantity of the machine

    def run_in(self, lesson: Lesson) -> str:
        name = self.printed_run or self.run if lesson.mode == "printed" else self.run
        return WITHOUT_THE_POST.get(name, name) if lesson.own else name

    def told(self, lesson: Lesson) -> str:
        """What is said of this lesson's numbers."""
        besides = "" if lesson.own else self.learned if lesson.mode == "trained" else self.of_the_post
        return f"{self.says} {besides}".rstrip()

    def trace(self, lesson: Lesson) -> Trace:
        return lesson.run(self.run_in(lesson)).as_of(self.at)


def counted(n: int, what: str) -> str:
    """`6 layers`."""
    return f"{n} {what}" + "s" * (n != 1)
