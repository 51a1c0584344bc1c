"""Ask the forking process of forked.py to run a command. Run as a script, it passes its own streams to the command:

    python fork_client.py SOCKET vidrio translate …

It imports little, because it starts once for every command of a document.
"""

import marshal
import os
import socket
import sys


def ask(path: str, request: list[object], streams: list[int], timeout: float | None) -> int:
    """Run a program with arguments, folder and environment. Return its exit code, or its signal, negated."""
    data = marshal.dumps(request)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout)
        connection.connect(path)
        socket.send_fds(connection, [len(data).to_bytes(4, "little")], streams)
        connection.sendall(data)
        return int(connection.recv(16))  # if the connection closes earlier, the command is killed


if __name__ == "__main__":
    asked = [sys.argv[2], sys.argv[3:], os.getcwd(), dict(os.environ)]
    sys.exit(ask(sys.argv[1], asked, [0, 1, 2], None))
