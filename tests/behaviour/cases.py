"""The cases: one .tsv file a topic, named by its direction, with the columns id, source, must, why.

`must` names the rules that a translation must pass, parted by " & ", each with its argument:

    has perro | can & at-most 3 & ends-alike

`source` and the arguments may hold escapes: \\n, \\t, \\r, \\\\ and \\u0020.
"""

import re
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
COLUMNS = ["id", "source", "must", "why"]
NAMED = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}


@dataclass(frozen=True)
class Case:
    """A text, and what its translation must have: rules by name, each with its argument."""

    id: str
    topic: str
    source: str
    must: tuple[tuple[str, str], ...]
    why: str


def read_cases(direction: str, folder: Path = HERE) -> list[Case]:
    """The cases of a direction, "en-es" for one, by topic."""
    return [case for path in sorted(folder.glob(f"{direction}-*.tsv")) for case in read_file(path, direction)]


def read_file(path: Path, direction: str) -> list[Case]:
    header, *lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    if header.split("\t") != COLUMNS:
        raise ValueError(f"{path.name} does not begin with the columns {', '.join(COLUMNS)}")
    cases = []
    for number, line in enumerate(lines, 2):
        fields = line.split("\t")
        if len(fields) != len(COLUMNS):
            raise ValueError(f"{path.name}:{number} has {len(fields)} columns, not {len(COLUMNS)}")
        id, source, must, why = fields  # noqa: A001
        clauses = (clause.partition(" ") for clause in must.split(" & "))
        rules = tuple((name, unescaped(argument)) for name, _, argument in clauses)
        cases.append(Case(id, path.stem.removeprefix(f"{direction}-"), unescaped(source), rules, why))
    return cases


def unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        return chr(int(match[1][1:], 16)) if match[1][0] == "u" else NAMED[match[1]]

    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", character, text)
