"""Read lessons and run their code. A lesson is a Markdown document divided into sections.

    ```python        a standalone script
    ```python more   a script that continues the preceding ones, starting from the last standalone script
    ```console       `$ vidrio …` commands with their output, as recorded in the lesson
    ```text output   the output of the script above, as recorded in the lesson

In a terminal, the code is run and its current output is shown; a test compares it with the recorded output
(`tests/test_docs.py`). Other blocks are shown but not run. All code that is run together shares a temporary folder. The
Spanish lessons contain the same blocks.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from vidrio.errors import LessonError, nearest

FOLDER = Path(__file__).parent
NAMES = ["why-this-word", "random-transformer", "errata", "nan", "sizes", "notes", "exercises", "training-seen"]
Language = Literal["en", "es"]
MARK = "-- here the script goes on --"


@dataclass(frozen=True)
class Block:
    """A fenced code block."""

    words: str  # the info string after the fence: the language, and how to run the code
    code: str
    base: str = ""  # the scripts that this one continues

    @property
    def is_python(self) -> bool:
        return self.words in ("python", "python more")

    @property
    def commands(self) -> list[str]:
        """The commands of a console block, or an empty list unless all are `vidrio …` commands without shell syntax."""
        lines = self.code.replace("\\\n> ", "").splitlines() if self.words == "console" else []
        found = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        return found if all(re.fullmatch(r"vidrio [^|<>$]*", command) for command in found) else []

    def __str__(self) -> str:
        return f"```{self.words}\n{self.code}```"


@dataclass
class Section:
    """A heading with the prose and blocks below it."""

    title: str
    parts: list[str | Block] = field(default_factory=list)

    @property
    def blocks(self) -> list[Block]:
        return [part for part in self.parts if isinstance(part, Block)]


def path(name: str, language: Language = "en") -> Path:
    """Return the path of a lesson."""
    if name not in NAMES:
        raise LessonError(f"there is no lesson {name!r}", found=f"nearest: {nearest(name, NAMES)}")
    return FOLDER / ("es" if language == "es" else "") / f"{name}.md"


def sections(name: str, language: Language = "en") -> list[Section]:
    """Return the sections of a lesson. Section 0 is the introduction, whose title is the lesson's."""
    found: list[Section] = []
    base, prose, fence = "", list[str](), ""
    for line in [*path(name, language).read_text("utf-8").splitlines(keepends=True), "# "]:
        text = "".join(prose)
        if line.startswith("```"):
            if fence:
                block = Block(fence, text, base if fence == "python more" else "")
                base = f"{block.base}{text}\n" if block.is_python else base
                found[-1].parts.append(block)
            elif text.strip():
                found[-1].parts.append(text.strip("\n"))
            prose, fence = [], "" if fence else line.strip("`\n")
        elif line.startswith(("# ", "## ")) and not fence:
            if text.strip():
                found[-1].parts.append(text.strip("\n"))
            found.append(Section(re.sub(r"^#+ *(?:\d+\. )?", "", line).strip()))
            prose = [line]
        else:
            prose.append(line)
    return found[:-1]


def chosen(name: str, wanted: str, language: Language = "en") -> list[Section]:
    """Return the section with this number or with these words in its title, or all sections for `all`."""
    every = sections(name, language)
    if wanted == "all":
        return every
    if wanted.isdecimal():
        named = every[int(wanted) : int(wanted) + 1]
    else:
        named = [section for section in every if wanted.lower() in section.title.lower()]
    if len(named) != 1:
        raise LessonError(
            f"{wanted!r} matches {len(named) or 'no'} section{'s' * (len(named) != 1)} of the lesson {name}",
            found="; ".join(section.title for section in named) or f"sections 1 to {len(every) - 1}",
            do=f"`vidrio lesson {name}` lists them",
        )
    return named


def python(found: Sequence[Section]) -> str:
    """Return the scripts in these sections, for the user to save and edit, preceded by any that the first continues."""
    blocks = [block for section in found for block in section.blocks if block.is_python]
    return "\n\n".join([block.base for block in blocks[:1] if block.base] + [block.code for block in blocks])


def read(section: Section, folder: Path) -> Iterator[str]:
    """Yield a section in parts, with the current output of its blocks."""
    for part in section.parts:
        if isinstance(part, str):
            yield part
        elif part.is_python:
            yield str(part)
            script = f"{part.base}\nprint({MARK!r})\n{part.code}" if part.base else part.code
            yield str(Block("text", _printed(["-"], folder, script).rpartition(f"{MARK}\n")[2]))
        elif part.commands:
            for command in part.commands:
                printed = _printed(["-m", "vidrio", *shlex.split(command)[1:]], folder)
                yield str(Block("text", f"$ {command}\n{printed}"))
        elif part.words != "text output":
            yield str(part)


def _printed(arguments: list[str], folder: Path, script: str = "") -> str:
    """Run the current Python interpreter with these arguments. Return its output, and its errors if it fails."""
    done = subprocess.run(
        [sys.executable, *arguments],
        input=script,
        cwd=folder,
        env={**os.environ, "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return done.stdout + (done.stderr if done.returncode else "")
