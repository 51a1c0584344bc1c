"""Open pages in headless Chromium, without network access or the user's profile."""

import os
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page, Request

AXE = Path(__file__).parent / "data" / "axe.min.js"
PATIENCE = 60_000  # milliseconds: a busy machine may take longer to draw than the default of five seconds
# With this switch, the browser cannot reach any other machine.
ALONE = "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"
# Counts the responses that a page waits for, and notes when it last received one or changed its elements.
PENDING = """(() => {
const ask = window.fetch;
window.pending = { responses: 0, last: 0 };
const now = () => { pending.last = performance.now(); };
const received = () => { pending.responses--; now(); };
window.fetch = (...given) => {
  pending.responses++;
  const answer = ask(...given);
  answer.then((response) => response.clone().arrayBuffer()).catch(() => {}).finally(received);
  return answer;
};
new MutationObserver(now).observe(document, { subtree: true, childList: true, characterData: true });
})()"""
# The longest debounce delay in the page is 350 ms.
QUIET = "!pending.responses && performance.now() - pending.last > 500 && !document.querySelector('.busy')"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@dataclass(frozen=True)
class Opened:
    """A loaded page: its elements, and the messages on its console."""

    dom: str
    console: list[str]


def program() -> str:
    """Return the path of Chromium, or skip the test if there is none."""
    found = next((found for name in NAMES if (found := shutil.which(name))), None)
    if found is None:
        pytest.skip("there is no Chromium; tests/install_chromium.sh installs it")
    return found


def open_page(path: Path, *, width: int = 1280, height: int = 900) -> Opened:
    """Load a page in a fresh profile."""
    browser = program()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [browser, "--headless", "--disable-gpu", "--no-first-run", f"--user-data-dir={profile}"]
        command += ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic"]
        command += ["--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--v=0"]
        command += [f"--window-size={width},{height}", "--virtual-time-budget=15000", "--dump-dom", path.as_uri()]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # Chromium refuses to run its sandbox as root
        done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    return Opened(done.stdout, re.findall(r"CONSOLE[^\]]*\] (.*)", done.stderr))


def violations(page: "Page", *rules: str) -> list[tuple[str, str, str]]:
    """Return each rule that a page violates according to axe, with the first element and the reason."""
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("rules => axe.run(rules.length ? { runOnly: rules } : {})", list(rules))
    firsts = [(problem["id"], problem["nodes"][0]) for problem in found["violations"]]
    return [(rule, node["html"][:160], node["failureSummary"]) for rule, node in firsts]


def stay_at(address: str, page: "Page", refused: list[str]) -> None:
    """Record a page's requests to other servers. ALONE makes them fail. A route would disable the HTTP cache."""

    def record(request: "Request") -> None:
        if not request.url.startswith((address, "about:", "data:", "blob:")):
            refused.append(f"asked for {request.url}")

    page.on("request", record)


def quiet(page: "Page") -> None:
    """Wait until a page has received all responses and has drawn them. PENDING must have been its init script.

    Playwright's "networkidle" occurs only once per document. The page's Content-Security-Policy forbids `eval`, which
    `wait_for_function` would use.
    """
    end = time.monotonic() + PATIENCE / 1000
    while not page.evaluate(QUIET):
        assert time.monotonic() < end, f"the page still waits: {page.evaluate('pending')}"
        page.wait_for_timeout(50)
