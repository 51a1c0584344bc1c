"""Files over HTTP come whole or not at all, from a real server on this machine that stands in for the network."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from vidrio.data.progress import Progress
from vidrio.errors import DataError
from vidrio.interop import download
from vidrio.interop.download import fetch


class Server:
    """What stands in for the network: files by path, with faults."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.break_after: list[int] = []  # bytes after which the next answers break off
        self.fail: list[int] = []  # status codes of the next answers
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def answer(self, request: Any) -> None:
        data = self.files.get(request.path)
        if self.fail or data is None:
            request.send_error(self.fail.pop(0) if self.fail else 404)
            return
        request.send_response(200)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data[: self.break_after.pop(0)] if self.break_after else data)


@pytest.fixture
def server() -> Iterator[Server]:
    served = Server()
    yield served
    served.http.shutdown()
    served.http.server_close()


def test_a_broken_fetch_is_begun_again(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download.time, "sleep", lambda seconds: None)
    data = server.files["/host/f.bin"] = bytes(range(256)) * 4000
    server.break_after, server.fail = [300_000, 200_000], [503]
    fetch("https://host/f.bin", tmp_path / "f.bin", Progress(), mirror=server.url)
    assert (tmp_path / "f.bin").read_bytes() == data
    server.break_after = [100_000] * 4
    with pytest.raises(DataError, match="check the network"):
        fetch("https://host/f.bin", tmp_path / "g.bin", Progress(), mirror=server.url)
    server.fail = [503] * 10
    with pytest.raises(DataError, match="503"):
        fetch("https://host/f.bin", tmp_path / "g.bin", Progress(), mirror=server.url)
    with pytest.raises(DataError, match=r"cannot be fetched(.|\n)*refused"):
        fetch("https://host/f", tmp_path / "g.bin", Progress(), mirror="http://127.0.0.1:9")
    for url, mirror in (("file:///etc/passwd", ""), ("https://host/f", "file:///etc")):
        with pytest.raises(DataError, match="is no address"):
            fetch(url, tmp_path / "g.bin", Progress(), mirror=mirror)
    assert [path.name for path in tmp_path.iterdir()] == ["f.bin"]
