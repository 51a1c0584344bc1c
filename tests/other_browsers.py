"""Firefox and WebKit, as Debian packages them, driven by the protocols that they bring: no driver to download."""

import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import httpx

FIREFOX = ("firefox-esr", "firefox")
WEBKIT = sorted(Path("/usr/lib").glob("*/webkit2gtk-4.*/MiniBrowser"))


@dataclass(frozen=True)
class Driven:
    """A browser with one page: asked in WebDriver's words."""

    ask: Callable[[str, dict[str, Any]], Any]
    errors: Callable[[], list[str]]  # what its console said

    def visit(self, url: str) -> None:
        self.ask("url", {"url": url})

    def run(self, script: str, *given: Any) -> Any:
        return self.ask("execute/sync", {"script": script, "args": list(given)})

    def until(self, script: str, seconds: float = 60) -> Any:
        """What the script gives as soon as it gives something."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := self.run(script):
                return found
            time.sleep(0.1)
        raise TimeoutError(script)

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.ask("screenshot", {})))


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@contextmanager
def firefox(width: int = 1280, height: int = 900) -> Iterator[Driven]:
    """By Marionette, which every Firefox speaks: a length, a colon, a list in JSON."""
    program = next(filter(None, map(shutil.which, FIREFOX)))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        port = free_port()
        prefs = {"marionette.port": port, "devtools.console.stdout.content": True, "intl.accept_languages": "en-US"}
        prefs |= {"app.update.enabled": False, "datareporting.policy.dataSubmissionEnabled": False}
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in prefs.items()]
        Path(folder, "user.js").write_text("\n".join(lines), "utf-8")
        log = Path(folder, "log.txt")
        command = [program, "--headless", "--marionette", "--no-remote", "--profile", folder]
        command += ["--width", str(width), "--height", str(height)]
        with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
            try:
                with _connected(port) as connection, connection.makefile("rwb") as stream:
                    yield _by_marionette(stream, log)
            finally:
                process.kill()


def _by_marionette(stream: IO[bytes], log: Path) -> Driven:
    names = {"url": "Navigate", "execute/sync": "ExecuteScript", "screenshot": "TakeScreenshot"}
    count = 0

    def read() -> Any:
        length = b""
        while not length.endswith(b":"):
            length += stream.read(1)
        return json.loads(stream.read(int(length[:-1])))

    def send(name: str, given: dict[str, Any]) -> Any:
        nonlocal count
        count += 1
        words = json.dumps([0, count, f"WebDriver:{name}", given])
        stream.write(f"{len(words.encode())}:{words}".encode())
        stream.flush()
        _, _, error, result = read()
        if error:
            raise RuntimeError(error)
        return result

    read()  # its greeting
    send("NewSession", {})

    def ask(name: str, given: dict[str, Any]) -> Any:
        return send(names[name], {**given, "full": False} if name == "screenshot" else given).get("value")

    def errors() -> list[str]:
        said = log.read_text("utf-8", "replace").splitlines()  # Firefox's own complaints stand there too, unquoted
        return [
            line for line in said if line.startswith(('console.error: "', 'console.warn: "', "JavaScript error: http"))
        ]

    return Driven(ask, errors)


def _connected(port: int) -> socket.socket:
    for _ in range(600):
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=60)
        except OSError:
            time.sleep(0.1)
    raise TimeoutError("Firefox does not listen")


@contextmanager
def webkit() -> Iterator[Driven]:
    """By WebKit's own driver, on a screen that is not there."""
    display, port = f":{free_port()}", free_port()
    environment = {**os.environ, "DISPLAY": display, "GDK_BACKEND": "x11"}
    environment["WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS"] = "1"  # it has none for root
    screen = subprocess.Popen(["Xvfb", display, "-screen", "0", "1440x1000x24"], stderr=subprocess.DEVNULL)
    driver = subprocess.Popen(["WebKitWebDriver", f"--port={port}"], env=environment, stderr=subprocess.DEVNULL)
    options = {"binary": str(WEBKIT[-1]), "args": ["--automation"]}
    base, session = f"http://127.0.0.1:{port}/session", ""
    try:
        _connected(port).close()
        answer = httpx.post(
            base, json={"capabilities": {"alwaysMatch": {"webkitgtk:browserOptions": options}}}, timeout=60
        )
        session = f"{base}/{answer.json()['value']['sessionId']}"

        def ask(name: str, given: dict[str, Any]) -> Any:
            url = f"{session}/{name}"
            got = httpx.get(url, timeout=60) if name == "screenshot" else httpx.post(url, json=given, timeout=60)
            value = got.json()["value"]
            if got.is_error:
                raise RuntimeError(value)
            return value

        yield Driven(ask, list)
    finally:
        if session:
            httpx.delete(session, timeout=60)
        driver.kill()
        screen.kill()
        driver.wait()
        screen.wait()
