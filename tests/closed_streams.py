"""Every verb where streams are closed: `python closed_streams.py FOLDER <&-`.

Python starts with them closed, once; each verb has a process that is forked from it, and ends as Python ends. FOLDER
has the verbs' arguments in calls.json and a folder for each verb, where its exit code and its stderr are left.
"""

import gc
import json
import os
import sys
from pathlib import Path


def is_closed(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return True
    return False


def main(folder: Path) -> None:
    closed = [is_closed(number) for number in range(3)]
    for library in ("click", "numpy", "safetensors.numpy", "tokenizers"):  # PyTorch takes long to end
        __import__(library)
    gc.freeze()
    for verb, arguments in json.loads((folder / "calls.json").read_text("utf-8")).items():
        child = os.fork()
        if child == 0:
            os.chdir(folder / verb)
            if not closed[2]:
                stderr = os.open("stderr", os.O_WRONLY | os.O_CREAT)
                os.dup2(stderr, 2)
                os.close(stderr)
            sys.argv = ["vidrio", verb, *arguments]
            from vidrio import cli

            assert [is_closed(number) for number in range(3)] == closed, "a file of somebody's stands for a stream"
            sys.exit(cli.main())
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        (folder / verb / "code").write_text(str(code))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
