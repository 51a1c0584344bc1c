"""`vidrio serve`: the page in a browser, and LibreTranslate's interface for programs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from vidrio.commands._options import FILE
from vidrio.serve.settings import DEFAULTS, Settings

FOLDER = click.Path(file_okay=False, path_type=Path)


def option(*names: str, **settings: Any) -> Callable[[Any], Any]:
    """An option with the default of the setting of its name. It is an environment variable, too: --char-limit is
    VIDRIO_CHAR_LIMIT, and LT_CHAR_LIMIT as in LibreTranslate."""
    word = names[0].removeprefix("--").partition("/")[0].replace("-", "_")
    if hasattr(DEFAULTS, word):
        settings.setdefault("default", getattr(DEFAULTS, word))
    return click.option(*names, envvar=[f"VIDRIO_{word.upper()}", f"LT_{word.upper()}"], **settings)


@click.command()
@click.option(
    "-m", "--model", "models", metavar="MODEL", multiple=True, help="A model folder or name; several if given again."
)
@option("--host", default="127.0.0.1", show_default=True, help="Where to listen; 0.0.0.0 is the whole network.")
@option("--port", type=click.IntRange(0, 65535), default=5000, show_default=True, help="0: any free one.")
@click.option("--open", "open_browser", is_flag=True, help="Open the page in the browser.")
@option("--page/--no-page", help="Whether the page is served, too.")
@option("--name", "hosts", multiple=True, metavar="HOST", help="Another name of this server, as clients call it.")
@option("--cors", show_default=True, metavar="ORIGIN", help='Which sites\' scripts may ask; "": none.')
@option("--threads", type=click.IntRange(1), show_default=True, help="Requests translated at the same time.")
@option("--char-limit", type=click.IntRange(-1), show_default=True, help="Characters a request; -1: any.")
@option("--req-limit", type=click.IntRange(-1), show_default=True, help="Requests a minute of a client.")
@option("--batch-limit", type=click.IntRange(-1), show_default=True, help="Texts a request.")
@option("--alternatives-limit", type=click.IntRange(0, 64), show_default=True, help="Alternatives a text.")
@option("--body-limit", type=click.IntRange(1), show_default=True, help="Bytes a request.")
@option("--queue", type=click.IntRange(1), show_default=True, help="Characters that may wait.")
@option("--keys", type=FILE, help="The file of API keys: lines of name, key, limits.")
@option("--key-required", is_flag=True, help="Nobody is served without a key.")
@option("--files", type=FOLDER, help="Files are translated, too; they lie here for a while.")
@option("--file-limit", type=click.IntRange(1), show_default=True, help="Bytes of a file.")
@option("--file-minutes", type=click.FloatRange(0), show_default=True, help="When a file is deleted.")
@option("--suggestions", type=FILE, help="Where suggested translations are added.")
@option("--log", is_flag=True, help="A line on stderr for each request, without its texts.")
@option("--metrics", is_flag=True, help="Figures for Prometheus at /metrics.")
@option("--metrics-token", help="Who reads them must know this.")
def serve(models: tuple[str, ...], host: str, port: int, **given: Any) -> None:
    """Serve the page in which the translator is made of glass, and the interface of LibreTranslate for programs.

    It prints its address when it is ready; Ctrl-C ends it. Nothing leaves this machine: the page loads nothing from
    elsewhere, and unless --host says otherwise only this machine can open it. Every option is an environment variable,
    too: --char-limit is VIDRIO_CHAR_LIMIT.

    \b
    vidrio serve
    vidrio serve --model my-model --port 8080 --open
    vidrio serve --host 0.0.0.0 --keys keys.txt --key-required --log --metrics
    """
    import os

    # One sentence is small work: threads that wait for each other cost more than they bring, tenfold on a busy machine.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from vidrio.serve.app import serve as run

    open_browser = given.pop("open_browser")
    if given["key_required"] and given["keys"] is None:
        raise click.UsageError("--key-required needs --keys.")

    def ready(address: str) -> None:
        click.echo(f"Vidrio is ready: {address}")
        if open_browser:
            import webbrowser

            webbrowser.open(address)

    settings = Settings(models=models[1:], **given)
    run(models[0] if models else None, host, port, ready, settings)
