"""What the benchmarks and pictures of the page share: `vidrio serve` in a process of its own, and Chromium."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def served_page() -> Iterator[tuple[Browser, str]]:
    """A browser, and where the page is."""
    program = next(filter(None, map(shutil.which, PROGRAMS)))
    command = [sys.executable, "-m", "vidrio", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server, sync_playwright() as playwright:
        assert server.stdout
        url = server.stdout.readline().split()[-1]
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser, url
        finally:
            browser.close()
            server.terminate()
