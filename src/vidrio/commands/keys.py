"""`vidrio keys`: the API keys of a server."""

from pathlib import Path

import click

from vidrio.commands._options import FILE
from vidrio.errors import ConfigError

LIMIT = click.IntRange(-1, 10**9)  # -1: any
file_option = click.option(
    *("--keys", "file"), type=FILE, envvar="VIDRIO_KEYS", required=True, help="The file of vidrio serve --keys."
)


@click.group()
def keys() -> None:
    """The API keys of `vidrio serve --keys FILE`. The file holds only their hashes: a key is shown once.

    \b
    vidrio keys add --keys keys.txt --req-limit 60 alice
    vidrio keys list --keys keys.txt
    vidrio keys remove --keys keys.txt alice
    """


@keys.command()
@file_option
@click.option("--req-limit", type=LIMIT, default=-1, show_default=True, help="Requests a minute; -1: any.")
@click.option("--char-limit", type=LIMIT, help="Characters a request. [the server's]")
@click.argument("name")
def add(file: Path, req_limit: int, char_limit: int | None, name: str) -> None:
    """Make a key called NAME and print it."""
    from vidrio.serve.keys import Key, Keys

    click.echo(Keys(file).add(Key(name, req_limit, char_limit)))


@keys.command("list")
@file_option
def list_keys(file: Path) -> None:
    """Print a line for each key: name, requests a minute, characters a request."""
    from vidrio.serve.keys import Keys

    for key in Keys(existing(file)).listed():
        click.echo(f"{key.name}\t{key.req_limit}\t{'' if key.char_limit is None else key.char_limit}")


@keys.command()
@file_option
@click.argument("name")
def remove(file: Path, name: str) -> None:
    """Remove the key called NAME; it is refused from now on."""
    from vidrio.serve.keys import Keys

    Keys(existing(file)).remove(name)


def existing(file: Path) -> Path:
    if not file.exists():
        raise ConfigError(f"there is no {file}", do="make it with vidrio keys add, or give another file with --keys")
    return file
