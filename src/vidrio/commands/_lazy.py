"""A click group that knows its commands by name and imports one only when it is asked for."""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from keyword import iskeyword
from typing import ClassVar

import click


class Lazy(click.Group):
    """The commands of `table`, each `name: (module, one line of help)`."""

    table: ClassVar[Mapping[str, tuple[str, str]]] = {}
    noun: ClassVar[str] = "command"  # what the messages call one of them
    attribute: ClassVar[str] = ""  # the click command in its module; empty: it has the name from the table

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in self.table:
            return None
        module, short_help = self.table[name]
        command: click.Command = getattr(import_module(module), self.attribute or name + "_" * iskeyword(name))
        command.short_help = short_help
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.table and not args[0].startswith("-"):
            close = get_close_matches(args[0], self.table, n=1, cutoff=0.4)
            context.fail(f"There is no {self.noun} {args[0]!r}." + (f" Did you mean {close[0]!r}?" if close else ""))
        return super().resolve_command(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in self.table.items()])
