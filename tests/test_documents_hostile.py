"""Hostile documents: none takes more time or memory than its size allows, and each refusal says what is wrong."""

from collections.abc import Callable

import pytest

from growth import takes_at_most
from vidrio.documents.aligned import Aligned
from vidrio.documents.formats import plan_text
from vidrio.documents.html import plan_html
from vidrio.documents.markdown import plan_markdown
from vidrio.documents.markup import Plan
from vidrio.documents.po import plan_po
from vidrio.documents.subtitles import plan_subtitles
from vidrio.errors import DataError


def reversed_words(plan: Plan) -> str:
    return plan.render([Aligned(text, " ".join(reversed(text.split(" ")))) for text in plan.texts])


GROWING: list[tuple[Callable[..., Plan], Callable[[int], str], int]] = [
    (plan_html, lambda n: "<span>" * n + "x" + "</span>" * n, 4000),
    (plan_html, lambda n: "<div>" * n + "x" + "</div>" * n, 4000),
    (plan_html, lambda n: "<p>" + "<b>word</b> " * n, 2000),
    (plan_html, lambda n: "<p>" + "<img> word " * n, 2000),
    (plan_html, lambda n: "<p>" + "</i>word<b>" * n, 2000),
    (plan_html, lambda n: "<i>a</p>" * n, 1000),
    (plan_html, lambda n: "<table>x" * n, 1000),
    (plan_html, lambda n: "<a b='" * n + "x", 20000),
    (plan_markdown, lambda n: "[a](b) " * n, 1000),
    (plan_markdown, lambda n: "[" * n, 10000),
    (plan_markdown, lambda n: "*a **b " * n, 1000),
    (plan_markdown, lambda n: "$a " * n, 2000),
    (plan_markdown, lambda n: "$$x\n" * n, 1000),
    (plan_markdown, lambda n: "\\(a " * n, 2000),
    (plan_markdown, lambda n: "`" * n + "a", 10000),
    (plan_markdown, lambda n: "> " * n + "a", 10000),
    (plan_markdown, lambda n: "|a" * n + "\n" + "|-" * n + "\n" + "|b" * n, 500),
    (plan_markdown, lambda n: "![a](b \\| c) " * n, 1000),
    (plan_markdown, lambda n: "<b>x</b> <" * n, 1000),
    (plan_subtitles, lambda n: "00:00:01,000 --> 00:00:02,000\n" + "word\n" * n, 4000),
    (plan_subtitles, lambda n: "00:00:01,000 --> 00:00:02,000\n" + "<b>" * n + "x" + "</b>" * n, 4000),
    (plan_subtitles, lambda n: "a-" * n, 100000),
    (plan_subtitles, lambda n: "1:" * n, 100000),
    (plan_text, lambda n: " " * n + "x", 200000),
    (plan_po, lambda n: 'msgid "' + "a" * n + '"\nmsgstr ""\n', 200000),
    (plan_po, lambda n: 'msgid ""\n' + '"a"\n' * n + 'msgstr ""\n', 4000),
    (plan_po, lambda n: "msgid" + " " * n + "x", 100000),
]


@pytest.mark.parametrize(("planned", "make", "size"), GROWING)
def test_time_grows_in_proportion_to_the_size(
    planned: Callable[..., Plan], make: Callable[[int], str], size: int
) -> None:
    def act(length: int) -> None:
        try:
            plan = planned(make(length), "es")
        except DataError:
            return
        reversed_words(plan)

    assert takes_at_most(2.5, act, size, 2 * size)
