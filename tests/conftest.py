"""Configure all tests: one thread per worker, no network, and no skipped tests in CI."""

import os
import signal
import subprocess
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

# Workers share the machine's cores. Set the variable before importing libraries that read it; subprocesses inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = "1"
# `make test &` starts child processes that ignore Ctrl-C. Without this line, every tested command would ignore it, too.
signal.signal(signal.SIGINT, signal.default_int_handler)
# A command's output must not depend on who runs the tests, or on that user's imported models.
os.environ["VIDRIO_MODELS"] = os.path.join(os.devnull, "none")
os.environ.update(COLUMNS="80", LC_ALL="C.UTF-8", NO_COLOR="1", PYTHONUTF8="1")

# Timings are unreliable on a shared machine, so there are no deadlines. Every run tests the same examples.
settings.register_profile("vidrio", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("vidrio")

SKIPS_FAIL = os.environ.get("CI", "").lower() not in ("", "0", "false")


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        *_, reason = report.longrepr if isinstance(report.longrepr, tuple) else (report.longrepr,)
        report.outcome = "failed"
        report.longrepr = f"In CI a skipped test is a failure. It was skipped because: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if SKIPS_FAIL:
        _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if SKIPS_FAIL:
        _fail_if_skipped(report)
    return report


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).resolve().parent.parent


@pytest.fixture
def run_vidrio(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `vidrio ARGUMENTS…` as a separate process in a temporary folder."""
    from forked import run_vidrio

    def run(*arguments: str, stdin: str = "", timeout: float = 120) -> subprocess.CompletedProcess[str]:
        return run_vidrio(*arguments, stdin=stdin, cwd=tmp_path, timeout=timeout)

    return run


@pytest.fixture
def call_vidrio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `vidrio ARGUMENTS…` in this process, which is faster. An error that is not printed fails the test."""
    from vidrio.cli import main

    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        code = main(list(arguments))
        return subprocess.CompletedProcess(arguments, code, *capsys.readouterr())

    return call


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Start a server with the packaged models and the page, and yield the server's address."""
    import serving

    with serving.server(model="", page=True) as there:
        yield there.address


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """Start Chromium without a window and without background requests."""
    from playwright.sync_api import expect, sync_playwright

    from chromium import ALONE, PATIENCE, program

    expect.set_options(timeout=PATIENCE)

    switches = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    switches.append(ALONE)
    executable = program()
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=executable, args=switches)
        yield opened
        opened.close()


CAR = "I bought a new car yesterday."


@pytest.fixture(scope="module")
def usual_context(server: str, browser: "Browser") -> Iterator["BrowserContext"]:
    """Share one browser context between pages that need none of their own. A page opens faster if the browser has
    loaded it before and another page from the server keeps the process alive."""
    context = browser.new_context()
    context.new_page().goto(f"{server}health")
    yield context
    context.close()


@pytest.fixture
def open_page(server: str, browser: "Browser", usual_context: "BrowserContext") -> Iterator[Callable[..., "Page"]]:
    """Open the page at a view. It may only send requests to this server and must not print to the console."""
    from urllib.parse import urlencode

    from chromium import PATIENCE, PENDING, stay_at

    pages: list[Page] = []
    said: list[str] = []

    def opened(width: int = 1440, height: int = 1000, context: dict[str, Any] | None = None, **view: Any) -> "Page":
        page = (usual_context if context is None else browser.new_context(**context)).new_page()
        pages.append(page)
        page.set_viewport_size({"width": width, "height": height})
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda message: said.append(message.text) if message.type != "log" else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        stay_at(server, page, said)
        page.add_init_script(PENDING)
        page.goto(f"{server}#{urlencode({'text': CAR, **view}, doseq=True)}")
        page.locator(".towers canvas, .refused").first.wait_for(state="attached")
        return page

    yield opened
    for page in pages:
        if page.context is usual_context:
            page.close()
        else:
            page.context.close()
    usual_context.pages[0].evaluate("localStorage.clear()")
    assert not [line for line in said if "status of 400" not in line]  # an error response, which the page explains


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="Write tests/golden/ anew.")


@pytest.fixture
def golden(request: pytest.FixtureRequest, repository: Path) -> Callable[[str, str], None]:
    """Compare a text with a file in tests/golden/, or write the file if pytest is run with --update-golden."""

    def check(name: str, text: str) -> None:
        path = repository / "tests" / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path} is missing: pytest --update-golden writes it"
        assert text == path.read_text("utf-8")

    return check
