"""Values as a TOML file: written to the last bit, read back with every problem told at once.

The keys are the addresses of the numbers: what `vidrio why` calls `enc.0.self.WQ.h1` is `WQ.h1` in `[enc.0.self]`.
The lesson's own values are such files too: data/given.toml has what the post prints and `draw = 2017`, and
data/random-transformer.toml is what came of it.

Read next: values_reader.py.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import numpy as np

from vidrio.errors import LessonError
from vidrio.glass.numbers.stages import stages
from vidrio.glass.paper.maths import Array
from vidrio.lessons.pages import counted
from vidrio.lessons.values import Values
from vidrio.lessons.values_reader import CHOICES, LARGEST, SPECIAL, SWITCHES, Reader, parts
from vidrio.model.files import write_atomically
from vidrio.model.parameters import embedding_tables
from vidrio.text.tokens.special import NONE

LARGEST_FILE = 16 * 1024 * 1024  # bytes
MOST_PROBLEMS = 20  # told at once
SECOND_TABLE = "A second table, for the generation at the end; without it the first one serves there too."


def of_the_post() -> Values:
    """What the post prints, and what it drew at random drawn once: see data/given.toml."""
    data = resources.files("vidrio.lessons").joinpath("data/random-transformer.toml").read_bytes()
    return parse(data, None, where="the lesson's own values")


def read(path: Path, base: Values | None) -> Values:
    """A reader's own values; what the file does not name is taken from `base`."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise LessonError(
            f"the values cannot be read from {path}",
            found=error.strerror or str(error),
            do="give a file that `vidrio lesson random-transformer --write-values FILE` has written",
        ) from None
    if len(data) > LARGEST_FILE:
        raise LessonError(f"{path} is too large", found=f"more than {LARGEST_FILE:,} bytes", do="use a smaller model")
    return parse(data, base, where=str(path))


def write(path: Path, values: Values, *, force: bool = False) -> None:
    """Write values to the last bit; a file that is there already stays, unless forced."""
    if path.exists() and not force:
        raise LessonError(f"{path} is there already", do="give another name, or --force to write over it")
    try:
        write_atomically(path, "".join(f"{line}\n" for line in lines(values)).encode())
    except OSError as error:
        raise cannot_write(path, error) from None


def cannot_write(path: Path, error: OSError) -> LessonError:
    return LessonError(f"{path} cannot be written", found=error.strerror or str(error), do="give another place")


def parse(data: bytes, base: Values | None, *, where: str) -> Values:
    """Values from the text of a file; all that is wrong with it is told at once."""
    try:
        content = tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{data[error.start]:02X} in line {line}"
        raise LessonError(f"{where} is not UTF-8 text", found=found, do="save it as UTF-8") from None
    except (ValueError, RecursionError) as error:  # not TOML, or a whole number of thousands of digits
        raise LessonError(f"{where} is not TOML", found=str(error), do="mend the line named") from None
    reader = Reader(content, base)
    values = reader.values()
    if reader.problems or values is None:
        shown = reader.problems[:MOST_PROBLEMS]
        more = len(reader.problems) - len(shown)
        raise LessonError(
            f"{where} does not fit the lesson",
            found="\n    ".join(
                [counted(len(reader.problems), "problem"), *shown, *([f"and {more} more"] if more else [])]
            ),
            do="mend what is named; `--write-values FILE` writes a file that fits",
        )
    return values


# --- writing ----------------------------------------------------------------------------------------------------------


def lines(values: Values) -> Iterator[str]:
    """The lines of a file that `parse` reads back to the same values, bit for bit."""
    c, special = values.config, values.config.special
    yield "# Values of the lesson random-transformer: change what you like, and walk with them:"
    yield "#   vidrio lesson random-transformer --values THIS_FILE"
    yield "# A name is the address of its numbers; what you remove is taken from the lesson where the sizes fit."
    yield ""
    yield f"about = {_text(values.about)}"
    yield f"sentence = {_text(values.sentence)}"
    yield f"vocabulary = [{', '.join(map(_text, values.vocabulary))}]"
    for key, name in SPECIAL.items():
        if getattr(special, name) != NONE:
            yield f"{key} = {_text(values.vocabulary[getattr(special, name)])}"
    yield ""
    yield "[config]"
    for key in [*LARGEST, *CHOICES, *SWITCHES]:
        value = getattr(c, key)
        yield f"{key} = {_text(value) if isinstance(value, str) else str(value).lower()}"
    yield f"score_divisor = {values.score_divisor!r} # the paper divides by √d_head"
    tables = [(name, values.parameters[name]) for name in embedding_tables(c)]
    if all(np.array_equal(array, tables[0][1]) for _, array in tables):
        tables = [("embeddings", tables[0][1])]
    if values.generation_VD is not None:
        tables.append(("generation.embeddings", values.generation_VD))
    for name, array in tables:
        second = name == "generation.embeddings"
        yield ""
        yield f"# {SECOND_TABLE if second else 'V × D: a row for each word.'}"
        yield f"[{name}]"
        yield from (f"{_key(word)} = {_row(row)}" for word, row in zip(values.vocabulary, array, strict=True))
    table, declared = "", stages(c)
    for address, array in parts(c, values.vocabulary, values.parameters).items():
        if "[" in address:  # a word's row, which stands above
            continue
        owner = ".".join(address.split(".")[:3]) if address.count(".") > 2 else address.rpartition(".")[0]
        if owner != table:
            yield from ("", f"[{owner}]")
            table = owner
        key, stage = address.removeprefix(f"{owner}."), declared[address]
        yield f"# {' × '.join(stage.axes)}: {stage.says}"
        if array.ndim == 1:
            yield f"{key} = {_row(array)}"
        else:
            yield from (f"{key} = [", *(f"  {_row(row)}," for row in array), "]")


def _row(array: Array) -> str:
    return f"[{', '.join(repr(float(x)) for x in array)}]"


def _text(text: str) -> str:
    """A TOML string: JSON's, and DEL escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(word: str) -> str:
    return word if re.fullmatch(r"[A-Za-z0-9_-]+", word) else _text(word)
