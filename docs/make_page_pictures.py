"""Takes the pictures of docs/page.md from what the demo has published.

    make demo && .venv/bin/python -m docs.make_page_pictures

By hand, and not by `make docs`: it needs a browser, and noise differs from demo to demo. Needs playwright and chromium.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

from sfm_stream.config.config import load_config
from sfm_stream.serve.server import serving

FOLDER = Path(__file__).with_name("page")
PUBLISHED = Path(__file__).parents[1] / "examples" / "flights" / "published"
PICTURES = {
    "overview": ("/p/flights-by-carrier?by=month", 1000, 860),
    "key": ("/p/flights-by-carrier/key?key=UA&by=day&from=2013-01-01&to=2013-02-01", 1000, 860),
    "compare": ("/p/flights-by-origin/compare?key=EWR&other_key=JFK&last=1mo", 1000, 860),
    "worth": ("/p/flights-by-carrier/worth", 1000, 640),
    "phone": ("/p/flights-by-carrier/key?key=UA&by=day&from=2013-01-01&to=2013-02-01", 360, 860),
}
"""Name to address, width and height."""
IN_BOTH = ("overview", "key")
"""Pictures that are taken on a dark device too."""


def main() -> None:
    configs = [load_config(PUBLISHED / f"by_{field}.toml") for field in ("origin", "carrier")]
    FOLDER.mkdir(exist_ok=True)
    with serving(configs, "127.0.0.1:0") as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (address, width, height) in PICTURES.items():
            for scheme in ("light", "dark") if name in IN_BOTH else ("light",):
                page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                page.goto(f"http://127.0.0.1:{server.port}{address}")
                page.screenshot(path=FOLDER / f"{name}-{scheme}.png")
                page.close()
        browser.close()


if __name__ == "__main__":
    main()
