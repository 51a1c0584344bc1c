"""The pages of the lessons: what their writers may do, and that a value which nobody computes is an error."""

import re
from string import Formatter

import numpy as np
import pytest

from vidrio.errors import LessonError
from vidrio.lessons import pages
from vidrio.look.blocks import Note, Numbers, Table

VALUES = {"x": 0.12345, "none": None, "rows": [("a", 1.5), ("b", 22.0)], "it": {"is so": True, "is not": False}}


def test_paragraphs_lines_and_indents() -> None:
    lines = ["A paragraph of", "two lines.", "| a line   by itself", "  indented", "    hanging", "    words"]
    lines += ["- an item", "~ x {x:number 2}"]
    assert list(pages.blocks("\n".join(lines), VALUES)) == [
        Note("A paragraph of two lines.", 0, 0),
        "a line   by itself",
        Note("indented hanging words", 2, 4),
        Note("- an item", 0, 2),
        Note("x 0.12", hang=2),
    ]


def test_tables_have_a_row_for_each_value() -> None:
    page = "| name | \\|n\\| |\n|---|--.|\n% for name, n in rows\n| {name} | {n:number 1} |\n% end\n| all | {x:.1f} |"
    (table,) = pages.blocks(page, VALUES)
    assert table == Table([["a", "1.5"], ["b", "22.0"], ["all", "0.1"]], ["name", "|n|"], "l.", 0)
    assert pages.text(page, VALUES).splitlines() == ["name   |n|", "a      1.5", "b     22.0", "all    0.1"]


def test_conditions_and_loops_nest() -> None:
    lines = [
        "% for name, n in rows",
        "% if it[is so]",
        "| {name}",
        "% if it[is not]",
        "| never",
        "% end",
        "% end",
        "% end",
    ]
    lines += ["% if not none", "| end", "% end"]
    assert pages.text("\n".join(lines), VALUES) == "a\nb\nend"


def test_a_matrix_keeps_its_numbers() -> None:
    matrix = np.eye(2)
    (block,) = pages.blocks("{m:matrix heads -}", {"m": matrix, "heads": ("a", "b")})
    assert isinstance(block, Numbers)
    assert block.array is matrix
    assert (block.rows, block.columns) == (("a", "b"), ())


@pytest.mark.parametrize(
    "page", ["{y}", "a {x.real.y}", "{rows[7]}", "% if y\n% end", "% for a in y\n% end", "{it[isn't]}"]
)
def test_what_is_not_computed_is_an_error_that_names_it(page: str) -> None:
    with pytest.raises(LessonError, match="computes nothing of that name"):
        list(pages.blocks(page, VALUES))


@pytest.mark.parametrize("name", ["exercises", "notes", "nan", "sizes", "steps", "errata"])
def test_every_loop_and_condition_has_its_end(name: str) -> None:
    def texts(data: object) -> list[str]:
        parts = data.values() if isinstance(data, dict) else data if isinstance(data, list) else []
        return [data] if isinstance(data, str) else [text for part in parts for text in texts(part)]

    for text in texts(pages.pages(name)):
        lines = [line for line in text.split("\n") if line.startswith("% ")]
        begun = [line for line in lines if re.fullmatch(r"% (for \w+(, \w+)* in \S.*|if (not )?\S.*)", line)]
        assert len(lines) == 2 * len(begun) == 2 * lines.count("% end"), text
        if name != "errata":  # its texts are shown as they stand
            list(Formatter().parse(text))
