"""Run the code blocks of a page in order, all in one temporary folder.

    ```sh         commands; each must succeed
    ```console    `$ command` lines, continued by `> ` lines and followed by exactly what the command prints. `...`
                  matches any text within a line or, alone on a line, any lines. A command may only fail if the next
                  one is `$ echo $?`
    ```python     a script, which must succeed
    ```toml, ```json                       must parse
    ```text, ```mermaid and other prose    are not checked
    ```{eval-rst}                          is for the documentation site (docs/conf.py)

These words may follow the language:

    output           on a text block: exactly what the previous block printed, in the notation of console blocks
    more             on a script: it continues the previous scripts, back to the last one without `more`
    slow             is run only by `make slow`
    network, gpu     is not run, but its commands and options must exist

Some commands are redirected to the tests' environment, so that a page can show what a reader types: `make hello`
installs nothing, other make targets must exist but are not run, `pip install` must name existing extras, and `vidrio`
and scripts start faster (see forked.py).
"""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

import click

import forked
from vidrio import cli
from vidrio.lessons.run import MARK

REPOSITORY = Path(__file__).resolve().parent.parent

RUN = {"sh", "console", "python"}
PARSED = {"toml": tomllib.loads, "json": json.loads}
PROSE = {"text", "mermaid", "math", "html", "tsv", "makefile", "diff", "c", "py", "{eval-rst}"}
WORDS = {"output", "more", "slow", "network", "gpu"}

# Bash functions that replace some commands (see above). VENV is relative to the repository, as in the Makefile.
STAND_INS = r"""
make() {
  local goal goals=()
  local settings=(--no-print-directory -C "$REPOSITORY" "VENV=$VENV" "VENV_TEST=$VENV")
  settings+=(-o "$VENV/.vidrio-light" -o "$VENV/.vidrio-test")
  for goal in "$@"; do case $goal in (*=*|-*) ;; (*) goals+=("$goal") ;; esac; done
  case ${goals[*]:-help} in
    (hello|help) command make "${settings[@]}" "$@" ;;
    (*) command make "${settings[@]}" -n "$@" > /dev/null ;;
  esac
}
forked() { "$PYTHON" -I -S "$CLIENT" "$FORKS" "$@"; }
vidrio() { forked vidrio "$@"; }
pip() { :; }
python3() { "$PYTHON" "$@"; }
python() { "$PYTHON" "$@"; }
"""
EXTRAS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int  # of the opening fence, counted from 1
    language: str
    words: frozenset[str]
    code: str

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


class Wrong(Exception):
    """Raised when a block does not do what its page says."""


def blocks_of(page: Path) -> list[Block]:
    blocks, opening, start, lines = list[Block](), None, 0, list[str]()
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = re.match(r"( *)(`{3,}|~{3,})(.*)$", line)
        if opening is None and fence:
            opening, start, lines = fence, number, []
        elif opening and fence and fence[2].startswith(opening[2]) and not fence[3].strip():
            language, *words = opening[3].split() or [""]
            blocks.append(Block(page, start, language, frozenset(words), "".join(f"{line}\n" for line in lines)))
            opening = None
        elif opening:
            lines.append(line.removeprefix(opening[1]))
    if opening:
        raise Wrong(f"{page.name}:{start}: this block never ends")
    return blocks


def same(shown: str, printed: str) -> bool:
    """Return whether a page shows what was printed, where `...` matches anything."""
    pattern = ""
    for line in (line.rstrip() for line in shown.splitlines()):
        literal = ".*".join(map(re.escape, line.split("...")))
        pattern += r"(?:[^\n]*\n)*?" if line.strip() == "..." else literal + r"\n"
    return bool(re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in printed.splitlines())))


def compare(block: Block, command: str, shown: str, printed: str) -> None:
    if not same(shown, printed):
        lines = unified_diff(shown.splitlines(), printed.splitlines(), "the page shows", "it prints", lineterm="", n=99)
        raise Wrong(f"{block}: {command}\n" + "\n".join(lines))


def commands_of(block: Block) -> list[tuple[str, str]]:
    """Return a console block's commands, each with the output that the page shows."""
    commands: list[tuple[str, str]] = []
    for line in block.code.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], ""))
        elif not commands:
            raise Wrong(f"{block}: a console block starts with a `$ ` line")
        elif line.startswith("> ") and not commands[-1][1]:
            commands[-1] = (f"{commands[-1][0]}\n{line[2:]}", "")
        else:
            commands[-1] = (commands[-1][0], f"{commands[-1][1]}{line}\n")
    return commands


def run_bash(script: str, folder: Path, timeout: float) -> tuple[int, str]:
    """Run a script, and return its exit code and output. Kill any processes that it leaves running."""
    with socket.create_server(("127.0.0.1", 0)) as free:  # another program may use the port that a page names
        script = re.sub(r"\b5811\b", str(free.getsockname()[1]), script)
    python = Path(sys.executable)
    here = {"REPOSITORY": str(REPOSITORY), "PYTHON": str(python), "HOME": str(folder / ".home")}
    here |= {"CLIENT": str(forked.CLIENT), "FORKS": forked.socket_path()}
    # Use one cache, so that files cached for packaged models at first use are written only once for all tests.
    here["XDG_CACHE_HOME"] = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    here["VENV"] = os.path.relpath(python.parent.parent, REPOSITORY)
    here["PATH"] = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "PYTEST", "TEXT"))
    }
    (folder / ".home").mkdir(exist_ok=True)
    if not (folder / ".venv").exists():
        (folder / ".venv").symlink_to(python.parent.parent)
    printed = folder / ".home" / "printed"
    with printed.open("w") as out:
        process = subprocess.Popen(
            ["bash", "-c", STAND_INS + script],
            cwd=folder, env=inherited | here, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
        )  # fmt: skip
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            status = 124
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return status, printed.read_text(encoding="utf-8", errors="replace") + f"\n(killed after {timeout:g} seconds)" * (
        status == 124
    )


def run_console(block: Block, folder: Path, timeout: float) -> str:
    commands, mark = commands_of(block), "-- end of command, status"
    script = "".join(f'{command}\nlast=$?; printf "\\n{mark} %s\\n" $last; (exit $last)\n' for command, _ in commands)
    status, printed = run_bash(script, folder, timeout)
    parts = re.split(rf"\n{mark} (\d+)\n", printed)
    if len(parts) != 2 * len(commands) + 1:
        raise Wrong(f"{block}: it stopped before its last command, with status {status}\n{printed}")
    followers = [command for command, _ in commands[1:]] + [""]
    for (command, shown), found, code, following in zip(commands, parts[::2], parts[1::2], followers, strict=False):
        compare(block, command, shown, found)
        if code != "0" and following.strip() != "echo $?":
            raise Wrong(
                f"{block}: {command}\nfailed with status {code}; if it should, show `$ echo $?` after it\n{found}"
            )
    return printed


def run_sh(block: Block, folder: Path, timeout: float) -> str:
    status, printed = run_bash(f"set -euo pipefail\n{block.code}", folder, timeout)
    if status != 0:
        raise Wrong(f"{block}: failed with status {status}\n{block.code}{printed}")
    return printed


def run_scripts(scripts: list[Block], folder: Path, timeout: float, base: str) -> list[str]:
    """Run scripts in one process, after the code that they continue, and return what each prints."""
    mark = f"\nprint({MARK!r}, flush=True)\n"
    (folder / ".home").mkdir(exist_ok=True)
    (folder / ".home" / "block.py").write_text(mark.join([base, *(script.code for script in scripts)]), "utf-8")
    # Import modules as if the script were in the page's folder, where a reader would put it.
    command = 'PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" forked python .home/block.py'
    status, printed = run_bash(f"set -euo pipefail\n{command}", folder, timeout)
    parts = printed.split(f"{MARK}\n")[1:]
    if status != 0:
        failed = scripts[max(0, len(parts) - 1)]
        raise Wrong(f"{failed}: failed with status {status}\n{failed.code}{parts[-1] if parts else printed}")
    return parts


def continued(blocks: list[Block]) -> list[Block]:
    """Return the first block, a script, and the scripts that continue it before any other block is run."""
    scripts = blocks[:1]
    for block in blocks[1:]:
        if block.language == "python" and block.words == {"more"}:
            scripts.append(block)
        elif block.language in RUN:
            break
    return scripts


def command_lines(block: Block) -> Iterator[list[str]]:
    code = block.code if block.language == "sh" else "".join(f"{command}\n" for command, _ in commands_of(block))
    for line in code.replace("\\\n", " ").splitlines():
        try:
            yield shlex.split(line, comments=True)
        except ValueError:
            continue  # a quoted text that spans several lines


def check_unrun(block: Block) -> None:
    """Check, without running a block, that it is well formed and that its commands, options and extras exist."""
    if block.language == "python":
        compile(block.code, str(block), "exec")
        return
    for words in command_lines(block):
        if words[:2] == ["pip", "install"]:
            extras = {name for word in words for match in re.findall(r"\[(.+)\]", word) for name in match.split(",")}
            if extras - EXTRAS.keys():
                raise Wrong(f"{block}: there is no extra {', '.join(extras - EXTRAS.keys())}")
        if words[:1] != ["vidrio"]:
            continue
        context = click.Context(cli.vidrio)
        command: click.Command | None = cli.vidrio
        rest = words[1:]
        while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
            name = rest.pop(0)
            command = command.get_command(context, name)
            if command is None:
                raise Wrong(f"{block}: there is no `{' '.join(words[: len(words) - len(rest)])}`")
        assert command
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        for word in rest:
            if word.startswith("--") and word.partition("=")[0] not in {*known, "--help", "--"}:
                raise Wrong(f"{block}: `{' '.join(words)}`: there is no option {word}")


def run_page(page: Path, folder: Path, *, slow: bool = False, timeout: float = 120) -> None:
    blocks = blocks_of(page)
    printed, base, by_script = "", "", dict[Block, str]()
    for number, block in enumerate(blocks):
        if block.language not in RUN | set(PARSED) | PROSE:
            raise Wrong(
                f"{block}: the language `{block.language}` is not one of {', '.join(sorted(RUN | set(PARSED) | PROSE))}"
            )
        if not block.words <= WORDS:
            raise Wrong(f"{block}: unknown words `{' '.join(block.words)}`; use {', '.join(sorted(WORDS))}")
        if block.language in PARSED:
            try:
                PARSED[block.language](block.code)
            except ValueError as error:
                raise Wrong(f"{block}: {error}") from None
        elif "output" in block.words and (slow or "slow" not in block.words):
            compare(block, "what the block before it prints", block.code, printed)
        elif block.language in RUN:
            check_unrun(block)
            if block.words & ({"network", "gpu"} if slow else {"network", "gpu", "slow"}):
                continue
            if block.language == "python":
                base = base if "more" in block.words else ""
                if block not in by_script:
                    scripts = continued(blocks[number:])
                    by_script |= zip(scripts, run_scripts(scripts, folder, timeout, base), strict=True)
                printed, base = by_script[block], f"{base}{block.code}\n"
            else:
                printed = (run_console if block.language == "console" else run_sh)(block, folder, timeout)
