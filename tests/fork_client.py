"""Has the process of forked.py run a command. As a program, its streams are those of the command:

    python fork_client.py SOCKET vidrio translate …

It imports little, since it starts for every command of a document.
"""

import marshal
import os
import socket
import sys


def ask(path: str, request: list[object], streams: list[int], timeout: float | None) -> int:
    """The exit code of `vidrio` or `python` (with arguments, folder, environment); below 0 the signal that ended it."""
    data = marshal.dumps(request)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout)
        connection.connect(path)
        socket.send_fds(connection, [len(data).to_bytes(4, "little")], streams)
        connection.sendall(data)
        return int(connection.recv(16))  # closed before that, it ends the command


if __name__ == "__main__":
    asked = [sys.argv[2], sys.argv[3:], os.getcwd(), dict(os.environ)]
    sys.exit(ask(sys.argv[1], asked, [0, 1, 2], None))
