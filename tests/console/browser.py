"""Chromium, and a page of it that keeps what it asked for and what it complained of."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urljoin

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.helpers import time_factor


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run a Chromium without a window for the length of a `with` block; skip the test where there is none."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("there is no Chromium here: make tools says why")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


class Console:
    """The console in a tab. It is over if it asked any other server, or complained of what nobody `excused`."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.excused = False
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: self.complaints.append(message.text))

    def open(self) -> None:
        """Load it, and wait for what it shows first."""
        self.page.goto(self.url)
        expect(self.page.locator("body")).to_have_attribute("data-live", "yes")

    def sees(self, selector: str, text: Any) -> None:
        """Wait for an element to have this text: a string, or a pattern that is somewhere in it."""
        expect(self.page.locator(selector)).to_have_text(text)

    def texts(self, selector: str) -> list[str]:
        """Return the texts of all elements that are found."""
        return self.page.locator(selector).all_text_contents()

    def ground(self) -> tuple[int, int, int]:
        """Return the colour that all is on, as red, green and blue."""
        script = "getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).map(Number)"
        red, green, blue = self.page.evaluate(script)[:3]
        return red, green, blue


@contextmanager
def console(browser: Browser, url: str, **settings: Any) -> Iterator[Console]:
    """Open the console at a URL for the length of a `with` block; the settings are those of a browser's context."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **settings})
    context.set_default_timeout(10_000 * time_factor())
    expect.set_options(timeout=10_000 * time_factor())
    try:
        shown = Console(context.new_page(), url)
        shown.open()
        yield shown
        assert [asked for asked in shown.requests if not asked.startswith(urljoin(url, "/"))] == []
        assert shown.excused or shown.complaints == []
    finally:
        context.close()
