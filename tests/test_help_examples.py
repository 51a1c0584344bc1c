"""Every example that a help page gives is run: like the pages of the docs, but for what a lesson says beside them."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from doc_blocks import Wrong, run_page
from vidrio import cli

FILES = "printf 'Hello world\\nGood morning\\n' | tee english.txt big.txt > /dev/null\n"


def commands(group: click.Group, name: str = "vidrio") -> Iterator[tuple[str, click.Command]]:
    """Every verb, and every verb of a verb."""
    context = click.Context(group)
    for verb in group.list_commands(context):
        command = group.get_command(context, verb)
        assert command is not None
        yield f"{name} {verb}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{name} {verb}")


def examples(command: click.Command) -> list[str]:
    """The lines of a help page that can be typed; what stands beside them, two spaces off, is an explanation."""
    text = f"{command.help or ''}\n{command.epilog or ''}"
    return [re.split(r" {2,}", line.strip())[0] for line in text.splitlines() if line.strip().startswith("vidrio ")]


HELP = {name: examples(command) for name, command in commands(cli.vidrio) if examples(command)}


@pytest.mark.parametrize("name", HELP)
def test_the_examples_of_a_help_page_work(name: str, tmp_path: Path) -> None:
    page = tmp_path / "help.md"
    lines = [line for line in HELP[name] if not line.endswith("--all")]  # every number of a large model: minutes
    page.write_text(f"```sh\n{FILES}{chr(10).join(lines)}\n```\n", encoding="utf-8")
    try:
        run_page(page, tmp_path)
    except Wrong as wrong:
        pytest.fail(str(wrong), pytrace=False)


def test_the_pages_that_should_have_examples_have_some() -> None:
    assert {"vidrio look", "vidrio why", "vidrio check", "vidrio translate", "vidrio lesson sizes"} <= set(HELP)
    assert sum(map(len, HELP.values())) > 30
