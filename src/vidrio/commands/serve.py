"""`vidrio serve`: serve the page and LibreTranslate's API."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from vidrio.commands._options import FILE, SHORTLIST
from vidrio.model.config import LARGEST_BEAM
from vidrio.serve.settings import DEFAULTS, Settings

MAX_ALTERNATIVES = LARGEST_BEAM - 1
FOLDER = click.Path(file_okay=False, path_type=Path)


def option(*names: str, **settings: Any) -> Callable[[Any], Any]:
    """Define an option whose default is the setting of the same name. An environment variable can set the option, too:
    VIDRIO_CHAR_LIMIT or, as in LibreTranslate, LT_CHAR_LIMIT sets --char-limit."""
    word = names[0].removeprefix("--").partition("/")[0].replace("-", "_")
    if hasattr(DEFAULTS, word):
        settings.setdefault("default", getattr(DEFAULTS, word))
    return click.option(*names, envvar=[f"VIDRIO_{word.upper()}", f"LT_{word.upper()}"], **settings)


@click.command()
@click.option("-m", "--model", "models", metavar="MODEL", multiple=True, help="A model folder or name; repeatable.")
@option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 listens on all interfaces."
)
@option(
    "--port",
    type=click.IntRange(0, 65535),
    default=5000,
    show_default=True,
    help="Port to listen on; 0 chooses a free one.",
)
@click.option("--open", "open_browser", is_flag=True, help="Open the page in the browser.")
@option("--page/--no-page", help="Serve the page in addition to the API, or only the API.")
@option("--name", "hosts", multiple=True, metavar="HOST", help="Another host name that clients use; repeatable.")
@option(
    "--proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="Address of a reverse proxy in front of the server; repeatable.",
)
@option("--cors", metavar="ORIGIN", help="Website whose scripts may call the server; * for any.  [default: none]")
@option("--connections", type=click.IntRange(8), show_default=True, help="Maximum simultaneous connections.")
@option("--threads", type=click.IntRange(0), help="Number of texts to translate in parallel.  [default: one per core]")
@option(
    "--char-limit", type=click.IntRange(-1), show_default=True, help="Maximum characters per request; -1: no limit."
)
@option("--req-limit", type=click.IntRange(-1), show_default=True, help="Maximum requests per client per minute.")
@option("--batch-limit", type=click.IntRange(-1), show_default=True, help="Maximum texts per request.")
@option(
    "--alternatives-limit",
    type=click.IntRange(0, MAX_ALTERNATIVES),
    show_default=True,
    help="Maximum alternatives per text.",
)
@option("--body-limit", type=click.IntRange(1), show_default=True, help="Maximum bytes per request.")
@option("--queue", type=click.IntRange(1), show_default=True, help="Maximum characters waiting to be translated.")
@option("--shortlist", is_flag=True, help=SHORTLIST)
@option("--keys", type=FILE, help="File of API keys; each line contains a name, a key and limits.")
@option("--key-required", is_flag=True, help="Refuse requests without a key.")
@option("--files", type=FOLDER, help="Also translate files, and keep the results in this folder for a limited time.")
@option("--file-limit", type=click.IntRange(1), show_default=True, help="Maximum bytes per file.")
@option("--file-char-limit", type=click.IntRange(-1), show_default=True, help="Maximum characters per file.")
@option("--file-minutes", type=click.FloatRange(0), show_default=True, help="Minutes to keep a translated file.")
@option("--suggestions", type=FILE, help="Accept suggested translations and add them to this file.")
@option("--log", is_flag=True, help="Log each request to stderr, without its texts.")
def serve(models: tuple[str, ...], host: str, port: int, **given: Any) -> None:
    """Serve the page and a LibreTranslate-compatible API.

    Prints its address when it is ready; press Ctrl-C to stop it. Nothing leaves this machine: the page loads no
    external resources, and only local connections are accepted unless --host says otherwise. Every option except
    --model and --open can also be set by an environment variable, such as VIDRIO_CHAR_LIMIT for --char-limit.

    \b
    vidrio serve
    vidrio serve --model my-model --port 8080 --open
    vidrio serve --host 0.0.0.0 --keys keys.txt --key-required --log
    """
    import os

    # For a single sentence, threads that wait for each other cost more time than they save: up to ten times more on a
    # busy machine.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from vidrio.serve.app import serve as run

    open_browser = given.pop("open_browser")
    if given["key_required"] and given["keys"] is None:
        raise click.UsageError("--key-required needs --keys.")

    def ready(address: str) -> None:
        click.echo(f"Vidrio is ready: {address}")
        if open_browser:
            import threading
            import webbrowser

            # In a thread, because a browser in the terminal would wait for the server, which does not answer yet.
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    settings = Settings(models=models[1:], **given)
    run(models[0] if models else None, host, port, ready, settings)
