"""Listen, say where, serve until Ctrl-C or SIGTERM; requests at work are finished first."""

import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import uvicorn
from uvicorn.config import LOGGING_CONFIG

from vidrio.errors import ConfigError
from vidrio.serve.app import create_app
from vidrio.serve.settings import DEFAULTS, Settings

GRACE = 30  # seconds in which requests at work may end


def serve(model: str | None, host: str, port: int, ready: Callable[[str], None], settings: Settings = DEFAULTS) -> None:
    """Call `ready` with the address when the server can answer, then answer."""
    everywhere = host in ("0.0.0.0", "::")
    name = f"[{host}]" if ":" in host else host
    logging.getLogger("python_multipart").setLevel(logging.ERROR)  # else damaged forms fill stderr
    with listening(host, port) as listener:
        app = create_app(model, replace(settings, hosts=(*settings.hosts, "*" if everywhere else name)))
        handlers = LOGGING_CONFIG["handlers"]
        to_stderr = {**handlers["access"], "stream": "ext://sys.stderr"}  # stdout has the address, for programs to read
        config = uvicorn.Config(
            app,
            log_config={**LOGGING_CONFIG, "handlers": {**handlers, "access": to_stderr}},
            log_level="info" if settings.log else "error",
            access_log=settings.log,
            server_header=False,
            timeout_graceful_shutdown=GRACE,
        )
        ready(f"http://{'127.0.0.1' if everywhere else name}:{listener.getsockname()[1]}/")
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listener])


def listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, UnicodeError) as error:
        do = "take another: --port 5001, or --port 0 for any free one" if port else "take another --host"
        raise ConfigError(f"cannot listen on {host}:{port}", found=str(error), do=do) from None
    # Every connection inherits it. Without, the end of an answer waits 40 ms for the client to confirm its beginning.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
