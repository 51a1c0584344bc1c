"""Listen, say where, serve until Ctrl-C."""

import socket
import webbrowser

import click
import uvicorn

from vidrio.errors import ConfigError
from vidrio.serve.app import create_app


def serve(model: str | None, host: str, port: int, open_browser: bool = False) -> None:
    """Print one line with the address when everything is ready, then answer."""
    everywhere = host in ("0.0.0.0", "::")
    app = create_app(model, ("*",) if everywhere else (f"[{host}]" if ":" in host else host,))
    with _listening(host, port) as listener:
        shown = "127.0.0.1" if everywhere else f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listener.getsockname()[1]}/"
        click.echo(f"Vidrio is ready: {address}")
        if open_browser:
            webbrowser.open(address)
        config = uvicorn.Config(app, log_level="warning", server_header=False, timeout_graceful_shutdown=2)
        uvicorn.Server(config).run(sockets=[listener])


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except (OSError, UnicodeError) as error:
        do = "take another: --port 5001, or --port 0 for any free one" if port else "take another --host"
        raise ConfigError(f"cannot listen on {host}:{port}", found=str(error), do=do) from None
