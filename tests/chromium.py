"""Chromium: where it is, what axe finds in a page, and how a page is kept from asking anybody else."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

AXE = Path(__file__).parent / "data" / "axe.min.js"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def program() -> str:
    """Where Chromium is; the test is skipped where there is none."""
    found = next((found for name in NAMES if (found := shutil.which(name))), None)
    if found is None:
        pytest.skip("there is no Chromium; tests/install_chromium.sh installs it")
    return found


def violations(page: "Page", *rules: str) -> list[tuple[str, str, str]]:
    """What axe finds wrong with a page: the rule, the first element, and why."""
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("rules => axe.run(rules.length ? { runOnly: rules } : {})", list(rules))
    firsts = [(problem["id"], problem["nodes"][0]) for problem in found["violations"]]
    return [(rule, node["html"][:160], node["failureSummary"]) for rule, node in firsts]


def stay_at(address: str, page: "Page", refused: list[str]) -> None:
    """Let a page ask this server and nobody else; what else it asks for is refused, and noted."""

    def decide(route: "Route") -> None:
        if route.request.url.startswith((address, "data:", "blob:")):
            route.continue_()
        else:
            refused.append(f"asked for {route.request.url}")
            route.abort()

    page.route("**/*", decide)
