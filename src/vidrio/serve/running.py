"""Listen, say where, serve until Ctrl-C or SIGTERM; what has been begun is finished first."""

import logging
import os
import socket
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from vidrio.errors import ConfigError
from vidrio.serve.app import create_app
from vidrio.serve.metrics import FILES
from vidrio.serve.settings import DEFAULTS, Settings

GRACE = 30  # seconds in which what has been begun may end


def serve(
    model: str | None,
    host: str,
    port: int,
    ready: Callable[[str], None],
    settings: Settings = DEFAULTS,
    workers: int = 1,
) -> None:
    """Tell `ready` the address when everything is, then answer."""
    everywhere = host in ("0.0.0.0", "::")
    name = f"[{host}]" if ":" in host else host
    make = partial(_make, model, replace(settings, hosts=(*settings.hosts, "*" if everywhere else name)))
    with listening(host, port) as listener, tempfile.TemporaryDirectory(prefix="vidrio-") as figures:
        address = f"http://{'127.0.0.1' if everywhere else name}:{listener.getsockname()[1]}/"
        if workers > 1:
            os.environ[FILES] = figures  # before any of them counts
        app = make()  # a model that cannot be served is told now; workers make their own
        config = uvicorn.Config(
            make if workers > 1 else app,
            factory=workers > 1,
            workers=workers,
            log_level="error",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE,
        )
        ready(address)
        with suppress(KeyboardInterrupt):
            if workers > 1:
                Multiprocess(config, sockets=[listener]).run()
            else:
                uvicorn.Server(config).run(sockets=[listener])


def _make(model: str | None, settings: Settings) -> FastAPI:
    """The app of one process."""
    start_log(settings)
    return create_app(model, settings)


def start_log(settings: Settings) -> None:
    """Lines of JSON on stderr; errors in any case."""
    log = logging.getLogger("vidrio.serve")
    log.handlers = [logging.StreamHandler(sys.stderr)]
    log.setLevel(logging.INFO if settings.log else logging.ERROR)
    log.propagate = False
    logging.getLogger("python_multipart").setLevel(logging.ERROR)  # else whoever sends forms that are none fills stderr


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
