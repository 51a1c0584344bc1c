"""`vidrio serve`: the page in a browser."""

import click

from vidrio.commands._options import model_option


@click.command(short_help="Open the page: type, translate, look inside.")
@model_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen; 0.0.0.0 is the whole network.")
@click.option("--port", type=click.IntRange(0, 65535), default=5000, show_default=True, help="0: any free one.")
@click.option("--open", "open_browser", is_flag=True, help="Open the page in the browser.")
def serve(model_name: str | None, host: str, port: int, open_browser: bool) -> None:
    """Serve the page in which the translator is made of glass.

    It prints its address when it is ready; Ctrl-C ends it. Nothing leaves this machine: the page loads nothing from
    elsewhere, and unless --host says otherwise only this machine can open it.

    \b
    vidrio serve
    vidrio serve --model my-model --port 8080 --open
    """
    import os

    # One sentence is small work: threads that wait for each other cost more than they bring, tenfold on a busy machine.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from vidrio.serve.running import serve as run

    def ready(address: str) -> None:
        click.echo(f"Vidrio is ready: {address}")
        if open_browser:
            import webbrowser

            webbrowser.open(address)

    run(model_name, host, port, ready)
