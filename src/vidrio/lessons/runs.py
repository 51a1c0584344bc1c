"""The runs of a lesson: one machine, and what the post changes in it from one section to the next.

A run is a trace: every number of it has an address. No formula is repeated here; a run is the glass machine with one of
its functions replaced, or with a number of the post put in place of a computed one.

Read next: step.py.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from vidrio.glass.numbers.trace import Trace
from vidrio.glass.paper.maths import Array
from vidrio.glass.paper.transformer import Machine, decode, encode, predict
from vidrio.glass.paper.variants import unmasked
from vidrio.glass.whatif.changes import with_divisor, with_positions, without_layer_norm, without_residual
from vidrio.lessons import printed
from vidrio.lessons.pages import pages
from vidrio.lessons.printed import NUMBERS
from vidrio.lessons.values import Values
from vidrio.look.run import LoadedModel, look
from vidrio.model.folder import About

MODES = ("printed", "corrected", "trained")
MOST_WORDS = 3  # the post's program stops there; a trained model stops by itself, or here
MOST_TRAINED_WORDS = 12

Given = Mapping[str, Array]
NOTHING: Given = {}
NOWHERE = Path()  # no folder holds these numbers


@dataclass(frozen=True)
class Lesson:
    """The values, and how to compute with them: as the post does, or right; the trained numbers are computed right."""

    mode: str
    values: Values
    own: bool = False  # the reader's own values: the post's results do not belong to them

    @cached_property
    def machine(self) -> Machine:
        machine = self.values.machine()
        return printed.as_printed(machine) if self.mode == "printed" else machine

    @cached_property
    def generating(self) -> Machine:
        """What generates at the end: with the second table of embeddings; the post leaves out positions and mask."""
        machine = self.values.machine_for_generation()
        if self.mode != "printed":
            return machine
        return replace(with_positions(printed.as_printed(machine), "none"), mask=unmasked)

    @cached_property
    def runs(self) -> dict[str, Trace]:
        return {}

    def says(self, name: str) -> str:
        """What is computed in a run."""
        says = pages("steps")["run"]
        if name != "generation":
            return str(says[name])
        table = "" if self.values.generation_VD is None else says["with-table"]
        program = says["as-the-program"] if self.mode == "printed" else ""
        return "; ".join(filter(None, (table, program))) or says["whole"]

    def run(self, name: str) -> Trace:
        """One of RUNS, computed once."""
        if name not in self.runs:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # NaN are part of the lesson
                self.runs[name] = RUNS[name](self)
        return self.runs[name]


# --- how a run is made ------------------------------------------------------------------------------------------------


def _encoded(lesson: Lesson, machine: Machine, given: Given = NOTHING) -> Trace:
    """The encoder alone, with the numbers that are given in the place of those that were computed."""
    values, words = lesson.values, lesson.values.vocabulary
    tokens = [words[i] for i in values.source_ids]
    trace = Trace(machine, source_tokens=tokens, vocabulary=words, source_vocabulary=words)
    encode(machine, values.source_ids, trace.tap_through(lambda name, value: given.get(name, value)))
    return trace


def _translated(lesson: Lesson, machine: Machine, ids: Sequence[int], given: Given = NOTHING) -> Trace:
    """Encoder and decoder, over the start token and the words that came out after it; the last word ends the run."""
    values = lesson.values
    model = LoadedModel(values.config, About(), machine, values.tokenizer, values.tokenizer, NOWHERE)
    return look(model, values.sentence, change=lambda name, value: given.get(name, value), target=ids[1:]).trace


def greedy(lesson: Lesson, machine: Machine) -> list[int]:
    """The start token and the likeliest word after it, again and again, until the end token or for long enough.

    As the post's program does it, and as the traced pass shows it: everything is computed afresh for each word.
    """
    end, ids = lesson.values.config.special.end, [lesson.values.config.special.start]
    memory_SD = encode(machine, lesson.values.source_ids)
    most = MOST_TRAINED_WORDS if lesson.mode == "trained" else MOST_WORDS
    for _ in range(min(most, lesson.values.config.max_positions)):
        ids.append(int(predict(machine, decode(machine, ids, memory_SD))[-1].argmax()))
        if ids[-1] == end:
            break
    return ids


# --- the runs ---------------------------------------------------------------------------------------------------------


def _at_sos(lesson: Lesson, given: Given) -> Trace:
    """The first decoding step, with the post's numbers where it goes on from a draw of its own."""
    start = lesson.values.config.special.start
    first = _translated(lesson, lesson.machine, [start, start], given)
    return _translated(lesson, lesson.machine, [start, int(first.values["out.prob"][0].argmax())], given)


def _by_thirty(machine: Machine) -> Machine:
    return with_divisor(machine, printed.DIVISOR)


def _bare(machine: Machine) -> Machine:
    return without_layer_norm(without_residual(machine))


DRAWN = {
    "dec.0.self.out": NUMBERS["self_attention_of_sos"],
    "memory": NUMBERS["assumed_memory"],
    "dec.0.cross.out": NUMBERS["cross_attention_of_sos"],
}
RUNS: dict[str, Callable[[Lesson], Trace]] = {
    "whole": lambda lesson: _translated(lesson, lesson.machine, greedy(lesson, lesson.machine)),
    "by-30": lambda lesson: _encoded(lesson, _by_thirty(lesson.machine)),
    "reminder": lambda lesson: _encoded(lesson, _by_thirty(lesson.machine), {"enc.0.self.out": NUMBERS["reminder_z"]}),
    "bare": lambda lesson: _encoded(lesson, _bare(lesson.machine)),
    "bare-by-30": lambda lesson: _encoded(lesson, _by_thirty(_bare(lesson.machine))),
    "decoder": lambda lesson: _at_sos(lesson, DRAWN),
    "linear": lambda lesson: _at_sos(lesson, {"dec.out": NUMBERS["assumed_decoder_output"]}),
    "softmax": lambda lesson: _at_sos(lesson, {"out.logits": NUMBERS["earlier_logits"]}),
    "generation": lambda lesson: _translated(lesson, lesson.generating, greedy(lesson, lesson.generating)),
}
# Runs on numbers of the post, and what stands for them where the numbers are the reader's own.
WITHOUT_THE_POST = {"reminder": "by-30", "decoder": "whole", "linear": "whole", "softmax": "whole"}
