"""The command lines that lead on from a view, written so that they can be copied."""

import shlex
from dataclasses import dataclass

from vidrio.look.writing import visible


@dataclass(frozen=True)
class CommandLine:
    """The same text and model, asked something else."""

    text: str
    options: tuple[str, ...] = ()  # those that must be told again: --model, what was changed

    def look(self, *arguments: str) -> str:
        return " ".join(["vidrio look", quoted(self.text), *map(quoted, (*self.options, *arguments))])

    def why(self, address: str) -> str:
        return " ".join(["vidrio why", quoted(address), quoted(self.text), *map(quoted, self.options)])


def quoted(argument: str) -> str:
    """A shell argument, in double quotes where that is safe, since people read those more easily. What would move a
    cursor is written out."""
    argument = visible(argument)
    if (argument and not set(argument) & set(" \"'$`\\!*?[]{}()<>|&;#~")) or argument.startswith("--"):
        return argument
    return f'"{argument}"' if not set(argument) & set('"$`\\!') else shlex.quote(argument)
