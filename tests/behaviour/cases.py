"""Read behaviour cases from DIRECTION-TOPIC.tsv files with the columns id, source, must and why.

`must` lists the rules that a translation must satisfy, separated by " & ", each with its argument:

    has perro | can & at-most 3 & ends-alike

`source` and the arguments may contain escapes: \\n, \\t, \\r, \\\\ and \\u0020.
"""

import re
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
COLUMNS = ["id", "source", "must", "why"]
NAMED = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}


@dataclass(frozen=True)
class Case:
    """A source text and the rules that its translation must satisfy, as pairs of a name and an argument."""

    id: str
    topic: str
    source: str
    must: tuple[tuple[str, str], ...]
    why: str


def read_cases(direction: str, folder: Path = HERE) -> list[Case]:
    """Return all cases of a direction, such as "en-es", in the order of their topics."""
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
