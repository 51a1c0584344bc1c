"""Listen, say where, serve until Ctrl-C."""

import socket
from collections.abc import Callable

import uvicorn

from vidrio.errors import ConfigError
from vidrio.serve.app import create_app


def serve(model: str | None, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Tell `ready` the address when everything is, then answer."""
    everywhere = host in ("0.0.0.0", "::")
    name = f"[{host}]" if ":" in host else host
    app = create_app(model, ("*",) if everywhere else (name,))
    with _listening(host, port) as listener:
        ready(f"http://{'127.0.0.1' if everywhere else name}:{listener.getsockname()[1]}/")
        config = uvicorn.Config(app, log_level="warning", server_header=False, timeout_graceful_shutdown=2)
        uvicorn.Server(config).run(sockets=[listener])


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except (OSError, UnicodeError) as error:
        do = "take another: --port 5001, or --port 0 for any free one" if port else "take another --host"
        raise ConfigError(f"cannot listen on {host}:{port}", found=str(error), do=do) from None
