"""Debian's browser, and what is asked of every page in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser as Started
from playwright.sync_api import Page, sync_playwright
from support.programs import program

CHECKS = Path(__file__).with_name("page_checks.js").read_text("utf-8").rstrip()
OF_ITS_OWN = re.compile(
    r"<script(?![^>]* src=)|<style|href=.https?:|"
    r"<[a-z]+(?:\s+[\w:-]+(?:=(?:\"[^\"]*\"|[^\s\">]+))?)*?\s+(?:on[a-z]+|style)="
)
"""Scripts, styles and links to elsewhere in a page: what a policy that allows only files of the server would refuse."""


class Watched:
    """A page of the browser. complaints: what its console and its network had to say that nobody should hear."""

    def __init__(self, page: Page, base: str) -> None:
        self.page, self.base = page, base
        self.complaints: list[str] = []
        page.on("console", lambda message: self._heard(message.type, message.text))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("requestfailed", lambda request: self.complaints.append(f"failed: {request.url}"))

    def looks(self, width: int, scheme: Literal["light", "dark"]) -> None:
        """From now on the page is so many pixels wide, on a device of this scheme."""
        self.page.set_viewport_size({"width": width, "height": 800})
        self.page.emulate_media(color_scheme=scheme)

    def open(self, path: str, status: int = 200) -> Page:
        """Go to an address of the server; its answer has this status, and no script or style of its own."""
        got = self.page.goto(self.base + path)
        assert got is not None
        assert got.status == status, (path, got.status, self.page.inner_text("main"))
        assert not OF_ITS_OWN.search(got.text()), path
        return self.page

    def _heard(self, kind: str, text: str) -> None:
        # A browser says of every page with an error status that it has one; `open` looks at the status.
        if kind in ("error", "warning") and "the server responded with a status of" not in text:
            self.complaints.append(f"{kind}: {text}")

    def is_accessible(self) -> None:
        """One heading leads, none leaves a level out; all that can be used has a name; all can be read."""
        outline = self.check("outline")
        assert outline[0] == 1
        assert outline.count(1) == 1
        assert all(deeper - level <= 1 for level, deeper in pairwise(outline))
        assert self.check("landmarks") == [1, 1, 1]
        assert self.check("unlabelled") == []
        assert self.check("twice") == []
        assert self.check("faint") == []
        assert self.page.get_attribute("html", "lang") == "en"
        assert self.page.title().endswith("sfm-stream")

    def check(self, name: str) -> Any:
        """What one of page_checks.js says of the page."""
        return self.page.evaluate(f"() => {CHECKS}.{name}()")

    def does_not_scroll_sideways(self) -> None:
        width = self.page.viewport_size
        assert width is not None
        assert self.page.evaluate("document.documentElement.scrollWidth") <= width["width"]


class Browser:
    """A browser, of which each test takes pages. Nothing is kept between them but what a server lets it keep."""

    def __init__(self, started: Started, base: str) -> None:
        self._base = base
        self._contexts = {script: started.new_context(java_script_enabled=script) for script in (True, False)}

    @contextmanager
    def page(self, script: bool = True) -> Iterator[Watched]:
        """A page of its own. Nothing but the server may be asked; at the end nobody may have complained."""
        page, asked = self._contexts[script].new_page(), list[str]()
        page.on("request", lambda request: asked.append(request.url))
        watched = Watched(page, self._base)
        try:
            yield watched
            elsewhere = [url for url in asked if not url.startswith(f"{self._base}/")]
            assert not elsewhere, elsewhere
            assert not watched.complaints, watched.complaints
        finally:
            page.close()


@contextmanager
def browser(base: str) -> Iterator[Browser]:
    """The browser, for a server at this address. Skips, or fails in CI, where it is not installed."""
    path = program("chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield Browser(started, base)
        finally:
            started.close()
