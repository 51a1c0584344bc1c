"""Run every code block in README.md, the other pages at the root, docs/ and the lessons, and check the links."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from doc_blocks import REPOSITORY, Wrong, blocks_of, run_page
from source import import_graph
from vidrio import cli

sys.path.insert(0, str(REPOSITORY / "docs"))
import architecture

FOLDERS = (".", "docs", "benchmarks", "recipes/en-es", "src/vidrio/lessons", "tests/behaviour")
PAGES = sorted(page for folder in FOLDERS for page in (REPOSITORY / folder).glob("*.md"))
SPANISH = sorted((REPOSITORY / "src/vidrio/lessons/es").glob("*.md"))  # with the same blocks as the English lessons


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_page(page: Path, tmp_path: Path) -> None:
    try:
        run_page(page, tmp_path)
    except Wrong as wrong:
        pytest.fail(str(wrong), pytrace=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any("slow" in block.words for block in blocks_of(page))],
    ids=lambda page: str(page.relative_to(REPOSITORY)),
)
def test_page_with_its_slow_blocks(page: Path, tmp_path: Path) -> None:
    try:
        run_page(page, tmp_path, slow=True, timeout=3600)
    except Wrong as wrong:
        pytest.fail(str(wrong), pytrace=False)


def anchors_of(page: Path) -> set[str]:
    """Return the anchors that a forge generates for a page's headings."""
    text = re.sub(r"^( *)(`{3,}).*?^\1\2`*$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", [*PAGES, *SPANISH], ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"^( *)(`{3,}).*?^\1\2`*$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)[^)]*\)", re.sub(r"`[^`\n]*`", "", prose)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name) if name else page
        assert linked.exists(), f"{page.name} links to {target}, which is not there"
        if anchor and linked.suffix == ".md":
            assert anchor in anchors_of(linked), f"{page.name} links to {target}; the headings are {anchors_of(linked)}"


def test_the_site_is_built_with_both_references(tmp_path: Path) -> None:
    """Build the site as `make docs` does, with warnings as errors: broken links, missing names, invalid docstrings."""
    options = ["-q", "-W", "--keep-going", "-c", "docs", "-d", tmp_path / "doctrees"]
    sphinx = [sys.executable, "-m", "sphinx", *options, ".", tmp_path / "site"]
    done = subprocess.run(sphinx, cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    commands, python = ((tmp_path / f"site/docs/{page}.html").read_text("utf-8") for page in ("commands", "python"))
    assert not [verb for verb in cli.VERBS if f"Usage: vidrio {verb} " not in commands]
    assert "Learn how a Transformer translates" in commands, "the navigation has no reading paths"
    assert 'id="vidrio.load"' in python
    assert "The mean probability of the tokens" in python, "the docstrings are not there"


def test_the_picture_of_the_packages_shows_the_imports() -> None:
    picture = architecture.svg(import_graph(), (REPOSITORY / "README.md").read_text(encoding="utf-8"))
    assert architecture.PICTURE.read_text(encoding="utf-8") == picture, "run: python docs/architecture.py"


def test_imports_that_follow_from_others_are_not_drawn() -> None:
    graph = architecture.packages(
        {"c.x": {"b.y", "a", "c.z"}, "c.z": set(), "b.y": {"a"}, "a": {"errors"}, "errors": set()}
    )
    assert graph == {"a": set(), "b": {"a"}, "c": {"a", "b"}}
    assert architecture.lines(graph) == [("b", "a"), ("c", "b")]


# The runner itself: correct blocks pass, wrong ones fail.


def page_of(text: str, folder: Path) -> Path:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


RIGHT = {
    "an output": "```console\n$ echo hola\nhola\n$ true\n$ printf 'no newline'\nno newline\n```\n",
    "any lines": "```console\n$ seq 100\n1\n...\n99\n100\n```\n",
    "a failure that is shown": "```console\n$ (exit 3)\n$ echo $?\n3\n```\n",
    "the folder stays within a block": "```console\n$ mkdir -p d/e && cd d\n$ ls\ne\n```\n",
    "a script that imports": "```sh\necho 'x = 3' > m.py\n```\n\n```python\nimport m, vidrio\nassert m.x == 3\n```\n",
    "scripts that continue others": (
        "```python\nx = [1]\nprint(x)\n```\n\n```text output\n[1]\n```\n\n"
        "```python more\nx.append(2)\nprint(x)\n```\n\n```text output\n[1, 2]\n```\n\n"
        "```sh\necho 3 > number\n```\n\n```python more\nprint(x, open('number').read())\n```\n\n"
        "```text output\n[1, 2] 3\n\n```\n"
    ),
    "data": '```toml\na = 1\n```\n\n```json\n{"a": 1}\n```\n',
    "an indented block": "- so:\n\n  ```console\n  $ echo a\n  a\n  ```\n",
    "installing": '```sh\npip install vidrio\npip install "vidrio[train]"\n```\n',
    "goals of make": "```sh\nmake test\nmake slow WORKERS=1\nmake clean\n```\n",
    "a background process ends": "```sh\nsleep 1000 &\n```\n",
    "what is not run": "```sh network\ncurl https://example.org\n```\n\n```python gpu\nimport nowhere\n```\n",
}  # fmt: skip

WRONG = {
    "a failing command": "```sh\ntrue\nfalse\ntrue\n```\n",
    "an unset variable": "```sh\necho $nothing\n```\n",
    "a wrong output": "```console\n$ echo hola\nadiós\n```\n",
    "a silent failure": "```console\n$ false\n```\n",
    "a failing script": "```python\nraise SystemExit(1)\n```\n",
    "broken toml": "```toml\na =\n```\n",
    "no language": "```\nhola\n```\n",
    "an unknown word": "```sh sometimes\ntrue\n```\n",
    "no end": "```sh\ntrue\n",
    "an unknown goal of make": "```sh\nmake nonsense\n```\n",
    "an unknown extra": '```sh\npip install "vidrio[everything]"\n```\n',
    "an unknown verb that is not run": "```sh slow\nvidrio transalte a\n```\n",
}


def test_the_runner_accepts_what_is_right(tmp_path: Path) -> None:
    run_page(page_of("\n".join(RIGHT.values()), tmp_path), tmp_path)


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_the_runner_refuses(text: str, tmp_path: Path) -> None:
    with pytest.raises(Wrong, match=r"page\.md:"):
        run_page(page_of(text, tmp_path), tmp_path)


def test_the_script_that_fails_is_named(tmp_path: Path) -> None:
    page = page_of("```python\nx = 1\n```\n\n```python more\nprint(y)\n```\n\n```python more\nx = 2\n```\n", tmp_path)
    with pytest.raises(Wrong, match=r"page\.md:5: failed with status 1\nprint\(y\)\nTraceback"):
        run_page(page, tmp_path)


def test_slow_blocks_are_run_when_asked_for(tmp_path: Path) -> None:
    page = page_of("```sh slow\nfalse\n```\n", tmp_path)
    run_page(page, tmp_path)
    with pytest.raises(Wrong, match="failed with status 1"):
        run_page(page, tmp_path, slow=True)


def test_a_block_that_hangs_is_ended(tmp_path: Path) -> None:
    with pytest.raises(Wrong, match="killed after"):
        run_page(page_of("```sh\nsleep 1000\n```\n", tmp_path), tmp_path, timeout=0.5)


def test_the_message_shows_the_difference(tmp_path: Path) -> None:
    with pytest.raises(Wrong) as caught:
        run_page(page_of("Say:\n\n```console\n$ echo hola\nadiós\n```\n", tmp_path), tmp_path)
    assert str(caught.value).splitlines()[0] == "page.md:3: echo hola"
    assert {"-adiós", "+hola"} <= set(str(caught.value).splitlines())
