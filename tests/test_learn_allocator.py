"""Memory that threads have freed goes back to the system."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from vidrio.learn.allocator import give_back

HELD = """
import threading
from pathlib import Path
from vidrio.learn.allocator import give_back

PAGE = {page}

def resident():
    return PAGE * int(Path("/proc/self/statm").read_text().split()[1])

kept = []
def work():  # every thread frees nearly all that it had, but for what lies between
    pieces = [bytes(3000) for _ in range(5000)]
    kept.append(pieces[::250])

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
before = resident()
give_back()
print(before - resident())
"""


@pytest.mark.skipif(not give_back() or not Path("/proc/self/statm").exists(), reason="glibc on Linux only")
def test_what_threads_have_freed_goes_back() -> None:
    code = HELD.format(page=os.sysconf("SC_PAGE_SIZE"))
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert int(run.stdout) > 10_000_000, "of some 50 MB that lie between what is kept"
