"""Answers the page's requests in the browser, with the functions of `vidrio serve`."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from vidrio.errors import VidrioError
from vidrio.model import find
from vidrio.model.json_text import json_text
from vidrio.serve.translating import Question, Translating

KEPT = 16 << 20  # maximum size of cached runs, in bytes; smaller than on a server, because phones have less memory


def answering(names: list[str]) -> Callable[[str, str], tuple[str, Any]]:
    """Return a function `answer(name, body)`, which returns ("ok", answer) or ("refused", reason). A model's files may
    be added later."""
    (find.PACKAGE / "models").mkdir(exist_ok=True)  # a large model is downloaded when it is first used
    lessons = {name: find.PACKAGE / "lessons" / folder for name, folder in find.LESSONS.items()}
    translating = Translating({name: lessons.get(name, find.PACKAGE / "models" / name) for name in names})

    def answer(name: str, body: str) -> tuple[str, Any]:
        given = json.loads(body)
        try:
            given["changes"] = tuple(map(tuple, given.get("changes", ())))
            given["addresses"] = tuple(given.get("addresses", ()))
            question = Question(**given)
        except (TypeError, ValueError) as error:
            return "refused", json_text({"what": "this request cannot be parsed", "found": str(error), "do": ""})
        try:
            found = translating.answer(question) if name == "translate" else looking(translating)(name, question)
        except VidrioError as error:
            return "refused", json_text({"what": error.what, "found": error.found, "do": error.do})
        except ValueError as error:
            return "refused", json_text({"what": str(error), "found": "", "do": ""})
        return "ok", found if isinstance(found, bytes | str) else json_text(found)

    return answer


@cache
def looking(translating: Translating) -> Callable[[str, Question], Any]:
    """Return a function that answers requests with NumPy and the reference, which translation does not need."""
    from vidrio.serve.looking import Looking
    from vidrio.serve.questions import ANSWERS

    seen = Looking(translating=translating, kept=KEPT)
    return lambda name, question: ANSWERS[name](seen, question)
