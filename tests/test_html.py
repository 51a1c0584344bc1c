"""The page: every number is the trace's and says its address, nothing is fetched, and a browser has no complaint."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from chromium import open_page
from small_models import write_model
from vidrio.draw import html
from vidrio.draw.display import display
from vidrio.draw.show import number
from vidrio.glass.numbers.trace import Trace, parse_address
from vidrio.glass.whatif import changes
from vidrio.look.blocks import Numbers
from vidrio.look.command_line import CommandLine
from vidrio.look.page import page
from vidrio.look.run import LoadedModel, Look, default_options, look, open_model
from vidrio.search import Tree

VOID = {"meta", "link", "br", "hr", "img", "input"}
HEAD_END = "</head>"


@dataclass
class Cell:
    attributes: dict[str, str | None]
    text: str = ""


@dataclass
class Page(HTMLParser):
    """A page taken apart; tags that do not match are an error."""

    source: str
    open: list[str] = field(default_factory=list)
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.source)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "td":
            self.cells.append(Cell(dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> without a beginning"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "td" in self.open:
            self.cells[-1].text += data

    def numbers(self) -> Iterator[tuple[str, str]]:
        """(address, number as drawn) of every cell that has an address."""
        for cell in self.cells:
            if address := cell.attributes.get("data-address"):
                yield address, cell.text.strip()


def page_of(seen: Look, precision: int = 4) -> str:
    return html.page(page(seen, CommandLine(seen.text), precision), precision)


@pytest.fixture(scope="module")
def lesson() -> LoadedModel:
    return open_model("lesson")


@pytest.fixture(scope="module")
def hello(lesson: LoadedModel) -> Look:
    return look(lesson, "Hello world", options=replace(default_options(lesson.config), beam=3), tree=Tree())


def expected(trace: Trace, address: str, precision: int) -> str:
    """What a cell must show: the trace's number at its address."""
    parsed = parse_address(address)
    value = trace.number(parsed)
    return str(int(value)) if trace.stage(parsed.name).kind in ("input", "choice") else number(value, precision)


@pytest.mark.parametrize("precision", [4, 9])
def test_every_number_is_the_traces_and_says_its_address(hello: Look, precision: int) -> None:
    drawn = list(Page(page_of(hello, precision)).numbers())
    for address, text in drawn:
        assert text == expected(hello.trace, address, precision), address
    addresses = {address.partition("[")[0] for address, _ in drawn}
    assert addresses == set(hello.trace.stages), "a model this small is on the page with every quantity"


def test_every_cell_with_a_number_says_its_address(hello: Look) -> None:
    source = page_of(hello)
    sizes = re.search(r'<section id="sizes">.*?</section>', source, re.DOTALL)  # lengths of axes, not of the trace
    assert sizes
    for cell in Page(source.replace(sizes[0], "")).cells:
        if re.search(r"\d", cell.text) and "class" not in cell.attributes:
            assert cell.attributes.get("data-address"), cell
        if re.fullmatch(r"[-+\d.e]+", cell.text.strip()):
            assert cell.attributes.get("data-address"), cell


def others(tmp_path: Path) -> Iterator[Look]:
    text = "bala core xyz fula !"
    for shape, more in (
        ("encoder", {"n_classes": 3, "target_vocabulary": 0, "tying": "none"}),
        ("decoder", {"source_vocabulary": 0, "norm": "pre"}),
        ("encoder-decoder", {"norm": "pre", "positions": "learned", "attention_bias": True, "activation": "swish"}),
    ):
        write_model(tmp_path / shape, shape=shape, **more)
        yield look(open_model(tmp_path / shape), text)
    model = open_model(tmp_path / "encoder-decoder")
    yield look(model, "")
    unmasked = changes.with_mask(model.machine, "off")
    yield look(replace(model, machine=unmasked), text)
    huge = changes.with_parameter(model.machine, "embed", lambda table: table * 1e200)
    with np.errstate(all="ignore"):
        yield look(replace(model, machine=changes.with_softmax(huge, "naive")), text)


def test_pages_of_every_shape_and_of_changed_machines(tmp_path: Path) -> None:
    for seen in others(tmp_path):
        source = page_of(seen)
        for address, text in Page(source).numbers():
            assert text == expected(seen.trace, address, 4), address
        assert nothing_from_outside(source)


def nothing_from_outside(source: str) -> bool:
    for tag, attributes in Page(source).tags:
        assert tag not in ("script", "link", "img", "iframe", "object", "embed", "base", "form")
        for name, value in attributes.items():
            assert not name.startswith("on")
            assert name not in ("src", "srcset", "action", "style")
            assert name != "href" or str(value).startswith("#")
    assert not re.search(r"https?:|//[a-z]|url\(|@import|javascript:", source)
    return True


def test_the_page_needs_nothing_from_outside(hello: Look) -> None:
    assert nothing_from_outside(page_of(hello))


def test_every_link_leads_somewhere_and_every_name_is_used_once(hello: Look) -> None:
    tags = Page(page_of(hello)).tags
    names = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(names) == len(set(names))
    links = {str(attributes["href"])[1:] for tag, attributes in tags if tag == "a"}
    assert links <= set(names)


def test_tables_have_heads(hello: Look) -> None:
    source = page_of(hello)
    for table in re.findall(r"<table.*?</table>", source, re.DOTALL):
        assert '<th scope="' in table
    assert len(re.findall("<h1", source)) == 1


def test_the_same_bytes_every_time(lesson: LoadedModel, hello: Look) -> None:
    once = look(lesson, "Hello world", options=hello.options, tree=Tree())
    assert page_of(once) == page_of(hello)


def test_text_is_text_and_no_markup(lesson: LoadedModel) -> None:
    evil = "<script>alert(1)</script> \"'><img src=x onerror=alert(1)> hello \u202e\x00"
    source = page_of(look(lesson, evil))
    assert "<script" not in source
    assert "<img" not in source
    assert "\u202e" not in source
    assert "\x00" not in source
    assert nothing_from_outside(source.replace("onerror", ""))


def test_a_large_model_gives_a_page_of_bounded_size_that_tells_what_it_leaves_out(tmp_path: Path) -> None:
    sizes = {"d_model": 256, "n_heads": 8, "d_head": 32, "d_ff": 512, "n_encoder_layers": 3, "n_decoder_layers": 3}
    write_model(tmp_path / "large", max_positions=64, **sizes)
    seen = look(open_model(tmp_path / "large"), "bala core diso fula " * 5)
    assert sum(array.size for array in seen.trace.values.values()) > 200_000
    source = page_of(seen)
    assert len(source) < 4_000_000
    assert "numbers are left out here; they range from" in source
    assert "Heads 1 to 7 are left out here" in source
    for address, text in Page(source).numbers():
        assert text == expected(seen.trace, address, 4), address


def test_what_is_left_out_of_a_table_is_counted_and_its_range_told() -> None:
    array = np.arange(200, dtype=float).reshape(10, 20) / 7
    drawn = html.fragment([Numbers(array, "a", limit=(4, 4))])
    cells = [cell for cell in Page(drawn).cells if "data-address" in cell.attributes]
    hidden = array.copy()
    for cell in cells:
        row, column = map(int, re.findall(r"\d+", str(cell.attributes["data-address"])))
        hidden[row, column] = np.nan
    told = f"{200 - len(cells)} of 200 numbers are left out here; they range from "
    assert told + f"{np.nanmin(hidden):.4f} to {np.nanmax(hidden):.4f}." in drawn


def test_shading_never_stands_alone() -> None:
    drawn = html.fragment([Numbers(np.array([[0.0, 1.0], [0.5, 0.01]]), "a", shares=True)])
    classes = [(cell.attributes.get("class"), cell.text.strip()) for cell in Page(drawn).cells if cell.text]
    assert classes == [(None, "0"), ("s8", "1.0000"), ("s5", "0.5000"), ("s1", "0.0100")]


def test_in_a_notebook(hello: Look) -> None:
    parts = [display(hello, where) for where in ("", "enc.0.self.weights.h0", "dec.1", "out.prob@0")]
    for shown in (*parts, display(hello.trace)):
        drawn = shown._repr_html_()
        assert Page(drawn).tags
        assert "<script" not in drawn
        assert len(repr(shown)) < 200_000
    for address, text in Page(display(hello, "dec.1")._repr_html_()).numbers():
        assert text == expected(hello.trace, address, 4)
    assert repr(hello.trace) == f"Trace({len(hello.trace.values)} quantities of 'hello world')"
    assert len(repr(hello)) < 200


# --- in a browser -----------------------------------------------------------------------------------------------------


def test_a_browser_opens_it_and_has_no_complaint(hello: Look, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(page_of(hello), encoding="utf-8")
    opened = open_page(tmp_path / "page.html")
    assert opened.console == []
    drawn = list(Page(opened.dom[opened.dom.index("<html") :]).numbers())
    assert drawn == list(Page(page_of(hello)).numbers())


def test_a_browsers_complaint_would_be_heard(hello: Look, tmp_path: Path) -> None:
    fetching = page_of(hello).replace("<main>", '<main><img src="https://example.org/x.png" alt="">')
    (tmp_path / "page.html").write_text(fetching, encoding="utf-8")
    assert any("Content Security Policy" in line for line in open_page(tmp_path / "page.html").console)


# A window cannot be made as narrow as a telephone, a frame can. Its page is measured by the page around it.
FRAME = """<!doctype html><meta charset="utf-8"><body style="margin:0">
<iframe style="border:0;width:{width}px;height:800px" srcdoc="{source}"></iframe>
<script>
onload = () => {{
  const root = document.querySelector("iframe").contentDocument.documentElement;
  document.title = root.scrollWidth + " " + root.clientWidth;
}};
</script>"""


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_sticks_out_of_the_window(hello: Look, tmp_path: Path, width: int) -> None:
    source = page_of(hello).replace("<details", "<details open")
    (tmp_path / "frame.html").write_text(FRAME.format(width=width, source=escape(source)), encoding="utf-8")
    found = re.search(r"<title>(\d+) (\d+)</title>", open_page(tmp_path / "frame.html").dom)
    assert found
    content, window = map(int, found.groups())
    assert content <= window <= width


def test_the_command_writes_it_whole(run_vidrio: Callable[..., object], tmp_path: Path, lesson: LoadedModel) -> None:
    run_vidrio("look", "Hello world", "--model", "lesson", "--html", "page.html", "--precision", "6")
    seen = look(lesson, "Hello world")
    expected_page = html.page(page(seen, CommandLine("Hello world", ("--model", "lesson")), 6), 6)
    assert (tmp_path / "page.html").read_text("utf-8") == expected_page
