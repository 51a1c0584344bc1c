"""Precomputes the first run, so that the page can show it while Python is still loading."""

import re
from collections.abc import Mapping
from pathlib import Path

from vidrio.model.json_text import json_text
from vidrio.serve.looking import Looking
from vidrio.serve.questions import ANSWERS
from vidrio.serve.translating import Question, Translating

TEXT = "I bought a new car yesterday."  # the page's initial text (page/src/lib/state.svelte.ts)
TEXTS = {"es-en": "Ayer compré un coche nuevo."} | dict.fromkeys(
    ("lesson", "worked-example", "worked-example-printed"), "hello world"
)
DRAWN = re.compile(r"(enc\.in|dec\.in|memory|dec\.out|.*\.(sum|norm\.out)|.*\.weights\.h\d+)")  # drawn in the overview


def first_run(folders: Mapping[str, Path]) -> dict[str, bytes]:
    """Return the answers to the page's first requests, and the tensors that the page draws first."""
    looking = Looking(translating=Translating(folders))
    text = TEXTS.get(looking.default, TEXT)
    question = Question(text=text)
    answers = {name: ANSWERS[name](looking, question) for name in ("translate", "machine", "run")}
    answers["why"] = [ANSWERS["why"](looking, Question(text=text, step=n)) for n in range(len(answers["run"]["steps"]))]
    values = looking.run(question.request(looking.default)).trace.values
    means = [name.removesuffix(".h0") for name in values if name.endswith(".weights.h0")]
    drawn = [*means, *(name for name in values if DRAWN.fullmatch(name))]
    tensors = ANSWERS["tensors"](looking, Question(text=text, addresses=tuple(drawn)))
    page = {"text": text, "model": looking.default, "answers": answers, "tensors": drawn}
    return {"answers.json": json_text(page).encode(), "tensors": tensors}
